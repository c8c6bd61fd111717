/**
 * The steps of a call, and their order, which is always the same. A step that has nothing to do for
 * a tool under these settings is left out when the tool's plan is made, and costs its calls nothing.
 *
 * @module
 */

import { ToolLifecycleError, type ToolRuntime } from "../registry/mod.ts";
import { compileOnce, type StandardOutcome, validateStandard } from "../schema/mod.ts";
import {
  atOnce,
  clip,
  describeThrown,
  type FailureCode,
  inPromise,
  isFunction,
  isObject,
  type Issue,
  isWord,
  MAX_DEPTH,
  systemClock,
  type Tool,
  type ToolFailure,
  type ToolResult,
} from "../tool/mod.ts";
import type { Call, Step, StepAnswer, ToolPlan } from "./call.ts";
import { CallView } from "./context.ts";
import { sendOutput } from "./events.ts";
import { interruption, readIssues } from "./failures.ts";
import { fingerprintOf } from "./idempotency.ts";
import {
  describeRefusal,
  frozenCopy,
  type JsonVerdict,
  readJson,
  utf8Length,
} from "./json_value.ts";
import type { Settings } from "./options.ts";
import type { ClaimedKey } from "./ports.ts";
import { readOutput } from "./output.ts";
import {
  approverFailed,
  askApproval,
  beginTransaction,
  closeCall,
  keepTransaction,
  notBegun,
  runBeforeHooks,
} from "./port_steps.ts";
import { strayField } from "./request.ts";

/** A step, and the tools and settings that need it. Its `run` gives a `Value`, or the promise of one. */
interface OrderedStep<Value> {
  /** Absent: it never waits. */
  readonly doing?: string;
  run(call: Call, doing: string): Value | PromiseLike<Value>;
  /** Absent: the value is the answer. */
  settled?(call: Call, value: Value): StepAnswer;
  /** What `run` threw or its promise was rejected with. Absent: it is the dispatcher's fault. */
  rejected?(call: Call, error: unknown): StepAnswer;
  /** Absent: always. */
  when?(tool: Tool, settings: Settings, asks: boolean): unknown;
}

/** The order. Finding the tool came before it; `closeCall` comes after it. */
const ORDER: readonly OrderedStep<unknown>[] = [
  { doing: "beginning", run: checkRequest },
  { run: checkAvailable, when: (tool) => tool.isAvailable !== true },
  {
    run: refusal("not_executable", "it is a definition only and cannot be run here"),
    when: (tool) => !tool.execute,
  },
  { doing: "reading the arguments", run: readArguments },
  {
    doing: "waiting for the first call with its key",
    run: claimKey,
    rejected: keyNotClaimed,
  },
  step({ doing: "starting up", run: acquireTool, settled: hold, rejected: notReady }),
  {
    doing: "waiting for a hook",
    run: runBeforeHooks,
    when: (_, settings) => settings.beforeHooks.length,
  },
  { run: checkArguments, when: (tool) => !tool.parametersStandard || tool.view },
  { run: leadBack, when: (tool) => tool.view },
  step({
    doing: "checking the arguments",
    run: checkStandard,
    settled: readStandard,
    when: (tool) => tool.parametersStandard,
  }),
  {
    doing: "checking the arguments",
    run: applyOwnRule,
    settled: readRule,
    rejected: ruleThrew,
    when: (tool) => tool.validate,
  },
  {
    doing: "checking the arguments",
    run: applyValidators,
    when: (_, settings) => settings.validators.length,
  },
  {
    doing: "waiting for approval",
    run: askApproval,
    rejected: approverFailed,
    when: (_tool, _settings, asks) => asks,
  },
  step({
    doing: "waiting for its turn",
    run: takeTurn,
    settled: readTurn,
    when: (_, { limits }) => Math.min(limits.maxConcurrent, limits.maxConcurrentPerTool) < Infinity,
  }),
  {
    run: refusal(
      "transaction_failed",
      "it runs only in a transaction, and there is no transaction manager here",
    ),
    when: (tool, { transactions }) => tool.requiresTransaction && !transactions,
  },
  step({
    doing: "opening its transaction",
    run: beginTransaction,
    settled: keepTransaction,
    rejected: notBegun,
    when: (tool, { transactions }) => tool.requiresTransaction && transactions,
  }),
  // The tool is not touched by a call that has ended.
  { doing: "about to run", run: checkInterrupted },
  { doing: "running", run: runTool, settled: keepOutput, rejected: threw },
  { doing: "checking the result", run: readOutput },
];

