/**
 * The steps that make sure of a call's arguments: parsed, bounded, and what the schema wants.
 *
 * @module
 */

import { type StandardOutcome, validateStandard } from "../schema/mod.ts";
import type { ToolFailure } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { failure, issuesFailure } from "./failures.ts";
import { describeJsonError } from "./json_error.ts";
import { describeRefusal, MAX_DEPTH, readJson, utf8Length } from "./json_value.ts";
import type { StepAnswer } from "./plan.ts";

/** Reads the arguments: a JSON string, or a value that is JSON. Nothing stands for `{}`. */
export function parseArguments(call: Call): ToolFailure | undefined {
  const given = call.request.arguments;
  if (typeof given !== "string") {
    if (given === undefined || given === null) {
      call.args = {};
      return undefined;
    }
    return bound(call, given);
  }
  const limit = call.settings.maxArgumentBytes;
  // A unit has one to three bytes: most texts need not be measured.
  if (given.length > limit || (given.length * 3 > limit && utf8Length(given) > limit)) {
    return tooLarge(call);
  }
  let value: unknown;
  try {
    value = JSON.parse(given);
  } catch {
    if (given.trim() === "") {
      call.args = {};
      return undefined;
    }
    return failure(
      "invalid_arguments",
      call.tool.id,
      `its arguments are not JSON: ${describeJsonError(given)}`,
    );
  }
  // A level takes two characters, so a short text cannot be too deep.
  if (given.length > 2 * MAX_DEPTH) return bound(call, value);
  call.args = value ?? {};
  return undefined;
}

function bound(call: Call, value: unknown): ToolFailure | undefined {
  const verdict = readJson(value, call.settings.maxArgumentBytes);
  switch (verdict.kind) {
    case "json":
      call.args = verdict.value ?? {};
      return undefined;
    case "large":
      return tooLarge(call);
    case "refused":
      return failure(
        "invalid_arguments",
        call.tool.id,
        `its arguments are not JSON: ${describeRefusal(verdict)}`,
      );
  }
}

function tooLarge(call: Call): ToolFailure {
  return failure(
    "invalid_arguments",
    call.tool.id,
    `its arguments are larger than ${call.settings.maxArgumentBytes} bytes of JSON`,
  );
}

/** Checks the arguments against the tool's JSON Schema. */
export function validateArguments(call: Call): ToolFailure | undefined {
  const { parameters } = call.runtime;
  if (parameters.check(call.args)) return undefined;
  return issuesFailure(
    "invalid_arguments",
    call.tool.id,
    "its arguments do not fit",
    parameters.issues(call.args),
  );
}

/** Has the library that the schema came from check the arguments, fill in defaults and transform. */
export function validateStandardArguments(call: Call): StepAnswer {
  const schema = call.tool.parametersStandard;
  if (schema === undefined) return undefined;
  const outcome = validateStandard(schema, call.args);
  return outcome instanceof Promise
    ? outcome.then((later) => take(call, later))
    : take(call, outcome);
}

function take(call: Call, outcome: StandardOutcome): ToolFailure | undefined {
  if (outcome.issues !== undefined) {
    return issuesFailure(
      "invalid_arguments",
      call.tool.id,
      "its arguments do not fit",
      outcome.issues,
    );
  }
  call.args = outcome.value;
  return undefined;
}
