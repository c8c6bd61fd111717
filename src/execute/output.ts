/**
 * The step that makes a result of what a tool returned: JSON, within the limit, and what the schema
 * promises.
 *
 * @module
 */

import { type StandardOutcome, validateStandard } from "../schema/mod.ts";
import { isToolResult, type ToolResult } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { failure, issuesFailure, readResult } from "./failures.ts";
import { describeRefusal, readJson } from "./json_value.ts";
import type { StepAnswer } from "./plan.ts";
import { truncate } from "./truncate.ts";

/** Reads what the tool returned: a value, or a result that it made itself. */
export function readOutput(call: Call): StepAnswer {
  const { output } = call;
  if (!isToolResult(output)) return toResult(call, output);
  const result = readResult(output);
  if (result === undefined) {
    return failure("invalid_result", call.tool.id, "the tool answered with a broken result");
  }
  return result.ok ? toResult(call, result.content) : result;
}

/** The result of a call with this content. */
export function toResult(call: Call, content: unknown): ToolResult | Promise<ToolResult> {
  const schema = call.tool.returnsStandard;
  if (schema === undefined) return check(call, content, false);
  const outcome = validateStandard(schema, content);
  return outcome instanceof Promise
    ? outcome.then((later) => fromStandard(call, later))
    : fromStandard(call, outcome);
}

function fromStandard(call: Call, outcome: StandardOutcome): ToolResult {
  return outcome.issues === undefined ? check(call, outcome.value, true) : issuesFailure(
    "invalid_result",
    call.tool.id,
    "the tool's result does not fit its own schema",
    outcome.issues,
  );
}

function check(call: Call, value: unknown, validated: boolean): ToolResult {
  // A tool that returns nothing answers `null`: JSON has no other nothing.
  let content: unknown = value === undefined ? null : value;
  let bytes = 5;
  if (content !== null && typeof content !== "boolean") {
    const verdict = readJson(content, call.maxOutputBytes);
    if (verdict.kind === "refused") {
      return failure(
        "invalid_result",
        call.tool.id,
        `the tool's result is not JSON: ${describeRefusal(verdict)}`,
      );
    }
    if (verdict.kind === "large") return tooLarge(call, content, verdict.bytes, validated);
    content = verdict.value;
    bytes = verdict.bytes;
  }
  call.resultBytes = bytes;
  return (validated ? undefined : misfit(call, content)) ?? { ok: true, content, durationMs: 0 };
}

/** What the result's own schema says against it. */
function misfit(call: Call, content: unknown): ToolResult | undefined {
  if (call.tool.returns === undefined) return undefined;
  const { returns } = call.runtime;
  if (returns === undefined || returns.check(content)) return undefined;
  return issuesFailure(
    "invalid_result",
    call.tool.id,
    "the tool's result does not fit its own schema",
    returns.issues(content),
  );
}

function tooLarge(call: Call, value: unknown, bytes: number, validated: boolean): ToolResult {
  const limit = call.maxOutputBytes;
  const overflow = call.options.outputOverflow ?? call.settings.outputOverflow;
  if (overflow !== "truncate") {
    return failure(
      "output_too_large",
      call.tool.id,
      `its result has at least ${bytes} bytes, and ${limit} are allowed; ask for less of it`,
    );
  }
  // Of other values only the beginning has been looked at, and what remains is a string anyway.
  if (typeof value === "string" && !validated) {
    const wrong = misfit(call, value);
    if (wrong !== undefined) return wrong;
  }
  call.resultBytes = limit;
  return { ok: true, content: truncate(value, limit), durationMs: 0, truncated: true };
}
