/**
 * `defineTool` makes a tool out of a definition: it checks every field, copies what is data,
 * freezes it, and infers what `execute` is given from the schemas.
 *
 * @module
 */

import {
  attempt,
  type Check,
  checkFlag,
  checkFunction,
  checkText,
  type FieldHint,
  isListOf,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  must,
  readFields,
  refuse,
  synonyms,
} from "./check.ts";
import { atOnce } from "./hook.ts";
import { copyJson, type JsonSchema, type JsonSchemaObject } from "./json.ts";
import { checkOverflow } from "./result.ts";
import { checkCategory, checkRisk, deriveAnnotations, type ToolAnnotations } from "./traits.ts";
import { isStandardSchema, type StandardSchema } from "./standard_schema.ts";
import { describe, isWithinEdits } from "./text.ts";
import type {
  InferStandardInput,
  InferStandardOutput,
  SchemaInput,
  Tool,
  ToolDefinition,
  ToolExample,
  ToolExecution,
  ToolIcon,
  ToolReader,
  ViewedTool,
} from "./tool.ts";
import { isToolId, isToolName, parseToolId, TOOL_NAME_RULE, toolId } from "./id.ts";

const EMPTY: readonly never[] = Object.freeze([]);
/** The parameters of a tool that takes none. */
export const NO_PARAMETERS: JsonSchemaObject = copyJson(
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
  const ContextSchema extends SchemaInput = boolean,
>(
  definition: ToolDefinition<
    ParamsSchema,
    ReturnsSchema,
    ConfigSchema,
    InferStandardOutput<ParamsSchema>,
    InferStandardInput<ReturnsSchema>,
    InferStandardOutput<ConfigSchema>,
    State,
    ContextSchema,
    InferStandardOutput<ContextSchema>
  >,
): Tool<InferStandardOutput<ParamsSchema>, InferStandardInput<ReturnsSchema>> {
  return makeTool(definition as ToolDefinition) as never;
}

/**
 * {@linkcode defineTool} for definitions that are data: nothing is inferred. A tool is the answer
 * itself.
 */
export function makeTool(definition: ToolDefinition | Tool): Tool {
  if (isTool(definition)) return definition;
  if (!isObject(definition)) refuse("define a tool", "the definition must be an object");
  const { name, namespace } = readNames(definition);
  const id = toolId(name, namespace);
  const action = `define tool "${id}"`;
  // A tool of another copy of plue has an id.
  const known = Object.hasOwn(definition, "id") ? TOOL_FIELDS : FIELDS;
  const fields = readFields(action, definition, known as typeof TOOL_FIELDS, itsField, HINT);
  if (fields.id !== undefined && fields.id !== id) {
    refuse(
      action,
      `its id must be what its namespace and its name make, not ${describe(fields.id)}`,
    );
  }
  if (fields.roles !== undefined && fields.allowedRoles !== undefined) {
    refuse(action, "its roles and its allowedRoles mean the same: give one of them");
  }
  if (fields.aliases?.includes(id)) refuse(action, "its id is one of its aliases");
  if (!("execute" in definition)) refuseOtherMethods(action, definition);
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

  const { description } = fields;
  const describeFor = typeof description === "function" ? description : fields.describe;
  const text = describeFor && describedBy(action, describeFor, {});
  return adopt({
    id,
    name,
    namespace,
    aliases: fields.aliases ?? EMPTY,
    view: fields.view,
    title: fields.title,
    description: checkDescription(
      action,
      typeof description === "function" ? text : description,
      itsField("description"),
    ),
    // A tool that was copied with another text has that one for every reader.
    describe: describeFor === description || text === description ? describeFor : undefined,
    version: fields.version,
    parameters: parametersJson,
    returns: returns?.json,
    parametersStandard: parameters?.standard ?? fields.parametersStandard,
    returnsStandard: returns?.standard ?? fields.returnsStandard,
    category,
    risk,
    tags,
    roles: fields.roles ?? fields.allowedRoles,
    scopes: fields.scopes ?? EMPTY,
    requiresTransaction: fields.requiresTransaction ?? false,
    requiresApproval: fields.requiresApproval ?? false,
    isAvailable: fields.isAvailable ?? true,
    unavailableReason: fields.unavailableReason,
    annotations: Object.freeze(
      deriveAnnotations({ risk, category, tags, idempotent }, fields.annotations),
    ),
    examples: fields.examples ?? EMPTY,
    icons: fields.icons ?? EMPTY,
    deprecated: fields.deprecated ?? false,
    timeoutMs: fields.timeoutMs,
    outputOverflow: fields.outputOverflow,
    idempotent,
    execution: fields.execution ?? "either",
    config: fields.config?.json,
    context: fields.context,
    meta: fields.meta,
    init: method("init"),
    dispose: method("dispose"),
    validate: method("validate"),
    execute: method("execute"),
  });
}

/** Freezes a tool, and remembers that plue made it. */
export function adopt(tool: Tool): Tool {
  made.add(tool);
  return Object.freeze(tool);
}

/**
 * What a function says of its tool to a reader.
 *
 * @throws {TypeError} If it throws, or gives no description.
 */
export function describedBy(
  action: string,
  describe: (reader: ToolReader) => unknown,
  reader: ToolReader,
): string {
  const place = `what its description says to the reader ${JSON.stringify(reader)}`;
  const said = attempt(action, () => atOnce(describe(Object.freeze(reader))), `${place}: `);
  return checkDescription(action, said, place);
}

/**
 * Refuses an object of a class that has methods and no `execute`: its author has given that another
 * name, and the tool would be a definition only. `execute: undefined` says that it is one.
 */
function refuseOtherMethods(action: string, definition: object): void {
  const methods: string[] = [];
  for (let owner = Object.getPrototypeOf(definition); owner !== null;) {
    const next: object | null = Object.getPrototypeOf(owner);
    // The last one has the methods of every object.
    if (next === null) break;
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value === "function" && !NO_EXECUTE.includes(name)) methods.push(name);
    }
    owner = next;
  }
  const meant = methods.find((name) => EXECUTE_NAME.test(name)) ??
    methods.find((name) => isWithinEdits(name, "execute", 2)) ?? methods[0];
  if (meant === undefined) return;
  const advice = "rename that, or set execute to undefined if the tool cannot be run here";
  const problem = `it has no "/execute", and its class has the method ${describe(meant)}`;
  refuse(action, `${problem}: ${advice}`);
}

