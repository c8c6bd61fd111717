/**
 * Types inferred from schemas: TypeBox and plain JSON Schema literals by TypeBox, Standard Schemas
 * by themselves. Types only: nothing of this is left at run time.
 *
 * @module
 */

import type { XStatic } from "typebox/schema";
import type { InferStandardInput, InferStandardOutput, StandardSchema } from "../../tool/mod.ts";

/** `any` would switch off every check of whoever uses it. */
type NotAny<T> = 0 extends 1 & T ? unknown : T;

/** A schema that is not a literal (`JsonSchema`, `object`) says nothing about its values. */
type IsLiteral<Schema> = boolean extends Schema ? false
  : Schema extends boolean ? true
  : string extends keyof Schema ? false
  : object extends Schema ? (keyof Schema extends never ? false : true)
  : true;

/** The values that a JSON Schema accepts. */
type InferJson<Schema, Otherwise> = IsLiteral<Schema> extends true ? NotAny<XStatic<Schema>>
  : Otherwise;

/** What a tool is given: what its `parameters` give after validation. */
export type InferParams<Schema> = Schema extends StandardSchema ? InferStandardOutput<Schema>
  : InferJson<Schema, { readonly [name: string]: unknown }>;

/** What a tool may answer: what its `returns` accept. */
export type InferResult<Schema> = Schema extends StandardSchema ? InferStandardInput<Schema>
  : InferJson<Schema, unknown>;

/** A tool's configuration: what its `config` accepts, since only its JSON Schema checks that. */
export type InferConfig<Schema> = InferResult<Schema>;
