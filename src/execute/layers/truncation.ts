/**
 * Cuts results that are too large, where the host, the tool or the caller chose that.
 *
 * @module
 */

import { issuesOf } from "../../schema/mod.ts";
import {
  checkOverflow,
  clip,
  isObject,
  type OutputOverflow,
  type ToolResult,
} from "../../tool/mod.ts";
import { success } from "../failures.ts";
import { jsonBytes } from "../json_value.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, LayerFunction } from "../layer.ts";
import { hasBlocks, maxOutputBytes, misfit, oversized } from "../output.ts";

/**
 * The layers that cut a text which is larger than `maxOutputBytes`, where that is chosen: by the
 * caller's `outputOverflow`, else by the tool's, else by this option. Of blocks, the texts are left.
 * Without these layers, and for other values, the call fails with `output_too_large`. The result says
 * `truncated`. Stage `run`, next to the tool: layers around them see the result that was cut.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { truncation } from "@plue/tools/layers";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "log", description: "Returns a log.", execute: () => "line\n".repeat(1_000) }],
 * });
 * const layers = truncation("truncate");
 * const dispatcher = new Dispatcher(registry, { layers, maxOutputBytes: 200 });
 *
 * const result = await dispatcher.dispatch({ name: "log" });
 * assert.equal(result.ok && result.truncated, true);
 * ```
 *
 * @param outputOverflow The handling of a larger text, by default `"fail"`.
 * @throws {TypeError} If it is neither `"fail"` nor `"truncate"`.
 */
export function truncation(outputOverflow: OutputOverflow = "fail"): readonly Layer[] {
  const otherwise = checkOverflow(MAKE, outputOverflow, "outputOverflow");
  const cut: LayerFunction = (call, next) => {
    const result = next(call);
    return result instanceof Promise
      ? result.then((last) => cutResult(call, last))
      : cutResult(call, result);
  };
  return [{
    name: "truncation",
    stage: "run",
    for: (tool) => (tool.outputOverflow ?? otherwise) === "truncate" ? cut : undefined,
  }, {
    name: "truncation",
    stage: "run",
    when: "outputOverflow",
    for: () => cut,
  }];
}

/** The result, or the beginning of the text that was too large for it. */
function cutResult(call: Call, result: ToolResult): ToolResult {
  const [content, blocks] = oversized.get(call) ?? [];
  const isChosen = (call.options.outputOverflow ?? "truncate") === "truncate";
  if (!isChosen || result.ok || result.error.code !== "output_too_large") return result;
  const limit = maxOutputBytes(call);
  if (blocks && hasBlocks(content)) {
    return success(truncate(textOf(content), limit, `more than ${limit}`), undefined, true);
  }
  if (typeof content !== "string") return result;
  const { returns } = call.runtime;
  const issues = returns && issuesOf(returns, content);
  return issues ? misfit(call, issues) : success(truncate(content, limit), undefined, true);
}

/** The texts of blocks: bytes that were cut are of no use, and models get no metadata. */
function textOf({ content }: { readonly content: readonly unknown[] }): string {
  return content.map((block) => {
    const { type, text } = isObject(block) ? block : {};
    return typeof text === "string" ? text : `[${clip(String(type))} left out]`;
  }).join("\n");
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
