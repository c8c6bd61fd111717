/**
 * The options of a tool whose results are stored, and how its earlier results are found.
 *
 * @module
 */

import { definitionDigest, ownerDigest } from "../../execute/durable/mod.ts";
import { type Call, type CallInfo, CallView } from "../../execute/mod.ts";
import {
  canonicalJson,
  type Check,
  checkFunction,
  copyJson,
  isFunction,
  isListOf,
  isObject,
  isWord,
  must,
  numberFrom,
  readFields,
  refuse,
} from "../../tool/mod.ts";
import type { Slot, StoredResult, StoredResults } from "./stored_results.ts";

/** How the results of a tool are stored. */
export interface CachedTool {
  /** How long a result is stored, in milliseconds. */
  readonly ttlMs: number;
  /** The tags of a result for `invalidate`, such as `["orders"]`, or a function of the call. */
  readonly tags?: readonly string[] | ((call: CallInfo) => readonly string[]) | undefined;
  /**
   * What the result depends on besides the principal, the arguments and the context: the session, a
   * service of the call, or the tool's configuration, if others of the same store have another.
   */
  readonly vary?: ((call: CallInfo) => string) | undefined;
}

const isTags = (value: unknown): value is readonly string[] => isListOf(value, isWord);

const CHECKS = {
  ttlMs: numberFrom(1, Number.MAX_SAFE_INTEGER),
  tags: must(
    "a list of words, or a function",
    (value): value is NonNullable<CachedTool["tags"]> => isTags(value) || isFunction(value),
  ),
  vary: checkFunction as Check<NonNullable<CachedTool["vary"]>>,
};

/** The check of the option `tools`. */
export const checkTools: Check<ReadonlyMap<string, CachedTool>> = (action, tools, pointer) => {
  if (!isObject(tools)) refuse(action, `${pointer} must be an object`);
  return new Map(
    Object.entries(tools).map(([id, tool]) => {
      const pointerTo = (field: string): string => `${field} of "${id}"`;
      const { ttlMs, ...rest } = readFields(action, tool as CachedTool, CHECKS, pointerTo);
      if (ttlMs === undefined) refuse(action, `${pointerTo("ttlMs")} is missing`);
      return [id, { ttlMs, ...rest }];
    }),
  );
};

/**
 * Finds the earlier result of a call, or the slot for this one; `undefined` if the arguments or the
 * context are not JSON. Rejects if the functions of the host return something of a wrong shape.
 */
export async function findResult(
  results: StoredResults,
  call: Call,
  { tags = [], vary }: CachedTool,
): Promise<StoredResult | Slot | undefined> {
  const { options, settings, tool } = call;
  const info = new CallView(call);
  const { principal, arguments: args, context = null } = info;
  const names = typeof tags === "function" ? tags(info) : tags;
  if (!isTags(names)) throw new TypeError(`The tags of "${tool.id}" must be a list of words`);
  // A promise, for example, would be the same for all calls.
  const varied: unknown = vary === undefined ? "" : vary(info);
  if (typeof varied !== "string") throw new TypeError(`vary of "${tool.id}" must return a text`);
  let inputs: unknown;
  try {
    inputs = copyJson([args, context], "the inputs of a result");
  } catch {
    return undefined;
  }
  const text = canonicalJson([tool.id, await definitionDigest(tool), inputs, varied]);
  const key = `result.${await ownerDigest(principal)}.${await ownerDigest(text)}`;
  const maxBytes = Math.min(options.maxOutputBytes ?? Infinity, settings.maxOutputBytes);
  return await results.find(key, names, maxBytes);
}
