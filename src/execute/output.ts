/**
 * Converts the return value of a tool to a result. A Standard Schema converts the value before its
 * size is checked; a JSON Schema checks the value afterwards.
 */

import { issuesOf, type SchemaValidator, validateStandard } from "../schema/mod.ts";
import {
  isObject,
  type Issue,
  isToolResult,
  type ToolContent,
  type ToolResult,
} from "../tool/mod.ts";
import { readResult, success, validationFailure } from "./failures.ts";
import { describeRefusal, readJson } from "./json_value.ts";
import type { Call, Outcome } from "./layer.ts";

/** The smallest limit of a result, in bytes: the marker of a truncated text must fit. */
export const MIN_OUTPUT_BYTES = 128;

/** Returns the result of a call for the tool's return value, which may be a `ToolResult`. */
export function readOutput(call: Call, output: unknown): Outcome {
  if (!isToolResult(output)) {
    return call.tool.returnsStandard === undefined
      ? check(call, output, undefined, false)
      : toResult(call, output);
  }
  const result = readResult(output);
  if (result === undefined) {
    return call.fail("invalid_result", "the tool returned an invalid result");
  }
  return result.ok ? toResult(call, result.content, result.blocks, result.truncated) : result;
}

/** Returns the maximum size of a result and of each earlier value, in bytes of JSON. */
export function maxOutputBytes({ options, settings }: Call): number {
  const { maxOutputBytes: limit } = settings;
  const { maxOutputBytes: lower } = options;
  return lower !== undefined && lower < limit ? Math.max(lower, MIN_OUTPUT_BYTES) : limit;
}

/** The end of a truncated text of this process or a worker. Such texts need not match a schema. */
const CUT = /… \[truncated: \d+ of \d+ bytes\]$/;

/** Texts that are too large, by call, for the layer that truncates them. */
export const oversized: WeakMap<Call, string> = new WeakMap();

export function toResult(call: Call, content: unknown, blocks?: true, truncated?: true): Outcome {
  const { returnsStandard: schema } = call.tool;
  const isCut = truncated === true && typeof content === "string" && CUT.test(content);
  if (schema === undefined || isCut) return check(call, content, blocks, isCut);
  const checked = validateStandard(schema, valueOf(content, blocks));
  const accept = ({ issues, value }: Awaited<typeof checked>): ToolResult => {
    if (issues !== undefined) return misfit(call, issues);
    const read = blocks ? { ...content as ToolContent, structuredContent: value } : value;
    return check(call, read, blocks, false, true);
  };
  return checked instanceof Promise ? checked.then(accept) : accept(checked);
}

/** Returns the value that the result schema describes; for blocks, their structured content. */
function valueOf(content: unknown, blocks: true | undefined): unknown {
  // A tool in JavaScript may have returned any content with `blocks: true`.
  return blocks ? (content as ToolContent | null)?.structuredContent ?? null : content;
}

function check(
  call: Call,
  // A tool that returns nothing has the result `null`, because JSON has no `undefined`.
  output: unknown = null,
  blocks: true | undefined,
  isCut: boolean,
  isValidated: boolean = isCut,
): ToolResult {
  // A tool in JavaScript may have passed something else to `ToolResult.blocks`.
  if (blocks && !(isObject(output) && Array.isArray(output["content"]))) {
    return call.fail("invalid_result", "its blocks must be a list: use ToolResult.blocks([…])");
  }
  const limit = maxOutputBytes(call);
  const verdict = readJson(output, limit);
  if (verdict.kind === "refused") {
    const why = `the tool's result is not JSON: ${describeRefusal(verdict)}`;
    return call.fail("invalid_result", why);
  }
  if (verdict.kind === "large") {
    if (typeof output === "string") oversized.set(call, output);
    const size = `at least ${verdict.bytes} bytes, and ${limit} are allowed`;
    return call.fail("output_too_large", `its result has ${size}; request less of it`);
  }
  const { value: content, bytes } = verdict;
  if (!isValidated && call.tool.returns !== undefined) {
    const { returns } = call.runtime;
    const issues = issuesOf(returns as SchemaValidator, valueOf(content, blocks), bytes);
    if (issues !== undefined) return misfit(call, issues);
  }
  return blocks || isCut ? success(content, blocks, isCut) : { ok: true, content, durationMs: 0 };
}

export function misfit(call: Call, issues: readonly Issue[]): ToolResult {
  const what = "the tool's result does not fit its own schema";
  return validationFailure("invalid_result", call.tool.id, what, issues);
}

/** Returns a value without the secrets of its call. The functions of layers keep its type. */
export function redacted<Value>({ redact }: Call, value: Value): Value {
  return redact ? redact(value) as Value : value;
}
