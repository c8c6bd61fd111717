/**
 * Checks messages of the protocol before the SDK reads them. The SDK has no limits for depth and
 * ids, accepts batches, and reports invalid params as internal errors. Also has the list of a
 * caller's tools in the form of a revision of MCP.
 */

import * as mcp from "@modelcontextprotocol/server";
import type { ExportNames, ExportResult, McpTool } from "../../formats/mod.ts";
import { MCP_2025_06_18, MCP_2025_11_25, MCP_2026_07_28 } from "../../formats/providers/mcp.ts";
import { exportTools } from "../../formats/records.ts";
import { clip, isObject, MAX_DEPTH, once, pointerStep, type Tool } from "../../tool/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { pageAfter } from "../http/mod.ts";

export type McpTarget = typeof MCP_2025_06_18 | typeof MCP_2025_11_25 | typeof MCP_2026_07_28;

/** One page of `tools/list`. The last page has no cursor. */
export interface McpToolPage {
  readonly tools: readonly McpTool[];
  readonly nextCursor?: string;
}

type ExportedTools = ExportResult<readonly McpTool[]>;

/** The tools of one listing for one revision. */
export class McpToolList {
  readonly target: McpTarget;
  /** The names of all members, so that a tool has the same name while others are unavailable. */
  readonly names: ExportNames;
  /** The listed tools. */
  readonly encodings: ExportNames["encodings"];
  readonly #tools: readonly McpTool[];
  readonly #pageSize: number;
  readonly #withoutHeaders = new Map<string, boolean>();
  #byName: ReadonlyMap<string, McpTool> | undefined;

  /**
   * @param exported All members of the toolset.
   * @param listing The members that are available.
   */
  constructor(
    { names, tools }: ExportedTools,
    listing: readonly Tool[],
    target: McpTarget,
    pageSize: number,
  ) {
    this.target = target;
    this.names = names;
    const listed = new Set(listing.map(({ id }) => id));
    const isListed = (index: number): boolean => listed.has(names.encodings[index]?.id ?? "");
    this.encodings = names.encodings.filter((_, index) => isListed(index));
    this.#tools = tools.filter((_, index) => isListed(index));
    this.#pageSize = pageSize;
  }

  /** @param name The name in MCP. */
  inputSchemaOf(name: string): McpTool["inputSchema"] | undefined {
    this.#byName ??= new Map(this.#tools.map((tool) => [tool.name, tool]));
    return this.#byName.get(name)?.inputSchema;
  }

  /** Returns true for a listed tool that takes no arguments from headers (`x-mcp-header`). */
  takesNoHeaders(name: string): boolean {
    const known = this.#withoutHeaders.get(name);
    if (known !== undefined) return known;
    const schema = this.inputSchemaOf(name);
    // Unknown names are not cached: clients can send any number of them.
    if (schema === undefined) return false;
    const answer = !JSON.stringify(schema).includes("x-mcp-header");
    this.#withoutHeaders.set(name, answer);
    return answer;
  }

  /** Returns a page, in order of id; `undefined` if the cursor is invalid. */
  page(cursor: string | undefined): McpToolPage | undefined {
    const page = pageAfter(this.encodings, cursor, this.#pageSize);
    if (page === undefined) return undefined;
    const { start, end, nextCursor } = page;
    return {
      tools: this.#tools.slice(start, end),
      ...(nextCursor === undefined ? {} : { nextCursor }),
    };
  }
}

/** Caches the lists of each listing, which stays the same array until a tool changes. */
export class McpToolLists {
  readonly #lists = new WeakMap<readonly Tool[], Map<McpTarget, McpToolList>>();
  readonly #exports = new WeakMap<readonly Tool[], Map<McpTarget, ExportedTools>>();
  readonly #pageSize: number;
  readonly #onRejected: (message: string) => void;

  /** @param onRejected Receives a message for each tool that a new list omits. */
  constructor(pageSize: number, onRejected: (message: string) => void) {
    this.#pageSize = pageSize;
    this.#onRejected = onRejected;
  }

