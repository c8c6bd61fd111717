/** `defineTool`, with types inferred from the schemas. */

import type { XStatic } from "typebox/schema";
import {
  type InferStandardInput,
  type InferStandardOutput,
  type JsonSchemaObject,
  makeTool,
  type SchemaInput,
  type StandardSchema,
  type Tool,
  type ToolDefinition,
} from "../../tool/mod.ts";

/**
 * Makes a tool. The arguments and the result of `execute` are inferred from the schemas: TypeBox,
 * JSON Schema literals, or a Standard Schema (Zod 4, Valibot, ArkType).
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 *
 * const add = defineTool({
 *   name: "add",
 *   namespace: "math",
 *   description: "Adds two numbers.",
 *   parameters: {
 *     type: "object",
 *     properties: { a: { type: "number" }, b: { type: "number" } },
 *     required: ["a", "b"],
 *   },
 *   returns: { type: "number" },
 *   risk: "safe",
 *   execute: ({ a, b }) => a + b,
 * });
 *
 * assert.equal(add.id, "math:add");
 * ```
 *
 * @throws {TypeError} If a field is missing, unknown or invalid. The message names the field.
 */
export function defineTool<
  const ParamsSchema extends SchemaInput = JsonSchemaObject,
  const ReturnsSchema extends SchemaInput = boolean,
  const ConfigSchema extends SchemaInput = boolean,
  State = undefined,
  const ContextSchema extends SchemaInput = boolean,
>(
  definition: ToolDefinition<
    ParamsSchema,
    ReturnsSchema,
    ConfigSchema,
    InferParams<ParamsSchema>,
    InferResult<ReturnsSchema>,
    InferConfig<ConfigSchema>,
    State,
    ContextSchema,
    InferContext<ContextSchema>
  >,
): Tool<InferParams<ParamsSchema>, InferResult<ReturnsSchema>> {
  // Only the types differ: at run time, all tools have the same form.
  return makeTool(definition as ToolDefinition) as never;
}

/** Replaces `any` by `unknown`, because `any` would disable the type checks of the tool's code. */
type NotAny<T> = 0 extends 1 & T ? unknown : T;

/** A schema that is not a literal (`JsonSchema`, `object`) does not restrict its values. */
type IsLiteral<Schema> = boolean extends Schema ? false
  : Schema extends boolean ? true
  : string extends keyof Schema ? false
  : object extends Schema ? (keyof Schema extends never ? false : true)
  : true;

type InferJson<Schema, Otherwise> = IsLiteral<Schema> extends true ? NotAny<XStatic<Schema>>
  : Otherwise;

/** The arguments of `execute`: the validated `parameters` of a tool (`typeof tool`) or a schema. */
export type InferParams<Of> = Of extends Tool<infer Params, infer _Result> ? Params
  : Of extends StandardSchema ? InferStandardOutput<Of>
  : InferJson<Of, { readonly [name: string]: unknown }>;

/** The result of `execute`: the input of `returns`, of a tool (`typeof tool`) or of a schema. */
export type InferResult<Of> = Of extends Tool<infer _Params, infer Result> ? Result
  : Of extends StandardSchema ? InferStandardInput<Of>
  : InferJson<Of, unknown>;

/** A tool's configuration: the input of `config`, since only its JSON Schema validates it. */
export type InferConfig<Schema> = InferResult<Schema>;

/** The type of `context.context`: the output of the `context` schema after validation. */
export type InferContext<Schema> = Schema extends StandardSchema ? InferStandardOutput<Schema>
  : InferJson<Schema, unknown>;
