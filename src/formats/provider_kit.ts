/** The modules that providers import, and the common functions of importers. */

import {
  clip,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  NO_PARAMETERS,
} from "../tool/mod.ts";
import type { ImportedTool, ImportSession } from "./import_session.ts";
import { flagIn, type JsonRecord, listIn, member, objectIn, textIn } from "./wire.ts";
import { acceptNull } from "./transform/properties.ts";
import { mapSchema, without } from "./transform/rewrite.ts";

export * from "./call_format.ts";
export * from "./export_options.ts";
export * from "./form_rules.ts";
export * from "./target.ts";
export type * from "./import_options.ts";
export { FINDING_RULES } from "./import_findings.ts";
export * from "./import_session.ts";
export * from "./wire.ts";
export * from "./transform/rewrite.ts";
export { definitionName, hoistReferences } from "./transform/references.ts";
export { normalizeDraft, normalizeOpenApi30 } from "./transform/older_dialects.ts";

export interface Entry {
  readonly value: unknown;
  readonly path: string;
}

/** Returns the items of a list, the items of the first list in an object, or the object itself. */
export function entriesOf(
  document: unknown,
  lists: readonly string[],
  wrappers: readonly string[],
  session?: ImportSession,
): readonly Entry[] {
  if (Array.isArray(document)) return itemsOf(document, "");
  if (!isObject(document)) {
    const message = "Cannot read the document: it must be a list of tools, or an object with one";
    session?.reject(undefined, "", "document", message);
    return [];
  }
  for (const wrapper of [undefined, ...wrappers]) {
    const holder = wrapper === undefined ? document : objectIn(document, wrapper);
    for (const list of lists) {
      const items = listIn(holder, list);
      if (items === undefined) continue;
      return itemsOf(items, `${wrapper === undefined ? "" : `/${wrapper}`}/${list}`);
    }
  }
  return [{ value: document, path: "" }];
}

function itemsOf(items: readonly unknown[], path: string): readonly Entry[] {
  return items.map((value, index) => ({ value, path: `${path}/${index}` }));
}

/** Reads the entries that are objects, up to the limit of the session. */
export function readEach(
  session: ImportSession,
  entries: Iterable<Entry>,
  read: (entry: JsonRecord, path: string) => void,
): void {
  for (const { value, path } of entries) {
    if (!session.count(path)) return;
    const entry = session.copy(value, path);
    if (entry !== undefined) read(entry, path);
  }
}

/** The hints that have the same field in several providers. */
const HINT_FIELDS = {
  strict: "strict",
  defer_loading: "deferLoading",
  allowed_callers: "allowedCallers",
  async: "async",
  eager_input_streaming: "eagerInputStreaming",
} as const;

/** The fields of a tool of one provider, except name and description. */
export interface ToolFields {
  /** The path of the schema of the arguments, or a function that reads the schema. */
  readonly parameters: string | ((imported: ImportedTool, tool: JsonRecord) => FoundSchema);
  readonly returns?: string | ((imported: ImportedTool, tool: JsonRecord) => FoundSchema);
  readonly hints?: readonly (keyof typeof HINT_FIELDS)[];
  /** Other known fields. Unknown fields become extra fields. */
  readonly others?: readonly string[];
  /** True if the root must have a type, as in MCP. Otherwise, the type `object` is assumed. */
  readonly typed?: true;
}

export interface FoundSchema {
  readonly schema: unknown;
  readonly path: string;
}

/**
 * Reads a tool, and adds the tool to the session unless `finish` returns `false`. `at` is the path of
 * the tool, if the tool is only a part of the entry at `path`.
 */
