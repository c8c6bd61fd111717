/** Views: a tool with another name or text, or with renamed, bound or hidden arguments. */

import * as schemas from "../schema/mod.ts";
import * as check from "../tool/mod.ts";
import {
  attempt,
  copyJson,
  fail,
  isListOf,
  isObject,
  type Issue,
  isToolName,
  isWord,
  jsonEqual,
  type JsonSchema,
  type JsonSchemaObject,
  makeTool,
  pointerStep,
  setOwn,
  type Tool,
  TOOL_NAME_RULE,
  type ToolDefinition,
  type ToolExample,
  toolId,
  type ViewedTool,
} from "../tool/mod.ts";

/** The differences between a view and its tool. Arguments are named as in the tool. */
export interface ViewOptions {
  /** Another name, in the tool's namespace. By default, the view has the tool's id. */
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  /** The fixed values of arguments. Models neither see nor change these arguments. */
  readonly bind?: { readonly [argument: string]: unknown } | undefined;
  /** Other names for arguments. */
  readonly rename?: { readonly [argument: string]: string } | undefined;
  /** Arguments that models neither see nor pass. A required argument cannot be hidden. */
  readonly hide?: readonly string[] | undefined;
  /** Default values of arguments. */
  readonly defaults?: { readonly [argument: string]: unknown } | undefined;
}

const checkValues = check.createCheck("an object of arguments", isObject);

const OPTIONS = {
  name: check.createCheck(
    `a name without a namespace, ${TOOL_NAME_RULE}: the namespace is the tool's`,
    isToolName,
  ),
  description: check.checkText,
  bind: checkValues,
  rename: (action, value, place) => {
    const names = checkValues(action, value, place);
    return Object.fromEntries(
      Object.entries(names).map(([argument, name]) => [
        argument,
        check.checkWord(action, name, `"/rename${pointerStep(argument)}"`),
      ]),
    );
  },
  hide: check.createCheck("a list of arguments", (value) => isListOf(value, isWord)),
  defaults: checkValues,
} satisfies { readonly [Field in keyof ViewOptions]-?: check.Check };

/**
 * Creates a view of a tool: the same tool with another name, or with bound, renamed, hidden or
 * optional arguments.
 *
 * A view keeps the tool's risk, roles, scopes, tags, approval and availability. Deny-lists, filters
 * and policies apply to the view and its tool. Arguments are checked against the view's schema,
 * mapped to the tool's arguments, and checked against the tool's schema; a bound argument cannot be
 * overridden. A view that binds, renames or hides accepts only arguments that the tool's
 * `properties` name. Its schema omits rules over several arguments (`anyOf`, `dependentRequired`),
 * but calls are still checked by these rules. The view does not have the tool's aliases.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { viewOf } from "@plue/tools/finding";
 *
 * const search = defineTool({
 *   name: "search",
 *   description: "Searches a repository.",
 *   parameters: { type: "object", properties: { repo: { type: "string" }, q: { type: "string" } } },
 *   execute: ({ repo, q }) => `${q} in ${repo}`,
 * });
 * const docs = viewOf(search, { name: "docs", bind: { repo: "docs" }, rename: { q: "query" } });
 *
 * const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [docs] }));
 * const found = await dispatcher.dispatch({ name: "docs", arguments: { query: "install" } });
 * assert.equal(found.ok && found.content, "install in docs");
 * ```
 *
 * @throws {TypeError} If an option is unknown or invalid, names an argument that the tool does not
 * have, or has a value that the schema of the argument rejects.
 */
