/** One call of `run_code`: the program, its calls, and their questions. */

import { type Call, CallFailure, type DispatchContext, resumptions } from "../../execute/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { clip, isSuspended, setOwn } from "../../tool/mod.ts";
import type { CodeLimits, Executor, ProgramCall, ProgramEnd } from "./executor.ts";

/** The options of a code tool, checked and complete. */
export interface CodeSettings {
  readonly executor: Executor;
  readonly limits: Required<CodeLimits>;
}

/** A call of a program that waits for a person, and the answers so far. */
interface WaitingCall extends Pick<check.SuspendedCall, "ticket" | "questions"> {
  readonly index: number;
  readonly id: string;
  readonly print: string;
  readonly answers?: check.Answers;
}

/** A suspension of the program, stored as a step of the call. JSON. */
interface Suspension {
  readonly time: number;
  /** The time for which the program had run, in milliseconds. */
  readonly ranMs: number;
  readonly waiting: readonly WaitingCall[];
  readonly replies: readonly (readonly [index: number, print: string, text: string])[];
}

/** A call of a program, as the metadata of `run_code` reports it: once it starts, and once it ends. */
export interface ProgramCallState {
  readonly type: "call";
  /** The number of the call in its program, from 0. */
  readonly index: number;
  readonly tool: string;
  /** `ok` or a failure code; `input_required` while it waits for a person; absent while it runs. */
  readonly outcome?: string;
  readonly message?: string;
  /** The time from the start of the program to the start of the call, in milliseconds. */
  readonly startMs?: number;
  readonly durationMs?: number;
}

/**
 * The maximum number of questions of a suspension. Those of two suspensions and a step must be within
 * the 64 keys of a call. Calls without an answer wait for the next suspension.
 */
const MAX_QUESTIONS = 31;
const MAX_FAILURES = 20;
const MAX_MESSAGE = 500;

export class CodeRun {
  readonly #call: Call;
  readonly #settings: CodeSettings;
  readonly #tools: Toolset;
  readonly #suspensions: Suspension[] = [];
  #waiting: Map<number, WaitingCall> = new Map();
  #failures: ({ readonly tool: string } & Failure)[] = [];
  /** The results since the last suspension, up to the limit of a call's steps. */
  #replies: (readonly [call: ProgramCall | Printed, text: string])[] = [];
  #room = 65_536;
  /** The results to replay to a resumed program, in this order. */
  #stored: Suspension["replies"] = [];
  #repeated = 0;
  #wakeRepeated: (() => void)[] = [];
  readonly #begun: Promise<unknown>[] = [];
  #hasEnded = false;
  #begunAt = 0;
  #running = 0;
  /** The number of persons for whom the time of the program does not pass. */
  #persons = 0;
  #resumeTime = (): void => {};
  /** The calls that wait because the maximum number of calls is running. */
  readonly #queue: (() => void)[] = [];

  constructor(call: Call, tools: Toolset, settings: CodeSettings) {
    this.#call = call;
    this.#tools = tools;
    this.#settings = settings;
  }