export function readTool(
  session: ImportSession,
  tool: JsonRecord,
  { path, at = path, namespace }: Pick<ImportedTool, "path" | "namespace"> & { at?: string },
  fields: ToolFields,
  finish?: (imported: ImportedTool, parameters: JsonSchemaObject) => boolean | void,
): ImportedTool | undefined {
  const { parameters, returns, hints = [], others = [] } = fields;
  const sourceName = textIn(tool, "name");
  if (sourceName === undefined || sourceName === "") {
    session.reject(undefined, at, "name", 'Cannot import the tool: it must have a "name"');
    return undefined;
  }
  const imported: ImportedTool = {
    ...{ sourceName, path, namespace, description: textIn(tool, "description"), hints: {} },
    // Providers have no annotations. Because of `null`, no derived annotations are sent back.
    provider: { annotations: null },
  };
  const known = new Set<string>(["name", "description", ...hints, ...others]);
  const schemaIn = (field: NonNullable<ToolFields["returns"]>): FoundSchema => {
    if (typeof field === "function") return field(imported, tool);
    const [first = "", inner] = field.split("/");
    known.add(first);
    const schema = inner === undefined ? tool[first] : member(tool[first], inner);
    return { schema, path: `${at}/${field}` };
  };
  const schema = readParameters(session, imported, schemaIn(parameters), fields.typed === true);
  if (schema === undefined) return undefined;
  if (returns !== undefined) imported.returns = readReturns(session, imported, schemaIn(returns));
  for (const field of hints) {
    const value = field === "allowed_callers" ? listIn(tool, field) : flagIn(tool, field);
    if (typeof value === "boolean" || value?.every((caller) => typeof caller === "string")) {
      // The cast is safe, because the name of the field determines the type of the value.
      imported.provider[HINT_FIELDS[field]] = value as never;
    }
  }
  keepExtra(imported, tool, known);
  if (finish?.(imported, schema) === false) return undefined;
  session.add(imported);
  return imported;
}

function keepExtra({ provider }: ImportedTool, tool: JsonRecord, known: ReadonlySet<string>): void {
  const extra = Object.entries(tool).filter(([field]) => !known.has(field));
  if (extra.length > 0) provider.extra = Object.fromEntries(extra);
}

/** Reads the schema of the arguments, or rejects the tool. */
function readParameters(
  session: ImportSession,
  imported: ImportedTool,
  { schema: raw, path }: FoundSchema,
  typed: boolean,
): JsonSchemaObject | undefined {
  const isAbsent = raw === undefined || raw === null;
  const isTyped = isObject(raw) && raw["type"] === "object";
  if (typed) imported.parameters = isTyped ? raw : undefined;
  // Providers treat a tool without a schema as a tool without parameters.
  else if (isAbsent) imported.parameters = NO_PARAMETERS;
  else if (isTyped) imported.parameters = withNull(session, imported, raw, path);
  else if (isObject(raw) && raw["type"] === undefined) {
    const of = `The schema of the arguments of "${clip(imported.sourceName)}"`;
    session.warn(imported, path, "type", `${of} has no "type"; it is taken for "object"`);
    imported.parameters = withNull(session, imported, { type: "object", ...raw }, path);
  }
  if (imported.parameters === undefined) {
    const why = isAbsent
      ? "it must have a schema of its arguments"
      : 'the schema of its arguments must be an object with "type": "object"';
    session.rejectTool(imported, "parameters", why, path);
  }
  return imported.parameters;
}

/** Rewrites OpenAPI 3.0's `nullable: true`, except at the root, so that `null` is accepted. */
function withNull(
  session: ImportSession,
  imported: ImportedTool,
  schema: JsonSchemaObject,
  path: string,
): JsonSchemaObject {
  const read = mapSchema(undefined, schema, {
    leave: (node, { root }) =>
      node["nullable"] === true && Object.hasOwn(node, "type") && !root
        ? acceptNull(undefined, without(undefined, node, "nullable"))
        : node,
  });
  if (read !== schema) {
    const message = `"nullable" in a schema of "${
      clip(imported.sourceName)
    }" is read as accepting null`;
    session.warn(imported, path, "nullable", message);
  }
  // The root of the rewritten schema is still an object.
  return read as JsonSchemaObject;
}

/** Reads the schema of the results. A value that is not a schema is omitted, with a warning. */
function readReturns(
  session: ImportSession,
  imported: ImportedTool,
  { schema: raw, path }: FoundSchema,
): JsonSchema | undefined {
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw === "boolean" || isObject(raw)) return raw;
  const of = `The result schema of "${clip(imported.sourceName)}"`;
  session.warn(imported, path, "returns", `${of} is not a schema; results are not checked`);
  return undefined;
}
