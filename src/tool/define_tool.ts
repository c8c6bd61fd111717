/**
 * `defineTool` makes a tool out of a definition: it checks every field, copies what is data,
 * freezes it, and infers what `execute` is given from the schemas.
 *
 * @module
 */

import {
  type Check,
  checkFlag,
  checkFunction,
  checkText,
  checkWord,
  isObject,
  must,
  readFields,
  refuse,
} from "./check.ts";
import {
  checkAnnotations,
  checkAvailability,
  checkDeprecated,
  checkDescription,
  checkExamples,
  checkIcons,
  checkMeta,
  checkNames,
  checkTimeout,
  checkVersion,
  keepStandard,
  schemaOf,
} from "./definition_checks.ts";
import { copyJson } from "./json_copy.ts";
import type { JsonSchemaObject } from "./json.ts";
import { checkOverflow } from "./output_overflow.ts";
import { checkRisk } from "./risk_level.ts";
import { describe } from "./text.ts";
import { deriveAnnotations } from "./tool_annotations.ts";
import type {
  InferStandardInput,
  InferStandardOutput,
  SchemaInput,
  ToolDefinition,
} from "./tool_definition.ts";
import { isToolName, TOOL_NAME_RULE, toolId } from "./tool_id.ts";
import type { Tool } from "./tool.ts";

const EMPTY: readonly never[] = Object.freeze([]);
const NO_PARAMETERS: JsonSchemaObject = copyJson(
  { type: "object", properties: {}, additionalProperties: false },
  "the default parameters",
);
const checkName = must(TOOL_NAME_RULE, isToolName);
const keep: Check = (_action, value) => value;

type CarriedField = "id" | "parametersStandard" | "returnsStandard";

/** What each field must be; `satisfies` keeps the table complete. */
const FIELDS = {
  // These make the id, and are checked before anything else.
  name: keep,
  namespace: keep,
  title: checkText,
  // Must be there, so it is checked apart.
  description: keep,
  version: checkVersion,
  parameters: schemaOf("input"),
  returns: schemaOf("output"),
  category: checkWord,
  risk: checkRisk,
  tags: checkNames,
  roles: checkNames,
  scopes: checkNames,
  requiresTransaction: checkFlag,
  requiresApproval: checkFlag,
  isAvailable: checkAvailability,
  annotations: checkAnnotations,
  examples: checkExamples,
  icons: checkIcons,
  deprecated: checkDeprecated,
  timeoutMs: checkTimeout,
  outputOverflow: checkOverflow,
  idempotent: checkFlag,
  config: schemaOf("input"),
  meta: checkMeta,
  init: checkFunction,
  dispose: checkFunction,
  validate: checkFunction,
  execute: checkFunction,
  // Tools have these and definitions do not: another copy of plue may hand its tools over.
  id: keep,
  parametersStandard: keepStandard,
  returnsStandard: keepStandard,
} satisfies { readonly [Field in keyof ToolDefinition | CarriedField]-?: Check };

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
  if (!isObject(definition)) refuse("define a tool", "the definition must be an object");
  const name = checkName("define a tool", definition.name, itsField("name"));
  const { namespace } = definition;
  if (namespace !== undefined) {
    checkName(`define tool ${describe(name)}`, namespace, itsField("namespace"));
  }
  const id = toolId(name, namespace);
  const action = `define tool "${id}"`;
  const fields = readFields(action, definition, FIELDS, itsField);
  if (fields.id !== undefined && fields.id !== id) {
    refuse(
      action,
      `its id must be what its namespace and its name make, not ${describe(fields.id)}`,
    );
  }
  const { parameters, returns, category, tags = EMPTY, risk = "medium", idempotent = false } =
    fields;
  const parametersJson = parameters?.json ?? NO_PARAMETERS;
  if (typeof parametersJson === "boolean" || parametersJson["type"] !== "object") {
    refuse(action, 'its parameters must be an object schema: "/type" must be "object"');
  }
  /** A function as a method, so that `this` is what its author expects. */
  const method = <Field extends "init" | "dispose" | "validate" | "execute">(
    field: Field,
  ): NonNullable<Tool[Field]> => fields[field]?.bind(definition) as NonNullable<Tool[Field]>;

  const tool: Tool = {
    id,
    name,
    namespace,
    title: fields.title,
    description: checkDescription(action, fields.description, itsField("description")),
    version: fields.version,
    parameters: parametersJson,
    returns: returns?.json,
    parametersStandard: parameters?.standard ?? fields.parametersStandard,
    returnsStandard: returns?.standard ?? fields.returnsStandard,
    category,
    risk,
    tags,
    roles: fields.roles,
    scopes: fields.scopes ?? EMPTY,
    requiresTransaction: fields.requiresTransaction ?? false,
    requiresApproval: fields.requiresApproval ?? false,
    isAvailable: fields.isAvailable ?? true,
    annotations: Object.freeze({
      ...deriveAnnotations({ risk, category, tags, idempotent }),
      ...fields.annotations,
    }),
    examples: fields.examples ?? EMPTY,
    icons: fields.icons ?? EMPTY,
    deprecated: fields.deprecated ?? false,
    timeoutMs: fields.timeoutMs,
    outputOverflow: fields.outputOverflow,
    idempotent,
    config: fields.config?.json,
    meta: fields.meta,
    init: method("init"),
    dispose: method("dispose"),
    validate: method("validate"),
    execute: method("execute"),
  };
  made.add(tool);
  return Object.freeze(tool);
}

/** What a field is called in messages. */
function itsField(field: string): string {
  return `its ${field}`;
}
