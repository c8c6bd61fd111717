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
  MAX_TIMEOUT_MS,
  NO_LOG,
  numberFrom,
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
import type { RepairLayer } from "./repair.ts";
import { QuestionSession } from "../question_session.ts";

/** The layer of questions, and the questions of a call for other layers. */
export interface QuestionsLayer extends Layer {
  /** Next to the tool: for hooks and layers that run it again, such as a retry. */
  readonly again: Layer;
  /** The questions of a call. Required at the start of one that continues. */
  of(call: Call): QuestionSession;
}

/** Options for {@linkcode questions}. */
export interface QuestionOptions {
  /**
   * Lets calls wait for answers that their callers cannot give at once. A `ToolDispatcher` with the
   * same tickets continues them.
   */
  readonly tickets?: CallTickets | undefined;
  /**
   * How long the caller may take to answer at once, in milliseconds. It does not count against the
   * call's timeout.
   *
   * @default {600_000}
   */
  readonly timeoutMs?: number;
  /** Repairs arguments: a call that continues is not repaired again. */
  readonly repair?: RepairLayer | undefined;
}

/**
 * A layer that gives tools `context.ask` and `context.step`.
 *
 * @throws {TypeError | RangeError} If the tickets lack a function, or the timeout is wrong.
 */
export function questions(
  { tickets, timeoutMs: limitMs = 600_000, repair }: QuestionOptions = {},
): QuestionsLayer {
  checkPort(MAKE, "tickets", tickets, ["suspend", "resume"]);
  const timeoutMs = numberFrom(1, MAX_TIMEOUT_MS)(MAKE, limitMs, "approvalTimeoutMs");
  const settings = { tickets, timeoutMs, repairedOf: (call: Call) => repair?.of(call) };
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