/** Makes the plan of a tool. */
export function planFor(
  tool: Tool,
  settings: Settings,
  where: Pick<ToolPlan, "stats" | "host">,
): ToolPlan {
  const first = stepsFor(tool, settings, tool.requiresApproval);
  let asked: Step | undefined;
  const timeoutMs = Math.min(tool.timeoutMs ?? settings.timeoutMs, settings.maxTimeoutMs);
  return {
    tool,
    first,
    firstOfAsked: () => asked ??= stepsFor(tool, settings, true),
    close: closeCall,
    timeoutMs,
    ...where,
  };
}

/** @param asks Whether the call needs approval. */
function stepsFor(tool: Tool, settings: Settings, asks: boolean): Step | undefined {
  let first: Step | undefined;
  for (const { doing = "", run, settled, rejected, when } of ORDER.toReversed()) {
    if (when && !when(tool, settings, asks)) continue;
    first = { doing, run, settled, rejected, next: first };
  }
  return first;
}

function checkRequest(call: Call, doing: string): StepAnswer {
  const stray = strayField(call.request, call.options);
  return stray === undefined
    ? checkInterrupted(call, doing)
    : call.fail("invalid_arguments", stray);
}

/** Ends a call that was aborted or has no time. */
function checkInterrupted({ tool, interruptedBy }: Call, doing: string): StepAnswer {
  return interruptedBy && interruption(tool.id, interruptedBy, doing);
}

/** Asks the tool's availability again: it may have changed since it was listed. */
function checkAvailable(call: Call): StepAnswer {
  return call.toolset.isAvailable(call.tool)
    ? undefined
    : call.fail("unavailable", "the tool is not available now");
}

/** Refuses every call that comes to it. */
function refusal(code: FailureCode, why: string): (call: Call) => ToolFailure {
  return (call) => call.fail(code, why);
}

const THREE_DIGITS = /\d{3}/;
const LARGE_NUMBER = /e\+?\d{3}|\d{200}/i;

/**
 * Whether a number in a short text may be above the largest one, which `JSON.parse` reads as
 * `Infinity`: it has three digits of an exponent, or two hundred of its own.
 */
function mayBeInfinite(text: string): boolean {
  // Node takes a third of the time for the first, and most texts have no such digits.
  return THREE_DIGITS.test(text) && LARGE_NUMBER.test(text);
}

/** Reads the arguments: a JSON string, or a value that is JSON. Nothing stands for `{}`. */
function readArguments(call: Call): StepAnswer | Promise<undefined> {
  const given = call.request.arguments;
  const limit = call.settings.maxArgumentBytes;
  // A copy: the tool gets what was validated, also if the caller changes its object later.
  if (typeof given !== "string") return keepArguments(call, readJson(given ?? {}, limit, true));
  // A UTF-16 unit takes one to three bytes, so most texts need not be measured.
  if (given.length > limit || (given.length * 3 > limit && utf8Length(given) > limit)) {
    return tooLarge(call);
  }
  let value: unknown;
  try {
    value = JSON.parse(given);
  } catch {
    if (given.trim() !== "") return notJson(call, "");
  }
  // A level takes two characters, so a short text is never too deep.
  if (given.length > 2 * MAX_DEPTH || mayBeInfinite(given)) {
    return keepArguments(call, readJson(value, Infinity), given.length);
  }
  call.args = value ?? {};
  call.argumentLength = given.length;
  return undefined;
}

/** From so many bytes on, others have their turn between reading arguments and checking them. */
const LARGE = 65_536;

function keepArguments(
  call: Call,
  verdict: JsonVerdict,
  size?: number,
): StepAnswer | Promise<undefined> {
  if (verdict.kind === "large") return tooLarge(call);
  if (verdict.kind === "refused") return notJson(call, `: ${describeRefusal(verdict)}`);
  call.args = verdict.value;
  call.argumentLength = size ?? verdict.bytes;
  if (call.argumentLength < LARGE) return undefined;
  return new Promise((resolve) => systemClock.setTimeout(() => resolve(undefined), 0));
}

function notJson(call: Call, why: string): ToolFailure {
  return call.fail("invalid_arguments", `its arguments are not JSON${why}`);
}

function tooLarge(call: Call): ToolFailure {
  const { maxArgumentBytes } = call.settings;
  return call.fail(
    "invalid_arguments",
    `its arguments are larger than ${maxArgumentBytes} bytes of JSON`,
  );
}

const MAX_KEY = 256;
/** A scope is kept as long as its result, and a part of it is the caller's choice. */
const MAX_SCOPE = 4_096;

/**
 * Claims the call's idempotency key, if it brings one. Keys are kept apart by tool, principal and
 * session; where a host names neither principal nor session, all its callers share them.
 */