export function viewOf(tool: Tool, options: ViewOptions): Tool {
  const original = makeTool(tool);
  const action = `make a view of "${original.id}"`;
  const checked = check.readFields(action, options, OPTIONS);
  const { name = original.name, description = original.description, ...read } = checked;
  const { bind = {}, defaults = {} } = read;
  const change: Change = {
    bind: new Map(Object.entries(copyFor(action, bind, "/bind"))),
    defaults: new Map(Object.entries(copyFor(action, defaults, "/defaults"))),
    rename: new Map(Object.entries(read.rename ?? {})),
    hide: new Set(read.hide ?? []),
  };
  checkChange(action, original.parameters, change);
  const examples = original.examples.flatMap((example) => shownExample(example, change));
  const names = new Set(propertiesOf(original.parameters).map(([argument]) => argument));
  const { view: inner, parametersStandard } = original;
  const toViewIssue = (issue: Issue): Issue => renameIssue(issue, change, names);
  const toOriginalArguments: ViewedTool["toOriginalArguments"] = (args, issuesOf) => {
    const value = toOriginal(args as Args, change);
    const isChecked = parametersStandard === undefined || inner !== undefined;
    const issues = isChecked ? issuesOf(original.parameters, value) : undefined;
    const last = issues === undefined
      ? inner?.toOriginalArguments(value, issuesOf) ?? { value }
      : { issues };
    return last.issues === undefined ? last : { issues: last.issues.map(toViewIssue) };
  };
  const fields = {
    ...original,
    id: toolId(name, original.namespace),
    name,
    description,
    aliases: [],
    parameters: shownSchema(original.parameters, change),
    examples,
    view: Object.freeze({
      tool: original,
      toOriginalArguments,
      toViewIssue: (issue: Issue) => toViewIssue(inner?.toViewIssue(issue) ?? issue),
    }),
  };
  const view = makeTool(fields as ToolDefinition);
  schemas.inheritEngine(original.parameters, view.parameters);
  return view;
}

type Args = { readonly [argument: string]: unknown };

interface Change {
  readonly bind: ReadonlyMap<string, unknown>;
  readonly defaults: ReadonlyMap<string, unknown>;
  /** The view's name of each renamed argument. */
  readonly rename: ReadonlyMap<string, string>;
  readonly hide: ReadonlySet<string>;
}

function copyFor(action: string, values: Args, place: string): Args {
  return attempt(action, () => copyJson(values, `"${place}"`));
}

function shownName(name: string, { bind, hide, rename }: Change): string | undefined {
  return bind.has(name) || hide.has(name) ? undefined : rename.get(name) ?? name;
}

function changesNames({ bind, hide, rename }: Change): boolean {
  return bind.size + hide.size + rename.size > 0;
}

function propertiesOf(schema: JsonSchemaObject): readonly (readonly [string, unknown])[] {
  return isObject(schema["properties"]) ? Object.entries(schema["properties"]) : [];
}

function requiredOf(schema: JsonSchemaObject): readonly string[] {
  return Array.isArray(schema["required"]) ? schema["required"] : [];
}

function checkChange(action: string, schema: JsonSchemaObject, change: Change): void {
  const { bind, defaults, rename, hide } = change;
  if (changesNames(change) && (schema["$ref"] ?? schema["$dynamicRef"]) !== undefined) {
    fail(action, 'its parameters are a "$ref" at the root, which does not name its arguments');
  }
  const properties = new Map(propertiesOf(schema));
  const required = new Set(requiredOf(schema));
  const places = new Map<string, string>();
  for (const [field, names] of Object.entries({ bind, hide, rename, defaults })) {
    for (const name of names.keys()) {
      const place = `"/${field}${pointerStep(name)}"`;
      if (!properties.has(name)) {
        fail(action, `${place} must be one of ${[...properties.keys()].join(", ")}`);
      }
      const other = places.get(name);
      // An argument can have a new name and a default. Other changes exclude each other.
      if (other !== undefined && !(field === "defaults" && rename.has(name))) {
        fail(action, `${place} is also in ${other}; remove one of them`);
      }
      places.set(name, place);
      if (field === "hide" && required.has(name)) {
        fail(action, `${place} hides a required argument: bind it to a value`);
      }
    }
  }
  const shown = new Map<string, string>();
  for (const name of properties.keys()) {
    const now = shownName(name, change);
    const other = now === undefined ? undefined : shown.get(now);
    if (other !== undefined) fail(action, `"${other}" and "${name}" would both be named "${now}"`);
    if (now !== undefined) shown.set(now, name);
  }
  const { required: _, ...single } = withoutRules(linked(schema));
  const fits = attempt(action, () => schemas.checkWithoutEngine(single));
  for (const [field, values] of Object.entries({ bind, defaults })) {
    for (const [name, value] of values) {
      if (!fits(Object.fromEntries([[name, value]]))) {
        fail(action, `"/${field}${pointerStep(name)}" does not fit the argument's schema`);
      }
    }
  }
}

