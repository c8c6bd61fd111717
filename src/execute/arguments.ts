/**
 * Parses the arguments of a call: a JSON string, or a value that is JSON.
 *
 * @module
 */

import { MAX_DEPTH, systemClock, type ToolFailure } from "../tool/mod.ts";
import { describeRefusal, type JsonVerdict, readJson, utf8Length } from "./json_value.ts";
import type { Call } from "./layer.ts";

const THREE_DIGITS = /\d{3}/;
const LARGE_NUMBER = /e\+?\d{3}|\d{200}/i;

/**
 * Whether a number in a short text may be above the largest one, which `JSON.parse` reads as
 * `Infinity`: it has three digits of an exponent, or two hundred of its own.
 */
function mayBeInfinite(text: string): boolean {
  // Node takes a third of the time for the first, and most texts have no such digits.
  return THREE_DIGITS.test(text) && LARGE_NUMBER.test(text);
}

/** Arguments that are text and not JSON, for a layer that repairs them. */
export class UnparsedText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Parses `given` into the arguments of the call. Nothing stands for `{}`.
 *
 * @param keepsText Text that is not JSON becomes an {@linkcode UnparsedText}.
 * @returns The failure, if they cannot be parsed; a promise for large ones.
 */
export function parseArguments(
  call: Call,
  given: unknown,
  keepsText = false,
): ToolFailure | undefined | Promise<undefined> {
  const limit = call.settings.maxArgumentBytes;
  // A copy: the tool receives what was validated, also if the caller changes its object later.
  if (typeof given !== "string") return setArguments(call, readJson(given ?? {}, limit, true));
  // A UTF-16 unit takes one to three bytes, so most texts need not be measured.
  if (given.length > limit || (given.length * 3 > limit && utf8Length(given) > limit)) {
    return tooLarge(call);
  }
  let value: unknown;
  try {
    value = JSON.parse(given);
  } catch {
    if (given.trim() !== "") {
      if (!keepsText) return unparsed(call);
      call.setArguments(new UnparsedText(given), given.length);
      return undefined;
    }
  }
  // A level takes two characters, so a short text is never too deep.
  if (given.length > 2 * MAX_DEPTH || mayBeInfinite(given)) {
    return setArguments(call, readJson(value, Infinity), given.length);
  }
  call.setArguments(value ?? {}, given.length);
  return undefined;
}

/** From so many bytes on, other calls run between parsing arguments and validating them. */
const LARGE = 65_536;

function setArguments(
  call: Call,
  verdict: JsonVerdict,
  size?: number,
): ToolFailure | undefined | Promise<undefined> {
  if (verdict.kind === "large") return tooLarge(call);
  if (verdict.kind === "refused") return unparsed(call, `: ${describeRefusal(verdict)}`);
  const bytes = size ?? verdict.bytes;
  call.setArguments(verdict.value, bytes);
  if (bytes < LARGE) return undefined;
  return new Promise((resolve) => systemClock.setTimeout(() => resolve(undefined), 0));
}

/** The failure of arguments that are not JSON. */
export function unparsed(call: Call, why = ""): ToolFailure {
  return call.fail("invalid_arguments", `its arguments are not JSON${why}`);
}

function tooLarge(call: Call): ToolFailure {
  const { maxArgumentBytes } = call.settings;
  return call.fail(
    "invalid_arguments",
    `its arguments are larger than ${maxArgumentBytes} bytes of JSON`,
  );
}