function claimKey(call: Call): StepAnswer | Promise<StepAnswer> {
  const key = call.options.idempotencyKey;
  if (key === undefined) return undefined;
  if (!isWord(key) || key.length > MAX_KEY) {
    return call.fail("invalid_arguments", `its idempotency key must be 1 to ${MAX_KEY} characters`);
  }
  const { principal = null, sessionId = null } = call.options;
  const scope = JSON.stringify([call.tool.id, principal, sessionId, key]);
  if (scope.length > MAX_SCOPE) {
    return call.fail(
      "invalid_arguments",
      "its principal and session are too long for an idempotency key",
    );
  }
  return claim(call, scope, fingerprintOf(call.args));
}

function claim(call: Call, scope: string, fingerprint: string): StepAnswer | Promise<StepAnswer> {
  const { tool: { idempotent }, options: { principal } } = call;
  const claimed = call.shared.keys.claim(principal, scope, fingerprint, idempotent);
  if (!(claimed instanceof Promise)) return takeKey(call, claimed);
  return claimed.then((answer) => {
    if (call.over) {
      // The call has ended meanwhile, so its key is free.
      const ended = call.fail("aborted", "it had ended before its key was claimed");
      if (typeof answer === "function") void answer(ended, false, 0);
      return undefined;
    }
    // The first call's caller gave up; this one has not.
    return typeof answer === "object" && !answer.ok && answer.error.code === "aborted"
      ? claim(call, scope, fingerprint)
      : takeKey(call, answer);
  });
}

function takeKey(call: Call, claimed: ClaimedKey): StepAnswer {
  if (typeof claimed === "function") {
    call.settleKey = claimed;
    return undefined;
  }
  if (claimed === "conflict") {
    return call.fail(
      "invalid_arguments",
      "its idempotency key was used before with other arguments; a new call needs a new key",
    );
  }
  if (claimed === "full") {
    return call.fail("overloaded", "too many calls with idempotency keys are running");
  }
  return replay(call, claimed);
}

function keyNotClaimed(call: Call, error: unknown): ToolFailure {
  const why = "its idempotency key cannot be looked up now; nothing has run";
  return call.failed("internal", error, "unavailable", why);
}

function replay(call: Call, result: ToolResult): ToolResult {
  call.replays = true;
  // A copy for each: a long list in it is not frozen.
  return { ...frozenCopy(result) ?? result, replayed: true };
}

/** Makes the tool ready, which runs its `init` before the first call. */
function acquireTool(call: Call): ToolRuntime | Promise<ToolRuntime> {
  return call.host.acquire(call.tool);
}

function hold(call: Call, runtime: ToolRuntime): undefined {
  // The call may have ended while the tool was started: it must not hold the tool then.
  if (call.over) call.release(runtime);
  else call.runtime = runtime;
}

function notReady(call: Call, error: unknown): ToolFailure {
  // The message of any other error is the host's, and was not written for a model.
  const why = error instanceof ToolLifecycleError
    ? error.message
    : "the tool could not be made ready";
  return call.failed("init", error, "unavailable", why);
}

/** Checks the arguments against the tool's JSON Schema. */
function checkArguments(call: Call): StepAnswer {
  const { parameters } = call.runtime;
  return atOnce(parameters.check(call.args, call.argumentLength)) === true
    ? undefined
    : misfit(call, atOnce(parameters.issues(call.args)), call.tool);
}

/**
 * Makes the arguments of a view those of its tool, and checks them against that tool's own schema:
 * a library's schema is the next step's.
 */
function leadBack(call: Call): StepAnswer {
  for (let { view } = call.tool; view; view = view.tool.view) {
    const { tool } = view;
    call.args = view.lead(call.args);
    if (tool.parametersStandard && !tool.view) break;
    const parameters = compileOnce(call.host.engine, tool.parameters);
    if (atOnce(parameters.check(call.args)) !== true) {
      return misfit(call, atOnce(parameters.issues(call.args)), tool);
    }
  }
  return undefined;
}

/** What is wrong with arguments of `shown`, in the words of `tool`, which is that tool or its view. */
function inWordsOf(tool: Tool, issue: Issue, shown?: Tool): Issue {
  const { view } = tool;
  return view === undefined || tool === shown
    ? issue
    : view.tell(inWordsOf(view.tool, issue, shown));
}

/** Has the library of the tool's schema check them: it also fills in defaults and transforms. */
function checkStandard(call: Call): StandardOutcome | Promise<StandardOutcome> {
  const schema = call.tool.parametersStandard;
  return schema ? validateStandard(schema, call.args) : { value: call.args };
}

