/**
 * The step that makes a result of what a tool returned: JSON, within the limit, and what the schema
 * promises.
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
import type { Call } from "./call.ts";
import { readResult } from "./failures.ts";
import { describeRefusal, jsonBytes, readJson } from "./json_value.ts";

/** Reads what the tool returned: a value, or a result that it made itself. */
export function readOutput(call: Call): ToolResult | Promise<ToolResult> {
  const { output } = call;
  if (!isToolResult(output)) return toResult(call, { content: output });
  const result = readResult(output);
  if (result === undefined) {
    return call.fail("invalid_result", "the tool answered with a broken result");
  }
  return result.ok ? toResult(call, result) : result;
}

/** What a tool answers of a success. */
interface Output {
  readonly content: unknown;
  readonly blocks?: true | undefined;
  /** It says that it was cut. */
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
  if (schema === undefined || isCut(output)) return check(call, output, false);
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
  return check(call, { content: read, blocks }, true);
}

/**
 * The result of a call with an output that was a result before: only its JSON Schema checks it, since a
 * library that transforms has done that.
 */
export function readAgain(call: Call, output: Output): ToolResult {
  return check(call, output, false);
}

function check(call: Call, output: Output, isValidated: boolean): ToolResult {
  const { content: value, blocks } = output;
  const truncated = isCut(output);
  const { maxOutputBytes: limit, options, tool, settings } = call;
  // A tool that returns nothing answers `null`: JSON has no other nothing.
  const given = value === undefined ? null : value;
  if (blocks && !hasBlocks(given)) {
    return call.fail("invalid_result", "its blocks are no list: ToolResult.blocks([…]) makes them");
  }
  const verdict = readJson(given, limit);
  if (verdict.kind === "refused") {
    const why = `the tool's result is not JSON: ${describeRefusal(verdict)}`;
    return call.fail("invalid_result", why);
  }
  const isLarge = verdict.kind === "large";
  const overflow = options.outputOverflow ?? tool.outputOverflow ?? settings.outputOverflow;
  if (isLarge && overflow !== "truncate") {
    return call.fail(
      "output_too_large",
      `its result has at least ${verdict.bytes} bytes, and ${limit} are allowed; ask for less of it`,
    );
  }
  const content = isLarge ? given : verdict.value;
  // Of a large value only the beginning has been read, unless it is a string.
  if (
    !isValidated && !truncated && tool.returns !== undefined &&
    (!isLarge || typeof content === "string")
  ) {
    const { returns } = call.runtime;
    const promised = valueOf(content, blocks);
    if (
      returns !== undefined &&
      atOnce(returns.check(promised, isLarge ? undefined : verdict.bytes)) !== true
    ) {
      return misfit(call, atOnce(returns.issues(promised)));
    }
  }
  call.resultBytes = isLarge ? limit : verdict.bytes;
  if (isLarge) {
    const cut = blocks && hasBlocks(content)
      ? truncate(textOf(content), limit, `more than ${limit}`)
      : truncate(content, limit);
    return { ok: true, content: cut, durationMs: 0, truncated: true };
  }
  return {
    ok: true,
    content,
    ...(blocks && { blocks }),
    ...(truncated && { truncated }),
    durationMs: 0,
  };
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
  return call.misfit("invalid_result", "the tool's result does not fit its own schema", issues);
}

/** Room for the marker: two numbers and the words. */
const MARKER_BYTES = 96;

/**
 * Cuts `value` to `limit` bytes of JSON. A string stays a string; of anything else, the beginning of
 * its JSON text remains. The cut is between code points, and ends with
 * `… [truncated: 900 of 20000 bytes]`.
 *
 * @param value JSON, as far as the limit reaches.
 * @param limit At least 128.
 * @param of How many bytes the whole has, in words; counted for a string.
 */
export function truncate(value: unknown, limit: number, of?: string): string {
  const text = typeof value === "string" ? value : beginningOf(value, limit);
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
  const whole = of ?? (typeof value === "string" ? jsonBytes(value) : `more than ${limit}`);
  return `${kept}… [truncated: ${jsonBytes(kept)} of ${whole} bytes]`;
}

/** The first characters of a value's JSON text, without writing all of it. */
function beginningOf(value: unknown, length: number): string {
  let text = "";

  function write(part: unknown): void {
    if (text.length >= length) return;
    if (typeof part !== "object" || part === null) {
      text += JSON.stringify(typeof part === "string" ? part.slice(0, length) : part);
      return;
    }
    const { toJSON } = part as { readonly toJSON?: unknown };
    if (typeof toJSON === "function") return write(toJSON.call(part));
    let separator = "";
    const list = Array.isArray(part);
    text += list ? "[" : "{";
    for (const key of Object.keys(part)) {
      const member = (part as Record<string, unknown>)[key];
      if (member === undefined) continue;
      if (text.length >= length) return;
      text += list ? separator : `${separator}${JSON.stringify(key)}:`;
      separator = ",";
      write(member);
    }
    text += list ? "]" : "}";
  }

  write(value);
  return text;
}
