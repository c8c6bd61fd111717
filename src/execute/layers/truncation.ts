/** Truncates texts that are too large, if the host, the tool or the caller chose truncation. */

import { issuesOf } from "../../schema/mod.ts";
import { checkOverflow, type OutputOverflow, type ToolResult } from "../../tool/mod.ts";
import { success } from "../failures.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, LayerFunction } from "../layer.ts";
import { jsonBytes } from "../json_value.ts";
import { maxOutputBytes, misfit, oversized, redacted } from "../output.ts";

/**
 * Creates the layers that truncate a text result larger than `maxOutputBytes`, and mark it as
 * `truncated`. The caller's `outputOverflow` applies, else the tool's, else this option. Without
 * these layers, and for other values, the call fails with `output_too_large`. Stage `run`, directly
 * around the tool: outer layers receive the truncated result.
 *
 * @param outputOverflow The handling of a larger text, by default `"fail"`.
 * @throws {TypeError} If the option is neither `"fail"` nor `"truncate"`.
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
  }, { name: "truncation", stage: "run", when: "outputOverflow", for: () => cut }];
}

function cutResult(call: Call, result: ToolResult): ToolResult {
  const content = redacted(call, oversized.get(call));
  const isChosen = (call.options.outputOverflow ?? "truncate") === "truncate";
  if (!isChosen || result.ok || result.error.code !== "output_too_large") return result;
  if (content === undefined) return result;
  const { returns } = call.runtime;
  const issues = returns && issuesOf(returns, content);
  if (issues) return misfit(call, issues);
  return success(truncate(content, maxOutputBytes(call)), undefined, true);
}

/** The space for the marker: two numbers and its text. */
const MARKER_BYTES = 96;

/** Truncates a text to `limit` bytes of JSON between code points, and appends what is missing. */
export function truncate(text: string, limit: number): string {
  const room = limit - MARKER_BYTES;
  // A binary search for the end. Each character has at least one byte.
  let end = 0;
  for (let most = Math.min(text.length, room); end < most;) {
    const middle = Math.ceil((end + most) / 2);
    if (jsonBytes(text.slice(0, middle)) <= room) end = middle;
    else most = middle - 1;
  }
  // The end must not be between the halves of a surrogate pair.
  if ((text.codePointAt(end - 1) ?? 0) > 0xffff) end--;
  const kept = text.slice(0, end);
  return `${kept}… [truncated: ${jsonBytes(kept)} of ${jsonBytes(text)} bytes]`;
}
