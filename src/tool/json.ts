/**
 * JSON as data: the values that cross plue's borders, and JSON Schema as one of them.
 *
 * @module
 */

/** A value that survives `JSON.stringify` and `JSON.parse` unchanged. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** A JSON Schema that is an object: draft-07 or 2020-12. */
export interface JsonSchemaObject {
  readonly [keyword: string]: unknown;
}

/** A JSON Schema: draft-07 or 2020-12. `true` accepts everything, `false` nothing. */
export type JsonSchema = boolean | JsonSchemaObject;
