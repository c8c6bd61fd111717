/** Three revisions of MCP: exports and imports `tools/list`, reads and answers `tools/call`. */

import {
  clip,
  type ContentBlock,
  defined,
  HINTS,
  isObject,
  isText,
  type JsonValue,
  pointerStep,
  type ToolIcon,
} from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";

// Tools

/** A tool in a `tools/list` result. Older revisions lack some of the fields. */
export interface McpTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: kit.ObjectSchema;
  outputSchema?: kit.WireSchema;
  annotations?: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
  icons?: { src: string; mimeType?: string; sizes?: string[]; theme?: "light" | "dark" }[];
  execution?: { taskSupport?: "forbidden" | "optional" | "required"; [field: string]: unknown };
  _meta?: { [key: string]: unknown };
}

/** A tool in a `tools/list` result before 2026-07-28, when results had to be objects. */
export interface Mcp2025Tool extends McpTool {
  outputSchema?: kit.ObjectSchema;
}

/** All of JSON Schema 2020-12 is sent to the client. */
const KEYWORDS: kit.KeywordTable = Object.freeze({
  ...kit.COPIED,
  "$ref external": kit.ADVISORY,
  "content": kit.ADVISORY,
  "propertyOrdering": kit.ADVISORY,
});

/** Clients of older revisions require that the schema of each property is an object. */
const OLDER_KEYWORDS: kit.KeywordTable = Object.freeze({
  ...KEYWORDS,
  ...kit.replacing("boolean schema"),
  "root composition": kit.ADVISORY,
});

const FEATURES: readonly kit.Feature[] = ["title", "returns", "annotations", "meta"];

function wire(view: kit.ToolView, icons: boolean, execution: boolean): McpTool {
  const { tool, hints } = view;
  const { execution: more, ...extra } = view.extra;
  const { taskSupport, annotations = tool.annotations } = hints;
  const { provider: _hints, ...meta } = tool.meta ?? {};
  return {
    ...extra,
    name: view.name,
    ...(hints.title === null ? {} : defined({ title: tool.title })),
    ...kit.descriptionOf(view),
    inputSchema: view.parameters,
    ...(view.returns === undefined ? {} : { outputSchema: kit.asObject(view.returns) }),
    ...(annotations === null ? {} : { annotations: { ...annotations } }),
    ...(icons && tool.icons.length > 0
      ? { icons: tool.icons as unknown as NonNullable<McpTool["icons"]> }
      : {}),
    ...(execution && (taskSupport !== undefined || more !== undefined)
      ? { execution: { ...(isObject(more) ? more : {}), ...defined({ taskSupport }) } }
      : {}),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  };
}

const SHAPE = new kit.Shape("an MCP request");

function callOf(value: unknown, at: string): kit.WireCall {
  const raw = SHAPE.record(value, at, "a request or the params of one");
  const whole = kit.isSet(raw, "method") || kit.isSet(raw, "params");
  if (whole && raw["method"] !== "tools/call") throw SHAPE.wrong(`${at}/method`, '"tools/call"');
  const params = whole ? SHAPE.record(raw["params"], `${at}/params`) : raw;
  const id = requestId(raw);
  return {
    id: id === undefined ? undefined : String(id),
    name: SHAPE.text(params["name"], whole ? `${at}/params/name` : `${at}/name`),
    input: params["arguments"],
    raw,
  };
}

