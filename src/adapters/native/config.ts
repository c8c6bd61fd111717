/**
 * Reads what a native host wrote into `config_json`: which tools it sees, and how they are
 * configured.
 *
 * @module
 */

import type { Selection } from "../../select/mod.ts";

/** What `config_json` says. */
export interface NativeConfig {
  /** Which tools the host sees. */
  readonly selection: Selection;
  /** The tools' configurations, by id. */
  readonly config: { readonly [id: string]: unknown } | undefined;
}

/** What the host wrote is wrong. The message is for the one who wrote it. */
export class NativeConfigError extends TypeError {
  override readonly name = "NativeConfigError";
}

/** The members that are a selection's. A host cannot send its functions, filters and policies. */
const SELECTION_FIELDS: readonly string[] = Object.keys(
  {
    context: 0,
    role: 0,
    scopes: 0,
    namespace: 0,
    allowIds: 0,
    denyIds: 0,
    maxRisk: 0,
    categories: 0,
    excludeCategories: 0,
    tagsAny: 0,
    tagsAll: 0,
  } satisfies Record<Exclude<keyof Selection, "filters" | "policies">, 0>,
);

const FIELDS: ReadonlySet<string> = new Set([...SELECTION_FIELDS, "config"]);

/**
 * Reads `config_json`.
 *
 * @param text What the host wrote; absent or empty is `{}`.
 * @returns What it says. The selection's values are not looked at here: whoever selects checks
 * them, and throws a `TypeError`.
 * @throws {NativeConfigError} If it is not a JSON object, or a field is unknown.
 */
export function readNativeConfig(text: string | undefined): NativeConfig {
  const value = parse(text === undefined || text.trim() === "" ? "{}" : text);
  for (const field of Object.keys(value)) {
    if (!FIELDS.has(field)) {
      throw wrong(`"${field.slice(0, 100)}" is not one of its fields, ${[...FIELDS].join(", ")}`);
    }
  }
  const { config, ...selection } = value;
  if (config !== undefined && !isObject(config)) {
    throw wrong('"config" must be an object of configurations by tool id');
  }
  return { selection, config };
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

function isObject(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function wrong(problem: string, cause?: unknown): NativeConfigError {
  return new NativeConfigError(
    `Cannot read config_json: ${problem}`,
    cause === undefined ? undefined : { cause },
  );
}
