/**
 * Questions of tools and approvers to the caller. A call whose caller cannot answer at once is
 * suspended: it ends with a ticket, and continues with the answers.
 *
 * @module
 */

import type { Toolset } from "../../select/mod.ts";
import {
  checkPort,
  type FailureCode,
  NO_LOG,
  refuse,
  TIME_OVER,
  type ToolFailure,
  ToolResult,
  within,
} from "../../tool/mod.ts";
import { type KernelSettings, MAKE } from "../kernel_options.ts";
import type { Call, Layer } from "../layer.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "../request.ts";
import { rememberResumption, resumptionOf } from "../resumption.ts";
import type { CallTickets, Resumption } from "../suspension.ts";
import { QuestionSession, type QuestionSettings } from "./question_session.ts";

/** The layer of questions, and the questions of a call for other layers. */
export interface QuestionsLayer extends Layer {
  /** Next to the tool: for hooks and layers that run it again, such as a retry. */
  readonly again: Layer;
  /** The questions of a call. Required at the start of one that continues. */
  of(call: Call): QuestionSession;
}

/**
 * A layer that gives tools `context.ask` and `context.step`.
 *
 * @throws {TypeError} If the tickets lack a function.
 */
export function questions(settings: QuestionSettings): QuestionsLayer {
  checkPort(MAKE, "tickets", settings.tickets, ["suspend", "resume"]);
  const sessions: WeakMap<Call, QuestionSession> = new WeakMap();
  const of = (call: Call): QuestionSession => {
    let session = sessions.get(call);
    if (session === undefined) {
      session = new QuestionSession(call, settings, resumptionOf(call.request));
      sessions.set(call, session);
      call.atEnd(session.close.bind(session));
    }
    return session;
  };
  return {
    name: "questions",
    stage: "call",
    of,
    context: {
      ask: (call) => (...question: Parameters<QuestionSession["ask"]>) => of(call).ask(...question),
      step: (call) => <Result>(key: string, work: () => Result | Promise<Result>) =>
        of(call).step(key, work),
    },
    again: {
      name: "questions-again",
      stage: "run",
      when: ({ toolState }) => toolState === "ended",
      for: () => (call, next) => {
        sessions.get(call)?.runAgain();
        return next(call);
      },
    },
  };
}

/**
 * The call of a ticket, with what its host adds, or the failure that says why it does not continue.
 *
 * @throws Whatever the tickets throw.
 */
export async function resume(
  tickets: CallTickets | undefined,
  { clock, closeTimeoutMs }: KernelSettings,
  toolset: () => Toolset,
  request: ResumedCall,
  options: DispatchContext,
): Promise<readonly [ToolCall, DispatchContext] | ToolFailure> {
  if (tickets === undefined) return cannotResume("ticket_refused", "the option tickets is not set");
  const pending = tickets.resume({
    request,
    principal: options.principal,
    context: options.context,
    findTool: (id) => toolset().resolve(id),
    now: clock.timestamp(),
  });
  const answer = await within(clock, closeTimeoutMs, pending);
  if (answer === TIME_OVER) {
    // Nothing has run, so the ticket stays valid.
    pending.then((late) => "ok" in late ? undefined : late.release()).catch(NO_LOG);
    refuse("use the ticket", "it took too long");
  }
  if ("ok" in answer) return answer;
  const resumption: Resumption = answer;
  return [rememberResumption(resumption), { ...options, ...resumption.context }];
}

/** The failure of a suspended call that does not continue. */
export function cannotResume(code: FailureCode, why: string): ToolFailure {
  return ToolResult.error(code, `Cannot continue the call: ${why}`);
}
