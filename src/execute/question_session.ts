/**
 * The questions and the steps of one call. Created when its tool first asks or takes a step, or when
 * the call continues.
 *
 * @module
 */

import { CallView } from "./context.ts";
import { CallFailure, InputUnavailable } from "./failures.ts";
import { fingerprintOf } from "./idempotency.ts";
import { describeRefusal, frozenCopy, readJson, utf8Length } from "./json_value.ts";
import type { Call } from "./layer.ts";
import {
  type CallTickets,
  inTime,
  type KeptAnswer,
  type RepairedArguments,
  type Resumption,
} from "./suspension.ts";
import { admitSchema, compileOnce, issuesOf, type SchemaEngine } from "../schema/mod.ts";
import {
  type Answer,
  checkWord,
  cleanText,
  describe,
  describeThrown,
  isObject,
  type Issue,
  type JsonSchema,
  must,
  NO_LOG,
  type Question,
  type QuestionFields,
  type QuestionKind,
  readFields,
  refuse,
  type ToolResult,
  untilAborted,
  within,
} from "../tool/mod.ts";

/** How many questions and steps a call has at most. */
const MAX_KEYS = 64;
/** The key of the question whether a call may run. No tool can use it. */
const APPROVAL_KEY = "plue:approval";

const KEY = /^[\w.-]{1,64}$/;
/** How often a question is asked whose answers do not fit, while the caller answers at once. */
const MAX_TRIES = 10;

/** Ends a call that waits for answers, for its layers and its tool. */
class Suspended extends CallFailure {
  override readonly name = "AbortError";

  constructor() {
    super("input_required", "it waits for an answer");
  }
}

/** What the questions of a call use of its dispatcher. */
export interface QuestionSettings {
  readonly tickets: CallTickets | undefined;
  /** How long the caller may take to answer at once, in milliseconds. */
  readonly timeoutMs: number;
  /** What was repaired in the arguments of a call. */
  repairedOf(call: Call): RepairedArguments | undefined;
}

export class QuestionSession {
  readonly #call: Call;
  readonly #settings: QuestionSettings;
  readonly #resumed: Resumption | undefined;
  /** What was asked, answered and done so far, by key. */
  readonly #memory: Map<string, KeptAnswer>;
  /** The keys that this run has used. */
  readonly #keys: Set<string> = new Set();
  /** The questions that wait for the call to be continued. */
  readonly #waiting: Map<string, Question> = new Map();
  /** The steps that were begun. */
  readonly #taken: Set<Promise<unknown>> = new Set();
  /** What was wrong with a question or a step of the tool. */
  #misuse: unknown;
  /** How many questions the caller is being asked. */
  #asking = 0;
  #resumeTime: (() => void) | undefined;

  constructor(call: Call, settings: QuestionSettings, resumed?: Resumption) {
    this.#call = call;
    this.#settings = settings;
    this.#resumed = resumed;
    this.#memory = new Map(Object.entries(resumed?.memory ?? {}));
  }

