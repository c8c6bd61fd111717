/**
 * `defineTool` creates a tool from a definition: it checks every field, copies and freezes data,
 * and infers the arguments of `execute` from the schemas.
 */

import * as check from "./check.ts";
import { assertSync, attempt, fail, isFunction, isListOf, isObject, isWord } from "./check.ts";
import { copyJson, type JsonSchema, type JsonSchemaObject } from "./json.ts";
import { checkOverflow } from "./result.ts";
import { describe } from "./text.ts";
import {
  type InferStandardInput,
  type InferStandardOutput,
  isStandardSchema,
  type SchemaInput,
  type StandardSchema,
  type Tool,
  type ToolCredentials,
  type ToolDefinition,
  type ToolExample,
  type ToolExecution,
  type ToolIcon,
  type ToolReader,
  type ViewedTool,
} from "./tool.ts";
import {
  checkCategory,
  checkRisk,
  deriveAnnotations,
  HINTS,
  isToolId,
  isToolName,
  parseToolId,
  TOOL_NAME_RULE,
  type ToolAnnotations,
  toolId,
} from "./traits.ts";

const EMPTY: readonly never[] = Object.freeze([]);
export const NO_PARAMETERS: JsonSchemaObject = copyJson(
  { type: "object", properties: {}, additionalProperties: false },
  "the default parameters",
);
/** The tools that `defineTool` has created. A registry does not check them again. */
const made = new WeakSet<object>();

type MadeTool = Omit<Tool, "allowedRoles">;

/** Returns true if `value` is a tool of this copy of plue. */
export function isTool(value: unknown): value is Tool {
  return typeof value === "object" && value !== null && made.has(value);
}

/** Makes a tool. Throws a `TypeError` that names the missing, unknown or invalid field. */
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

/** {@linkcode defineTool} for data, without inference of types. Returns a tool unchanged. */
export function makeTool(definition: ToolDefinition | Tool): Tool {
  if (isTool(definition)) return definition;
  if (!isObject(definition)) fail("define a tool", "the definition must be an object");
  const { name, namespace } = readNames(definition);
  const id = toolId(name, namespace);
  const action = `define tool "${id}"`;
  // A definition with an id is a tool of another copy of plue, with a tool's fields.
  const known = Object.hasOwn(definition, "id") ? TOOL_FIELDS : FIELDS;
  const { allowedRoles, parameters, returns, ...fields } = check.readFields(
    action,
    definition,
    known as typeof TOOL_FIELDS,
    itsField,
    HINT,
  );
  if (fields.id !== undefined && fields.id !== id) {
    fail(
      action,
      `its id must be "${id}" (its namespace and name), not ${describe(fields.id)}`,
    );
  }
  // A tool of another copy of plue has both fields, with the same roles.
  if (fields.roles && allowedRoles && `${fields.roles}` !== `${allowedRoles}`) {
    fail(action, "roles and allowedRoles differ; set only one of them");
  }
  if (fields.aliases?.includes(id)) fail(action, `"/aliases" must not contain "${id}"`);
  if (!("execute" in definition)) refuseOtherMethods(action, definition);
  const { description } = fields;
  const describeFor = typeof description === "function" ? description : fields.describe;
  const text = describeFor && describedBy(action, describeFor, {});
  const tool = {
    ...BLANK,
    ...fields,
    id,
    name,
    namespace,
    description: checkDescription(
      action,
      typeof description === "function" ? text : description,
      itsField("description"),
    ),
    // A copy of a tool that sets another description has this description for every reader.
    describe: describeFor === description || text === description ? describeFor : undefined,
    parametersStandard: parameters?.standard ?? fields.parametersStandard,
    returns: returns?.json,
    returnsStandard: returns?.standard ?? fields.returnsStandard,
    roles: fields.roles ?? allowedRoles,
  } as { -readonly [Field in keyof MadeTool]: MadeTool[Field] };
  if (parameters !== undefined) tool.parameters = parameters.json as JsonSchemaObject;
  if (tool.parameters["type"] !== "object") {
    fail(action, 'its parameters must be an object schema: "/type" must be "object"');
  }
  tool.annotations = Object.freeze(deriveAnnotations(tool, fields.annotations));
  // Binds the functions to the definition, so that `this` is the definition.
  for (const field of METHODS) tool[field] = fields[field]?.bind(definition) as never;
  return adopt(tool);
}

/**
 * Freezes a tool, and records that plue created it. `allowedRoles` is not an own property, so that
 * `{ ...tool }` contains the roles only once.
 */
function adopt(tool: MadeTool): Tool {
  made.add(Object.defineProperty(tool, "allowedRoles", { value: tool.roles }));
  return Object.freeze(tool as Tool);
}

/** Returns the text of a description function for a reader. Throws for an invalid text. */
function describedBy(
  action: string,
  describe: (reader: ToolReader) => unknown,
  reader: ToolReader,
): string {
  const place = `its description for the reader ${JSON.stringify(reader)}`;
  const text = attempt(action, () => assertSync(describe(Object.freeze(reader))), `${place}: `);
  return checkDescription(action, text, place);
}

