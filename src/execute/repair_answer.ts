/**
 * Checks repairs, finds what they repair, and reads what they return.
 *
 * @module
 */

import { issuesOf, validateStandard } from "../schema/mod.ts";
import {
  type ArgumentRepair,
  type Check,
  clip,
  isFunction,
  type Issue,
  isWord,
  must,
} from "../tool/mod.ts";
import type { Call } from "./layer.ts";
import type { RepairHook } from "./ports.ts";

/** Checks a repair of a host. */
export const checkRepair: Check<RepairHook> = must(
  "a function or a list of functions",
  (value): value is RepairHook => isFunction(value),
);

/** Whether a repair has returned arguments: nothing stands for `{}` only where a model says it. */
export function isWritten(args: unknown): boolean {
  return typeof args === "string" ? !["", "null"].includes(args.trim()) : (args ?? null) !== null;
}

/** The note of a repair that says nothing else. */
const REPAIRED = "the arguments were repaired";
/** How many repairs a result names. */
export const MAX_REPAIRS = 16;

/** What was repaired, with texts of bounded length. */
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