function requestId(raw: unknown): string | number | undefined {
  const id = kit.member(raw, "id");
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

/** The result of `tools/call`. */
export interface McpToolResult {
  /** Present since revision 2026-07-28. */
  resultType?: "complete";
  content: ContentBlock[];
  /** Always an object before revision 2026-07-28. */
  structuredContent?: JsonValue;
  isError?: true;
  _meta?: { [key: string]: unknown };
}

/** The result, in a JSON-RPC response if the call was a JSON-RPC request. */
export type McpToolAnswer =
  | McpToolResult
  | { jsonrpc: "2.0"; id: string | number; result: McpToolResult };

function resultOf(answer: kit.Answer, complete: boolean): McpToolResult {
  const blocks = answer.ok ? answer.blocks : undefined;
  const content: ContentBlock[] =
    blocks === undefined || blocks.hasValue && blocks.content.length === 0
      ? [{ type: "text", text: answer.text }]
      : [...blocks.content];
  // Literals are faster than a spread, and this code runs for each call.
  const result: McpToolResult = complete ? { resultType: "complete", content } : { content };
  if (!answer.ok) result.isError = true;
  // `structuredContent` is required if the tool has an `outputSchema`.
  else if ((complete || isObject(answer.value)) && blocks?.hasValue !== false) {
    result.structuredContent = answer.value;
  }
  if (blocks?.metadata !== undefined) result._meta = blocks.metadata;
  return result;
}

// Import

const TOOL: kit.ToolFields = {
  parameters: "inputSchema",
  returns: "outputSchema",
  others: ["title", "annotations", "icons", "_meta"],
  typed: true,
};

/** Returns the tools of a list, of a result of `tools/list`, or of a JSON-RPC response. */
function entries(document: unknown, session?: kit.ImportSession): readonly kit.Entry[] {
  return kit.entriesOf(document, ["tools"], ["result"], session);
}

function readList(
  session: kit.ImportSession,
  document: unknown,
  options: kit.ImportToolsOptions,
): void {
  // Some servers end the list with an empty cursor.
  if (kit.wordsIn(kit.objectIn(document, "result") ?? document, "nextCursor") !== undefined) {
    const message = "The list is incomplete: its last page has a nextCursor";
    session.warn(undefined, "", "nextCursor", message);
  }
  kit.readEach(session, entries(document, session), (tool, path) => {
    readEntry(session, tool, path, options);
  });
}

function readEntry(
  session: kit.ImportSession,
  tool: kit.JsonRecord,
  path: string,
  { namespace, transport = "http" }: kit.ImportToolsOptions,
): void {
  kit.readTool(session, tool, { path, namespace }, TOOL, (imported, parameters) => {
    const header = wrongHeader(parameters);
    if (header !== undefined) {
      const where = clip(header.path, 200);
      const message = `has a wrong "x-mcp-header" at "${where}": ${header.message}`;
      const at = `${path}/inputSchema${header.path}`;
      if (transport === "http") {
        session.rejectTool(imported, "x-mcp-header", `it ${message}`, at);
        return false;
      }
      session.warn(imported, at, "x-mcp-header", `"${clip(imported.sourceName)}" ${message}`);
    }
    readFields(session, imported, tool);
    readTaskSupport(imported);
    return true;
  });
}

const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
const isIcons = (value: unknown): value is readonly ToolIcon[] =>
  Array.isArray(value) && value.every((icon) => kit.textIn(icon, "src") !== undefined);

/** Reads the fields. A field with an invalid type is omitted, with a warning. */
function readFields(
  session: kit.ImportSession,
  imported: kit.ImportedTool,
  tool: kit.JsonRecord,
): void {
  function read<Value>(
    field: string,
    accepts: (value: unknown) => value is Value,
    wanted: string,
  ): Value | undefined {
    const steps = field.split("/");
    const value = steps.reduce<unknown>(kit.member, tool);
    if (accepts(value)) return value;
    if (value === undefined) return undefined;
    const message = `The ${field} of "${clip(imported.sourceName)}" must be ${wanted}`;
    const path = `${imported.path}${steps.map(pointerStep).join("")}`;
    session.warn(imported, path, field, `${message}, and is omitted`);
    return undefined;
  }
  const { provider } = imported;
  imported.description = read("description", isText, "a string");
  const annotations = read("annotations", isObject, "an object");
  for (const hint of HINTS) read(`annotations/${hint}`, isFlag, "true or false");
  // `null` records that the source had no annotations, so that defaults are not sent back.
  provider.annotations = annotations ?? null;
  imported.hints = kit.readHints(annotations);
  const title = read("title", isText, "a string");
  imported.title = title ?? kit.textIn(annotations, "title");
  if (title === undefined && imported.title !== undefined) provider.title = null;
  const icons = read("icons", isIcons, 'a list of objects, each with a "src"');
  if (icons !== undefined) imported.icons = icons;
  const { provider: taken, ...meta } = read("_meta", isObject, "an object") ?? {};
  if (kit.objectIn(tool, "_meta") !== undefined) imported.meta = meta;
  if (taken === undefined) return;
  const message = '"provider" in "_meta" is omitted: plue uses the name';
  session.warn(imported, `${imported.path}/_meta/provider`, "_meta", message);
}

/** Reads `execution.taskSupport`. The other fields of `execution` stay extra fields. */
function readTaskSupport({ provider }: kit.ImportedTool): void {
  const { execution, ...rest } = provider.extra ?? {};
  const { taskSupport, ...more } = isObject(execution) ? execution : {};
  if (taskSupport !== "forbidden" && taskSupport !== "optional" && taskSupport !== "required") {
    return;
  }
  provider.taskSupport = taskSupport;
  const extra = Object.keys(more).length > 0 ? { ...rest, execution: more } : rest;
  if (Object.keys(extra).length > 0) provider.extra = extra;
  else delete provider.extra;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
const PRIMITIVE: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);

interface HeaderProblem {
  readonly path: string;
  readonly message: string;
}

/** Returns the first invalid `x-mcp-header` in a schema of arguments. */
function wrongHeader(schema: kit.JsonRecord): HeaderProblem | undefined {
  const taken = new Set<string>();
  let wrong: HeaderProblem | undefined;
  kit.eachNode(undefined, schema, (node) => {
    if (wrong !== undefined || !Object.hasOwn(node, "x-mcp-header")) return;
    const path = kit.pathOf(node, kit.locate(schema));
    const { "x-mcp-header": header, type } = node;
    const message = !/^(\/properties\/[^/]*)+$/.test(path)
      ? 'it must stand on a property that is reached through "properties" alone'
      : typeof header !== "string" || !TOKEN.test(header)
      ? "it must be the name of an HTTP header"
      : !PRIMITIVE.has(type)
      ? "it must stand on a string, integer or boolean"
      : taken.size === taken.add(header.toLowerCase()).size
      ? "no two properties may have the same header"
      : undefined;
    if (message !== undefined) wrong = { path: `${path}/x-mcp-header`, message };
  });
  return wrong;
}

/** @param complete True since revision 2026-07-28, in which results have a `resultType`. */
function callFormat(complete: boolean): kit.CallFormat<McpToolAnswer, McpToolAnswer> {
  return {
    // Reads a request, the `params` of a request, or a list of either.
    read: (request) => SHAPE.each(request, callOf),
    write({ raw }, answer) {
      const result = resultOf(answer, complete);
      const id = requestId(raw);
      return id !== undefined && kit.member(raw, "method") === "tools/call"
        ? { jsonrpc: "2.0", id, result }
        : result;
    },
    // The blocks of results are blocks of MCP, so no block is replaced by a text.
    media: { text: (text) => ({ type: "text", text }), file: (file) => file },
  };
}

type McpTarget<Id extends string, Tool = Mcp2025Tool> = kit.ListTarget<Id, Tool, McpToolAnswer>;

/** Revision 2025-06-18: no icons, no `execution`. */
export const MCP_2025_06_18: McpTarget<"mcp@2025-06-18"> = /* @__PURE__ */ kit.makeTarget({
  id: "mcp@2025-06-18",
  title: "MCP 2025-06-18",
  source: "modelcontextprotocol schema b0f60ba5, @modelcontextprotocol/sdk 1.32.2; 2026-11-20",
  names: { also: ".-", max: 128, separator: "." },
  features: FEATURES,
  // Only revision 2025-11-25 has `execution`.
  extra: { source: "mcp", without: ["execution"] },
  input: OLDER_KEYWORDS,
  output: { keywords: OLDER_KEYWORDS, root: "object" },
  draft07: true,
  // Results that are not objects are wrapped, so the root of a result schema is an object.
  wire: (view) => wire(view, false, false) as Mcp2025Tool,
  calls: callFormat(false),
});

/** Revision 2025-11-25: icons, and calls as tasks. */
export const MCP_2025_11_25: McpTarget<"mcp@2025-11-25"> = /* @__PURE__ */ kit.makeTarget({
  ...MCP_2025_06_18,
  id: "mcp@2025-11-25",
  title: "MCP 2025-11-25",
  features: [...FEATURES, "icons", "taskSupport"],
  extra: { source: "mcp" },
  wire: (view) => wire(view, true, true) as Mcp2025Tool,
});

/** Revision 2026-07-28: a result may have any schema, and tasks have become an extension. */
export const MCP_2026_07_28: McpTarget<"mcp@2026-07-28", McpTool> = /* @__PURE__ */ kit.makeTarget({
  ...MCP_2025_06_18,
  id: "mcp@2026-07-28",
  title: "MCP 2026-07-28",
  source: "modelcontextprotocol schema b0f60ba5, @modelcontextprotocol/server 2.4.0; 2026-11-20",
  features: [...FEATURES, "icons"],
  input: KEYWORDS,
  output: { keywords: KEYWORDS, root: "any" },
  wire: (view) => wire(view, true, false),
  calls: callFormat(true),
});

/** Reads the tool list of an MCP server. */
export const mcpImporter: kit.Importer<"mcp"> = {
  source: "mcp",
  detects: (document) => kit.member(entries(document)[0]?.value, "inputSchema") !== undefined,
  read: readList,
};
