/**
 * The arguments of an operation as one schema.
 *
 * @module
 */

import { type JsonSchemaObject, setOwn } from "../../../tool/mod.ts";
import type { ReadBody } from "./body.ts";
import type { ReadParameter } from "./parameters.ts";
import type { ReadSchema } from "./schemas.ts";

/** One object schema for all arguments. Nothing else has a place to go, so it is closed. */
export function inputOf(
  parameters: readonly ReadParameter[],
  body: ReadBody | undefined,
): ReadSchema & { readonly schema: JsonSchemaObject } {
  if (body?.whole !== undefined) return body.whole;
  const properties: Record<string, unknown> = {};
  const required: string[] = [];
  const refs = new Set<string>(body?.refs);
  for (const { binding: { key }, required: isRequired, read } of parameters) {
    setOwn(properties, key, read.schema);
    if (isRequired) required.push(key);
    for (const ref of read.refs) refs.add(ref);
  }
  for (const [name, schema] of body?.properties ?? []) setOwn(properties, name, schema);
  required.push(...body?.required ?? []);
  return {
    schema: {
      type: "object",
      properties,
      ...(required.length === 0 ? {} : { required }),
      additionalProperties: false,
    },
    refs,
  };
}
