/**
 * `defineTool` makes a tool out of a definition: it checks every field, copies what is data,
 * freezes it, and infers what `execute` is given from the schemas.
 *
 * @module
 */

import { copyJson } from "./json_copy.ts";
import type { JsonSchema, JsonSchemaObject } from "./json.ts";
import { isRiskLevel, RISK_LEVELS, type RiskLevel } from "./risk_level.ts";
import { isStandardSchema, type StandardSchema } from "./standard_schema.ts";
import { deriveAnnotations, type ToolAnnotations } from "./tool_annotations.ts";
import type { ToolCategory } from "./tool_category.ts";
import type { ToolAvailabilityQuery, ToolContext, ToolInitContext } from "./tool_context.ts";
import { isToolName, TOOL_NAME_RULE, toolId } from "./tool_id.ts";
import type { Tool, ToolExample, ToolIcon, ToolOutput, ToolRuleAnswer } from "./tool.ts";

/** What a definition takes as a schema: JSON Schema (TypeBox makes it), or a Standard Schema. */
export type SchemaInput = boolean | object;

/** What a Standard Schema gives after validation; `unknown` for every other schema. */
export type InferStandardOutput<Schema> = Schema extends StandardSchema<infer _Input, infer Output>
  ? Output
  : unknown;

/** What a Standard Schema accepts; `unknown` for every other schema. */
export type InferStandardInput<Schema> = Schema extends StandardSchema<infer Input, infer _Output>
  ? Input
  : unknown;

/** The fields of a tool, as its author writes them. */
export interface ToolDefinition<
  ParamsSchema = SchemaInput,
  ReturnsSchema = SchemaInput,
  ConfigSchema = SchemaInput,
  Params = unknown,
  Result = unknown,
  Config = unknown,
  State = unknown,
> {
  /** 1 to 128 letters, digits, `_`, `.` or `-`. */
  readonly name: string;
  /** Where the name lives; the same rule. The id is then `namespace:name`. */
  readonly namespace?: string | undefined;
  readonly title?: string | undefined;
  /** What it does, written for a model. */
  readonly description: string;
  /** Semantic version, such as `1.2.0`. */
  readonly version?: string | undefined;
  /**
   * The arguments: TypeBox, JSON Schema with `type: "object"`, Zod 4, Valibot or ArkType.
   *
   * @default {{ type: "object", properties: {}, additionalProperties: false }}
   */
  readonly parameters?: ParamsSchema | undefined;
  /** The result, by the same means. Absent: any JSON. */
  readonly returns?: ReturnsSchema | undefined;
  readonly category?: ToolCategory | undefined;
  /** @default {"medium"} */
  readonly risk?: RiskLevel | undefined;
  readonly tags?: readonly string[] | undefined;
  /** Who may use it. Absent: everyone. */
  readonly roles?: readonly string[] | undefined;
  /** What a caller must hold, all of it. */
  readonly scopes?: readonly string[] | undefined;
  readonly requiresTransaction?: boolean | undefined;
  readonly requiresApproval?: boolean | undefined;
  /** @default {true} */
  readonly isAvailable?: boolean | ((query: ToolAvailabilityQuery) => boolean) | undefined;
  /** Hints for clients. What is absent is derived from risk, category, tags and `idempotent`. */
  readonly annotations?: ToolAnnotations | undefined;
  readonly examples?: readonly ToolExample[] | undefined;
  readonly icons?: readonly ToolIcon[] | undefined;
  /** `true`, or a sentence that says what to use instead. */
  readonly deprecated?: boolean | string | undefined;
  /** How long one call may take, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  readonly idempotent?: boolean | undefined;
  /** Schema of the tool's configuration, which the registry is given per tool. */
  readonly config?: ConfigSchema | undefined;
  readonly meta?: { readonly [key: string]: unknown } | undefined;
  /** Runs once, before the first call. What it returns is `context.state`. */
  init?(context: ToolInitContext<Config>): State | Promise<State>;
  /** Runs once, after the last call. */
  dispose?(state: State): void | Promise<void>;
  /** Rules that a schema cannot say: return what is wrong, as a sentence or as issues. */
  validate?(
    params: Params,
    context: ToolContext<Config, State>,
  ): ToolRuleAnswer | Promise<ToolRuleAnswer>;
  /** Does the work. An async generator streams what it yields, and returns the result. */
  execute?(params: Params, context: ToolContext<Config, State>): ToolOutput<Result>;
}

