/**
 * The SDK's server for one request, answering from the caller's toolset. No tools are registered
 * with it, so that it costs the same for ten tools as for a thousand.
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
  type ServerContext,
  type ServerOptions,
} from "@modelcontextprotocol/server";
import { isObject } from "../../tool/mod.ts";
import { ClientSignal, type ToolRequest } from "../http/mod.ts";
import type { ClientInput } from "./questions.ts";
import { callTool, type ReaderPace } from "./calls.ts";
import type { McpToolList } from "./lists.ts";
import { isRequest } from "./message.ts";
import { type ClientAnswers, declaredIn, type SendOnStream, type SessionKey } from "./sessions.ts";

/** The common parts of the servers of one endpoint. */
export interface ServerParts {
  readonly info: Implementation;
  readonly options: ServerOptions;
}

/** The request that a server answers. */
export interface ServerRequest {
  readonly request: ToolRequest;
  /** As it was sent: the SDK's copy lacks members named `__proto__`. */
  readonly body: unknown;
  readonly session: string | undefined;
  readonly pace: ReaderPace;
  /** Receives the client's answers; `undefined` if questions are not sent on the stream. */
  readonly answers: ClientAnswers | undefined;
  /** The tools, which are listed on first use only. */
  list(): McpToolList;
}

/** The SDK would make a validator for answers of users, which the dispatcher checks. */
export const NO_VALIDATOR: jsonSchemaValidator = {
  getValidator() {
    throw new TypeError("Cannot validate an answer: ask with the context of a tool");
  },
};

/** A server for one request. */
export class ToolsetServer extends McpServer {
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
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          'Cannot list the tools: the cursor is not valid; send the "nextCursor" of the page before',
        );
      }
      // The pages are shared and frozen. The SDK only reads them, although its types are mutable.
      return { ...page } as unknown as ListToolsResult;
    });
    this.server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
      const sent = isRequest(body) ? body.params : undefined;
      const given = isObject(sent) && isObject(sent["arguments"]) ? sent["arguments"] : {};
      const { id, signal, log, notify } = mcpReq;
      return callTool(request, list(), { ...params, arguments: given }, {
        id,
        client: new ClientSignal({ signal }),
        session,
        messages: { log, notify, pace },
        input: this.#inputOf(mcpReq, { principal: request.caller.principal, session }, answers),
      });
    });
  }

  #inputOf(
    { id, inputResponses: responses, requestState }: ServerContext["mcpReq"],
    key: SessionKey,
    answers: ClientAnswers | undefined,
  ): ClientInput {
    const { server } = this;
    // The newest revision declares with each request.
    const declared = server.getClientCapabilities() ?? declaredIn(key.session);
    const state = requestState();
    const send: SendOnStream = async (message) =>
      await server.transport?.send(message, { relatedRequestId: id });
    return {
      declared,
      responses,
      state: typeof state === "string" ? state : undefined,
      ask: answers && ((asked, signal) => answers.ask(key, asked, send, signal)),
    };
  }

  /** An extension's tool would not be listed, and no policy would apply to it. */
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
