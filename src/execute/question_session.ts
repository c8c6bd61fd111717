/** The questions and steps of one call, created by the first of them, or by a resumption. */

import { CallView, inTime } from "./context.ts";
import { CallFailure } from "./failures.ts";
import { fingerprintOf } from "./idempotency.ts";
import type { Call } from "./layer.ts";
import { describeRefusal, frozenCopy, readJson, utf8Length } from "./json_value.ts";
import { redacted } from "./output.ts";
import type { CallTickets, KeptAnswer, RepairedArguments, Resumption } from "./request.ts";
import { admitSchema, compileOnce, issuesOf, type SchemaEngine } from "../schema/mod.ts";
import * as check from "../tool/mod.ts";
import {
  abortable,
  type Answer,
  cleanText,
  describe,
  describeThrown,
  fail,
  isObject,
  type Issue,
  type JsonSchema,
  noop,
  type Question,
  type QuestionFields,
  type QuestionKind,
  type ToolResult,
  within,
} from "../tool/mod.ts";

const MAX_KEYS = 64;
/** The key of the approval question. No tool can use this key, because of its colon. */
const APPROVAL_KEY = "plue:approval";

const KEY = /^[\w.-]{1,64}$/;
const MAX_TRIES = 10;

class Suspended extends CallFailure {
  override readonly name = "AbortError";

  constructor() {
    super("input_required", "it waits for an answer");
  }
}

/** The error of a question that cannot be answered. Unless the tool catches it, the call fails. */
const cannotAsk = (why: string): CallFailure => new CallFailure("input_unavailable", why);

export interface QuestionSettings {
  readonly tickets: CallTickets | undefined;
  /** The time limit for an answer during the call, in milliseconds. */
  readonly timeoutMs: number;
  repairedOf(call: Call): RepairedArguments | undefined;
}

export class QuestionSession {
  readonly #call: Call;
  readonly #settings: QuestionSettings;
  readonly #resumed: Resumption | undefined;
  /** The questions, answers and step results so far, by key. */
  readonly #memory: Map<string, KeptAnswer>;
  /** The keys of the questions and steps of this run. */
  readonly #keys: Set<string> = new Set();
  readonly #waiting: Map<string, Question> = new Map();
  /** The started steps. */
  readonly #taken: Set<Promise<unknown>> = new Set();
  /** The error of an invalid question or step. */
  #misuse: unknown;
  /** The number of questions that the caller is answering. */
  #asking = 0;
  #resumeTime: (() => void) | undefined;

  constructor(call: Call, settings: QuestionSettings, resumed?: Resumption) {
    this.#call = call;
    this.#settings = settings;
    this.#resumed = resumed;
    this.#memory = new Map(Object.entries(resumed?.memory ?? {}));
  }