/** The name and the namespace; a name such as `chain:status` is both. */
function readNames(
  { name: said, namespace }: ToolDefinition,
): { readonly name: string; readonly namespace?: string | undefined } {
  if (isToolId(said)) {
    const names = parseToolId(said);
    if (namespace === undefined) return names;
    if (names.namespace !== undefined) {
      refuse(`define tool "${said}"`, "its name has a namespace already");
    }
  }
  const name = checkName("define a tool", said, itsField("name"));
  if (namespace !== undefined) {
    checkName(`define tool ${describe(name)}`, namespace, itsField("namespace"));
  }
  return { name, namespace };
}

/** What a field is called in messages. */
function itsField(field: string): string {
  return `its ${field}`;
}

// https://semver.org, without its unbounded groups.
const SEMVER = /^\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$/;
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

const keep: Check = (_action, value) => value;

const checkName = must(TOOL_NAME_RULE, isToolName);

const checkDescription = must(
  "a string that says what it does",
  (value): value is string => typeof value === "string" && value.trim() !== "",
);

/** The check of a list, of which each item is kept once. */
function eachOnce(
  wanted: string,
  accepts: (item: unknown) => item is string,
): Check<readonly string[]> {
  const check = must(wanted, (value): value is readonly string[] => isListOf(value, accepts));
  return (action, value, place) => Object.freeze([...new Set(check(action, value, place))]);
}

const checkNames = eachOnce("a list of strings that are not empty", isWord);
const checkIds = eachOnce('a list of ids, each "name" or "namespace:name"', isToolId);

function keepStandard(_action: string, value: unknown): StandardSchema | undefined {
  return isStandardSchema(value) ? value : undefined;
}

/** What each field must be; `satisfies` keeps the table complete. */
const FIELDS = {
  // The name and the namespace are checked before the other fields: their messages name the tool.
  name: keep,
  namespace: keep,
  aliases: checkIds,
  title: checkText,
  // It is required, so `makeTool` checks it.
  description: keep as Check<ToolDefinition["description"]>,
  version: must(
    'a semantic version such as "1.2.0"',
    (value): value is string => typeof value === "string" && SEMVER.test(value),
  ),
  parameters: schemaOf("input"),
  returns: schemaOf("output"),
  category: checkCategory,
  risk: checkRisk,
  tags: checkNames,
  roles: checkNames,
  allowedRoles: checkNames,
  scopes: checkNames,
  requiresTransaction: checkFlag,
  requiresApproval: checkFlag,
  isAvailable: must(
    "true, false or a function",
    (value): value is Tool["isAvailable"] =>
      typeof value === "boolean" || typeof value === "function",
  ),
  unavailableReason: checkText,
  annotations: dataOf(
    `an object in which ${HINTS.join(", ")} are true or false`,
    (value): value is ToolAnnotations =>
      isObject(value) &&
      HINTS.every((hint) => ["boolean", "undefined"].includes(typeof value[hint])),
  ),
  examples: dataOf(
    'a list of objects, each with "input"',
    (value) =>
      isListOf(
        value,
        (item): item is ToolExample => isObject(item) && Object.hasOwn(item, "input"),
      ),
  ),
  icons: dataOf(
    'a list of objects, each with a "src" string',
    (value) =>
      isListOf(
        value,
        (item): item is ToolIcon => isObject(item) && typeof item["src"] === "string",
      ),
  ),
  deprecated: must(
    "true, false or a sentence",
    (value): value is boolean | string => typeof value === "boolean" || typeof value === "string",
  ),
  timeoutMs: must(
    `a number of milliseconds from 1 to ${MAX_TIMEOUT_MS}`,
    (value): value is number => typeof value === "number" && value >= 1 && value <= MAX_TIMEOUT_MS,
  ),
  outputOverflow: checkOverflow,
  idempotent: checkFlag,
  execution: must(
    '"sync", "task" or "either"',
    (value): value is ToolExecution => ["sync", "task", "either"].includes(value as string),
  ),
  config: schemaOf("input"),
  // No model sees it, so a library's schema need not be said in JSON.
  context: (action, value, place): Tool["context"] =>
    keepStandard(action, value) ?? schemaOf("input")(action, value, place).json,
  meta: dataOf("an object", isObject),
  init: checkFunction,
  dispose: checkFunction,
  validate: checkFunction,
  execute: checkFunction,
} satisfies { readonly [Field in keyof ToolDefinition]-?: Check };

