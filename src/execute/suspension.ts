/**
 * Calls that wait: what a dispatcher tells of one, and the port that makes its ticket and reads it.
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

/** What is kept of a question or a step. JSON. */
export interface KeptAnswer {
  /** A fingerprint of the question. */
  readonly asked?: string;
  readonly answer?: Answer;
  /** The result of the step. */
  readonly result?: unknown;
}

/** What a call must be told to go on, by key. At most 64 keys and 64 kB of JSON. */
export interface CallMemory {
  readonly [key: string]: KeptAnswer;
}

/** What a repair has made of arguments. A call that goes on is not repaired again. */
export interface RepairedArguments {
  /** JSON. */
  readonly arguments: unknown;
  /** What was done, for the result. */
  readonly repairs: readonly ArgumentRepair[];
}

/** A call that waits for answers. */
export interface WaitingCall {
  readonly tool: Tool;
  readonly callId: string;
  readonly context: DispatchContext;
  /** The arguments, as the caller gave them. JSON. */
  readonly arguments: unknown;
  readonly repaired?: RepairedArguments | undefined;
  readonly questions: readonly Question[];
  readonly memory: CallMemory;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** A ticket that came back. */
export interface ReturnedTicket {
  readonly request: ResumedCall;
  readonly principal: string | undefined;
  /** The host's context. It must be that of the suspended call. */
  readonly context?: unknown;
  /** The caller's tool with that id. */
  readonly findTool: (id: string) => Tool | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** How a call goes on. */
export interface Resumption {
  readonly call: ToolCall;
  readonly repaired?: RepairedArguments | undefined;
  readonly context: Pick<DispatchContext, "sessionId" | "messageId" | "idempotencyKey">;
  readonly memory: CallMemory;
  /** Makes the ticket valid again: the call has ended before its tool ran. */
  release(): Promise<void>;
}

/**
 * Makes tickets of calls that wait, and reads them. `sealedTickets` and `storedTickets` of
 * `@plue/tools/calls` make it.
 */
export interface CallTickets {
  /** The result of a call that waits, with its ticket; or a failure that says why it has none. */
  suspend(call: WaitingCall): Promise<SuspendedCall | ToolFailure>;
  /** How the call of a ticket goes on, or why it does not. Rejects if that cannot be told now. */
  resume(ticket: ReturnedTicket): Promise<Resumption | ToolFailure>;
}
