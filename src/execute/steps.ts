/**
 * The steps of a call, and their order, which is always the same. A step that has nothing to do for
 * a tool under these settings is left out when the tool's plan is made, and costs its calls nothing.
 *
 * @module
 */

import { ToolLifecycleError, type ToolRuntime } from "../registry/mod.ts";
import { compileOnce, issuesOf, type StandardOutcome, validateStandard } from "../schema/mod.ts";
import {
  clip,
  describeThrown,
  type FailureCode,
  inPromise,
  isStandardSchema,
  isWord,
  type Tool,
  type ToolFailure,
  ToolResult,
} from "../tool/mod.ts";
import {
  checkArguments,
  checkStandard,
  inWordsOf,
  leadBack,
  readArguments,
  readStandard,
  repairArguments,
} from "./arguments.ts";
import type { Call, Step, StepAnswer, ToolPlan } from "./call.ts";
import { CallView } from "./context.ts";
import { interruption, readIssues } from "./failures.ts";
import { fingerprintOf } from "./idempotency.ts";
import { frozenCopy, readJson } from "./json_value.ts";
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
import { keepOutput, runAround, runTool, threw } from "./run_tool.ts";

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
  step({
    doing: "checking its context",
    run: checkContext,
    settled: keepContext,
    when: (tool) => tool.context !== undefined,
  }),
  {
    doing: "repairing the arguments",
    run: repairArguments,
    when: (_, settings) => settings.repairs.length,
  },
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
  {
    doing: "running",
    run: runAround,
    when: (_, settings) => settings.aroundHooks.length,
  },
  {
    doing: "running",
    run: runTool,
    settled: keepOutput,
    rejected: threw,
    when: (_, settings) => !settings.aroundHooks.length,
  },
  {
    doing: "checking the result",
    run: readOutput,
    when: (_, settings) => !settings.aroundHooks.length,
  },
];

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

/** Checks what the host gave the call against what the tool declares. */
function checkContext({ tool, host, options }: Call): StandardOutcome | Promise<StandardOutcome> {
  const { context: schema } = tool;
  const { context: value } = options;
  if (schema === undefined || isStandardSchema(schema)) {
    return schema ? validateStandard(schema, value) : { value };
  }
  // A tool that writes to its context must not change what other calls are given.
  const read = readJson(value, Infinity, true);
  const given = "value" in read ? read.value : value;
  const issues = issuesOf(compileOnce(host.engine, schema), given);
  return issues === undefined ? { value: given } : { issues };
}

function keepContext(call: Call, { issues, value }: StandardOutcome): StepAnswer {
  call.hostContext = value;
  if (issues === undefined) return undefined;
  const how = call.options.context === undefined ? "gave no context" : "gave a wrong context";
  const told = issues.map(({ message }) => message).join("; ");
  // The model cannot mend it, and what it is about is not the model's to know.
  call.report("context", new TypeError(`The host ${how} for "${call.tool.id}": ${told}`));
  return ToolResult.error(
    "unavailable",
    `Cannot call "${call.tool.id}": its host ${how}; the arguments are not the cause`,
    { retryable: false },
  );
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

/** Checks that the functions of a step agree on the type that its promise gives. */
function step<Value>(ordered: OrderedStep<Value>): OrderedStep<unknown> {
  return ordered;
}
