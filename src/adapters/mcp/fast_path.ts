/**
 * The fast path for plain `tools/call` and `tools/list` of revision 2026-07-28, without progress and log
 * messages. For the same response, the SDK makes a server and a transport: it takes 5 times as long for a
 * call, and 9 times as long for a list of 1,000 tools (`bench/mcp.bench.ts`).
 */

import * as mcp from "@modelcontextprotocol/server";
import { isObject, isText } from "../../tool/mod.ts";
import { type ClientSignal, json, type ToolRequest } from "../http/mod.ts";
import { callTool, type McpCallResult } from "./calls.ts";
import { type McpToolList, MODERN, VERSION_KEY } from "./message.ts";
import { declaredBy } from "./questions.ts";
import type { ServerParts } from "./server.ts";

/** A call whose client expects only the result. */
export interface PlainCall extends mcp.CallToolRequest {
  readonly id: string | number;
}

export interface PlainList extends mcp.ListToolsRequest {
  readonly id: string | number;
}

const MESSAGE_FIELDS: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params"]);
const CALL_FIELDS: ReadonlySet<string> = new Set(["name", "arguments", "_meta"]);
const LIST_FIELDS: ReadonlySet<string> = new Set(["_meta"]);

/** The checks of `_meta`. Another member may request more than a result, so the SDK responds then. */
const META_CHECKS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  [VERSION_KEY, (value) => value === MODERN],
  // A check of the SDK takes a microsecond. Most clients send only a name and a version.
  [
    mcp.CLIENT_INFO_META_KEY,
    (value) => isNameAndVersion(value) || mcp.isSpecType.Implementation(value),
  ],
  [
    mcp.CLIENT_CAPABILITIES_META_KEY,
    (value) =>
      isObject(value) && hasOnly(value, NO_FIELDS) || mcp.isSpecType.ClientCapabilities(value),
  ],
  [mcp.TRACEPARENT_META_KEY, isText],
  [mcp.TRACESTATE_META_KEY, isText],
  [mcp.BAGGAGE_META_KEY, isText],
]);

/** Reads a plain request; `undefined` for unusual or invalid requests, which the SDK answers. */
export function plainRequestOf(body: unknown, headers: Headers): PlainCall | PlainList | undefined {
  if (!isObject(body) || body["jsonrpc"] !== "2.0" || !hasOnly(body, MESSAGE_FIELDS)) {
    return undefined;
  }
  const { id, method, params } = body;
  if (typeof id !== "string" && !Number.isSafeInteger(id)) return undefined;
  const isCall = method === "tools/call";
  if (!isCall && method !== "tools/list") return undefined;
  if (!isObject(params) || !hasOnly(params, isCall ? CALL_FIELDS : LIST_FIELDS)) return undefined;
  if (headers.get("mcp-protocol-version") !== MODERN || headers.get("mcp-method") !== method) {
    return undefined;
  }
  const { name, arguments: args, _meta: meta } = params;
  if (isCall && (headers.get("mcp-name") !== name || args !== undefined && !isObject(args))) {
    return undefined;
  }
  if (!isObject(meta) || !(VERSION_KEY in meta && mcp.CLIENT_CAPABILITIES_META_KEY in meta)) {
    return undefined;
  }
  for (const key in meta) {
    if (META_CHECKS.get(key)?.(meta[key]) !== true) return undefined;
  }
  // All members of the type have been checked.
  return body as unknown as PlainCall | PlainList;
}

/** Runs a plain call, and responds in the SDK's form: synchronously if nothing in the call waits. */
export function answerPlainCall(
  request: ToolRequest,
  list: McpToolList,
  { id, params }: PlainCall,
  { info }: ServerParts,
  client: ClientSignal,
): Response | Promise<Response> {
  const own = { [mcp.SERVER_INFO_META_KEY]: info };
  const written = (result: McpCallResult): Response => {
    // The members have the SDK's order. Spreading the result would be slower.
    if (result._meta === undefined && "content" in result) {
      const { content, structuredContent, isError } = result;
      const answer = { content, structuredContent, isError, resultType: "complete", _meta: own };
      return json({ result: answer, jsonrpc: "2.0", id });
    }
    const { resultType = "complete", ...rest } = result;
    const _meta = { ...rest._meta, ...own };
    return json({ result: { ...rest, resultType, _meta }, jsonrpc: "2.0", id });
  };
  const failed = (error: unknown): Response => errorResponse(request, id, error);
  try {
    const input = { declared: declaredBy(params._meta) };
    const result = callTool(request, list, params, { id, client, input });
    return result instanceof Promise ? result.then(written).catch(failed) : written(result);
  } catch (error) {
    return failed(error);
  }
}

function errorResponse({ server }: ToolRequest, id: PlainCall["id"], error: unknown): Response {
  if (!(error instanceof mcp.ProtocolError)) server.log(error);
  const { code, message, data } = error instanceof mcp.ProtocolError
    ? error
    : { code: mcp.ProtocolErrorCode.InternalError, message: "Internal error", data: undefined };
  const isMissing = code === mcp.ProtocolErrorCode.MissingRequiredClientCapability;
  return json({ jsonrpc: "2.0", id, error: { code, message, data } }, isMissing ? 400 : 200);
}

export function answerPlainList(
  list: McpToolList,
  { id }: PlainList,
  parts: ServerParts,
): Response {
  let answer = listAnswers.get(list);
  if (answer?.id !== id) {
    const start = answer?.start ?? listAnswerStart(list, parts);
    listAnswers.set(list, answer = { id, start, text: `${start}${JSON.stringify(id)}}` });
  }
  return json(undefined, 200, answer.text);
}

/**
 * The last response with each list, as JSON up to the id. Writing 1,000 tools as JSON takes 30
 * times as long as sending the JSON or as appending an id (Bun, `bench/http.bench.ts`).
 */
const listAnswers = new WeakMap<
  McpToolList,
  { readonly id: string | number; readonly start: string; readonly text: string }
>();

function listAnswerStart(list: McpToolList, { info, options }: ServerParts): string {
  const result = {
    ...list.page(undefined),
    resultType: "complete",
    ...options.cacheHints?.["tools/list"],
    _meta: { [mcp.SERVER_INFO_META_KEY]: info },
  };
  return `{"result":${JSON.stringify(result)},"jsonrpc":"2.0","id":`;
}

function isNameAndVersion(value: unknown): boolean {
  return isObject(value) && isText(value["name"]) && isText(value["version"]) &&
    hasOnly(value, NAME_FIELDS);
}

const NAME_FIELDS: ReadonlySet<string> = new Set(["name", "version"]);

const NO_FIELDS: ReadonlySet<string> = new Set();

/** @param value A value from JSON, without inherited members. */
function hasOnly(value: object, fields: ReadonlySet<string>): boolean {
  for (const field in value) if (!fields.has(field)) return false;
  return true;
}
