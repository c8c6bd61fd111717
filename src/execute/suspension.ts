/**
 * Suspended calls: their data, and the interface that creates and reads tickets.
 *
 * @module
 */

import type {
  Answer,
  ArgumentRepair,
  Question,
  SuspendedCall,
  Tool,
  ToolFailure,
} from "../tool/mod.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";

/** The stored data of a question or a step. JSON. */
export interface KeptAnswer {
  /** A fingerprint of the question. */
  readonly asked?: string;
  readonly answer?: Answer;
  /** The result of the step. */
  readonly result?: unknown;
}

/** The data that resumes a call, by key. At most 64 keys and 64 kB of JSON. */
export interface CallMemory {
  readonly [key: string]: KeptAnswer;
}

/** Repaired arguments. A resumed call is not repaired again. */
export interface RepairedArguments {
  /** JSON. */
  readonly arguments: unknown;
  /** The changes, for the result. */
  readonly repairs: readonly ArgumentRepair[];
}

/** A suspended call. */
export interface WaitingCall {
  readonly tool: Tool;
  readonly callId: string;
  readonly context: DispatchContext;
  /** The caller's arguments. JSON. */
  readonly arguments: unknown;
  readonly repaired?: RepairedArguments | undefined;
  readonly questions: readonly Question[];
  readonly memory: CallMemory;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** A ticket to resume a call. */
export interface ReturnedTicket {
  readonly request: ResumedCall;
  readonly principal: string | undefined;
  /** The host's context. It must equal the suspended call's. */
  readonly context?: unknown;
  /** Returns the caller's tool with an id. */
  readonly findTool: (id: string) => Tool | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The data of a resumed call. */
export interface Resumption {
  readonly call: ToolCall;
  readonly repaired?: RepairedArguments | undefined;
  readonly context: Pick<DispatchContext, "sessionId" | "messageId" | "idempotencyKey">;
  readonly memory: CallMemory;
  /** Makes the ticket valid again, because the call ended before its tool ran. */
  release(): Promise<void>;
}

/**
 * Creates and reads tickets of suspended calls. `sealedTickets` and `storedTickets` of
 * `@plue/tools/calls` create it.
 */
export interface CallTickets {
  /**
   * Returns the result of a suspended call with its ticket, or a failure with the reason why there
   * is none.
   */
  suspend(call: WaitingCall): Promise<SuspendedCall | ToolFailure>;
  /**
   * Returns the data that resumes a ticket's call, or the reason for its rejection. Rejects if the
   * ticket cannot be looked up now.
   */
  resume(ticket: ReturnedTicket): Promise<Resumption | ToolFailure>;
}
