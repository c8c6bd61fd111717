/**
 * Calls that wait: the port that makes their tickets and reads them, and the calls that continue.
 *
 * @module
 */

import type { CallSettings } from "./layer.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";
import type { Toolset } from "../select/mod.ts";
import {
  type Answer,
  type ArgumentRepair,
  NO_LOG,
  type Question,
  refuse,
  type SuspendedCall,
  TIME_OVER,
  type Tool,
  type ToolFailure,
  within,
} from "../tool/mod.ts";

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

const resumptions: WeakMap<ToolCall, Resumption> = new WeakMap();

/** Remembers that the request of this resumption continues a suspended call. */
export function rememberResumption(resumption: Resumption): ToolCall {
  resumptions.set(resumption.call, resumption);
  return resumption.call;
}

/** How a suspended call continues; `undefined` for a new call. */
export function resumptionOf(request: ToolCall): Resumption | undefined {
  return resumptions.get(request);
}

/** True if the call continues a suspended one. */
export function isResumed(request: ToolCall): boolean {
  return resumptions.has(request);
}

/**
 * The call of a ticket, with what its host adds, or the failure that says why it does not continue.
 *
 * @throws Whatever the tickets throw.
 */
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
    pending.then((late) => "ok" in late ? undefined : late.release()).catch(NO_LOG);
    throw error;
  });
  if ("ok" in answer) return answer;
  const resumption: Resumption = answer;
  return [rememberResumption(resumption), { ...options, ...resumption.context }];
}

/** Waits for what tickets do. Rejects if that takes too long. */
export async function inTime<T>(
  { clock, closeTimeoutMs }: CallSettings,
  work: Promise<T>,
): Promise<T> {
  const answer = await within(clock, closeTimeoutMs, work);
  return answer === TIME_OVER ? refuse("use the ticket", "it took too long") : answer;
}