function readStandard(call: Call, { issues, value }: StandardOutcome): StepAnswer {
  if (issues !== undefined) return misfit(call, issues);
  call.args = value;
  return undefined;
}

/** @param shown Whose arguments they are; by default those of the tool behind all views. */
function misfit(call: Call, issues: readonly Issue[], shown?: Tool): ToolFailure {
  const told = issues.map((issue) => inWordsOf(call.tool, issue, shown));
  return call.misfit("invalid_arguments", "its arguments do not fit", told);
}

/** Applies the tool's own rule for its arguments, which a schema cannot say. */
function applyOwnRule(call: Call): unknown {
  return inPromise(call.tool.validate?.(call.args, call.context));
}

/** Applies the dispatcher's rules in order, until one says what is wrong. */
async function applyValidators(call: Call): Promise<StepAnswer> {
  for (const validator of call.settings.validators) {
    if (call.over) return undefined;
    try {
      const refused = readRule(call, await validator(new CallView(call)));
      if (refused !== undefined) return refused;
    } catch (error) {
      return call.failed("validate", error, "denied", "a rule for its arguments failed");
    }
  }
  return undefined;
}

function readRule(call: Call, answer: unknown): ToolFailure | undefined {
  if (answer === undefined || answer === null || answer === "") return undefined;
  const issues = typeof answer === "string" ? [{ message: clip(answer, 300) }] : answer;
  if (!Array.isArray(issues)) {
    // A rule that answers `false` may have meant a refusal: the call does not go on.
    return call.fail("denied", "a rule for its arguments gave no proper answer");
  }
  return issues.length === 0 ? undefined : call.misfit(
    "invalid_arguments",
    "its arguments break a rule",
    readIssues(issues).map((issue) => inWordsOf(call.tool, issue)),
  );
}

function ruleThrew(call: Call, error: unknown): ToolFailure {
  const why = `the tool threw while it checked its arguments: ${describeThrown(error)}`;
  return call.failed("validate", error, "threw", why);
}

/**
 * Takes a place among the running calls, or waits for one. It is given back when the call is
 * answered. A tool that ignores its signal still runs then and is not counted here: otherwise one
 * such tool could block the dispatcher for good. The metrics count it as abandoned.
 */
function takeTurn(call: Call): boolean | Promise<boolean> {
  const { gate } = call.shared;
  const { id } = call.tool;
  const turn = gate.enter(id, call.options.principal);
  if (typeof turn === "object") {
    call.giveTurnBack = turn.cancel;
    return turn.entered;
  }
  if (turn) call.giveTurnBack = () => gate.leave(id);
  return turn;
}

function readTurn(call: Call, isIn: boolean): StepAnswer {
  return isIn
    ? undefined
    : call.fail("overloaded", "too many calls are running and waiting; try again later");
}

/** Runs the tool: a value, a promise, or a generator whose yields are streamed. */
function runTool(call: Call): unknown {
  call.ran = call.isRunning = true;
  const output: unknown = call.tool.execute?.(call.args, call.context);
  return isGenerator(output) ? drain(call, output) : inPromise(output);
}

function keepOutput(call: Call, output: unknown): undefined {
  call.isRunning = false;
  call.output = output;
}

/** Streams what a generator yields as fast as it is taken, and gives what it returns. */
async function drain(
  call: Call,
  generator: AsyncGenerator<unknown, unknown, void>,
): Promise<unknown> {
  // Async, because an object that only looks like a generator may throw, or answer no promise.
  call.stopTool = async () => await generator.return(undefined);
  for (;;) {
    const step = await generator.next();
    if (step.done === true) return step.value;
    await sendOutput(call, step.value);
    // Without real awaits in the generator no timer fires, so the time is read here.
    if (call.over || call.deadline.expired()) {
      await generator.return(undefined);
      return undefined;
    }
  }
}

function threw(call: Call, error: unknown): ToolFailure {
  call.isRunning = false;
  const why = `the tool threw: ${describeThrown(error)}`;
  // A tool that stops by throwing the signal's reason did as it should, and is not reported.
  return call.interruptedBy !== undefined && error === call.deadline.signal.reason
    ? call.fail("threw", why)
    : call.failed("execute", error, "threw", why);
}

function isGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, void> {
  return isObject(value) && isFunction(value["next"]) && isFunction(value["return"]) &&
    Symbol.asyncIterator in value;
}

/** Checks that the functions of a step agree on the type that its promise gives. */
function step<Value>(ordered: OrderedStep<Value>): OrderedStep<unknown> {
  return ordered;
}
