/**
 * Makes a result of what a tool returned: JSON, within the limit, and valid by its schema.
 *
 * @module
 */

import { type StandardOutcome, validateStandard } from "../schema/mod.ts";
import {
  atOnce,
  clip,
  isObject,
  type Issue,
  isToolResult,
  type ToolContent,
  type ToolResult,
} from "../tool/mod.ts";
import { readResult, validationFailure } from "./failures.ts";
import { describeRefusal, jsonBytes, readJson } from "./json_value.ts";
import { MIN_OUTPUT_BYTES } from "./kernel_options.ts";
import type { Call } from "./layer.ts";

/** Reads what the tool returned: a value, or a result that it made itself. */
export function readOutput(call: Call, output: unknown): ToolResult | Promise<ToolResult> {
  if (!isToolResult(output)) {
    return call.tool.returnsStandard === undefined
      ? check(call, output, undefined, undefined, false)
      : toResult(call, { content: output });
  }
  const result = readResult(output);
  if (result === undefined) {
    return call.fail("invalid_result", "the tool answered with a broken result");
  }
  return result.ok ? toResult(call, result) : result;
}

/** How large a result, and each value sent on the way, may be, in bytes of JSON. */
export function maxOutputBytes({ options, settings }: Call): number {
  const { maxOutputBytes: limit } = settings;
  const { maxOutputBytes: lower } = options;
  return lower !== undefined && lower < limit ? Math.max(lower, MIN_OUTPUT_BYTES) : limit;
}

/** The content of a success. */
interface Output {
  readonly content: unknown;
  readonly blocks?: true | undefined;
  /** It was cut before. */
  readonly truncated?: true | undefined;
}

/** How a text ends that {@linkcode truncate} has cut. */
const CUT = /… \[truncated: \d+ of (?:more than )?\d+ bytes\]$/;

/** Whether an output was cut, here or at a worker: what is left need not fit the tool's schema. */
function isCut({ content, truncated }: Output): boolean {
  return truncated === true && typeof content === "string" && CUT.test(content);
}

/** The result of a call with this output. */
export function toResult(call: Call, output: Output): ToolResult | Promise<ToolResult> {
  const schema = call.tool.returnsStandard;
  if (schema === undefined || isCut(output)) return readAgain(call, output);
  const checked = validateStandard(schema, valueOf(output.content, output.blocks));
  return checked instanceof Promise
    ? checked.then((verdict) => accept(call, output, verdict))
    : accept(call, output, checked);
}

/** What the schema of the result is about: with blocks, the value beside them. */
function valueOf(content: unknown, blocks: true | undefined): unknown {
  // A tool in JavaScript may have put anything beside the mark.
  return blocks ? (content as ToolContent | null)?.structuredContent ?? null : content;
}

function accept(
  call: Call,
  { content, blocks }: Output,
  { issues, value }: StandardOutcome,
): ToolResult {
  if (issues !== undefined) return misfit(call, issues);
  const read = blocks ? { ...content as ToolContent, structuredContent: value } : value;
  return check(call, read, blocks, undefined, true);
}

/**
 * The result of a call with an output that was a result before: only its JSON Schema checks it, since a
 * library that transforms has done that.
 */
function readAgain(call: Call, output: Output): ToolResult {
  return check(call, output.content, output.blocks, isCut(output), false);
}

