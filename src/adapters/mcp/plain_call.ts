/**
 * Calls that ask for nothing but their result: of revision 2026-07-28, without progress, log
 * messages or headers of their own. The SDK would make a server, a transport and a dozen of checks
 * for each, and answer the same.
 *
 * @module
 */

import {
  BAGGAGE_META_KEY,
  type CallToolRequest,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type Implementation,
  isSpecType,
  ProtocolError,
  ProtocolErrorCode,
  SERVER_INFO_META_KEY,
  TRACEPARENT_META_KEY,
  TRACESTATE_META_KEY,
} from "@modelcontextprotocol/server";
import { isObject } from "../../tool/mod.ts";
import { callTool } from "./call_tool.ts";
import { json } from "../hono/responses.ts";
import { MODERN, VERSION_KEY } from "./request.ts";
import type { McpToolList } from "./tool_list.ts";
import type { McpVisit } from "./visit.ts";

/** A call that asks for nothing but its result. */
export interface PlainCall extends CallToolRequest {
  readonly id: string | number;
}

const MESSAGE_FIELDS: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params"]);
const PARAMS_FIELDS: ReadonlySet<string> = new Set(["name", "arguments", "_meta"]);

/** What `_meta` may have here. Whatever else it has may ask for more than a result. */
const META_CHECKS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  [VERSION_KEY, (value) => value === MODERN],
  [CLIENT_INFO_META_KEY, isSpecType.Implementation],
  [CLIENT_CAPABILITIES_META_KEY, isSpecType.ClientCapabilities],
  [TRACEPARENT_META_KEY, isText],
  [TRACESTATE_META_KEY, isText],
  [BAGGAGE_META_KEY, isText],
]);

/**
 * Reads a plain call.
 *
 * @param body One that is well-formed: `refusalOf` has looked at it.
 * @returns `undefined` if it is anything else, or anything about it is unusual: then the SDK judges.
 */
export function plainCallOf(body: unknown, headers: Headers): PlainCall | undefined {
  if (!isObject(body) || body["method"] !== "tools/call" || !hasOnly(body, MESSAGE_FIELDS)) {
    return undefined;
  }
  const { id, params } = body;
  if (id === undefined || !isObject(params) || !hasOnly(params, PARAMS_FIELDS)) return undefined;
  const { name, _meta: meta } = params;
  const isNamed = headers.get("mcp-protocol-version") === MODERN &&
    headers.get("mcp-method") === "tools/call" && headers.get("mcp-name") === name;
  if (!isNamed || !isObject(meta)) return undefined;
  if (!(VERSION_KEY in meta && CLIENT_CAPABILITIES_META_KEY in meta)) return undefined;
  for (const [key, value] of Object.entries(meta)) {
    if (META_CHECKS.get(key)?.(value) !== true) return undefined;
  }
  // What is left was looked at, here or in `refusalOf`.
  return body as unknown as PlainCall;
}

/**
 * Runs a plain call, and answers as the SDK would.
 *
 * @param signal Aborts when the client goes away.
 */
export async function answerPlainCall(
  visit: McpVisit,
  list: McpToolList,
  call: PlainCall,
  server: Implementation,
  signal: AbortSignal,
): Promise<Response> {
  const { id } = call;
  try {
    const result = await callTool(visit, list, call.params, {
      id,
      signal,
      log: nothing,
      notify: nothing,
    });
    // In the order of the SDK, so that nobody sees who answered.
    const { resultType = "complete", ...rest } = result;
    const _meta = { ...result._meta, [SERVER_INFO_META_KEY]: server };
    return json({ result: { ...rest, resultType, _meta }, jsonrpc: "2.0", id });
  } catch (error) {
    if (!(error instanceof ProtocolError)) visit.report(error);
    const { code, message } = error instanceof ProtocolError
      ? error
      : { code: ProtocolErrorCode.InternalError, message: "Internal error" };
    return json({ jsonrpc: "2.0", id, error: { code, message } });
  }
}

/** The client asked to be told nothing meanwhile. */
function nothing(): Promise<void> {
  return Promise.resolve();
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}

function hasOnly(value: object, fields: ReadonlySet<string>): boolean {
  return Object.keys(value).every((field) => fields.has(field));
}
