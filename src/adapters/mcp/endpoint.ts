/**
 * Serves tools to MCP clients, on every runtime that has `fetch`. If a body is a plain call or
 * list, it goes to the fast path (`fast_path.ts`), otherwise to the official SDK.
 */

import { ToolDispatcher } from "../../execute/mod.ts";
import { createMcpHandler, isJSONRPCResponse } from "@modelcontextprotocol/server";
import { createToolBridge } from "../../finding/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import * as http from "../http/mod.ts";
import type { ToolRequest } from "../http/mod.ts";
import { writeTaskResult } from "./calls.ts";
import { answerPlainCall, answerPlainList, plainRequestOf } from "./fast_path.ts";
import * as messages from "./message.ts";
import * as sessions from "./sessions.ts";
import {
  MCP_CHECKS,
  type McpEndpointOptions,
  NO_VALIDATOR,
  type ServerParts,
  type ServerRequest,
  ToolsetServer,
} from "./server.ts";
import { ReaderPace, streamIfSlow } from "./streams.ts";
import { serveTasks, taskRefusal, type TaskRequest } from "./tasks.ts";

/** The parts of Hono's context that the endpoint reads. */
export interface McpHandlerContext extends Pick<http.RequestContext, "env" | "executionCtx"> {
  readonly req: { readonly raw: Request };
}

/** An MCP server over HTTP. Workers, Deno and Bun can serve it directly. */
export interface McpEndpoint {
  /** Answers a request in a Hono app, on every runtime: `app.all("/mcp", mcp.handle)`. */
  readonly handle: (c: McpHandlerContext) => Promise<Response>;
  /**
   * Answers a request.
   *
   * @param env The runtime's second argument, which `authorize` receives.
   * @param context The execution context of Workers. It keeps cleanups of calls running after their
   * client has disconnected.
   */
  fetch(request: Request, env?: unknown, context?: unknown): Promise<Response>;
  /**
   * Notifies clients that prompts or resources of the option `extend` have changed. Reaches only
   * clients that have a stream of changes open to this process (on Workers, to this isolate).
   */
  readonly notify: sessions.McpNotify;
}

/**
 * Serves tools to MCP clients of revision 2026-07-28 and of the earlier revisions from 2024-11-05
 * to 2025-11-25.
 *
 * | MCP | plue |
 * |---|---|
 * | `tools/list` | the caller's toolset, in order of id, page by page |
 * | `tools/call` | the dispatcher; a failure is a result with `isError`, so that the model reads it |
 * | progress, log messages | `context.progress`, `context.metadata` and the values that a generator yields |
 * | cancellation | the call's signal: the closed stream, or `notifications/cancelled` |
 * | `subscriptions/listen`, the older `GET` stream | a notification when the caller's list has changed |
 *
 * A tool whose id is not a valid name in MCP (`chain:status`) gets a valid name (`chain.status`).
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { createMcpEndpoint } from "@plue/tools/mcp";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", risk: "safe", execute: () => "pong" }],
 * });
 * // `app.all("/mcp", mcp.handle)` in a Hono app.
 * const mcp = createMcpEndpoint(registry, { name: "example", openExecution: true });
 *
 * const response = await mcp.fetch(
 *   new Request("http://localhost/mcp", {
 *     method: "POST",
 *     headers: {
 *       "content-type": "application/json",
 *       accept: "application/json, text/event-stream",
 *       "mcp-protocol-version": "2025-11-25",
 *     },
 *     body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "ping" } }),
 *   }),
 * );
 * assert.match(await response.text(), /"text":"pong"/);
 * ```
 *
 * @param source A registry, which is followed as it changes, or a toolset.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function createMcpEndpoint(
  source: Registry | Toolset,
  options: McpEndpointOptions = {},
): McpEndpoint {
  const service = new McpService(source, options);
  return {
    fetch: (raw, env, executionCtx) => service.answer({ req: { raw }, env, executionCtx }),
    handle: (context) => service.answer(context),
    notify: service.followers,
  };
}

/** Replaces a body that is not JSON. The SDK rejects it. */
const NOT_JSON = "not JSON";