/** Tools have more fields than definitions. */
const TOOL_FIELDS = {
  ...FIELDS,
  id: keep,
  describe: checkFunction as Check<NonNullable<Tool["describe"]>>,
  // What `viewOf` made.
  view: keep as Check<ViewedTool>,
  parametersStandard: keepStandard,
  returnsStandard: keepStandard,
};

/** What the specifications and other libraries call `execute`: `executeAsync`, `run`, `handler`. */
const EXECUTE_NAME =
  /^(exec|run|call|invoke|handle|perform|func|fn)(ute|utor|r|tion|back)?_?(async|fn|tool)?$/i;

/** What the specifications and other libraries call some of the fields. */
const NAME_HINT = synonyms({
  inputSchema: "parameters",
  input_schema: "parameters",
  parameters_schema: "parameters",
  outputSchema: "returns",
  returns_schema: "returns",
  initFn: "init",
  deinitFn: "dispose",
  riskLevel: "risk",
  defaultRiskLevel: "risk",
});
const HINT: FieldHint = (field) =>
  EXECUTE_NAME.test(field) ? 'did you mean "execute"?' : NAME_HINT(field);

/** Methods of a class that do not run a tool. */
const NO_EXECUTE: readonly string[] = [
  ...Object.keys(FIELDS),
  "constructor",
  "toJSON",
  "toString",
  "valueOf",
];

/** The check of JSON; a frozen copy of it is kept. */
function dataOf<T>(wanted: string, accepts: (value: unknown) => value is T): Check<T> {
  const check = must(wanted, accepts);
  return (action, value, place) => copyFor(action, check(action, value, place), place);
}

/** A schema as JSON, and the library's schema that it came from. */
interface SchemaPair {
  readonly json: JsonSchema;
  readonly standard: StandardSchema | undefined;
}

/** The schemas of tools that were made: a tool that is made of another one has the same ones. */
const schemas = new WeakSet<object>();

/** A frozen copy of a schema; the schema itself if it is one. */
function copySchema(schema: JsonSchemaObject, place: string): JsonSchemaObject {
  if (schemas.has(schema)) return schema;
  const copy = copyJson(schema, place);
  schemas.add(copy);
  return copy;
}

/** The check of a schema. A library's schema gives the side that callers see: `input` or `output`. */
function schemaOf(side: "input" | "output"): Check<SchemaPair> {
  const checkForm = must(
    "a JSON Schema or a Standard Schema",
    (value): value is JsonSchema => typeof value === "boolean" || isObject(value),
  );
  return (action, value, place) => {
    const standard = keepStandard(action, value);
    const given = standard === undefined ? value : standardJson(action, standard, place, side);
    const form = checkForm(action, given, place);
    const json = attempt(action, () => {
      if (!Object.values(form).some(isStandardSchema)) {
        return isObject(form) ? copySchema(form, place) : form;
      }
      throw new TypeError(`${place} must be one schema, z.object({ … })`);
    });
    return { json, standard };
  };
}

function standardJson(
  action: string,
  schema: StandardSchema,
  place: string,
  side: "input" | "output",
): unknown {
  const { vendor, jsonSchema } = schema["~standard"];
  if (jsonSchema === undefined) {
    refuse(
      action,
      `${vendor} cannot give the JSON Schema of ${place}: use ` +
        "toJSONSchema (zod/mini), toStandardJsonSchema (Valibot)",
    );
  }
  return attempt(
    action,
    () => atOnce(jsonSchema[side]({ target: "draft-2020-12" })),
    `${vendor} cannot give the JSON Schema of ${place}: `,
  );
}

function copyFor<T>(action: string, value: T, place: string): T {
  return attempt(action, () => copyJson(value, place));
}
