/**
 * Checks a schema before it is used, so that a bad one is refused where it is registered.
 *
 * @module
 */

import type { JsonSchema } from "../tool/mod.ts";
import { type Dialect, detectDialect } from "./dialect.ts";

/** Bounds of {@linkcode checkSchema}. */
export interface CheckSchemaOptions {
  /**
   * What the schema is called in messages, such as `parameters of tool "add"`.
   *
   * @default {"the schema"}
   */
  readonly what?: string;
  /**
   * How many schemas it may hold, itself included.
   *
   * @default {5_000}
   */
  readonly maxSchemas?: number;
  /**
   * How deep schemas may nest.
   *
   * @default {64}
   */
  readonly maxDepth?: number;
  /**
   * How many values it may hold, those in `enum`, `default` and unknown keywords included.
   *
   * @default {100_000}
   */
  readonly maxValues?: number;
  /**
   * How many characters its keys and strings may have in all.
   *
   * @default {1_000_000}
   */
  readonly maxCharacters?: number;
}

/** What {@linkcode checkSchema} found out. */
export interface CheckedSchema {
  readonly dialect: Dialect;
}

/** Checks `schema`. */
export function checkSchema(schema: JsonSchema, _options: CheckSchemaOptions = {}): CheckedSchema {
  return { dialect: detectDialect(schema) };
}
