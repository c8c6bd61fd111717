/**
 * `defineTool`, with types inferred from the schemas.
 *
 * @module
 */

import {
  type JsonSchemaObject,
  makeTool,
  type SchemaInput,
  type Tool,
  type ToolDefinition,
} from "../../tool/mod.ts";
import type { InferConfig, InferParams, InferResult } from "./infer.ts";

/**
 * Makes a tool. What `execute` is given, and what it may answer, is inferred from the schemas:
 * TypeBox, JSON Schema literals, or a Standard Schema (Zod 4, Valibot, ArkType).
 *
 * @example With JSON Schema
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
 * @example With TypeBox
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import Type from "typebox";
 *
 * const greet = defineTool({
 *   name: "greet",
 *   description: "Greets somebody.",
 *   parameters: Type.Object({ name: Type.String() }),
 *   execute: ({ name }) => `Hello, ${name.toUpperCase()}`,
 * });
 *
 * assert.equal(greet.parameters["type"], "object");
 * ```
 *
 * @typeParam ParamsSchema The schema of the arguments.
 * @typeParam ReturnsSchema The schema of the result.
 * @typeParam ConfigSchema The schema of the configuration.
 * @typeParam State What `init` returns.
 * @param definition The tool's fields.
 * @returns The tool, frozen.
 * @throws {TypeError} If a field is missing, unknown or wrong. The message names it.
 */
export function defineTool<
  const ParamsSchema extends SchemaInput = JsonSchemaObject,
  const ReturnsSchema extends SchemaInput = boolean,
  const ConfigSchema extends SchemaInput = boolean,
  State = undefined,
>(
  definition: ToolDefinition<
    ParamsSchema,
    ReturnsSchema,
    ConfigSchema,
    InferParams<ParamsSchema>,
    InferResult<ReturnsSchema>,
    InferConfig<ConfigSchema>,
    State
  >,
): Tool<InferParams<ParamsSchema>, InferResult<ReturnsSchema>> {
  // The types are the only difference: at run time a tool is a tool.
  return makeTool(definition as ToolDefinition) as never;
}