  ask(key: string, fields: QuestionFields): Promise<Answer> {
    return handled(this.#ask(key, KEY.test(key), fields));
  }

  askApproval(message: string): Promise<Answer> {
    return this.#ask(APPROVAL_KEY, true, { kind: "approval", message });
  }

  /** Runs a step of the tool, or returns its stored result. */
  step<Result>(key: string, work: () => Result | Promise<Result>): Promise<Result> {
    return handled(this.#step(key, work));
  }

  async #ask(key: string, isKey: boolean, fields: QuestionFields): Promise<Answer> {
    let question = this.#begin(
      "ask",
      key,
      isKey,
      (action) => redacted(this.#call, readQuestion(action, key, fields, this.#call.host.engine)),
    );
    const isAboutCall = question.kind === "approval" || question.kind === "client";
    if (isAboutCall) question = { arguments: shownArguments(this.#call), ...question };
    const fingerprint = fingerprintOf(question);
    const before = this.#memory.get(key);
    // An approval is valid only for the shown message and arguments.
    let answer = isAboutCall && before?.fingerprint !== fingerprint ? undefined : before?.answer;
    for (let tries = 0;; tries++) {
      if (answer !== undefined) {
        const issues = this.#misfits(question, answer);
        if (issues.length === 0) {
          this.#keep(key, { fingerprint, answer });
          return answer;
        }
        question = { ...question, issues };
      }
      if (this.#call.options.onQuestion === undefined) break;
      if (tries === MAX_TRIES) {
        throw cannotAsk(`${MAX_TRIES} answers to "${key}" did not match its schema`);
      }
      const reply = await this.#askCaller(question);
      if (reply === null) throw cannotAsk("its caller cannot be asked this question");
      answer = reply;
      if (answer === undefined) break;
    }
    this.#keep(key, { fingerprint });
    return await this.#wait(question);
  }

  /** Asks the caller during the call. The wait has a separate time limit. */
  async #askCaller(question: Question): Promise<Answer | undefined | null> {
    const call = this.#call;
    const { deadline, options } = call;
    if (this.#asking++ === 0) this.#resumeTime = deadline.suspend(this.#settings.timeoutMs);
    let why = "its caller cannot be asked";
    try {
      const reply = (async () => await options.onQuestion?.(question, new CallView(call)))();
      const answer: unknown = await abortable(reply, deadline.signal);
      why =
        `the answer to "${question.key}" must be an object of at most 64 kB with the "action" accept, decline or cancel`;
      return answer === undefined || answer === null
        ? answer
        : readAnswer(answer) ?? fail("use the answer", why);
    } catch (error) {
      deadline.throwIfAborted();
      call.report("ask", error);
      throw cannotAsk(why);
    } finally {
      if (--this.#asking === 0) this.#resumeTime?.();
    }
  }

  /** Prepares another run of the tool: keys can be used again, and return the stored answers. */
  runAgain(): void {
    this.#keys.clear();
  }

  /** Suspends the call. Never resolves. */
  #wait(question: Question): Promise<never> {
    const { deadline } = this.#call;
    if (this.#settings.tickets === undefined) {
      throw cannotAsk("it asks a question, and its caller cannot be asked");
    }
    this.#waiting.set(question.key, question);
    if (this.#waiting.size === 1) {
      // Not immediately, because a tool may ask several questions together.
      void this.#settleSteps().then(() => deadline.abort(new Suspended()));
    }
    return abortable(new Promise<never>(() => {}), deadline.signal);
  }

  async #settleSteps(): Promise<void> {
    const { clock, graceMs } = this.#call.settings;
    await undefined;
    // The wait is limited, because a step that asks a question itself never ends.
    if (this.#taken.size > 0) await within(clock, graceMs, Promise.allSettled(this.#taken));
  }

  async #step<Result>(key: string, work: () => Result | Promise<Result>): Promise<Result> {
    const action = this.#begin(
      "take the step",
      key,
      KEY.test(key),
      (action) =>
        this.#call.context.transaction
          ? fail(action, "steps cannot be used in a transaction")
          : action,
    );
    // The stored value is the result of an earlier run of the same step.
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
    if (verdict.kind === "refused") fail(action, describeRefusal(verdict));
    const value = verdict.kind === "json" ? redacted(this.#call, verdict.value) : undefined;
    this.#keep(key, { result: value }, verdict.kind === "large");
    return copyOf(value) as Result;
  }

  /** Checks that the call is still running, and checks the arguments of `ask` or `step`. */
  #begin<Read>(doing: string, key: string, isKey: boolean, read: (action: string) => Read): Read {
    const { isOver, deadline } = this.#call;
    const action = `${doing} ${describe(key)}`;
    deadline.throwIfAborted();
    if (isOver) fail(action, "the call has ended");
    try {
      if (typeof key !== "string" || !isKey) {
        fail(action, 'its key must be 1 to 64 letters, digits, "_", "." or "-"');
      }
      if (this.#keys.has(key)) fail(action, "its key was used before in this call");
      if (this.#keys.size === MAX_KEYS) {
        fail(action, `a call has at most ${MAX_KEYS} questions and steps`);
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
      fail("keep the answers and steps of a call", problem);
    }
  }

  #misfits({ schema }: Question, answer: Answer): readonly Issue[] {
    if (answer.action !== "accept" || schema === undefined) return [];
    return issuesOf(compileOnce(this.#call.host.engine, schema), answer.content ?? null) ?? [];
  }

  /** Ends the call: returns a suspended result with a ticket, or `result`. */
  async close(result: ToolResult): Promise<ToolResult> {
    const call = this.#call;
    const { settings } = call;
    const { tickets } = this.#settings;
    // A call is also suspended if its tool has returned without awaiting its question.
    const waits = call.deadline.reason instanceof Suspended ||
      (this.#waiting.size > 0 && result.ok);
    try {
      if (!waits || tickets === undefined) {
        // If nothing has run, the ticket of a retryable call or of unused answers is valid again.
        const isUnused = !result.ok &&
          (call.toolState === "not started" || result.error.ran === "no") &&
          (result.error.retryable || this.#keys.size === 0);
        if (isUnused && this.#resumed) await inTime(settings, this.#resumed.release());
        return result;
      }
      await this.#settleSteps();
      // With an invalid question or step, the tool would fail again with any answers.
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

/** Prevents an unhandled rejection, because a tool may ask without awaiting the answer. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.then(undefined, noop);
  return promise;
}

/** Copies a stored value for one run, because a tool may change its copy. */
function copyOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** Returns the caller's arguments before repairs, hooks and schemas changed them, as JSON. */
function givenArguments({ request }: Call): unknown {
  const args = request.arguments ?? {};
  if (typeof args !== "string") return frozenCopy(args) ?? {};
  try {
    return args.trim() === "" ? {} : JSON.parse(args) ?? {};
  } catch {
    // The text is not JSON, and was repaired.
    return args;
  }
}

/**
 * Returns the arguments that an approval shows, and for which it is valid: the tool's arguments or,
 * if a Standard Schema converted these to values other than JSON, the arguments before this.
 */
function shownArguments(call: Call): unknown {
  return frozenCopy(call.arguments) ?? frozenCopy(call.plainArguments) ?? givenArguments(call);
}

/** The maximum size of the answers and step results of a call together, in bytes of JSON. */
export const MAX_MEMORY_BYTES = 65_536;

const KINDS: readonly QuestionKind[] = ["input", "approval", "authorization", "client"];

const FIELDS = {
  kind: /* @__PURE__ */ check.oneOf(KINDS),
  message: (action: string, message: unknown, place: string): string =>
    cleanText(check.checkWord(action, message, place), Infinity),
  arguments: (action: string, args: unknown, place: string): unknown =>
    boundedCopy(args) ?? fail(action, `${place} must have at most 64 kB of JSON`),
  // `admitSchema` checks the schema.
  schema: (_action: string, schema: unknown): JsonSchema => schema as JsonSchema,
  // Serialized by `URL`, because the given text may contain a line feed or an escape.
  url(action: string, url: unknown, place: string): string {
    const href = URL.canParse(url as string) ? new URL(url as string).href : "";
    return /^https?:/.test(href)
      ? href
      : fail(action, `${place} must begin with https:// or http://`);
  },
  resumes: check.checkFlag,
};

/** Checks a question. @throws {TypeError} */
function readQuestion(
  action: string,
  key: string,
  fields: QuestionFields,
  engine: SchemaEngine,
): Question {
  const { message, kind = "input", schema, ...more } = check.readFields(action, fields, FIELDS);
  if (message === undefined) fail(action, 'it has no "/message"');
  // A long message is not truncated, because a person could approve the missing part.
  if (message.length > 2_000) fail(action, '"/message" must have at most 2000 characters');
  if ((more.url !== undefined) !== (kind === "authorization")) {
    fail(action, 'a question for authorization, and no other, has a "/url"');
  }
  if (schema !== undefined && kind !== "input" && kind !== "client") {
    fail(action, 'only a question for input has a "/schema"');
  }
  if (schema === undefined) return { key, kind, message, ...more };
  admitSchema(engine, schema);
  return { key, kind, message, ...more, schema: frozenCopy(schema) ?? true };
}

export function readAnswer(value: unknown): Answer | undefined {
  if (!isObject(value)) return undefined;
  const { action, content } = value;
  if (action !== "accept" && action !== "decline" && action !== "cancel") return undefined;
  if (action !== "accept" || content === undefined) return Object.freeze({ action });
  const copy = boundedCopy(content);
  return copy === undefined ? undefined : Object.freeze({ action, content: copy });
}

/** Returns a frozen copy of JSON within the limit; `undefined` for other values. */
function boundedCopy(value: unknown): unknown {
  const verdict = readJson(value, MAX_MEMORY_BYTES);
  return verdict.kind === "json" ? frozenCopy(verdict.value) : undefined;
}
