/**
 * Checks repairs, and reads what they return.
 *
 * @module
 */

import { type ArgumentRepair, type Check, clip, isFunction, isWord, must } from "../tool/mod.ts";
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