/**
 * Rejects an object of a class that has methods but no `execute`: its author has probably used
 * another name, and the tool would be a definition only. Definitions set `execute: undefined`.
 */
function refuseOtherMethods(action: string, definition: object): void {
  const methods: string[] = [];
  let owner = Object.getPrototypeOf(definition);
  // Skips the last prototype, which has the methods of every object.
  for (let next; owner && (next = Object.getPrototypeOf(owner)); owner = next) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      // Also ignores `constructor`, `toString` and `valueOf`, which every object has.
      const isOther = !(name in FIELDS) && name !== "toJSON";
      if (isFunction(value) && isOther) methods.push(name);
    }
  }
  const meant = methods.find((name) => EXECUTE_NAME.test(name)) ?? methods[0];
  if (meant === undefined) return;
  const advice = "rename it to execute, or set execute to undefined";
  fail(action, `its class has the method ${describe(meant)} and no execute: ${advice}`);
}

/** Returns the name and the namespace; a name such as `chain:status` contains both. */
function readNames(
  { name, namespace }: ToolDefinition,
): { readonly name: string; readonly namespace?: string | undefined } {
  if (namespace === undefined && isToolId(name)) return parseToolId(name);
  checkName("define a tool", name, itsField("name"));
  if (namespace !== undefined) {
    checkName(`define tool "${name}"`, namespace, itsField("namespace"));
  }
  return { name, namespace };
}

function itsField(field: string): string {
  return `its ${field}`;
}

// The pattern of https://semver.org, with bounded groups.
const SEMVER = /^\d{1,9}(\.\d{1,9}){2}(-[\w.-]{1,64})?(\+[\w.-]{1,64})?$/;
const METHODS = ["init", "dispose", "validate", "execute"] as const;

const checkName = check.createCheck(TOOL_NAME_RULE, isToolName);

const checkDescription = check.createCheck(
  "a string that describes the tool",
  (value): value is string => isWord(value) && value.trim() !== "",
);

function eachOnce(
  wanted: string,
  accepts: (item: unknown) => item is string,
): check.Check<readonly string[]> {
  const checkList = check.createCheck(`a list of ${wanted}`, (value) => isListOf(value, accepts));
  return (action, value, place) => Object.freeze([...new Set(checkList(action, value, place))]);
}

const checkNames = eachOnce("strings that are not empty", isWord);

function keepStandard(_action: string, value: unknown): StandardSchema | undefined {
  return isStandardSchema(value) ? value : undefined;
}

/** Checks JSON, and returns a frozen copy. */
function dataOf<T>(wanted: string, accepts: (value: unknown) => value is T): check.Check<T> {
  const checkOwn = check.createCheck(wanted, accepts);
  return (action, value, place) => {
    const data = checkOwn(action, value, place);
    return attempt(action, () => copyJson(data, place));
  };
}

const checkData = dataOf("an object", isObject);

function objectsWith<Item extends object>(
  wanted: string,
  accepts: (item: Record<string, unknown>) => boolean,
): check.Check<readonly Item[]> {
  const isItem = (item: unknown): item is Item => isObject(item) && accepts(item);
  return dataOf(
    `a list of objects, each with ${wanted}`,
    (value): value is readonly Item[] => isListOf(value, isItem),
  );
}

const checkSchema = check.createCheck(
  "a JSON Schema or a Standard Schema",
  (value): value is JsonSchema => typeof value === "boolean" || isObject(value),
);

interface SchemaPair {
  readonly json: JsonSchema;
  readonly standard: StandardSchema | undefined;
}

/** Checks a schema. A library's schema is converted for callers, as its `input` or its `output`. */
function schemaOf(side: "input" | "output"): check.Check<SchemaPair> {
  return (action, value, place) => {
    const standard = keepStandard(action, value);
    const form = checkSchema(
      action,
      standard ? toJson(action, standard, place, side) : value,
      place,
    );
    const json = attempt(action, () => {
      if (!Object.values(form).some(isStandardSchema)) return copyJson(form, place);
      throw new TypeError(`${place} must be one schema, z.object({ … })`);
    });
    return { json, standard };
  };
}

function toJson(
  action: string,
  schema: StandardSchema,
  place: string,
  side: "input" | "output",
): unknown {
  const { vendor, jsonSchema } = schema["~standard"];
  const problem = `${vendor} cannot make a JSON Schema of ${place}: `;
  if (jsonSchema === undefined) {
    fail(action, `${problem}use toJSONSchema (zod/mini), toStandardJsonSchema (Valibot)`);
  }
  return attempt(action, () => assertSync(jsonSchema[side]({ target: "draft-2020-12" })), problem);
}

const checkInput = schemaOf("input");
const checkConfig: check.Check<JsonSchema> = (...args) => checkInput(...args).json;

