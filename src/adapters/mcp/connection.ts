/** Calls the tools of an MCP server, over a connection that is reopened when it is lost. */

import type {
  CallToolResult,
  Client,
  ContentBlock,
  InputRequests,
  Progress,
  Tool as ListedTool,
} from "@modelcontextprotocol/client";
import {
  abortable,
  type Answer,
  defined,
  describeThrown,
  type FailureCode,
  isObject,
  type JsonSchemaObject,
  MAX_TIMEOUT_MS,
  noop,
  type QuestionFields,
  systemClock,
  type ToolContext,
  ToolResult,
  within,
} from "../../tool/mod.ts";
import { withoutSecrets } from "../http/redact.ts";
import { wasNotSent } from "../http/runtime.ts";
import { loadClient } from "./client_library.ts";
import { STREAM_ENDED, UnreadInput } from "./server_bounds.ts";

export interface ClientOpener {
  readonly transport: "http" | "stdio";
  /** True if the import opens, closes and reopens the connections; false for a client of the host. */
  readonly isOwn: boolean;
  /** Texts that must not be in the failures of calls, such as parts of the address. */
  readonly secrets?: readonly string[];
  /** Returns the error to report, which names the server and contains no secrets. */
  describe(error: unknown): unknown;
  /** Opens a connection. When the signal aborts, rejects immediately and closes the connection. */
  open(signal: AbortSignal): Promise<Client>;
  /** Ends the programs of all connections. */
  close?(): Promise<void>;
}

/** The delays before a lost connection is reopened. The first attempt has no delay. */
export interface ReconnectOptions {
  /** The first delay, in milliseconds. Each further delay is twice the one before. @default {250} */
  readonly firstDelayMs?: number;
  /** The longest delay, in milliseconds. @default {30_000} */
  readonly maxDelayMs?: number;
}

export interface ConnectionEvents {
  /** Receives each connected client. A rejection ends the connection. */
  onConnected(client: Client): Promise<void>;
  /** Receives errors of background work. Must not throw. */
  onError(error: unknown): void;
  /** Receives `undefined` for a new connection, or the reason why there is none. Must not throw. */
  onState(error: unknown): void;
}

const END_SESSION_MS = 1_000;

export class McpConnection {
  readonly #opener: ClientOpener;
  readonly #events: ConnectionEvents;
  readonly #firstDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #stop = new AbortController();
  /** The number of running calls of each client. */
  readonly #calls: Map<Client, number> = new Map();
  #current: Promise<Client> = new Promise(noop);
  #live: Client | undefined;
  #isOpen = false;
  #delayMs = 0;
  #connectedAt = 0;
  #trouble: unknown;

  constructor(opener: ClientOpener, reconnect: ReconnectOptions, events: ConnectionEvents) {
    const { firstDelayMs = 250, maxDelayMs = 30_000 } = reconnect;
    this.#opener = opener;
    this.#events = events;
    this.#firstDelayMs = firstDelayMs;
    this.#maxDelayMs = maxDelayMs;
  }

  get secrets(): readonly string[] {
    return this.#opener.secrets ?? [];
  }

  /** Returns true for the current client, unless it is closed. */
  isLive(client: Client | undefined = this.#live): boolean {
    return client === this.#live && client?.transport !== undefined;
  }

  /** Connects in the background, until it succeeds. */
  connectLater(): void {
    this.#current = this.#reopen();
    this.#current.catch(() => {});
  }

  /** Connects for the first time. A failure is not retried. */
  async connect(signal: AbortSignal | undefined): Promise<void> {
    const { signal: stopped } = this.#stop;
    this.#current = this.#open(signal === undefined ? stopped : AbortSignal.any([stopped, signal]));
    await this.#current;
  }

  describe(error: unknown): unknown {
    return this.#opener.describe(error);
  }

