/**
 * `defineTool` makes a tool out of a definition: it checks every field, copies what is data,
 * freezes it, and infers what `execute` is given from the schemas.
 *
 * @module
 */

import { DefinitionReader, isPlainObject, quote } from "./definition_reader.ts";
import { copyJson } from "./json_copy.ts";
import type { JsonSchemaObject } from "./json.ts";
import { isRiskLevel, RISK_LEVELS } from "./risk_level.ts";
import { deriveAnnotations } from "./tool_annotations.ts";
import type {
  InferStandardInput,
  InferStandardOutput,
  SchemaInput,
  ToolDefinition,
} from "./tool_definition.ts";
import type { Tool, ToolExample, ToolIcon } from "./tool.ts";

// https://semver.org, without its unbounded groups.
const SEMVER = /^\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$/;

/** `setTimeout` overflows above it, and would fire at once. */
const MAX_TIMEOUT_MS = 2_147_483_647;

const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;
const EMPTY: readonly never[] = Object.freeze([]);
const NO_PARAMETERS: JsonSchemaObject = copyJson(
  { type: "object", properties: {}, additionalProperties: false },
  "the default parameters",
);

/** The tools that `defineTool` made, so that a registry need not check them again. */
const made = new WeakSet<object>();

/** Whether `value` is a tool that this copy of plue made. */
export function isTool(value: unknown): value is Tool {
  return typeof value === "object" && value !== null && made.has(value);
}

/**
 * Makes a tool.
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
 *   risk: "safe",
 *   execute: ({ a, b }) => a + b,
 * });
 *
 * assert.equal(add.id, "math:add");
 * ```
 *
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
    InferStandardOutput<ParamsSchema>,
    InferStandardInput<ReturnsSchema>,
    InferStandardOutput<ConfigSchema>,
    State
  >,
): Tool<InferStandardOutput<ParamsSchema>, InferStandardInput<ReturnsSchema>> {
  return makeTool(definition as ToolDefinition) as never;
}

/** {@linkcode defineTool} for definitions that are data: nothing is inferred. */
export function makeTool(definition: ToolDefinition): Tool {
  const read: DefinitionReader = new DefinitionReader(definition);
  const { name, namespace, category, timeoutMs, meta } = definition;
  const { risk = "medium", isAvailable = true, deprecated = false, annotations = {} } = definition;

  const description = read.text("description");
  if (description === undefined || description.trim() === "") {
    read.wrong("its description must say what it does");
  }
  const version = read.text("version");
  if (version !== undefined && !SEMVER.test(version)) {
    read.wrong(`its version must be a semantic version such as "1.2.0", not ${quote(version)}`);
  }
  if (!isRiskLevel(risk)) {
    read.wrong(`its risk must be one of ${RISK_LEVELS.join(", ")}, not ${quote(risk)}`);
  }
  if (category !== undefined && (typeof category !== "string" || category === "")) {
    read.wrong("its category must be a string that is not empty");
  }
  if (typeof isAvailable !== "boolean" && typeof isAvailable !== "function") {
    read.wrong("its isAvailable must be true, false or a function");
  }
  if (
    timeoutMs !== undefined &&
    !(typeof timeoutMs === "number" && timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS)
  ) {
    read.wrong(`its timeoutMs must be a number of milliseconds from 1 to ${MAX_TIMEOUT_MS}`);
  }
  if (typeof deprecated !== "boolean" && typeof deprecated !== "string") {
    read.wrong("its deprecated must be true, false or a sentence");
  }
  if (
    !isPlainObject(annotations) ||
    HINTS.some((hint) => !["boolean", "undefined"].includes(typeof annotations[hint]))
  ) {
    read.wrong(`its annotations must be an object in which ${HINTS.join(", ")} are true or false`);
  }
  if (meta !== undefined && !isPlainObject(meta)) read.wrong("its meta must be an object");

  const parameters = read.schema("parameters", "input");
  const { json: parametersJson = NO_PARAMETERS } = parameters;
  if (typeof parametersJson === "boolean" || parametersJson["type"] !== "object") {
    read.wrong('its parameters must be an object schema: "/type" must be "object"');
  }
  const returns = read.schema("returns", "output");
  const tags = read.words("tags") ?? EMPTY;
  const idempotent = read.flag("idempotent");

  const tool: Tool = {
    id: read.id,
    name,
    namespace,
    title: read.text("title"),
    description,
    version,
    parameters: parametersJson,
    returns: returns.json,
    parametersStandard: parameters.standard,
    returnsStandard: returns.standard,
    category,
    risk,
    tags,
    roles: read.words("roles"),
    scopes: read.words("scopes") ?? EMPTY,
    requiresTransaction: read.flag("requiresTransaction"),
    requiresApproval: read.flag("requiresApproval"),
    isAvailable,
    annotations: Object.freeze({
      ...deriveAnnotations({ risk, category, tags, idempotent }),
      ...read.data("annotations", annotations),
    }),
    examples: read.records<ToolExample>(
      "examples",
      '"input"',
      (item) => Object.hasOwn(item, "input"),
    ),
    icons: read.records<ToolIcon>(
      "icons",
      'a "src" string',
      (item) => typeof item["src"] === "string",
    ),
    deprecated,
    timeoutMs,
    idempotent,
    config: read.schema("config", "input").json,
    meta: meta === undefined ? undefined : read.data("meta", meta),
    init: read.method("init"),
    dispose: read.method("dispose"),
    validate: read.method("validate") as NonNullable<Tool["validate"]>,
    execute: read.method("execute") as NonNullable<Tool["execute"]>,
  };
  made.add(tool);
  return Object.freeze(tool);
}
