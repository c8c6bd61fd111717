/**
 * Calls that wait: the port that makes their tickets and reads them, and the calls that continue.
 */

import type { CallSettings } from "./layer.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";
import type { Toolset } from "../select/mod.ts";
import {
  type Answer,
  type ArgumentRepair,
  fail,
  noop,
  type Question,
  type SuspendedCall,
  TIME_OVER,
  type Tool,
  type ToolFailure,
  within,
} from "../tool/mod.ts";

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

const resumptions: WeakMap<ToolCall, Resumption> = new WeakMap();

/** How a suspended call continues; `undefined` for a new call. */
export function resumptionOf(request: ToolCall): Resumption | undefined {
  return resumptions.get(request);
}

/** The call of a ticket, or the failure that ends it. Throws whatever the tickets throw. */
export async function resume(
  tickets: CallTickets,
  settings: CallSettings,
  toolset: () => Toolset,
  request: ResumedCall,
  options: DispatchContext,
): Promise<readonly [ToolCall, DispatchContext] | ToolFailure> {
  const pending = tickets.resume({
    request,
    principal: options.principal,
    context: options.context,
    findTool: (id) => toolset().resolve(id),
    now: settings.clock.timestamp(),
  });
  const answer = await inTime(settings, pending).catch((error) => {
    // Nothing has run, so the ticket stays valid.
    pending.then((late) => "ok" in late ? undefined : late.release()).catch(noop);
    throw error;
  });
  if ("ok" in answer) return answer;
  resumptions.set(answer.call, answer);
  return [answer.call, { ...options, ...answer.context }];
}

/** Waits for a store of the host. Rejects if that takes longer than `closeTimeoutMs`. */
export async function inTime<T>(
  { clock, closeTimeoutMs }: CallSettings,
  work: Promise<T>,
): Promise<T> {
  const answer = await within(clock, closeTimeoutMs, work);
  return answer === TIME_OVER ? fail("use the store", "it took too long") : answer;
}
