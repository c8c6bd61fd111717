/**
 * Which calls continue a suspended one. The request of such a call is created from its ticket.
 *
 * @module
 */

import type { Toolset } from "../select/mod.ts";
import { NO_LOG, refuse, TIME_OVER, type ToolFailure, within } from "../tool/mod.ts";
import type { CallSettings } from "./layer.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";
import type { CallTickets, Resumption } from "./suspension.ts";

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
