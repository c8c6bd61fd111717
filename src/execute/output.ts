/**
 * The step that makes a result of what a tool returned: JSON, within the limit, and what the schema
 * promises.
 *
 * @module
 */

import { validateStandard } from "../schema/mod.ts";
import { type Issue, isToolResult, type OutputOverflow, type ToolResult } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { readResult } from "./failures.ts";
import { describeRefusal, readJson } from "./json_value.ts";
import { whenThere } from "./later.ts";
import type { StepAnswer } from "./plan.ts";
import { truncate } from "./truncate.ts";

/** Reads what the tool returned: a value, or a result that it made itself. */
export function readOutput(call: Call): StepAnswer {
  const { output } = call;
  if (!isToolResult(output)) return toResult(call, output);
  const result = readResult(output);
  if (result === undefined) {
    return call.fail("invalid_result", "the tool answered with a broken result");
  }
  return result.ok ? toResult(call, result.content) : result;
}

/** The result of a call with this content. */
export function toResult(call: Call, content: unknown): ToolResult | Promise<ToolResult> {
  const schema = call.tool.returnsStandard;
  if (schema === undefined) return check(call, content, false);
  return whenThere(
    validateStandard(schema, content),
    ({ issues, value }) => issues === undefined ? check(call, value, true) : misfit(call, issues),
  );
}

function check(call: Call, value: unknown, validated: boolean): ToolResult {
  // A tool that returns nothing answers `null`: JSON has no other nothing.
  let content: unknown = value === undefined ? null : value;
  let bytes = 5;
  if (content !== null && typeof content !== "boolean") {
    const verdict = readJson(content, call.maxOutputBytes);
    if (verdict.kind === "refused") {
      const why = describeRefusal(verdict);
      return call.fail("invalid_result", `the tool's result is not JSON: ${why}`);
    }
    if (verdict.kind === "large") return tooLarge(call, content, verdict.bytes, validated);
    content = verdict.value;
    bytes = verdict.bytes;
  }
  call.resultBytes = bytes;
  return (validated ? undefined : validateResult(call, content)) ??
    { ok: true, content, durationMs: 0 };
}

/** What the result's own schema says against it. */
function validateResult(call: Call, content: unknown): ToolResult | undefined {
  if (call.tool.returns === undefined) return undefined;
  const { returns } = call.runtime;
  return returns === undefined || returns.check(content)
    ? undefined
    : misfit(call, returns.issues(content));
}

function misfit(call: Call, issues: readonly Issue[]): ToolResult {
  return call.misfit("invalid_result", "the tool's result does not fit its own schema", issues);
}

/** The caller's choice, else the tool's, else the dispatcher's. */
function overflowOf({ options, tool, settings }: Call): OutputOverflow {
  return options.outputOverflow ?? tool.outputOverflow ?? settings.outputOverflow;
}

function tooLarge(call: Call, value: unknown, bytes: number, validated: boolean): ToolResult {
  const limit = call.maxOutputBytes;
  if (overflowOf(call) !== "truncate") {
    return call.fail(
      "output_too_large",
      `its result has at least ${bytes} bytes, and ${limit} are allowed; ask for less of it`,
    );
  }
  // Of other values only the beginning has been looked at, and what remains is a string anyway.
  const wrong = typeof value === "string" && !validated ? validateResult(call, value) : undefined;
  call.resultBytes = limit;
  return wrong ?? { ok: true, content: truncate(value, limit), durationMs: 0, truncated: true };
}