const FIELDS = {
  // The name and the namespace are checked first: messages about other fields contain them.
  name: check.anyValue,
  namespace: check.anyValue,
  aliases: eachOnce('ids, each "name" or "namespace:name"', isToolId),
  title: check.checkText,
  // Required: `makeTool` checks it.
  description: check.anyValue as check.Check<ToolDefinition["description"]>,
  version: check.createCheck(
    'a semantic version such as "1.2.0"',
    (value): value is string => isWord(value) && SEMVER.test(value),
  ),
  parameters: checkInput,
  returns: schemaOf("output"),
  category: checkCategory,
  risk: checkRisk,
  tags: checkNames,
  roles: checkNames,
  allowedRoles: checkNames,
  scopes: checkNames,
  requiresTransaction: check.checkFlag,
  requiresApproval: check.checkFlag,
  callsTools: check.checkFlag,
  isAvailable: check.ofType<Tool["isAvailable"]>(
    "true, false or a function",
    "boolean",
    "function",
  ),
  unavailableReason: check.checkText,
  labels: checkData,
  credentials: checkData as check.Check<ToolCredentials>,
  annotations: dataOf(
    `an object in which ${HINTS.join(", ")} are true or false`,
    (value): value is ToolAnnotations =>
      isObject(value) &&
      HINTS.every((hint) => ["boolean", "undefined"].includes(typeof value[hint])),
  ),
  examples: objectsWith<ToolExample>('"input"', (item) => Object.hasOwn(item, "input")),
  icons: objectsWith<ToolIcon>('a "src" string', ({ src }) => typeof src === "string"),
  deprecated: check.ofType<boolean | string>("true, false or a sentence", "boolean", "string"),
  timeoutMs: check.createCheck(
    `a number of milliseconds from 1 to ${check.MAX_TIMEOUT_MS}`,
    (value): value is number =>
      typeof value === "number" && value >= 1 && value <= check.MAX_TIMEOUT_MS,
  ),
  outputOverflow: checkOverflow,
  idempotent: check.checkFlag,
  execution: check.oneOf<ToolExecution>(["sync", "task", "either"]),
  config: checkConfig,
  // A library's schema need not convert to JSON Schema, because no model receives it.
  context: (action, value, place): Tool["context"] =>
    keepStandard(action, value) ?? checkConfig(action, value, place),
  meta: checkData,
  init: check.checkFunction,
  dispose: check.checkFunction,
  validate: check.checkFunction,
  execute: check.checkFunction,
} satisfies { readonly [Field in keyof ToolDefinition]-?: check.Check };

const TOOL_FIELDS = {
  ...FIELDS,
  id: check.anyValue,
  describe: check.checkFunction as check.Check<NonNullable<Tool["describe"]>>,
  // The result of `viewOf`.
  view: check.anyValue as check.Check<ViewedTool>,
  parametersStandard: keepStandard,
  returnsStandard: keepStandard,
};

const { allowedRoles: _, ...OWN_FIELDS } = TOOL_FIELDS;

const BLANK = {
  ...Object.fromEntries(["id", ...Object.keys(OWN_FIELDS)].map((field) => [field, undefined])),
  aliases: EMPTY,
  parameters: NO_PARAMETERS,
  risk: "medium",
  tags: EMPTY,
  scopes: EMPTY,
  requiresTransaction: false,
  requiresApproval: false,
  callsTools: false,
  isAvailable: true,
  examples: EMPTY,
  icons: EMPTY,
  deprecated: false,
  idempotent: false,
  execution: "either",
};

/** Names for `execute` in the specifications and other libraries, such as `run` and `handler`. */
const EXECUTE_NAME = /^(exec|run|call|invoke|handle|func|fn)/i;
/** Names for the schemas in these libraries: `inputSchema`, `output_schema`. */
const SCHEMA_NAME = /^(?:(in)|out)put_?schema$/i;

const HINT: check.FieldHint = (field) => {
  // Suggests `risk` for `riskLevel`, and `init` for `initFn`.
  const near = Object.keys(FIELDS).find((known) => field.startsWith(known));
  const schema = SCHEMA_NAME.exec(field);
  const meant = schema
    ? schema[1] ? "parameters" : "returns"
    : near ?? (EXECUTE_NAME.test(field) && "execute");
  return meant ? `did you mean "${meant}"?` : undefined;
};

const originals = new WeakMap<Tool, Tool>();

/** Returns the original of a copy for a reader, or the tool itself. */
export function originalOf(tool: Tool): Tool {
  return originals.get(tool) ?? tool;
}

/** Returns a tool for a reader. If its description function fails, logs that and returns it. */
export function describedFor(
  tool: Tool,
  { model, provider, locale }: ToolReader,
  log: (tool: Tool, error: unknown) => void,
): Tool {
  const original = originalOf(tool);
  const { describe } = original;
  if (describe === undefined) return tool;
  try {
    const reader = { model, provider, locale };
    const description = describedBy(`describe tool "${tool.id}"`, describe, reader);
    if (description === original.description) return original;
    const copy = adopt({ ...original, description });
    originals.set(copy, original);
    return copy;
  } catch (error) {
    log(original, error);
    return original;
  }
}