  client(signal: AbortSignal): Promise<Client> {
    const current = this.#current;
    const client = current.catch((error) => {
      if (this.#stop.signal.aborted) throw error;
      // On Workers, it rejects if the request that has begun to connect was aborted.
      if (this.#current === current) this.connectLater();
      return this.client(signal);
    });
    return abortable(client, signal);
  }

  /** Runs work with the client, and once more with the next one if the server has lost its session. */
  async use<Result>(
    signal: AbortSignal,
    work: (client: Client) => Promise<Result>,
  ): Promise<Result> {
    const client = await this.client(signal);
    return await work(client).catch(async (error) => {
      // A server that is down, or that rejects the token, would not answer the next one either.
      if (this.#live === client || !LOST_SESSION.includes(Object(error).status)) throw error;
      return await work(await this.client(signal));
    });
  }

  /**
   * Lists the tools. Loses a client whose server does not respond, or has lost the session.
   *
   * @param cacheMode With `bypass`, the client does not store the list.
   */
  async list(
    client: Client,
    signal?: AbortSignal,
    cacheMode: "refresh" | "bypass" = "refresh",
  ): Promise<readonly ListedTool[]> {
    // The SDK would return an empty list.
    if (client.transport === undefined) throw new Error("The connection is closed");
    try {
      const options = { cacheMode, ...(signal && { signal }) } as const;
      return (await client.listTools(undefined, options)).tools;
    } catch (error) {
      signal?.throwIfAborted();
      // The tokens of callers may be valid.
      const status = await statusOf(error);
      if (status === 401) throw error;
      const kind = await kindOf(error, client);
      const isLost = kind === "not sent" ||
        kind !== "answered" && !await isResponding(client, this.#stop.signal);
      if (isLost) this.lose(client);
      throw error;
    }
  }

  /** Runs a call. After the last call of a lost client, closes the client. */
  async call<Result>(client: Client, run: () => Promise<Result>): Promise<Result> {
    this.#calls.set(client, (this.#calls.get(client) ?? 0) + 1);
    try {
      return await run();
    } finally {
      const left = (this.#calls.get(client) ?? 1) - 1;
      if (left > 0) this.#calls.set(client, left);
      else this.#calls.delete(client);
      // Otherwise, `close` closes it, after the end of its session.
      if (this.#live !== client && !this.#stop.signal.aborted) this.#end(client);
    }
  }

  /** Closes a lost client. A server that is replaced by another one still completes its requests. */
  #end(client: Client): void {
    const isDraining = this.#opener.transport === "http" && this.#calls.has(client);
    if (!isDraining && this.#opener.isOwn) client.close().catch(noop);
  }

  /** Replaces a client that lost its server. False for a client that the host reconnects. */
  lose(client: Client): boolean {
    if (this.#live === client && this.#opener.isOwn) {
      this.#live = undefined;
      this.#end(client);
      // While a connection is opened, its loss is reported by `#open`, and `#reopen` tries again.
      if (!this.#isOpen) return true;
      if (this.#trouble !== undefined) this.#events.onError(this.#trouble);
      this.#events.onState(this.#trouble ?? new Error("the connection to the MCP server is lost"));
      this.connectLater();
    }
    return this.#opener.isOwn;
  }

  /** Closes the connection and ends its program. A client of the host stays connected. */
  async close(): Promise<void> {
    this.#stop.abort(closed());
    const live = this.#live;
    this.#live = undefined;
    this.connectLater();
    for (const client of this.#opener.isOwn ? this.#calls.keys() : []) {
      if (client !== live) client.close().catch(noop);
    }
    if (this.#opener.isOwn && live !== undefined) {
      const { terminateSession } = Object(live.transport);
      // Many servers keep a session until its client ends it.
      const ended = terminateSession?.call(live.transport).catch(noop);
      await within(systemClock, END_SESSION_MS, Promise.resolve(ended));
      await live.close();
    }
    await this.#opener.close?.();
  }

  async #open(signal: AbortSignal): Promise<Client> {
    const client = await this.#opener.open(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw this.describe(error);
    });
    try {
      signal.throwIfAborted();
      this.#live = client;
      this.#isOpen = false;
      this.#trouble = undefined;
      if (this.#opener.isOwn) {
        client.onclose = () => void this.lose(client);
        // Describes the error now: later the program may have ended, which would be another reason.
        client.onerror = (error) => {
          if (this.#live === client) this.#trouble = this.describe(error);
        };
      }
      await abortable(this.#events.onConnected(client), signal);
      // The client may have been lost during `onConnected`.
      if (this.#live !== client) throw closed();
      this.#isOpen = true;
    } catch (error) {
      if (this.#live === client) this.#live = undefined;
      if (this.#opener.isOwn) client.close().catch(noop);
      throw error;
    }
    this.#connectedAt = systemClock.now();
    this.#events.onState(undefined);
    return client;
  }

  async #reopen(): Promise<Client> {
    const { signal } = this.#stop;
    // Only a connection that lasted resets the delays.
    if (systemClock.now() - this.#connectedAt > this.#maxDelayMs) this.#delayMs = 0;
    for (;;) {
      let disarm = (): void => {};
      const isOver = new Promise<void>((resolve) => {
        disarm = systemClock.setTimeout(resolve, this.#delayMs);
      });
      // Removes its listener at the end of the wait: a server may be away for days.
      await abortable(isOver, signal).finally(() => disarm());
      this.#delayMs = Math.min(Math.max(this.#delayMs * 2, this.#firstDelayMs), this.#maxDelayMs);
      try {
        return await this.#open(signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#events.onError(error);
        this.#events.onState(error);
      }
    }
  }
}

function closed(): DOMException {
  return new DOMException("The connection to the MCP server is closed", "AbortError");
}

export interface ServerCall {
  readonly name: string;
  readonly arguments: { readonly [key: string]: unknown };
  /** True if the server declares that the tool is safe to call twice. */
  readonly isRepeatable: boolean;
  /** The listed tool, if the server may ask questions, or if the client has no list. */
  readonly tool?: ListedTool | undefined;
  /** True if the server may ask questions. */
  readonly mayAsk?: boolean;
  /** True if all callers are one caller for the server. */
  readonly isShared?: boolean;
}

interface InputRequest {
  readonly inputRequests: InputRequests;
  readonly requestState?: string;
}

interface Retry {
  readonly inputResponses?: { readonly [key: string]: Answer };
  readonly requestState?: string | undefined;
}

const MAX_ROUNDS = 10;
/** The code of a call that the server rejects because of its headers (2026-07-28). */
const HEADER_MISMATCH = -32_020;

/**
 * Runs one call. The dispatcher turns its errors into failures. Each round of questions is stored as a
 * step of the call, so a resumed call does not send the earlier rounds to the server again.
 */
export async function callServer(
  connection: McpConnection,
  call: ServerCall,
  context: ToolContext,
): Promise<unknown> {
  if (call.mayAsk !== true) return await sendCall(connection, call, {}, context);
  let retry: Retry = {};
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    let ended: { readonly value: unknown } | undefined;
    const requested = await context.step(`round.${round}`, async () => {
      const value = await sendCall(connection, call, retry, context);
      if (value instanceof AskedByServer) return value.requested;
      ended = { value };
      // A step stores its result. Another attempt of a retry would then not send the request.
      throw new Error("the call has ended");
    }).catch((error) => ended === undefined ? Promise.reject(error) : undefined);
    if (requested === undefined) return ended?.value;
    const questions = Object.entries(requested.inputRequests)
      .map(([key, request]) => [key, questionOf(call.name, request)] as const);
    // Otherwise one caller would act with another one's account. A program with one user has no principals.
    const isForAll = call.isShared === true && Boolean(context.principal);
    if (isForAll && questions.some(([, { kind }]) => kind === "authorization")) {
      const why = "its MCP server requests a permission that all callers would use";
      return ToolResult.error("denied", `Cannot call "${call.name}": ${why}; use "authorize"`);
    }
    const answers = await Promise.all(
      questions.map(async ([key, question], index) =>
        [key, await context.ask(`round.${round}.${index}`, question)] as const
      ),
    );
    retry = { inputResponses: Object.fromEntries(answers), requestState: requested.requestState };
  }
  return ToolResult.error(
    "threw",
    `Cannot call "${call.name}": the MCP server asked questions more than 10 times`,
  );
}

/** The HTTP statuses of rejected calls, and the codes of their failures. */
const REJECTIONS: ReadonlyMap<unknown, FailureCode> = new Map([
  [401, "denied"],
  [403, "denied"],
  [429, "overloaded"],
]);

class AskedByServer {
  readonly requested: InputRequest;

  constructor(requested: InputRequest) {
    this.requested = requested;
  }
}

function questionOf(name: string, { method, params }: InputRequests[string]): QuestionFields {
  if (method !== "elicitation/create" || !isObject(params)) {
    throw new TypeError(`Cannot call "${name}": plue does not support ${method} of MCP servers`);
  }
  const message = `The MCP server of "${name}" asks: ${params.message}`;
  return params.mode === "url"
    ? { kind: "authorization", message, url: params.url }
    : { message, schema: params.requestedSchema as JsonSchemaObject };
}

/**
 * Sends one request of a call. A request that did not reach the server is sent with the next
 * connection. A request that may have reached the server is repeated once if that is safe.
 */
async function sendCall(
  connection: McpConnection,
  { name, arguments: args, isRepeatable, tool, mayAsk, isShared }: ServerCall,
  retry: Retry,
  context: ToolContext,
): Promise<unknown> {
  const { signal } = context;
  // The server has run a part of the tool before it asked.
  let mayHaveRun = retry.inputResponses !== undefined;
  /** The client takes the headers of a call from it, or else from its list. */
  let toolDefinition = tool;
  for (let isFirst = true;; isFirst = false) {
    const client = await connection.client(signal).catch(noop);
    if (client === undefined) {
      const message = `Cannot call "${name}": there is no connection to the MCP server`;
      return ToolResult.error("unavailable", message, { ran: mayHaveRun ? "unknown" : "no" });
    }
    const options = {
      ...defined({ toolDefinition }),
      ...(mayAsk && { allowInputRequired: true }),
      signal,
      // The dispatcher limits the time of the call.
      timeout: MAX_TIMEOUT_MS,
      onprogress: ({ progress, total, message }: Progress) =>
        context.progress(progress, total, message),
    };
    try {
      const request = { name, arguments: { ...args }, ...retry };
      const result = await connection.call(client, () => client.callTool(request, options));
      return isInputRequest(result) ? new AskedByServer(result) : valueOf(result);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UnreadInput) {
        const message = `Cannot call "${name}": the MCP server does not read its input; try later`;
        return ToolResult.error("unavailable", message, { ran: mayHaveRun ? "unknown" : "no" });
      }
      const isMismatch = Object(error).code === HEADER_MISMATCH &&
        client.getProtocolEra() === "modern";
      if (toolDefinition && isMismatch) {
        // Without the definition, the client reads its list, and sends the call with other headers.
        toolDefinition = undefined;
        continue;
      }
      // The reason may be a revoked token instead of the session. A caller's own token is then replaced.
      const status = await statusOf(error);
      const isUnauthorized = status === 401;
      const kind = isUnauthorized && !isShared ? "answered" : await kindOf(error, client);
      // Other calls use the connection, too, so the failure of one request does not end it.
      const isUsable = kind !== "not sent" && kind !== "answered" &&
        await isResponding(client, signal);
      signal.throwIfAborted();
      if (kind === "answered" || (kind === "unknown session" && isUsable)) {
        const code = REJECTIONS.get(status);
        const why = code === undefined ? "returned an error" : `sent HTTP status ${status}`;
        const reason = withoutSecrets(describeThrown(error), connection.secrets);
        const message = `Cannot call "${name}": the MCP server ${why}. ${reason}`;
        if (code === undefined || mayHaveRun) return ToolResult.error("threw", message);
        // The next call of the caller gets another token.
        const retryable = status === 429 || isUnauthorized && !isShared;
        return ToolResult.error(code, message, { ran: "no", retryable });
      }
      mayHaveRun ||= kind === "lost";
      const isComing = isUsable || connection.lose(client);
      if (isComing && kind === "not sent") continue;
      // A server that does not know the session has not run the call.
      const isSafe = !isUnauthorized && (kind === "unknown session" || isRepeatable);
      if (isComing && isFirst && isSafe) continue;
      const what = isUsable ? "response of" : "connection to";
      const message = `Cannot call "${name}": the ${what} the MCP server is lost`;
      return ToolResult.error("unavailable", message, { ran: mayHaveRun ? "unknown" : "no" });
    }
  }
}

/**
 * Returns true if a server responds to a client, or takes more than 5 seconds to respond. Status 503
 * is a response, because servers that limit the rate of requests send it.
 */
async function isResponding(client: Client, signal: AbortSignal): Promise<boolean> {
  const options = { signal, timeout: 5_000, cacheMode: "bypass" } as const;
  const requests: readonly (() => Promise<unknown>)[] = client.getProtocolEra() === "modern"
    ? [() => client.discover(options)]
    // Servers without pings may reject them with the status of a lost session.
    : [() => client.ping(options), () => client.listTools(undefined, options)];
  for (const send of requests) {
    try {
      await send();
      return true;
    } catch (error) {
      const isLimited = error instanceof Error && "status" in error && error.status === 503;
      const kind = await kindOf(error, client);
      if (isLimited || kind === "answered") return true;
      if (kind !== "unknown session") return false;
    }
  }
  return false;
}

/** Returns true for a result with questions, which the SDK's type of results omits. */
function isInputRequest(result: object): result is InputRequest {
  return "resultType" in result && result.resultType === "input_required" &&
    "inputRequests" in result && isObject(result.inputRequests);
}

/** Returns the structured value, or else the text. Content with images or files stays unchanged. */
function valueOf(result: CallToolResult): unknown {
  const { content, structuredContent, isError, _meta } = result;
  const text = textOf(content);
  if (isError === true) {
    const message = text ?? "Cannot call the tool: the MCP server returned an error without a text";
    return ToolResult.error("threw", message);
  }
  if (text !== undefined) return structuredContent ?? text;
  return ToolResult.blocks(content, {
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(_meta === undefined ? {} : { metadata: _meta }),
  });
}

function textOf(content: readonly ContentBlock[]): string | undefined {
  const texts: string[] = [];
  for (const block of content) {
    if (block.type !== "text") return undefined;
    texts.push(block.text);
  }
  return texts.join("\n");
}

/** The status of a lost session: 404 in the protocol, 400 at many servers. */
export const LOST_SESSION: readonly unknown[] = [400, 404, 410];

type FailureKind = "answered" | "unknown session" | "not sent" | "lost";

/** Codes of the SDK for failures that leave the connection usable. */
const NOT_LOST: ReadonlySet<unknown> = new Set([
  "REQUEST_TIMEOUT",
  "INVALID_RESULT",
  "UNSUPPORTED_RESULT_TYPE",
  "CAPABILITY_NOT_SUPPORTED",
  "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION",
  "INPUT_REQUIRED_ROUNDS_EXCEEDED",
  "LIST_PAGINATION_EXCEEDED",
  "CLIENT_HTTP_AUTHENTICATION",
]);

/** Returns the HTTP status that an error means: for some, the SDK has errors without a status. */
async function statusOf(error: unknown): Promise<unknown> {
  const { InsufficientScopeError, OAuthClientFlowError, OAuthError, UnauthorizedError } =
    await loadClient();
  if (error instanceof InsufficientScopeError) return 403;
  const isOAuth = [OAuthClientFlowError, OAuthError, UnauthorizedError]
    .some((one) => error instanceof one);
  return isOAuth ? 401 : Object(error).status;
}

async function kindOf(error: unknown, client: Client): Promise<FailureKind> {
  const { ProtocolError, SdkError, SdkHttpError } = await loadClient();
  if (error instanceof ProtocolError && error.code === STREAM_ENDED) return "lost";
  // A `RangeError` means that the response is too large.
  if (error instanceof ProtocolError || error instanceof RangeError) return "answered";
  if (error instanceof SdkHttpError) {
    // Also without sessions: another server, or another revision, may have this address now.
    if (LOST_SESSION.includes(error.status)) return "unknown session";
    const hasSession = client.transport?.sessionId !== undefined;
    // The Rust SDK sends status 401.
    if (error.status === 401 && hasSession && client.getProtocolEra() === "legacy") {
      return "unknown session";
    }
    return error.status < 500 ? "answered" : "lost";
  }
  // The server, or the import's own authentication, has rejected the request.
  if (REJECTIONS.has(await statusOf(error))) return "answered";
  if (wasNotSent(error)) return "not sent";
  return error instanceof SdkError && NOT_LOST.has(error.code) ? "answered" : "lost";
}
