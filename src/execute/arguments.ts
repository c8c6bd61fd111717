/**
 * The steps that make sure of a call's arguments: parsed, bounded, and what the schema wants.
 *
 * @module
 */

import { validateStandard } from "../schema/mod.ts";
import { type Issue, JsonReader, MAX_DEPTH, type ToolFailure } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { describeJsonError } from "./json_error.ts";
import { describeRefusal, readJson, utf8Length } from "./json_value.ts";
import { whenThere } from "./later.ts";
import type { StepAnswer } from "./plan.ts";

/** What providers call the arguments of their calls. */
const OTHER_NAMES = ["input", "args", "parameters", "params"];

/** Reads the arguments: a JSON string, or a value that is JSON. Nothing stands for `{}`. */
export function parseArguments(call: Call): ToolFailure | undefined {
  const given = call.request.arguments;
  if (given === undefined) {
    // A provider's call that nobody decoded must not run as one that asks for nothing.
    const other = OTHER_NAMES.find((name) => Object.hasOwn(call.request, name));
    if (other !== undefined) {
      return call.fail(
        "invalid_arguments",
        `its arguments are in "${other}" and must be in "arguments"; ` +
          "decodeCalls() reads what a provider sent",
      );
    }
  }
  if (typeof given !== "string") return take(call, given);
  const limit = call.settings.maxArgumentBytes;
  // A unit has one to three bytes: most texts need not be measured.
  if (given.length > limit || (given.length * 3 > limit && utf8Length(given) > limit)) {
    return tooLarge(call);
  }
  let value: unknown;
  try {
    value = JSON.parse(given);
  } catch {
    if (given.trim() !== "") return notJson(call, describeJsonError(given));
  }
  // A level takes two characters, so a short text cannot be too deep.
  if (given.length > 2 * MAX_DEPTH) return take(call, value);
  call.args = value ?? {};
  return undefined;
}

function take(call: Call, value: unknown): ToolFailure | undefined {
  const verdict = readJson(value ?? {}, call.settings.maxArgumentBytes);
  if (verdict.kind === "large") return tooLarge(call);
  if (verdict.kind === "refused") return notJson(call, describeRefusal(verdict));
  // A copy: what was validated must be what the tool gets, whatever becomes of the caller's object.
  call.args = new JsonReader({ maxBytes: Infinity, standIns: true }).read(verdict.value);
  return undefined;
}

function notJson(call: Call, why: string): ToolFailure {
  return call.fail("invalid_arguments", `its arguments are not JSON: ${why}`);
}

function tooLarge(call: Call): ToolFailure {
  const { maxArgumentBytes } = call.settings;
  return call.fail(
    "invalid_arguments",
    `its arguments are larger than ${maxArgumentBytes} bytes of JSON`,
  );
}

/**
 * Checks the arguments against the tool's JSON Schema. Where that came from a library, the library
 * checks them: it also fills in defaults and transforms.
 */
export function validateArguments(call: Call): StepAnswer {
  const schema = call.tool.parametersStandard;
  if (schema === undefined) {
    const { parameters } = call.runtime;
    return parameters.check(call.args) ? undefined : misfit(call, parameters.issues(call.args));
  }
  return whenThere(validateStandard(schema, call.args), ({ issues, value }) => {
    if (issues !== undefined) return misfit(call, issues);
    call.args = value;
    return undefined;
  });
}

function misfit(call: Call, issues: readonly Issue[]): ToolFailure {
  return call.misfit("invalid_arguments", "its arguments do not fit", issues);
}
