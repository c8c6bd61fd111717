/**
 * Questions of tools and approvers to the caller. If the caller cannot answer immediately, the call
 * is suspended: it ends with a ticket, and resumes with the answers.
 */

import { checkPort, MAX_TIMEOUT_MS, numberFrom, type QuestionFields } from "../../tool/mod.ts";
import { resumptions } from "../context.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer } from "../layer.ts";
import { QuestionSession } from "../question_session.ts";
import type { CallTickets } from "../request.ts";
import type { RepairLayer } from "./repair.ts";

/** The layer of questions, and the questions of a call for other layers. */
export interface QuestionsLayer extends Layer {
  /** A layer directly around the tool, for layers that run the tool again, such as a retry. */
  readonly again: Layer;
  /** Returns the questions of a call. Must be called at the start of a resumed call. */
  of(call: Call): QuestionSession;
}

/** Options for {@linkcode questions}. */
export interface QuestionOptions {
  /** Suspends calls whose callers cannot answer immediately. The same tickets resume them. */
  readonly tickets?: CallTickets | undefined;
  /**
   * The time limit for an answer during the call, in milliseconds. It does not count against the
   * call's timeout.
   *
   * @default {600_000}
   */
  readonly timeoutMs?: number | undefined;
  /** The layer of repairs. Tickets store its repaired arguments. */
  readonly repair?: RepairLayer | undefined;
}

/**
 * Creates a layer that adds `context.ask` and `context.step`. A question is passed to the
 * `onQuestion` of the call. If the caller cannot answer immediately, the call fails with
 * `input_unavailable` or, with tickets, is suspended: it ends with `input_required` and a ticket.
 * Stage `call`; `again` is directly around the tool, inside layers that run the tool again.
 *
 * @throws {TypeError | RangeError} If the tickets lack a function, or the timeout is invalid.
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
      session = new QuestionSession(call, settings, resumptions.get(call.request));
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
      ask: (call) => (key: string, question: QuestionFields) => of(call).ask(key, question),
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