  async run(source: string): Promise<unknown> {
    const { executor, limits } = this.#settings;
    const { deadline: { signal }, request, settings: { clock } } = this.#call;
    const memory = resumptions.get(request)?.memory ?? {};
    for (let number = 1; memory[stepOf(number)] !== undefined; number++) {
      this.#suspensions.push(memory[stepOf(number)]?.result as Suspension);
    }
    for (;;) {
      const last = this.#suspensions.at(-1);
      const { time = Math.trunc(clock.timestamp()), ranMs = 0, waiting = [] } = last ?? {};
      await this.#ask(waiting);
      this.#stored = this.#suspensions.flatMap(({ replies }) => replies);
      this.#repeated = 0;
      this.#begunAt = clock.now() - ranMs;
      let end: ProgramEnd | undefined;
      try {
        end = await executor.run({ source, limits, time, signal, call: this.#run.bind(this) });
      } finally {
        // Calls of a stopped or failed program may still run, and end before `run_code` ends.
        this.#hasEnded = end?.kind !== "suspended";
        if (this.#hasEnded) await Promise.allSettled(this.#begun);
      }
      if (end.kind !== "suspended") return this.#resultOf(end);
      await this.#suspend(time);
    }
  }

  /** Asks the caller the questions of waiting calls, which suspends this call without answers. */
  async #ask(waiting: readonly WaitingCall[]): Promise<void> {
    const { ask } = this.#call.context;
    const step = stepOf(this.#suspensions.length);
    const calls = waiting.map((call) => ({ ...call, answers: {} }));
    const questions = calls.flatMap(({ index, questions, answers }) =>
      questions.map((question, at) => ({ question, answers, key: `${step}.${index}.${at}` }))
    );
    await Promise.all(
      questions.slice(0, MAX_QUESTIONS).map(async ({ question, answers, key }) =>
        setOwn(answers, question.key, await ask(key, check.forwardedQuestion(question)))
      ),
    );
    this.#waiting = new Map(calls.map((call) => [call.index, call]));
    this.#failures = [];
  }

  async #run(call: ProgramCall): Promise<string | undefined> {
    const { index, id } = call;
    const at = this.#stored.findIndex(([other]) => other === index);
    const [, before = this.#waiting.get(index)?.print, text] = this.#stored[at] ?? [];
    const expected = at < 0 ? this.#stored.length : at;
    if (before === undefined ? this.#repeated < expected : before !== printOf(call)) {
      throw new CallFailure("ticket_refused", "the program did not repeat its calls; call again");
    }
    // The order of results determines the order of calls in concurrent parts of the program.
    while (this.#repeated < expected) {
      await new Promise<void>((resolve) => this.#wakeRepeated.push(resolve));
    }
    if (text === undefined) {
      const reply = this.#dispatch(call);
      this.#begun.push(reply);
      return await reply;
    }
    // A stored result, too, is only for a caller whose toolset has the tool.
    const reply: Reply = JSON.parse(text);
    if (reply.ok && !this.#tools.resolve(id)) {
      throw new CallFailure("ticket_refused", `there is no tool ${JSON.stringify(id)} anymore`);
    }
    this.#repeated++;
    for (const wake of this.#wakeRepeated.splice(0)) wake();
    this.#end(index, id, reply);
    return text;
  }

  async #dispatch(call: ProgramCall): Promise<string | undefined> {
    const { maxConcurrentCalls } = this.#settings.limits;
    if (this.#running < maxConcurrentCalls) this.#running++;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return this.#hasEnded ? undefined : await this.#dispatchNow(call);
    } finally {
      // The next queued call begins.
      const next = this.#queue.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  async #dispatchNow(call: ProgramCall): Promise<string | undefined> {
    const { index, id, json } = call;
    const { callId, settings: { clock } } = this.#call;
    const startMs = clock.now() - this.#begunAt;
    this.#report(index, id, { startMs });
    const waiting = this.#waiting.get(index);
    this.#waiting.delete(index);
    const request = waiting === undefined
      ? { name: id, arguments: json, callId: `${callId.slice(0, 250)}.${index}` }
      : { ticket: waiting.ticket, answers: waiting.answers ?? {} };
    const isForPerson = waiting?.questions.some((one) => one.resumes);
    const ends = isForPerson ? [this.#pause()] : [];
    const result = await this.#call.dispatch(this.#tools, request, this.#contextOf(index, ends));
    for (const end of ends) end();
    if (isSuspended(result)) {
      const { ticket, questions } = result;
      this.#waiting.set(index, { index, id, print: printOf(call), ticket, questions });
      this.#report(index, id, { startMs, outcome: "input_required" });
      return undefined;
    }
    const reply = replyOf(result);
    const text = JSON.stringify(reply);
    this.#end(index, id, reply, { startMs, durationMs: clock.now() - this.#begunAt - startMs });
    // A suspension fails after the first result above the limit.
    if (this.#room >= 0) {
      // Short arguments are hashed if the program suspends: this takes a fifth of the time of a call.
      this.#replies.push([json.length > 1_000 ? { index, print: printOf(call) } : call, text]);
    }
    this.#room -= text.length;
    return text;
  }

  /** Pauses the time of the program. The returned function must be called once. */
  #pause(): () => void {
    if (this.#persons++ === 0) this.#resumeTime = this.#call.deadline.suspend(check.MAX_TIMEOUT_MS);
    return () => void (--this.#persons || this.#resumeTime());
  }

  /** @param ends Receives functions to call at the end of the call. */
  #contextOf(index: number, ends: (() => void)[]): DispatchContext {
    const { options, deadline: { signal } } = this.#call;
    const { principal, sessionId, messageId, services, context, trace } = options;
    const { onQuestion, idempotencyKey: key } = options;
    return {
      ...{ principal, sessionId, messageId, services, context, trace, signal },
      // The key may already have the maximum length of 256 characters.
      idempotencyKey: key === undefined ? key : `${check.fingerprint(key)}#${index}`,
      ...(onQuestion && {
        onQuestion: async (question, call) => {
          // The time of the program does not pass while a person answers, or gives a permission.
          const end = this.#pause();
          try {
            return await onQuestion.call(options, question, call);
          } finally {
            if (question.resumes) ends.push(end);
            else end();
          }
        },
      }),
    };
  }

  /** Reports the end of a call. A call that a resumed program repeats has no times. */
  #end(index: number, tool: string, reply: Reply, times: Partial<ProgramCallState> = {}): void {
    if (reply.ok) return this.#report(index, tool, { ...times, outcome: "ok" });
    const { code: outcome, message: text } = reply.value as Failure;
    const message = clip(text, MAX_MESSAGE);
    this.#collect(tool, { code: outcome, message });
    this.#report(index, tool, { ...times, outcome, message });
  }

  #report(index: number, id: string, state: Partial<ProgramCallState>): void {
    const { context, options } = this.#call;
    if (options.metadata === undefined) return;
    context.metadata({ type: "call", index, tool: clip(id), ...state });
  }

  #collect(tool: string, failure: Failure): void {
    if (this.#failures.length < MAX_FAILURES) this.#failures.push({ tool: clip(tool), ...failure });
  }

  async #suspend(time: number): Promise<void> {
    const ranMs = this.#call.settings.clock.now() - this.#begunAt;
    const waiting = [...this.#waiting.values()];
    const replies = this.#replies.map(([call, text]) =>
      [call.index, "print" in call ? call.print : printOf(call), text] as const
    );
    const suspension = { time, ranMs, waiting, replies };
    await this.#call.context.step(stepOf(this.#suspensions.length + 1), () => suspension);
    this.#suspensions.push(suspension);
    this.#replies = [];
  }

  #resultOf(end: Exclude<ProgramEnd, { kind: "suspended" }>): unknown {
    for (const { id } of this.#waiting.values()) {
      const message = "the program ended before a person answered";
      this.#collect(id, { code: "input_required", message });
    }
    const log = end.kind === "stopped" ? "" : end.log.join("\n");
    const failures = this.#failures;
    if (end.kind === "returned") {
      const value: unknown = JSON.parse(end.json);
      return { value, ...(log && { log }), ...(failures.length > 0 && { failures }) };
    }
    const why = end.kind === "stopped"
      ? end.why
      : `the program threw${end.line ? ` in line ${end.line}` : ""}: ${end.message}`;
    const failed = failures.map(({ tool, code, message }) => `${tool} (${code}): ${message}`);
    const lines = [why, ...(failed.length > 0 ? ["Failed calls:", ...failed] : [])];
    return this.#call.fail("threw", [...lines, ...(log ? ["Log:", log] : [])].join("\n"));
  }
}

type Printed = { readonly index: number; readonly print: string };

const printOf = ({ id, json }: ProgramCall): string =>
  check.fingerprint(JSON.stringify([id, json]));

const stepOf = (number: number): string => `program.${number}`;

type Failure = { readonly code: string; readonly message: string };
type Reply = { readonly ok: boolean; readonly value: unknown };

function replyOf(result: check.ToolResult): Reply {
  if (!result.ok) {
    const { code, message } = result.error;
    return { ok: false, value: { code, message } };
  }
  if (!result.blocks) return { ok: true, value: result.content ?? null };
  const { structuredContent, content } = result.content as check.ToolContent;
  return { ok: true, value: structuredContent ?? content };
}