  of(toolset: Toolset, target: McpTarget): McpToolList {
    const listing = toolset.available();
    const known = this.#lists.get(listing)?.get(target);
    if (known !== undefined) return known;
    const exported = once(once(this.#exports, toolset.tools, () => new Map()), target, () => {
      const made = exportTools(toolset.tools, target);
      for (const { message } of made.rejected) this.#onRejected(message);
      return made;
    });
    const list = new McpToolList(exported, listing, target, this.#pageSize);
    once(this.#lists, listing, () => new Map()).set(target, list);
    return list;
  }
}

/** The newest revision. It has no sessions; the earlier ones begin with `initialize`. */
export const MODERN = "2026-07-28";

export const MODERN_TARGET: typeof MCP_2026_07_28 = MCP_2026_07_28;

export const VERSION_KEY: string = mcp.PROTOCOL_VERSION_META_KEY;

export interface JsonRpcRequest {
  readonly id: unknown;
  readonly method: unknown;
  readonly params?: unknown;
}

/** `modern` is the newest revision, `legacy` is any earlier one. */
export type McpEra = "modern" | "legacy";

export function isJson(request: Request): boolean {
  const type = request.headers.get("content-type");
  return type === "application/json" || mcp.isJsonContentType(type);
}

export function isRequest(message: unknown): message is JsonRpcRequest {
  return isObject(message) && "id" in message && "method" in message;
}

/** Returns the capabilities of a client that begins a session, in revisions before the newest. */
export function initializedBy(message: unknown): mcp.ClientCapabilities | undefined {
  if (methodOf(message) !== "initialize") return undefined;
  const { params } = message as { readonly params?: unknown };
  const declared = isObject(params) ? params["capabilities"] : undefined;
  return isObject(declared) ? declared : {};
}

export function isListen(message: unknown): boolean {
  return methodOf(message) === "subscriptions/listen";
}

export function isForTools(message: unknown): boolean {
  const method = methodOf(message);
  return method === "tools/call" || method === "tools/list";
}

const TASK_METHODS: ReadonlySet<unknown> = new Set(["tasks/get", "tasks/update", "tasks/cancel"]);

export function isForTask(message: unknown): boolean {
  return TASK_METHODS.has(methodOf(message));
}

/** The cancelled request, if a message cancels one. Its id may be of any type. */
export function cancelledBy(message: unknown): { readonly requestId: unknown } | undefined {
  if (methodOf(message) !== "notifications/cancelled") return undefined;
  const { params } = message as { readonly params?: { readonly requestId?: unknown } | null };
  return { requestId: params?.requestId };
}

export function traceParentOf(body: unknown): string | null {
  const { params } = (body ?? {}) as { readonly params?: { readonly _meta?: unknown } | null };
  const trace = isObject(params?._meta) ? params._meta[mcp.TRACEPARENT_META_KEY] : undefined;
  return typeof trace === "string" ? trace : null;
}

export function targetOf(era: McpEra, headers: Headers): McpTarget {
  if (era === "modern") return MODERN_TARGET;
  // Clients of earlier revisions may not send their revision.
  return headers.get("mcp-protocol-version") === "2025-11-25" ? MCP_2025_11_25 : MCP_2025_06_18;
}

function methodOf(message: unknown): unknown {
  return (message as { readonly method?: unknown } | null | undefined)?.method;
}

export interface JsonRpcRefusal {
  /** 400 for a body beyond the bounds; 200 for a well-formed request with wrong params. */
  readonly status: 200 | 400;
  readonly id: string | number | null;
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** `MAX_DEPTH` levels of the arguments, plus one level each for the params and the message. */
const MAX_LEVELS = MAX_DEPTH + 2;
/** The maximum length of ids and progress tokens, which the server stores and returns. */
const MAX_ID = 1_000;
/** The maximum number of values in `_meta` and in `initialize`. The SDK takes 20 µs per value. */
const MAX_META = 1_000;
const MAX_WORDS = 200;

const { PaginatedRequestParams: PageParams, ...PARAMS } = mcp.specTypeSchemas;

type ParamsSchema = (typeof mcp.specTypeSchemas)[keyof typeof mcp.specTypeSchemas];
type MethodRows = readonly (readonly [method: string, ParamsSchema, only?: McpEra])[];
export type MethodParams = ReadonlyMap<unknown, ParamsSchema>;

/** The methods for which the SDK reports invalid params as an internal error, or with other texts. */
const METHODS: MethodRows = [
  ["tools/call", PARAMS.CallToolRequestParams],
  ["tools/list", PageParams],
  ["initialize", PARAMS.InitializeRequestParams, "legacy"],
  ["logging/setLevel", PARAMS.SetLevelRequestParams, "legacy"],
];

const EXTENSION_METHODS: MethodRows = [
  ["prompts/list", PageParams],
  ["prompts/get", PARAMS.GetPromptRequestParams],
  ["resources/list", PageParams],
  ["resources/templates/list", PageParams],
  ["resources/read", PARAMS.ReadResourceRequestParams],
  ["resources/subscribe", PARAMS.SubscribeRequestParams, "legacy"],
  ["resources/unsubscribe", PARAMS.UnsubscribeRequestParams, "legacy"],
  ["completion/complete", PARAMS.CompleteRequestParams],
];

export function methodParams(isExtended: boolean): { readonly [Era in McpEra]: MethodParams } {
  const rows = isExtended ? [...METHODS, ...EXTENSION_METHODS] : METHODS;
  return {
    modern: new Map(
      rows.flatMap(([method, schema, only]) => only === undefined ? [[method, schema]] : []),
    ),
    legacy: new Map(rows.map(([method, schema]) => [method, schema])),
  };
}

/** Rejects a batch, too many levels, long ids and a large `_meta`; `undefined` for other bodies. */
export function boundsRefusal(body: unknown): JsonRpcRefusal | undefined {
  const wrong = Array.isArray(body)
    ? "it is a batch, which MCP no longer has; send each message in a separate request"
    : isDeeper(body, MAX_LEVELS)
    ? `the body must have at most ${MAX_LEVELS} levels of objects and arrays`
    : wrongIdOrMeta(body);
  if (wrong === undefined) return undefined;
  const message = `Cannot read the request: ${wrong}`;
  return {
    status: 400,
    id: idOf(body),
    error: { code: mcp.ProtocolErrorCode.InvalidRequest, message },
  };
}

export function paramsRefusal(message: unknown, methods: MethodParams): JsonRpcRefusal | undefined {
  if (!isRequest(message)) return undefined;
  const wrong = wrongParams(message, methods);
  if (wrong === undefined) return undefined;
  const { InvalidParams: code } = mcp.ProtocolErrorCode;
  const text = `Cannot answer ${message.method}: ${wrong}`;
  return { status: 200, id: idOf(message), error: { code, message: text } };
}

function wrongIdOrMeta(message: unknown): string | undefined {
  if (!isObject(message)) return undefined;
  if (isTooLong(message["id"])) return `/id must have at most ${MAX_ID} characters`;
  const { params } = message;
  const meta = isObject(params) ? params["_meta"] : undefined;
  if (isObject(meta) && isTooLong(meta["progressToken"])) {
    return `/params/_meta/progressToken must have at most ${MAX_ID} characters`;
  }
  const [bounded, pointer] = message["method"] === "initialize"
    ? [params, "/params"]
    : [meta, "/params/_meta"];
  return isObject(bounded) && countValues(bounded) > MAX_META
    ? `${pointer} must have at most ${MAX_META} values`
    : undefined;
}

function countValues(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  const members = value as Readonly<Record<string, unknown>>;
  let count = 1;
  for (const name in members) count += countValues(members[name]);
  return count;
}

function isTooLong(id: unknown): boolean {
  return typeof id === "string" && id.length > MAX_ID;
}

function wrongParams(
  { method, params }: JsonRpcRequest,
  methods: MethodParams,
): string | undefined {
  const schema = methods.get(method);
  if (schema === undefined || params === undefined && schema === PageParams) return undefined;
  const { issues = [] } = schema["~standard"].validate(params);
  // The SDK checks `_meta`.
  const issue = issues.find(({ path }) => path?.[0] !== "_meta");
  if (issue === undefined) return undefined;
  const pointer = ["params", ...issue.path ?? []].map((step) => pointerStep(String(step))).join("");
  return `${clip(pointer, MAX_WORDS)}: ${clip(issue.message, MAX_WORDS)}`;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeper(item, levels - 1));
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members) if (isDeeper(members[name], levels - 1)) return true;
  return false;
}

export function idOf(message: unknown): JsonRpcRefusal["id"] {
  const id = isRequest(message) ? message.id : null;
  return typeof id === "string" && !isTooLong(id) || Number.isSafeInteger(id)
    ? id as string | number
    : null;
}