class McpService {
  readonly followers: sessions.Followers = new sessions.Followers();
  readonly #answers = new sessions.ClientAnswers();
  readonly #server: http.ToolServer;
  readonly #lists: messages.McpToolLists;
  readonly #parts: ServerParts;
  /** `undefined` for a toolset, which does not change. */
  readonly #registry: Registry | undefined;
  readonly #extend: McpEndpointOptions["extend"];
  readonly #skills: McpEndpointOptions["skills"];
  readonly #subscriptions: sessions.ResourceSubscriptions;
  readonly #methods: ReturnType<typeof messages.methodParams>;

  constructor(source: Registry | Toolset, options: McpEndpointOptions) {
    http.checkOptions("create an MCP endpoint", options, MCP_CHECKS);
    const { name = "plue", version = "0.0.0", title, instructions } = options;
    const { pageSize = 1_000, ttlMs = 10_000, tools = "all", skills } = options;
    const bridge = tools === "bridge"
      ? (toolset: Toolset) => createToolBridge(toolset, { skills })
      : tools === "all"
      ? undefined
      : tools;
    const server = this.#server = new http.ToolServer(source, options, {
      bridge: bridge && http.bridgeOnce(bridge),
      createDispatcher: (own) => new ToolDispatcher(source, own),
    });
    for (const part of http.sharedParts(options)) server.install(part);
    this.#registry = source instanceof Toolset ? undefined : source;
    this.#extend = options.extend?.bind(options);
    this.#skills = skills;
    this.#subscriptions = new sessions.ResourceSubscriptions(server.authorizes);
    this.#methods = messages.methodParams((this.#extend ?? skills) !== undefined);
    this.#lists = new messages.McpToolLists(
      pageSize,
      (message) => server.log(new TypeError(message)),
    );
    const hint = { ttlMs, cacheScope: "private" } as const;
    this.#parts = {
      info: { name, version, ...(title === undefined ? {} : { title }) },
      options: {
        capabilities: { tools: { listChanged: this.#registry !== undefined }, logging: {} },
        cacheHints: {
          "tools/list": hint,
          "prompts/list": hint,
          "resources/list": hint,
          "resources/templates/list": hint,
          "server/discover": hint,
        },
        jsonSchemaValidator: NO_VALIDATOR,
        ...(instructions === undefined ? {} : { instructions }),
      },
    };
  }

  answer(context: http.RequestContext): Promise<Response> {
    const { around } = this.#server;
    return Promise.resolve(
      around === undefined
        ? this.#route(context)
        : around(context.req.raw, () => this.#route(context)),
    );
  }

  #route(context: http.RequestContext): Response | Promise<Response> {
    const { raw } = context.req;
    const { preflight } = this.#server;
    if (raw.method === "OPTIONS" && preflight !== undefined) {
      return this.#server.answerPublic(raw, "/mcp", () => preflight(raw));
    }
    return this.#server.answer(context, "/mcp", this.#answerMethod);
  }

  readonly #answerMethod: http.RequestAnswer = (request) => {
    const { method } = request.raw;
    if (method === "POST" || method === "DELETE") return this.#read(request);
    return method === "GET" ? this.#openStream(request) : http.methodNotAllowed("GET, POST");
  };

  #read(request: ToolRequest): Response | Promise<Response> {
    const { raw, record } = request;
    if (raw.method !== "POST" || !messages.isJson(raw)) return this.#answer(request, undefined);
    const answer = (body: unknown): Response | Promise<Response> =>
      record === undefined
        ? this.#answer(request, body)
        : this.#answerRecorded(request, record, body);
    return request.readBody().then(answer, (error: unknown) => {
      if (!(error instanceof http.RequestError)) throw error;
      return this.#answer(request, NOT_JSON);
    });
  }

  /** Records the span of an observed request, unless a traced call has recorded its own. */
  async #answerRecorded(
    request: ToolRequest,
    record: http.RequestRecord,
    body: unknown,
  ): Promise<Response> {
    const response = await this.#answer(request, body);
    const trace = http.readTraceParent(messages.traceParentOf(body));
    if (trace !== undefined) record.span ??= http.nextTraceParent(trace);
    return response;
  }

  /** Rejects a body, responds on the fast path, or passes the request to the SDK. */
  #answer(request: ToolRequest, body: unknown): Response | Promise<Response> {
    const { headers } = request.raw;
    const beyond = messages.boundsRefusal(body);
    if (beyond !== undefined) return refusalResponse(beyond);
    const plain = plainRequestOf(body, headers);
    if (plain === undefined) return this.#answerAny(request, body);
    const list = this.#lists.of(request.toolset, messages.MODERN_TARGET);
    if (plain.method === "tools/list") return answerPlainList(list, plain, this.#parts);
    if (!list.takesNoHeaders(plain.params.name)) return this.#answerAny(request, body);
    const client = new http.ClientSignal(request.raw);
    const response = answerPlainCall(request, list, plain, this.#parts, client);
    return response instanceof Promise ? this.#streamIfSlow(request, client, response) : response;
  }

  async #answerAny(request: ToolRequest, body: unknown): Promise<Response> {
    const { server, raw: { headers }, caller: { principal } } = request;
    const isModern = headers.get("mcp-protocol-version") === messages.MODERN;
    const refusal = messages.paramsRefusal(body, this.#methods[isModern ? "modern" : "legacy"]) ??
      (isModern && server.tasks !== undefined ? taskRefusal(body, headers) : undefined);
    if (refusal !== undefined) return refusalResponse(refusal);
    const session = sessions.sessionOf(headers);
    if (session !== undefined) {
      const cancelled = messages.cancelledBy(body);
      if (cancelled !== undefined) {
        server.running.abort({ principal, session, callId: cancelled.requestId });
      } else if (isJSONRPCResponse(body) && this.#answers.settle({ principal, session }, body)) {
        // The SDK would pass the response to a new server, which has not sent the question.
        return new Response(null, { status: 202 });
      }
    }
    const client = new http.ClientSignal(request.raw);
    const work = this.#answerBySdk(request, body, session, client.signal);
    return await this.#streamIfSlow(request, client, work);
  }

  /** Streams a slow response if the client accepts streams. A closed stream aborts the call. */
  #streamIfSlow(
    { raw, server }: ToolRequest,
    client: http.ClientSignal,
    work: Promise<Response>,
  ): Promise<Response> {
    if (raw.headers.get("accept")?.includes("text/event-stream") !== true) return work;
    const { heartbeatMs } = server;
    return streamIfSlow(work, {
      patienceMs: http.IS_WORKERS ? WORKERS_PATIENCE_MS : heartbeatMs,
      heartbeatMs,
      client: raw,
      onLeave: () => client.abortWith("The client has disconnected"),
      onError: (error) => server.log(error),
    });
  }

  async #answerBySdk(
    request: ToolRequest,
    body: unknown,
    session: string | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    const { server, raw: { url, method, headers } } = request;
    const pace = new ReaderPace();
    const release = messages.isListen(body) ? this.#takeSlot(request) : undefined;
    let isFollowing = false;
    // Creates a handler per request, because one handler of the SDK sends events to all callers.
    const handler = createMcpHandler(
      ({ era }) => this.#serverFor(request, { body, era, session, pace }),
      {
        keepAliveMs: server.heartbeatMs,
        maxRequestBodySize: server.body.maxBytes,
        maxSubscriptions: release === undefined ? 0 : 1,
        bus: sessions.followingBus(
          () => {
            isFollowing = true;
            return this.#follow(request, release);
          },
          () => void handler.close(),
          () => pace.idle(),
        ),
        onerror: (error) => server.log(error),
      },
    );
    const wrong = body === NOT_JSON ? { body: NOT_JSON } : {};
    const forwarded = new Request(url, { method, headers, signal, ...wrong });
    let answer: Response;
    try {
      answer = await handler.fetch(forwarded, { parsedBody: body === NOT_JSON ? undefined : body });
    } finally {
      if (!isFollowing) release?.();
    }
    if (!answer.headers.has("cache-control")) answer.headers.set("cache-control", "no-store");
    for (const [name, value] of Object.entries(http.SAFE_HEADERS)) answer.headers.set(name, value);
    const response = pace.observe(answer);
    const client = messages.initializedBy(body);
    // Request ids of every client begin with 0. Only the session distinguishes two clients.
    return client !== undefined && response.ok
      ? http.withHeaders(response, [["mcp-session-id", sessions.nameSession(client)]])
      : response;
  }

  async #serverFor(
    request: ToolRequest,
    { body, era, session, pace }: Omit<ServerRequest, "request" | "answers" | "list"> & {
      readonly era: messages.McpEra;
    },
  ): Promise<ToolsetServer> {
    const list = (): messages.McpToolList => this.#listOf(request, era);
    const answers = era === "legacy" && !http.IS_WORKERS ? this.#answers : undefined;
    const made = new ToolsetServer(this.#parts, { request, body, session, pace, answers, list });
    if (messages.isForTools(body)) return made;
    const { tasks, executionClosed } = request.server;
    if (era === "modern" && tasks !== undefined && executionClosed === undefined) {
      const write: TaskRequest["write"] = (toolId, result) =>
        writeTaskResult(list(), toolId, result);
      serveTasks(made.server, { request, tasks, write });
    }
    if (messages.isForTask(body)) return made;
    const { caller, raw, toolset } = request;
    await this.#skills?.attach(made, toolset);
    if (this.#extend === undefined) return made;
    await this.#extend(made, { caller, request: raw });
    if (era === "legacy") {
      this.#subscriptions.serve(made.server, { principal: caller.principal, session });
    }
    return made;
  }

  /** The older clients' stream of changes. The SDK has no such stream for servers without state. */
  async #openStream(request: ToolRequest): Promise<Response> {
    const { server, raw, caller: { principal } } = request;
    const accepts = raw.headers.get("accept")?.includes("text/event-stream") === true;
    const release = accepts ? this.#takeSlot(request) : undefined;
    if (release === undefined) {
      // The protocol's response if a server has no stream. Clients continue without the stream.
      return http.methodNotAllowed("POST");
    }
    const session = sessions.sessionOf(raw.headers);
    try {
      const { server: described } = await this.#serverFor(request, {
        body: undefined,
        era: "legacy",
        session,
        pace: new ReaderPace(),
      });
      const capabilities = described.getCapabilities();
      return sessions.followingStream(
        this.#follow(request, release),
        (event) =>
          sessions.announces(capabilities, event) &&
          (event.kind !== "resource_updated" ||
            this.#subscriptions.has({ principal, session }, event.uri)),
        {
          heartbeatMs: server.heartbeatMs,
          signal: raw.signal,
          onError: (error) => server.log(error),
        },
      );
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Takes a slot for a stream of changes, unless nothing can change. */
  #takeSlot(request: ToolRequest): (() => void) | undefined {
    return this.#registry === undefined && (this.#extend ?? this.#skills) === undefined
      ? undefined
      : http.takeSlot(request);
  }

  #follow(request: ToolRequest, release: (() => void) | undefined): sessions.Following {
    const watch = new http.ListingWatch({
      registry: this.#registry,
      list: () => request.toolsetNow().available(),
      expiresAt: request.caller.expiresAt,
      onStop: () => release?.(),
    });
    return this.followers.follow(watch, (error) => request.server.log(error));
  }

  #listOf({ toolset, raw }: ToolRequest, era: messages.McpEra): messages.McpToolList {
    return this.#lists.of(toolset, messages.targetOf(era, raw.headers));
  }
}

/** Responses become streams early on Workers, which detect a disconnected client only on writes. */
const WORKERS_PATIENCE_MS = 20;

function refusalResponse({ status, id, error }: messages.JsonRpcRefusal): Response {
  return http.json({ jsonrpc: "2.0", id, error }, status);
}