/** Every field of a definition. `satisfies` keeps it complete; `id` is there because tools have it. */
const FIELDS: ReadonlySet<string> = new Set(
  Object.keys(
    {
      name: 0,
      namespace: 0,
      title: 0,
      description: 0,
      version: 0,
      parameters: 0,
      returns: 0,
      category: 0,
      risk: 0,
      tags: 0,
      roles: 0,
      scopes: 0,
      requiresTransaction: 0,
      requiresApproval: 0,
      isAvailable: 0,
      annotations: 0,
      examples: 0,
      icons: 0,
      deprecated: 0,
      timeoutMs: 0,
      idempotent: 0,
      config: 0,
      meta: 0,
      init: 0,
      dispose: 0,
      validate: 0,
      execute: 0,
    } satisfies Record<keyof ToolDefinition, 0>,
  ),
);

// https://semver.org, without its unbounded groups.
const SEMVER = /^\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$/;

/** The tools that `defineTool` made, so that a registry need not check them again. */
const made = new WeakSet<object>();

const NO_PARAMETERS: JsonSchemaObject = copyJson(
  { type: "object", properties: {}, additionalProperties: false },
  "the default parameters",
);
const EMPTY: readonly never[] = Object.freeze([]);
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

interface SchemaPair {
  readonly json: JsonSchema | undefined;
  readonly standard: StandardSchema | undefined;
}