  /** Asks a question of the tool. */
  ask(key: string, fields: QuestionFields): Promise<Answer> {
    return handled(this.#ask(key, KEY.test(key), fields));
  }

  /** Asks whether the call may run. */
  askApproval(message: string): Promise<Answer> {
    return this.#ask(APPROVAL_KEY, true, { kind: "approval", message });
  }

  /** Takes a step of the tool, or gives the result that it had. */
  step<Result>(key: string, work: () => Result | Promise<Result>): Promise<Result> {
    return handled(this.#step(key, work));
  }

  async #ask(key: string, isKey: boolean, fields: QuestionFields): Promise<Answer> {
    let question = this.#begin(
      "ask",
      key,
      isKey,
      (action) => readQuestion(action, key, fields, this.#call.host.engine),
    );
    const isAboutCall = question.kind === "approval" || question.kind === "client";
    if (isAboutCall) {
      question = { ...question, arguments: shownArguments(this.#call) };
    }
    const asked = fingerprintOf(question);
    const before = this.#memory.get(key);
    // A yes counts only for the message and the arguments that were shown.
    const isSame = !isAboutCall || before?.asked === asked;
    let answer = isSame ? before?.answer : undefined;
    for (let tries = 0;; tries++) {
      if (answer !== undefined) {
        const issues = this.#misfits(question, answer);
        if (issues.length === 0) {
          this.#keep(key, { asked, answer });
          return answer;
        }
        question = { ...question, issues };
      }
      if (this.#call.options.onQuestion === undefined) break;
      if (tries === MAX_TRIES) {
        throw new InputUnavailable(`the answers to "${key}" did not fit ${MAX_TRIES} times`);
      }
      const given = await this.#askCaller(question);
      if (given === null) throw new InputUnavailable("its caller cannot be asked that");
      answer = given;
      if (answer === undefined) break;
    }
    this.#keep(key, { asked });
    return await this.#wait(question);
  }

  /** Asks the caller, who may be able to answer now. The wait has a limit of its own. */
  async #askCaller(question: Question): Promise<Answer | undefined | null> {
    const call = this.#call;
    const { deadline, options } = call;
    if (this.#asking++ === 0) this.#resumeTime = deadline.suspend(this.#settings.timeoutMs);
    let why = "its caller could not be asked";
    try {
      const asked = (async () => await options.onQuestion?.(question, new CallView(call)))();
      const answer: unknown = await untilAborted(asked, deadline.signal);
      why =
        `the answer to "${question.key}" must have the "action" accept, decline or cancel, in at most 64 kB`;
      return answer === undefined || answer === null
        ? answer
        : readAnswer(answer) ?? refuse("take an answer", why);
    } catch (error) {
      deadline.throwIfAborted();
      call.report("ask", error);
      throw new InputUnavailable(why);
    } finally {
      if (--this.#asking === 0) this.#resumeTime?.();
    }
  }

  /** The tool runs again in this call: its keys are free, and what was answered and done is kept. */
  runAgain(): void {
    this.#keys.clear();
  }

  /** Suspends the call. Never resolves. */
  #wait(question: Question): Promise<never> {
    const { deadline } = this.#call;
    if (this.#settings.tickets === undefined) {
      throw new InputUnavailable("it asks a question, and its caller cannot be asked");
    }
    this.#waiting.set(question.key, question);
    if (this.#waiting.size === 1) {
      // Not at once: a tool may ask several questions together.
      void this.#settleSteps().then(() => deadline.abort(new Suspended()));
    }
    return untilAborted(new Promise<never>(() => {}), deadline.signal);
  }

  /** Waits for the steps that are being taken: their results are kept, so they are not repeated. */
  async #settleSteps(): Promise<void> {
    const { clock, graceMs } = this.#call.settings;
    await undefined;
    // A step that asks a question itself never ends.
    if (this.#taken.size > 0) await within(clock, graceMs, Promise.allSettled(this.#taken));
  }

  async #step<Result>(key: string, work: () => Result | Promise<Result>): Promise<Result> {
    const action = this.#begin(
      "take the step",
      key,
      KEY.test(key),
      (action) =>
        this.#call.context.transaction
          ? refuse(action, "its transaction may be rolled back")
          : action,
    );
    // What was kept is the result of an earlier run of the same step.
    const before = this.#memory.get(key);
    if (before?.result !== undefined) return copyOf(before.result) as Result;
    const taken = this.#take(action, key, work);
    this.#taken.add(taken);
    return await taken;
  }

  async #take<Result>(
    action: string,
    key: string,
    work: () => Result | Promise<Result>,
  ): Promise<Result> {
    const verdict = readJson(await work() ?? null, MAX_MEMORY_BYTES, true);
    if (verdict.kind === "refused") refuse(action, describeRefusal(verdict));
    const value = verdict.kind === "json" ? verdict.value : undefined;
    this.#keep(key, { result: value }, verdict.kind === "large");
    return copyOf(value) as Result;
  }

  /** Checks that the call still goes on, and what the tool has given. */
  #begin<Read>(
    doing: string,
    key: string,
    isKey: boolean,
    read: (action: string) => Read,
  ): Read {
    const { isOver, deadline } = this.#call;
    const action = `${doing} ${describe(key)}`;
    deadline.throwIfAborted();
    if (isOver) refuse(action, "the call has ended");
    try {
      if (typeof key !== "string" || !isKey) {
        refuse(action, 'its key must be 1 to 64 letters, digits, "_", "." or "-"');
      }
      if (this.#keys.has(key)) refuse(action, "its key was used before in this call");
      if (this.#keys.size === MAX_KEYS) {
        refuse(action, `a call has at most ${MAX_KEYS} questions and steps`);
      }
      this.#keys.add(key);
      return read(action);
    } catch (error) {
      this.#misuse = error;
      throw error;
    }
  }

  #keep(key: string, kept: KeptAnswer, isLarge = false): void {
    this.#memory.set(key, kept);
    if (isLarge || utf8Length(JSON.stringify([...this.#memory])) > MAX_MEMORY_BYTES) {
      const problem = `they have more than ${MAX_MEMORY_BYTES} bytes of JSON together`;
      refuse("keep the answers and steps of a call", problem);
    }
  }

  #misfits({ schema }: Question, answer: Answer): readonly Issue[] {
    if (answer.action !== "accept" || schema === undefined) return [];
    return issuesOf(compileOnce(this.#call.host.engine, schema), answer.content ?? null) ?? [];
  }

  /**
   * The end of the call: its ticket if it waits for answers, and otherwise its result.
   *
   * @param result The result if it does not wait.
   */
  async close(result: ToolResult): Promise<ToolResult> {
    const call = this.#call;
    const { settings } = call;
    const { tickets } = this.#settings;
    // A tool that returned without waiting for its question has asked all the same.
    const waits = call.deadline.reason instanceof Suspended ||
      (this.#waiting.size > 0 && result.ok);
    try {
      if (!waits || tickets === undefined) {
        // A call that did not come to its tool, or to its answers, may be continued again.
        const isUnused = call.toolState === "not started" && !result.ok &&
          (result.error.retryable || this.#keys.size === 0);
        if (isUnused && this.#resumed) await inTime(settings, this.#resumed.release());
        return result;
      }
      await this.#settleSteps();
      // Nobody is asked for answers that the tool could not use.
      if (this.#misuse) {
        return call.fail("threw", `the tool threw: ${describeThrown(this.#misuse)}`);
      }
      return await inTime(
        settings,
        tickets.suspend({
          tool: call.tool,
          callId: call.callId,
          context: call.options,
          arguments: givenArguments(call),
          repaired: this.#settings.repairedOf(call),
          questions: [...this.#waiting.values()],
          memory: Object.fromEntries(this.#memory),
          now: settings.clock.timestamp(),
        }),
      );
    } catch (error) {
      call.report("ask", error);
      return waits ? call.fail("unavailable", "its ticket could not be made") : result;
    }
  }
}

/** A promise whose rejection need not be handled: a tool may ask and not wait for the answer. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.then(undefined, NO_LOG);
  return promise;
}

/** Each run gets a copy of its own: a tool may change what it gets. */
function copyOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** The arguments that the caller gave, before repairs, hooks and schemas changed them. JSON. */
function givenArguments({ request }: Call): unknown {
  const given = request.arguments ?? {};
  if (typeof given !== "string") return frozenCopy(given) ?? {};
  try {
    return given.trim() === "" ? {} : JSON.parse(given) ?? {};
  } catch {
    // It was repaired.
    return given;
  }
}

/**
 * The arguments that the tool gets. Where a library made values of them that are not JSON, these are
 * what it made them of, repairs and hooks included: the answer counts for nothing else.
 */
function shownArguments(call: Call): unknown {
  return frozenCopy(call.arguments) ?? frozenCopy(call.plainArguments) ?? givenArguments(call);
}

/** How many bytes of JSON the answers and the results of steps of a call have together, at most. */
export const MAX_MEMORY_BYTES = 65_536;

const MAX_MESSAGE = 2_000;

const KINDS: readonly QuestionKind[] = ["input", "approval", "authorization", "client"];

const FIELDS = {
  kind: must(KINDS.join(" or "), (kind): kind is QuestionKind => KINDS.includes(kind as never)),
  message: (action: string, message: unknown, place: string): string =>
    cleanText(checkWord(action, message, place), MAX_MESSAGE),
  // The engine checks it.
  schema: (_action: string, schema: unknown): JsonSchema => schema as JsonSchema,
  // Written anew: people would be shown a line feed or an escape that is in it.
  url(action: string, url: unknown, place: string): string {
    const href = URL.canParse(url as string) ? new URL(url as string).href : "";
    return /^https?:/.test(href)
      ? href
      : refuse(action, `${place} must be an address that begins with https:// or http://`);
  },
};

/** Checks a question. @throws {TypeError} */
export function readQuestion(
  action: string,
  key: string,
  fields: QuestionFields,
  engine: SchemaEngine,
): Question {
  if (!isObject(fields)) refuse(action, "the question must be an object");
  const { kind = "input", message, schema, ...rest } = readFields(action, fields, FIELDS);
  if (schema !== undefined) admitSchema(engine, schema, {});
  const more = schema === undefined ? rest : { ...rest, schema: frozenCopy(schema) ?? true };
  if (message === undefined) refuse(action, 'it has no "/message"');
  if ((more.url !== undefined) !== (kind === "authorization")) {
    refuse(action, 'a question for an authorization, and no other, has a "/url"');
  }
  if (schema !== undefined && kind !== "input" && kind !== "client") {
    refuse(action, 'only a question for input has a "/schema"');
  }
  return { key, kind, message, ...more };
}

/** Reads an answer; `undefined` if it is none. */
export function readAnswer(value: unknown): Answer | undefined {
  if (!isObject(value)) return undefined;
  const { action, content } = value;
  if (action === "decline" || action === "cancel") return Object.freeze({ action });
  if (action !== "accept") return undefined;
  if (content === undefined) return Object.freeze({ action });
  const verdict = readJson(content, MAX_MEMORY_BYTES);
  const copy = verdict.kind === "json" ? frozenCopy(verdict.value) : undefined;
  return copy === undefined ? undefined : Object.freeze({ action, content: copy });
}
