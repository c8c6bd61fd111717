/**
 * The parts of importers: an import session, readers of JSON, and the steps that importers of a list
 * of tools share.
 *
 * @module
 */

import {
  clip,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  NO_PARAMETERS,
} from "../tool/mod.ts";
import type { ImportedTool, ImportSession } from "./import_session.ts";
import { flagIn, type JsonRecord, listIn, objectIn, textIn } from "./wire.ts";
import { acceptNull } from "./transform/properties.ts";
import { mapSchema, without } from "./transform/rewrite.ts";

export type { ImportOptions, ImportResult } from "./import_options.ts";
export { FINDING_RULES } from "./import_findings.ts";
export type { PinnedImport, WithPins } from "./import_options.ts";
export {
  HINTS,
  type ImportedTool,
  type Importer,
  ImportSession,
  readHints,
} from "./import_session.ts";
export {
  flagIn,
  type JsonRecord,
  listIn,
  member,
  objectIn,
  quote,
  textIn,
  wordsIn,
} from "./wire.ts";
export { distinct, eachNode, mapChildren, mapSchema, without } from "./transform/rewrite.ts";
export { definitionName } from "./transform/references.ts";
export { normalizeOpenApi30 } from "./transform/older_dialects.ts";

export interface Entry {
  readonly value: unknown;
  readonly path: string;
}

/**
 * Finds the entries: the items of a list, or of the first list that an object has under one of
 * `lists`, directly or inside one of `wrappers`. Otherwise the object is the only entry.
 */
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

/** Reads the entries that are objects, as many as the session takes. */
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

/** Begins to read a tool. */
export function beginTool(
  session: ImportSession,
  tool: JsonRecord,
  path: string,
  namespace: string | undefined,
  at: string = path,
): ImportedTool | undefined {
  const name = textIn(tool, "name");
  if (name === undefined || name === "") {
    session.reject(undefined, at, "name", 'Cannot import the tool: it must have a "name"');
    return undefined;
  }
  return {
    sourceName: name,
    path,
    namespace,
    description: textIn(tool, "description"),
    hints: {},
    // These providers have no annotations, so the derived ones are not sent as theirs.
    provider: { annotations: null },
  };
}

/** Reads the hints that OpenAI, Anthropic and Bedrock write in the same way. */
export function readSharedHints({ provider }: ImportedTool, tool: JsonRecord): void {
  const strict = flagIn(tool, "strict");
  const deferLoading = flagIn(tool, "defer_loading");
  const callers = listIn(tool, "allowed_callers");
  if (strict !== undefined) provider.strict = strict;
  if (deferLoading !== undefined) provider.deferLoading = deferLoading;
  if (callers?.every((caller) => typeof caller === "string") === true) {
    provider.allowedCallers = callers as readonly string[];
  }
}

/** Keeps the fields that are not `known`. */
export function keepExtra(
  { provider }: ImportedTool,
  tool: JsonRecord,
  known: ReadonlySet<string>,
): void {
  const extra = Object.keys(tool).filter((field) => !known.has(field));
  if (extra.length === 0) return;
  provider.extra = Object.fromEntries(extra.map((field) => [field, tool[field]]));
}

/**
 * Reads the schema of the arguments, with an object at the root.
 *
 * @param root Whether the root must have a type, as in MCP; providers assume `object`.
 * @returns The schema, or `undefined` if the tool was rejected.
 */
export function readParameters(
  session: ImportSession,
  imported: ImportedTool,
  raw: unknown,
  path: string,
  root: "typed" | "any" = "any",
): JsonSchemaObject | undefined {
  const isAbsent = raw === undefined || raw === null;
  const isTyped = isObject(raw) && raw["type"] === "object";
  if (root === "typed") imported.parameters = isTyped ? raw : undefined;
  // Providers assume no parameters, and an object.
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

/**
 * The schema with `null` accepted where it has `nullable: true` and a `type`, because providers accept
 * schemas that were written for OpenAPI 3.0. The root is not changed, because arguments are
 * an object.
 */
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
  // The root stays an object.
  return read as JsonSchemaObject;
}

/** The schema of the results. A value that is not a schema is omitted, with a warning. */
export function readReturns(
  session: ImportSession,
  imported: ImportedTool,
  raw: unknown,
  path: string,
): JsonSchema | undefined {
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw === "boolean" || isObject(raw)) return raw;
  const of = `The result schema of "${clip(imported.sourceName)}"`;
  session.warn(imported, path, "returns", `${of} is not a schema; results are not checked`);
  return undefined;
}
