/**
 * Functions of the host: hooks, rules, approvers and repairs. They are called and checked here, and
 * their results are parsed.
 *
 * @module
 */

import type { Call, DispatchPhase } from "./layer.ts";
import { toResult } from "./output.ts";
import type { BeforeAnswer, RepairHook, ToolHooks } from "./ports.ts";
import { issuesOf, validateStandard } from "../schema/mod.ts";
import {
  type ArgumentRepair,
  type Check,
  clip,
  isFunction,
  isObject,
  type Issue,
  isWord,
  must,
  type ToolFailure,
  type ToolResult,
  type ToolSuccess,
} from "../tool/mod.ts";

/** The result of a host's function that threw or rejected. */
export const FAILED: unique symbol = Symbol("plue.failed");

/**
 * Calls a host's function and waits for it, or for the end of the call. Its errors, even late ones,
 * are reported.
 *
 * @param doing The activity of the call, for messages.
 * @param limitMs The time limit, instead of the call's timeout.
 */
export function callHost<T>(
  call: Call,
  doing: string,
  phase: DispatchPhase,
  work: () => T | Promise<T>,
  limitMs?: number,
): Promise<T | typeof FAILED> {
  return call.wait(doing, () => settled(call, phase, work), limitMs);
}

/** The value of a host's function, or {@linkcode FAILED}. */
export async function settled<T>(
  call: Call,
  phase: DispatchPhase,
  work: () => T | Promise<T>,
): Promise<T | typeof FAILED> {
  try {
    return await work();
  } catch (error) {
    call.report(phase, error);
    return FAILED;
  }
}

/** Checks a hook of a host. */
export const checkHook: Check<ToolHooks> = must(
  "an object with a before or an after function",
  (value): value is ToolHooks => {
    if (!isObject(value)) return false;
    const parts = [value["before"], value["after"]].filter((part) => part !== undefined);
    return parts.length > 0 && parts.every(isFunction);
  },
);

const ANSWERS: readonly string[] = ["arguments", "result", "refuse"];

/** Returns the problem with the result of a `before` hook, or `undefined`. */
export function findProblem(answer: NonNullable<BeforeAnswer>): string | undefined {
  if (!isObject(answer)) return "it is not an object";
  const fields = Object.keys(answer);
  const [field = ""] = fields;
  if (fields.length !== 1 || !ANSWERS.includes(field)) {
    const seen = clip(fields.map((name) => `"/${name}"`).join(", "));
    return `it must have one of "/arguments", "/result" and "/refuse", and has ${seen || "none"}`;
  }
  return "refuse" in answer && !isWord(answer.refuse)
    ? '"/refuse" must be a sentence for the model'
    : undefined;
}

/** Fails the call if a hook failed or returned an invalid value, and reports it. */
export function failHook(
  call: Call,
  { name: given }: ToolHooks,
  phase: "before" | "after",
  problem?: string,
): ToolFailure {
  const name = typeof given === "string" ? `the hook "${given.slice(0, 60)}"` : "a hook";
  if (problem !== undefined) {
    call.report(phase, new TypeError(`Cannot use the answer of ${name}: ${problem}`));
  }
  const isRefused = phase === "before";
  const ran = isRefused || call.toolState === "not started" ? "" : "the tool has run, but ";
  const what = isRefused ? "call is refused" : "result is withheld";
  return call.fail("denied", `${ran}${name} failed, so the ${what}`);
}

/** Checks the content of a hook's success like a tool's. */
export async function checkContent(
  call: Call,
  { content, blocks, truncated }: ToolSuccess,
): Promise<ToolResult> {
  return await toResult(call, content, blocks, truncated);
}

/** Checks a repair of a host. */
export const checkRepair: Check<RepairHook> = must(
  "a function or a list of functions",
  (value): value is RepairHook => isFunction(value),
);

/**
 * Returns true if a repair has returned arguments: missing arguments mean `{}` only from a model.
 */
export function isWritten(args: unknown): boolean {
  return typeof args === "string" ? !["", "null"].includes(args.trim()) : (args ?? null) !== null;
}

/** The note of a repair without a message. */
const REPAIRED = "the arguments were repaired";
/** The maximum number of repairs in a result. */
export const MAX_REPAIRS = 16;

/** Returns the repairs, with texts of bounded length. */
export function readNotes(list: unknown): readonly ArgumentRepair[] {
  if (!Array.isArray(list) || list.length === 0) return [{ path: "", message: REPAIRED }];
  return list.slice(0, MAX_REPAIRS).map((note) => {
    const { path, message } = (note ?? {}) as Record<string, unknown>;
    return {
      path: typeof path === "string" ? clip(path, 300) : "",
      message: isWord(message) ? clip(message, 300) : REPAIRED,
    };
  });
}

/** Arguments that are text and not JSON, until they are repaired. */
export class UnparsedText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const NOT_JSON: readonly Issue[] = Object.freeze([
  Object.freeze({
    path: "",
    keyword: "json",
    expected: "JSON",
    message: "The arguments are not JSON",
  }),
]);

/**
 * The issues of arguments, or of text that is not JSON, before the view and the schema of a library
 * have changed them; `undefined` if they are valid.
 */
export function issuesBefore(
  call: Call,
): readonly Issue[] | undefined | Promise<readonly Issue[] | undefined> {
  if (call.arguments instanceof UnparsedText) return NOT_JSON;
  const { parametersStandard: schema, view } = call.tool;
  if (schema === undefined || view !== undefined) {
    return issuesOf(call.runtime.parameters, call.arguments);
  }
  const checked = validateStandard(schema, call.arguments);
  return checked instanceof Promise ? checked.then(({ issues }) => issues) : checked.issues;
}