/** Keywords of a root schema that constrain several arguments together. A view omits them. */
const RULES = [
  ...["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "const", "enum", "default"],
  ...["dependentRequired", "dependentSchemas", "minProperties", "maxProperties", "propertyNames"],
  ...["patternProperties", "additionalProperties", "unevaluatedProperties", "examples"],
];

function withoutRules(schema: JsonSchemaObject): JsonSchemaObject {
  const kept = Object.fromEntries(
    Object.entries(schema).filter(([keyword]) => !RULES.includes(keyword)),
  );
  // The keyword must stay: without it, the schema would no longer be detected as draft-07.
  return "dependencies" in kept ? { ...kept, dependencies: {} } : kept;
}

const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"];
const NAMES = ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];

/**
 * Returns an equivalent schema whose references keep their meaning if its root is changed. If some
 * references point to the root or into its properties, the whole schema moves into `$defs`.
 */
function linked(schema: JsonSchemaObject): JsonSchemaObject {
  const dialect = schemas.detectDialect(schema);
  const keywords = schemas.KEYWORDS[dialect];
  const definitions = schemas.isOldDraft(dialect) ? "definitions" : "$defs";
  const place = `#/${definitions}/tool`;
  const leadsAnywhere = (part: JsonSchemaObject): boolean =>
    REFERENCES.some((keyword) =>
      keyword in part && !/^#\/(\$defs|definitions)\//.test(String(part[keyword]))
    );
  if (!has(schema, leadsAnywhere)) return schema;
  const isPlaced = (part: JsonSchemaObject): boolean =>
    [...REFERENCES, ...NAMES].some((keyword) => keyword in part);
  const places = new Map<JsonSchema, string>();
  schemas.eachSchemaIn(schema, keywords, (child, keyword, key) => {
    const step = key === undefined ? [] : [String(key)];
    // A `$ref` to the child's new position, because a copy would repeat names and old references.
    if (isObject(child) && has(child, isPlaced)) {
      places.set(child, schemas.fragment([definitions, "tool", keyword, ...step]));
    }
  });
  const root = Object.entries(
    changed(schema, (child) => places.has(child) ? { $ref: places.get(child) } : child),
  ).filter(([keyword]) => !NAMES.includes(keyword));
  return { ...Object.fromEntries(root), [definitions]: { tool: moved(schema) } };

  function has(part: JsonSchemaObject, isWanted: (part: JsonSchemaObject) => boolean): boolean {
    let found = isWanted(part);
    schemas.eachSchemaIn(part, keywords, (child) => {
      found ||= isObject(child) && has(child, isWanted);
    });
    return found;
  }

  function moved(part: JsonSchema): JsonSchema {
    const id = isObject(part) ? part[dialect === "draft-04" ? "id" : "$id"] : undefined;
    // References in an embedded document resolve to that document.
    if (!isObject(part) || (typeof id === "string" && !id.startsWith("#"))) return part;
    return changed(part, moved);
  }

  /** Returns the schema with references to the new location, and with changed subschemas. */
  function changed(
    part: JsonSchemaObject,
    change: (child: JsonSchema) => JsonSchema,
  ): JsonSchemaObject {
    return Object.fromEntries(
      Object.entries(part).map(([keyword, value]) =>
        REFERENCES.includes(keyword) && /^#(\/|$)/.test(String(value))
          // Within one document, a recursive reference has the same target as a plain `$ref`.
          ? ["$ref", place + String(value).slice(1)]
          : [keyword, schemas.mapSchemasOf(value, keywords.get(keyword)?.shape ?? "any", change)]
      ),
    );
  }
}

