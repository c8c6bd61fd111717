/**
 * The options of an MCP endpoint, and the SDK's server for one request. The server registers no
 * tools, but reads the caller's toolset, so its cost does not depend on the number of tools.
 */

import * as mcp from "@modelcontextprotocol/server";
import type { Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { isFunction, isObject } from "../../tool/mod.ts";
import * as http from "../http/mod.ts";
import { callTool } from "./calls.ts";
import { isRequest, type McpToolList } from "./message.ts";
import type { ClientInput } from "./questions.ts";
import { type ClientAnswers, declaredIn, type SendOnStream, type SessionKey } from "./sessions.ts";
import type { SkillCatalog } from "./skills.ts";
import type { ReaderPace } from "./streams.ts";

/** The request that an extension serves. */
export interface McpExtensionContext {
  /** The caller, as `authorize` returned it. */
  readonly caller: http.Caller;
  readonly request: Request;
}

/** Options for {@linkcode createMcpEndpoint}. */
export interface McpEndpointOptions extends http.HttpOptions {
  /** The server's name for programs. @default {"plue"} */
  readonly name?: string;
  /** The server's version. @default {"0.0.0"} */
  readonly version?: string;
  /** The server's name for people. */
  readonly title?: string;
  /** Instructions for the model about the use of the tools together. */
  readonly instructions?: string;
  /**
   * Registers prompts, resources, completion and custom methods on the SDK's server, which is
   * created for each request that is not for tools. So it also controls the caller's access: a
   * prompt that is not registered does not exist for this request. If the function throws or
   * rejects, the error is logged, and the response has the status 500.
   */
  extend?(server: mcp.McpServer, context: McpExtensionContext): void | Promise<void>;
  /** The skills that clients see next to the tools: {@linkcode skillCatalog}. */
  readonly skills?: SkillCatalog;
  /**
   * The tools that clients see: `all` of the caller's tools, or the `bridge` to them. A bridge has
   * three tools, with which a model finds, reads and calls the other tools. A function makes a
   * bridge with options: `(toolset) => createToolBridge(toolset, { pinned })`.
   *
   * @default {"all"}
   */
  readonly tools?: "all" | "bridge" | ((toolset: Toolset) => Toolset);
  /**
   * The number of tools on one page of `tools/list`. Some clients read only the first page.
   *
   * @default {1_000}
   */
  readonly pageSize?: number;
  /**
   * The time for which clients may cache a list, in milliseconds. Clients that follow the changes
   * are also notified of each change.
   *
   * @default {10_000}
   */
  readonly ttlMs?: number;
}

export const MCP_CHECKS: { readonly [Option in keyof McpEndpointOptions]-?: check.Check } = {
  ...http.HTTP_CHECKS,
  name: check.checkWord,
  version: check.checkWord,
  title: check.checkText,
  instructions: check.checkText,
  extend: check.checkFunction,
  skills: check.createCheck(
    "a catalog of skillCatalog()",
    (value): value is SkillCatalog => isFunction((value as Partial<SkillCatalog> | null)?.attach),
  ),
  tools: check.createCheck(
    '"all", "bridge" or a function',
    (value): value is NonNullable<McpEndpointOptions["tools"]> =>
      value === "all" || value === "bridge" || isFunction(value),
  ),
  pageSize: http.checkCount,
  ttlMs: check.wholeFrom(0),
};

export interface ServerParts {
  readonly info: mcp.Implementation;
  readonly options: mcp.ServerOptions;
}

export interface ServerRequest {
  readonly request: http.ToolRequest;
  /** The original body of the request: the SDK's copy lacks members named `__proto__`. */
  readonly body: unknown;
  readonly session: string | undefined;
  readonly pace: ReaderPace;
  /** Receives the client's answers; `undefined` if questions are not sent on the stream. */
  readonly answers: ClientAnswers | undefined;
  /** The tools, which are listed on first use only. */
  list(): McpToolList;
}

/** Answers of users are checked by the dispatcher, not by the SDK. */
export const NO_VALIDATOR: mcp.jsonSchemaValidator = {
  getValidator() {
    throw new TypeError(
      "Cannot validate an answer: use context.ask() of a tool, not elicitInput()",
    );
  },
};

export class ToolsetServer extends mcp.McpServer {
  readonly #list: () => McpToolList;

  constructor(
    { info, options }: ServerParts,
    { request, body, session, pace, answers, list }: ServerRequest,
  ) {
    super(info, options);
    this.#list = list;
    this.server.setRequestHandler("tools/list", ({ params }) => {
      const page = list().page(params?.cursor);
      if (page === undefined) {
        throw new mcp.ProtocolError(
          mcp.ProtocolErrorCode.InvalidParams,
          'Cannot list the tools: the cursor is invalid; send "nextCursor" of the previous page',
        );
      }
      // The pages are shared and frozen. The SDK only reads them, although its types are mutable.
      return { ...page } as unknown as mcp.ListToolsResult;
    });
    this.server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
      const sent = isRequest(body) ? body.params : undefined;
      const args = isObject(sent) && isObject(sent["arguments"]) ? sent["arguments"] : {};
      const { id, signal, log, notify } = mcpReq;
      return callTool(request, list(), { ...params, arguments: args }, {
        id,
        client: new http.ClientSignal({ signal }),
        session,
        messages: { log, notify, pace },
        input: this.#inputOf(mcpReq, { principal: request.caller.principal, session }, answers),
      });
    });
  }

  #inputOf(
    { id, inputResponses: responses, requestState }: mcp.ServerContext["mcpReq"],
    key: SessionKey,
    answers: ClientAnswers | undefined,
  ): ClientInput {
    const { server } = this;
    // Clients of the newest revision declare their capabilities with each request.
    const declared = server.getClientCapabilities() ?? declaredIn(key.session);
    const state = requestState();
    const send: SendOnStream = async (message) =>
      await server.transport?.send(message, { relatedRequestId: id });
    return {
      declared,
      responses,
      state: typeof state === "string" ? state : undefined,
      ask: answers && ((question, signal) => answers.ask(key, question, send, signal)),
    };
  }

  /** Rejects tools of an extension, because no policy would apply to them. */
  override registerTool(): never {
    throw new TypeError(
      "Cannot register a tool on the server of an extension: register it in the plue registry",
    );
  }

  /** The SDK calls this for the headers that a call must have (`x-mcp-header`). */
  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#list().inputSchemaOf(name);
  }
}