function check(
  call: Call,
  value: unknown,
  blocks: true | undefined,
  truncated: boolean | undefined,
  isValidated: boolean,
): ToolResult {
  // A tool that returns nothing has the result `null`: JSON has no other nothing.
  const given = value === undefined ? null : value;
  if (blocks && !hasBlocks(given)) {
    return call.fail("invalid_result", "its blocks are no list: ToolResult.blocks([…]) makes them");
  }
  const limit = maxOutputBytes(call);
  const verdict = readJson(given, limit);
  if (verdict.kind === "refused") {
    const why = `the tool's result is not JSON: ${describeRefusal(verdict)}`;
    return call.fail("invalid_result", why);
  }
  const isLarge = verdict.kind === "large";
  const cut = isLarge ? cutText(call, given, blocks, limit) : undefined;
  if (isLarge && cut === undefined) {
    const why =
      `its result has at least ${verdict.bytes} bytes, and ${limit} are allowed; ask for less of it`;
    return call.fail("output_too_large", why);
  }
  const content = isLarge ? given : verdict.value;
  // Of large blocks only the beginning has been read.
  if (!isValidated && !truncated && call.tool.returns !== undefined && !(isLarge && blocks)) {
    const issues = checkReturns(
      call,
      valueOf(content, blocks),
      isLarge ? undefined : verdict.bytes,
    );
    if (issues !== undefined) return misfit(call, issues);
  }
  if (cut !== undefined) return { ok: true, content: cut, durationMs: 0, truncated: true };
  if (blocks || truncated) {
    return {
      ok: true,
      content,
      ...(blocks && { blocks }),
      ...(truncated === true && { truncated }),
      durationMs: 0,
    };
  }
  return { ok: true, content, durationMs: 0 };
}

function checkReturns(call: Call, value: unknown, bytes?: number): readonly Issue[] | undefined {
  const { returns } = call.runtime;
  const verdict: unknown = returns === undefined || returns.check(value, bytes);
  if (verdict === true) return undefined;
  atOnce(verdict);
  return atOnce(returns?.issues(value));
}

/** A text that was too large, cut; `undefined` where the call fails instead. */
function cutText(
  { tool, options, settings }: Call,
  content: unknown,
  blocks: true | undefined,
  limit: number,
): string | undefined {
  const overflow = options.outputOverflow ?? tool.outputOverflow ?? settings.outputOverflow;
  if (overflow !== "truncate") return undefined;
  if (blocks && hasBlocks(content)) return truncate(textOf(content), limit, `more than ${limit}`);
  return typeof content === "string" ? truncate(content, limit) : undefined;
}

/** Whether a value, which a tool in JavaScript may have made, has a list of blocks. */
function hasBlocks(content: unknown): content is { readonly content: readonly unknown[] } {
  return isObject(content) && Array.isArray(content["content"]);
}

/** The texts of blocks: bytes that were cut are of no use, and models get no metadata. */
function textOf({ content }: { readonly content: readonly unknown[] }): string {
  return content.map((block) => {
    const { type, text } = isObject(block) ? block : {};
    return typeof text === "string" ? text : `[${clip(String(type))} left out]`;
  }).join("\n");
}

function misfit(call: Call, issues: readonly Issue[]): ToolResult {
  const what = "the tool's result does not fit its own schema";
  return validationFailure("invalid_result", call.tool.id, what, issues);
}

/** Room for the marker: two numbers and the words. */
const MARKER_BYTES = 96;

/**
 * Cuts a text to `limit` bytes of JSON. The cut is between code points, and ends with
 * `… [truncated: 900 of 20000 bytes]`.
 *
 * @param limit At least 128.
 * @param whole How many bytes the whole has, in words.
 */
export function truncate(
  text: string,
  limit: number,
  whole: string | number = jsonBytes(text),
): string {
  const room = limit - MARKER_BYTES;
  // Halves the range of ends that may fit: a character takes one byte at least.
  let end = 0;
  for (let most = Math.min(text.length, room); end < most;) {
    const middle = Math.ceil((end + most) / 2);
    if (jsonBytes(text.slice(0, middle)) <= room) end = middle;
    else most = middle - 1;
  }
  // Not between the halves of a pair.
  if ((text.codePointAt(end - 1) ?? 0) > 0xffff) end--;
  const kept = text.slice(0, end);
  return `${kept}… [truncated: ${jsonBytes(kept)} of ${whole} bytes]`;
}