function shownSchema(original: JsonSchemaObject, change: Change): JsonSchemaObject {
  const { defaults } = change;
  const schema = linked(original);
  const properties: Record<string, unknown> = {};
  for (const [name, property] of propertiesOf(schema)) {
    const shown = shownName(name, change);
    if (shown === undefined) continue;
    const own = isObject(property) ? property : {};
    const isFixed = defaults.has(name);
    setOwn(properties, shown, isFixed ? { ...own, default: defaults.get(name) } : property);
  }
  const required = requiredOf(schema).flatMap((name) => {
    const shown = shownName(name, change);
    return shown === undefined || defaults.has(name) ? [] : [shown];
  });
  const { required: _, ...base } = changesNames(change) ? withoutRules(schema) : schema;
  return {
    ...base,
    properties,
    ...(required.length > 0 && { required }),
    ...(changesNames(change) && { additionalProperties: false }),
  };
}

/** Maps the arguments of the view to the tool's arguments. Bound values override all others. */
function toOriginal(args: Args, { bind, defaults, rename }: Change): Args {
  const original = new Map([...rename].map(([name, shown]) => [shown, name]));
  const result: Record<string, unknown> = Object.fromEntries(defaults);
  for (const [name, value] of Object.entries(args)) {
    setOwn(result, original.get(name) ?? name, value);
  }
  for (const [name, value] of bind) setOwn(result, name, value);
  return result;
}

/** Returns the issue with the view's names. Callers do not see issues of bound arguments. */
function renameIssue(issue: Issue, change: Change, names: ReadonlySet<string>): Issue {
  if (!changesNames(change)) return issue;
  const { path, keyword, expected, message } = issue;
  const name = [...names].find((one) => `${path}/`.startsWith(`${pointerStep(one)}/`));
  const shown = name === undefined ? undefined : shownName(name, change);
  if (name !== undefined && shown !== undefined) {
    const place = pointerStep(shown) + path.slice(pointerStep(name).length);
    return { ...issue, path: place, message: message.replace(path, () => place) };
  }
  // The author of the tool has written this text, so it needs no other argument names.
  if (name === undefined && keyword === "custom") return issue;
  const inWords = new Map([...names].map((one) => {
    const now = shownName(one, change);
    return [JSON.stringify(one), now && JSON.stringify(now)];
  }));
  // An issue of all arguments is passed on if the view shows every name in its message. Other
  // quoted words may be bound values, and paths may belong to bound arguments.
  const quoted = /"(?:[^"\\]|\\.)*"/g;
  const isSafe = path === "" && !/\s\//.test(message) &&
    (message.match(quoted) ?? []).every((word) => inWords.get(word) !== undefined);
  if (isSafe) {
    const [expectedNow = "", messageNow = ""] = [expected, message].map((text) =>
      text.replace(quoted, (word) => inWords.get(word) ?? word)
    );
    return { path, keyword, expected: expectedNow, message: messageNow };
  }
  const isSet = change.bind.size + change.hide.size > 0;
  const why = `The arguments do not fit together${isSet ? " with what this tool sets itself" : ""}`;
  return { path: "", keyword, expected: "other arguments", message: why };
}

function shownExample(example: ToolExample, change: Change): readonly ToolExample[] {
  if (!isObject(example.input)) return [];
  const input: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(example.input)) {
    const shown = shownName(name, change);
    if (shown !== undefined) setOwn(input, shown, value);
    else if (!change.bind.has(name) || !jsonEqual(change.bind.get(name), value)) return [];
  }
  return [{ ...example, input }];
}
