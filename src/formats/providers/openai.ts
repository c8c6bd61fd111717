/** Common parts of OpenAI's APIs: formats, limits, and the importer for OpenAI and Mistral. */

import {
  isObject,
  isToolName,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
} from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import { encodeArguments, rewriteOf } from "../argument_rewrite.ts";
import { acceptsNull } from "../transform/properties.ts";
import { type Resolve, resolverOf } from "../transform/references.ts";

const FORMATS = "date-time time date duration email hostname ipv4 ipv6 uuid";

/** The values of `format` that strict mode accepts. Other values are rejected. */
export const OPENAI_FORMATS: readonly string[] = FORMATS.split(" ");

/** The limits of Structured Outputs. */
export const OPENAI_STRICT_LIMITS: readonly kit.Limit[] = [
  { name: "maxProperties", value: 5_000 },
  { name: "maxDepth", value: 10 },
  { name: "maxCharacters", value: 120_000 },
  { name: "maxEnumValues", value: 1_000 },
  { name: "maxEnumCharacters", value: 15_000 },
];

// Import

const TOOL: kit.ToolFields = {
  parameters: "parameters",
  returns: "output_schema",
  hints: ["strict", "defer_loading", "allowed_callers", "async"],
  others: ["type", "function"],
};

/** The fields of requests and sessions that hold the lists of tools. */
const LISTS = ["tools", "functions"] as const;

function readNamespace(
  session: kit.ImportSession,
  namespace: unknown,
  path: string,
  options: kit.ImportToolsOptions,
): void {
  const name = kit.textIn(namespace, "name");
  const inside = options.namespace === undefined ? name : `${options.namespace}.${name}`;
  const tools = kit.listIn(namespace, "tools");
  if (name === undefined || !isToolName(inside) || tools === undefined) {
    const message = 'Cannot import the namespace: it must have a list of "tools", and a "name" ' +
      'of letters, digits, "_", "." or "-"';
    return session.reject(name, path, "namespace", message);
  }
  const description = kit.textIn(namespace, "description");
  for (const [index, entry] of tools.entries()) {
    const at = `${path}/tools/${index}`;
    if (index > 0 && !session.count(at)) return;
    readEntry(session, entry, at, { ...options, namespace: inside }, description);
  }
}

function readEntry(
  session: kit.ImportSession,
  entry: unknown,
  path: string,
  options: kit.ImportToolsOptions,
  namespaceDescription?: string,
): void {
  const outer = session.copy(entry, path);
  if (outer === undefined) return;
  const type = outer["type"] ?? "function";
  const inner = kit.objectIn(outer, "function");
  const at = inner === undefined ? path : `${path}/function`;
  const tool = inner ?? outer;
  if (type !== "function") {
    const why = "only functions have a schema of their arguments";
    const message = `Cannot import a tool whose type is ${kit.quote(type)}: ${why}`;
    return session.reject(kit.textIn(tool, "name"), path, "type", message);
  }
  const place = { path, at, namespace: options.namespace };
  kit.readTool(session, tool, place, TOOL, (imported, parameters) => {
    const { provider } = imported;
    for (const field of inner === undefined ? [] : Object.keys(outer)) {
      if (field === "type" || field === "function") continue;
      const message = `${kit.quote(field)} is unknown, and is omitted`;
      session.warn(imported, path + pointerStep(field), field, message);
    }
    if (namespaceDescription !== undefined) provider.namespaceDescription = namespaceDescription;
    if (provider.extra !== undefined) {
      const isRealtime = path.startsWith("/session/");
      provider.surface = inner !== undefined ? "chat" : isRealtime ? "realtime" : "responses";
    }
    const relaxed = provider.strict === true && options.unstrict === true
      ? nullableToOptional(parameters)
      : undefined;
    if (relaxed === undefined) return;
    Object.assign(imported, relaxed);
    provider.unstrict = true;
  });
}

/** Makes required, nullable properties optional. `writeArguments` adds the missing nulls again. */
function nullableToOptional(
  strict: JsonSchemaObject,
): Pick<kit.ImportedTool, "parameters" | "writeArguments"> | undefined {
  // `relax` records in the trace which properties of the strict schema accept `null`.
  const trace = new kit.Trace();
  const resolve = resolverOf(strict);
  const schema = kit.mapSchema(trace, strict, { leave: (node) => relax(trace, node, resolve) });
  const rewrite = rewriteOf(strict, trace);
  if (schema === strict || !isObject(schema)) return undefined;
  // Only missing properties are added, so an object stays an object.
  const writeArguments = (args: kit.JsonRecord) => encodeArguments(args, rewrite) as kit.JsonRecord;
  return { parameters: schema, writeArguments };
}

function relax(trace: kit.Trace, node: JsonSchemaObject, resolve: Resolve): JsonSchemaObject {
  const { properties, required } = node;
  if (!isObject(properties) || !Array.isArray(required)) return node;
  const relaxed = new Map<string, JsonSchema>();
  for (const name of required) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const rest = isObject(property) && acceptsNull(property, resolve)
      ? withoutNull(trace, property)
      : undefined;
    if (rest !== undefined) relaxed.set(name, rest);
  }
  if (relaxed.size === 0) return node;
  const nulls = new Set(relaxed.keys());
  trace.mark(trace.originOf(node, "properties").node, { nulls });
  const copy = kit.copyNode(trace, node);
  copy["properties"] = { ...properties, ...Object.fromEntries(relaxed) };
  copy["required"] = required.filter((name) => !relaxed.has(name));
  return copy;
}

/** Returns the schema without `null`, or `undefined` if `null` cannot be removed separately. */
function withoutNull(trace: kit.Trace, node: JsonSchemaObject): JsonSchema | undefined {
  const { type, anyOf, enum: values } = node;
  const copy = kit.copyNode(trace, node);
  if (Array.isArray(type)) {
    const types = type.filter((one) => one !== "null");
    if (types.length === 0) return undefined;
    copy["type"] = types.length === 1 ? types[0] : types;
    if (Array.isArray(values)) copy["enum"] = values.filter((value) => value !== null);
    return copy;
  }
  if (!Array.isArray(anyOf)) return undefined;
  const branches = anyOf.filter((branch) => !(isObject(branch) && branch["type"] === "null"));
  if (branches.length === 0 || branches.length === anyOf.length) return undefined;
  const [only] = branches;
  if (branches.length > 1) {
    copy["anyOf"] = branches;
    return copy;
  }
  delete copy["anyOf"];
  // The only branch that is left replaces the union, and has the union's description.
  return Object.keys(copy).length === 0
    ? only as JsonSchema
    : isObject(only)
    ? { ...only, ...copy }
    : undefined;
}

/** Reads the tools of a request to OpenAI. */
export const openaiImporter: kit.Importer<"openai"> = {
  source: "openai",
  detects(document) {
    const [first] = kit.entriesOf(document, LISTS, ["session"]);
    const type = kit.member(first?.value, "type");
    return type === "function" || type === "namespace" ||
      (type === undefined && kit.member(first?.value, "parameters") !== undefined);
  },
  read(session, document, options) {
    for (const { value, path } of kit.entriesOf(document, LISTS, ["session"], session)) {
      if (!session.count(path)) return;
      // The tools of a namespace are read one by one, so that only an invalid tool is rejected.
      if (kit.textIn(value, "type") === "namespace") readNamespace(session, value, path, options);
      else readEntry(session, value, path, options);
    }
  },
};
