/**
 * Reads what a native host wrote into `config_json`: which tools it sees, and how they are
 * configured.
 *
 * @module
 */

import type { ToolBridgeOptions } from "../../finding/mod.ts";
import { type Selection, selectionDataFields, selectionHint } from "../../select/mod.ts";
import { isObject, refuseOthers } from "../../tool/mod.ts";

/** The contents of `config_json`. */
export interface NativeConfig {
  /** Which tools the host sees. */
  readonly selection: Selection;
  /** The options of the bridge through which the host has the tools; absent: it has no bridge. */
  readonly bridge?: ToolBridgeOptions;
  /** The tools' configurations, by id. */
  readonly config: { readonly [id: string]: unknown } | undefined;
}

/** The host's configuration is invalid. */
export class NativeConfigError extends TypeError {
  override readonly name = "NativeConfigError";
}

const ACTION = "read config_json";
const FIELDS: readonly string[] = [...selectionDataFields(), "bridge", "config"];

/**
 * Reads `config_json`.
 *
 * @param text The host's text; `{}` if it is absent or empty.
 * @returns Its contents. The values of the selection and the bridge are checked when they are used.
 * @throws {NativeConfigError} If it is not a JSON object, or a field is unknown.
 */
export function readNativeConfig(text: string | undefined): NativeConfig {
  const value = parse(text === undefined || text.trim() === "" ? "{}" : text);
  try {
    refuseOthers(ACTION, value, FIELDS, selectionHint);
  } catch (cause) {
    throw new NativeConfigError((cause as TypeError).message, { cause });
  }
  const { config, bridge = false, ...selection } = value;
  if (typeof bridge !== "boolean" && !isObject(bridge)) {
    throw wrong('"bridge" must be true, false or an object of options');
  }
  if (config !== undefined && !isObject(config)) {
    throw wrong('"config" must be an object of configurations by tool id');
  }
  // The options are checked when the bridge is made.
  return { selection, config, ...(bridge && { bridge: bridge === true ? {} : bridge }) };
}

function parse(text: string): { readonly [field: string]: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw wrong("it is not JSON", cause);
  }
  if (!isObject(value)) throw wrong("it must be a JSON object");
  return value;
}

function wrong(problem: string, cause?: unknown): NativeConfigError {
  return new NativeConfigError(
    `Cannot ${ACTION}: ${problem}`,
    cause === undefined ? undefined : { cause },
  );
}
