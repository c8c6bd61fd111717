/**
 * The SDK's server for one request, answering from the caller's toolset: nothing is registered with
 * it, so that it costs the same for ten tools as for a thousand.
 *
 * @module
 */

import {
  type Implementation,
  type jsonSchemaValidator,
  type ListToolsResult,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ServerOptions,
} from "@modelcontextprotocol/server";
import { isObject } from "../../tool/mod.ts";
import { callTool } from "./call_tool.ts";
import { type McpEra, requestOf } from "./request.ts";
import type { McpToolList } from "./tool_list.ts";
import type { McpVisit } from "./visit.ts";

/** What every server of one endpoint is made of. */
export interface ServerParts {
  readonly info: Implementation;
  readonly options: ServerOptions;
  readonly pageSize: number;
}

/**
 * The SDK would make a validator per server, to check what users answer when a server asks them
 * something. This one never asks; arguments are checked by the dispatcher.
 */
const NEVER_ASKED: jsonSchemaValidator = {
  getValidator() {
    throw new TypeError("Cannot validate: an MCP endpoint of plue asks its clients nothing");
  },
};

/** Makes what the servers of an endpoint share. */
export function serverParts(
  info: Implementation,
  { instructions, ttlMs, pageSize, follows }: {
    readonly instructions: string | undefined;
    readonly ttlMs: number;
    readonly pageSize: number;
    /** Whether the tools can change. */
    readonly follows: boolean;
  },
): ServerParts {
  const hint = { ttlMs, cacheScope: "private" } as const;
  return {
    info,
    pageSize,
    options: {
      capabilities: { tools: { listChanged: follows }, logging: {} },
      cacheHints: { "tools/list": hint, "server/discover": hint },
      jsonSchemaValidator: NEVER_ASKED,
      ...(instructions === undefined ? {} : { instructions }),
    },
  };
}

/** A server for one request. */
export class RegistryServer extends McpServer {
  readonly #list: () => McpToolList;

  /** @param body The request's, as it was sent: the SDK's copy lacks members named `__proto__`. */
  constructor(
    { info, options, pageSize }: ServerParts,
    visit: McpVisit,
    era: McpEra,
    body: unknown,
  ) {
    super(info, options);
    const list = this.#list = (): McpToolList => visit.list(era);
    this.server.setRequestHandler("tools/list", ({ params }) => {
      const page = list().page(params?.cursor, pageSize);
      if (page === undefined) {
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          "Cannot list the tools: the cursor is none that this server gave",
        );
      }
      // The pages are shared and frozen, which the SDK's types do not say; it only reads them.
      return { ...page } as unknown as ListToolsResult;
    });
    this.server.setRequestHandler(
      "tools/call",
      ({ params }, { mcpReq }) => {
        const sent = requestOf(body, mcpReq.id)?.params;
        const given = isObject(sent) && isObject(sent["arguments"]) ? sent["arguments"] : {};
        return callTool(visit, list(), { ...params, arguments: given }, mcpReq);
      },
    );
  }

  /** Is asked which headers a call must have (`x-mcp-header`). */
  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#list().inputSchemaOf(name);
  }
}