const NO_SCHEMA: SchemaPair = { json: undefined, standard: undefined };

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
  if (typeof definition !== "object" || definition === null) {
    throw new TypeError("Cannot define a tool: the definition must be an object");
  }
  const { name, namespace } = definition;
  if (!isToolName(name)) {
    throw new TypeError(
      `Cannot define tool ${quote(name)}: its name must be ${TOOL_NAME_RULE}`,
    );
  }
  const wrong = (problem: string): never => {
    throw new TypeError(`Cannot define tool ${quote(toolId(name, namespace))}: ${problem}`);
  };
  if (namespace !== undefined && !isToolName(namespace)) {
    throw new TypeError(
      `Cannot define tool ${quote(name)}: its namespace must be ${TOOL_NAME_RULE}`,
    );
  }
  for (const field of Object.keys(definition)) {
    if (!FIELDS.has(field) && !ofTools(field)) {
      wrong(`${quote(field)} is not a field of a tool`);
    }
  }
  const { id = toolId(name, namespace) } = definition as Partial<Tool>;
  if (id !== toolId(name, namespace)) {
    wrong(`its id must be what its namespace and its name make, not ${quote(id)}`);
  }

  const text = (field: "title" | "description" | "version"): string | undefined => {
    const value = definition[field];
    return value === undefined || typeof value === "string"
      ? value
      : wrong(`its ${field} must be a string`);
  };
  const flag = (field: "requiresTransaction" | "requiresApproval" | "idempotent"): boolean => {
    const { [field]: value = false } = definition;
    return typeof value === "boolean" ? value : wrong(`its ${field} must be true or false`);
  };
  const method = <Key extends "init" | "dispose" | "validate" | "execute">(
    field: Key,
  ): Tool[Key] => {
    const value: unknown = definition[field];
    if (value === undefined) return undefined as Tool[Key];
    if (typeof value !== "function") return wrong(`its ${field} must be a function`);
    return value.bind(definition) as Tool[Key];
  };
  const words = (field: "tags" | "roles" | "scopes"): readonly string[] | undefined => {
    const value: unknown = definition[field];
    if (value === undefined) return undefined;
    // A copy by iteration has no holes, which `every` would step over.
    const list: readonly unknown[] = Array.isArray(value) ? [...value] : [""];
    if (!list.every((word): word is string => typeof word === "string" && word !== "")) {
      return wrong(`its ${field} must be a list of strings that are not empty`);
    }
    return Object.freeze([...new Set(list)]);
  };
  const data = <T>(field: keyof ToolDefinition, value: T): T => {
    try {
      return copyJson(value, `its ${field}`);
    } catch (cause) {
      return wrong(messageOf(cause).replace("Cannot copy ", ""));
    }
  };
  const records = <T>(
    field: "examples" | "icons",
    wanted: string,
    isRight: (item: Record<string, unknown>) => boolean,
  ): readonly T[] => {
    const value: unknown = definition[field];
    if (value === undefined) return EMPTY;
    const list: readonly unknown[] = Array.isArray(value) ? [...value] : [undefined];
    if (!list.every((item) => isPlainObject(item) && isRight(item))) {
      return wrong(`its ${field} must be a list of objects, each with ${wanted}`);
    }
    return data(field, list as readonly T[]);
  };
  const schema = (field: "parameters" | "returns" | "config", side: "input" | "output") => {
    const value: unknown = definition[field];
    if (value === undefined) return NO_SCHEMA;
    if (isStandardSchema(value)) {
      return { json: data(field, standardJson(value, field, side, wrong)), standard: value };
    }
    if (typeof value !== "boolean" && !isPlainObject(value)) {
      return wrong(`its ${field} must be a JSON Schema or a Standard Schema`);
    }
    // A tool that another copy of plue made carries its library schema beside the JSON Schema.
    const carried: unknown = (definition as Partial<Tool>)[`${field}Standard` as never];
    return {
      json: data(field, value as JsonSchema),
      standard: isStandardSchema(carried) ? carried : undefined,
    };
  };

  const description = text("description");
  if (description === undefined || description.trim() === "") {
    wrong("its description must say what it does");
  }
  const version = text("version");
  if (version !== undefined && !SEMVER.test(version)) {
    wrong(`its version must be a semantic version such as "1.2.0", not ${quote(version)}`);
  }
  const { risk = "medium" } = definition;
  if (!isRiskLevel(risk)) {
    wrong(`its risk must be one of ${RISK_LEVELS.join(", ")}, not ${quote(risk)}`);
  }
  const category = definition.category;
  if (category !== undefined && (typeof category !== "string" || category === "")) {
    wrong("its category must be a string that is not empty");
  }
  const { isAvailable = true } = definition;
  if (typeof isAvailable !== "boolean" && typeof isAvailable !== "function") {
    wrong("its isAvailable must be true, false or a function");
  }
  const timeoutMs = definition.timeoutMs;
  // setTimeout overflows above 2^31 - 1 and would fire at once.
  if (
    timeoutMs !== undefined &&
    !(typeof timeoutMs === "number" && timeoutMs >= 1 && timeoutMs <= 2_147_483_647)
  ) {
    wrong("its timeoutMs must be a number of milliseconds from 1 to 2147483647");
  }
  const { deprecated = false } = definition;
  if (typeof deprecated !== "boolean" && typeof deprecated !== "string") {
    wrong("its deprecated must be true, false or a sentence");
  }

  const parameters = definition.parameters === undefined
    ? { json: NO_PARAMETERS, standard: undefined }
    : schema("parameters", "input");
  if (!isPlainObject(parameters.json) || parameters.json["type"] !== "object") {
    wrong('its parameters must be an object schema: "/type" must be "object"');
  }
  const returns = schema("returns", "output");
  const tags = words("tags") ?? EMPTY;
  const idempotent = flag("idempotent");
  const { annotations = {}, meta } = definition;
  if (
    !isPlainObject(annotations) ||
    HINTS.some((hint) => !["boolean", "undefined"].includes(typeof annotations[hint]))
  ) {
    wrong(`its annotations must be an object in which ${HINTS.join(", ")} are true or false`);
  }
  if (meta !== undefined && !isPlainObject(meta)) wrong("its meta must be an object");

  const tool: Tool = {
    id: toolId(name, namespace),
    name,
    namespace,
    title: text("title"),
    description: description as string,
    version,
    parameters: parameters.json as JsonSchemaObject,
    returns: returns.json,
    parametersStandard: parameters.standard,
    returnsStandard: returns.standard,
    category,
    risk,
    tags,
    roles: words("roles"),
    scopes: words("scopes") ?? EMPTY,
    requiresTransaction: flag("requiresTransaction"),
    requiresApproval: flag("requiresApproval"),
    isAvailable,
    annotations: Object.freeze({
      ...deriveAnnotations({ risk, category, tags, idempotent }),
      ...data("annotations", annotations),
    }),
    examples: records<ToolExample>("examples", '"input"', (item) => Object.hasOwn(item, "input")),
    icons: records<ToolIcon>("icons", 'a "src" string', (item) => typeof item["src"] === "string"),
    deprecated,
    timeoutMs,
    idempotent,
    config: schema("config", "input").json,
    meta: meta === undefined ? undefined : data("meta", meta),
    init: method("init"),
    dispose: method("dispose"),
    validate: method("validate") as NonNullable<Tool["validate"]>,
    execute: method("execute") as NonNullable<Tool["execute"]>,
  };
  made.add(tool);
  return Object.freeze(tool);
}

/** Fields that tools have and definitions do not. */
function ofTools(field: string): boolean {
  return field === "id" || field === "parametersStandard" || field === "returnsStandard";
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function quote(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 100))
    : `of type ${typeof value}`;
}

function standardJson(
  schema: StandardSchema,
  field: string,
  side: "input" | "output",
  wrong: (problem: string) => never,
): JsonSchema {
  const { vendor, jsonSchema } = schema["~standard"];
  if (jsonSchema === undefined) {
    return wrong(
      `its ${field} schema, made with ${vendor}, cannot give its JSON Schema: it needs ` +
        '"~standard".jsonSchema (Zod 4.2, ArkType 2.1.28, Valibot through toStandardJsonSchema)',
    );
  }
  try {
    return jsonSchema[side]({ target: "draft-2020-12" });
  } catch (cause) {
    return wrong(
      `${vendor} cannot give the JSON Schema of its ${field}: ${messageOf(cause)}`,
    );
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
