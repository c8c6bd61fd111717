/**
 * Events for clients: changes of a client's list of tools, and the host's notifications about
 * prompts and resources. Also the sessions of clients before revision 2026-07-28: their names,
 * pending questions and subscriptions to resources. Workers support neither questions nor
 * subscriptions for these clients, because each request may be served in another isolate.
 */

import * as mcp from "@modelcontextprotocol/server";
import type { InputRequest, ServerEvent } from "@modelcontextprotocol/server";
import { Quotas } from "../../execute/durable/mod.ts";
import { BoundedMap } from "../../tool/mod.ts";
import * as http from "../http/mod.ts";
import { supportsMode } from "./questions.ts";

/** Sends notifications about prompts and resources to following clients. */
export interface McpNotify {
  /** The list of prompts has changed. */
  promptsChanged(): void;
  /** The list of resources, or of their templates, has changed. */
  resourcesChanged(): void;
  /** A resource has changed. Only clients that subscribed to this URI are notified. */
  resourceUpdated(uri: string): void;
}

export class Followers implements McpNotify {
  readonly #following = new Set<Following>();

  follow(watch: http.ListingWatch, onError: (error: unknown) => void): Following {
    const following: Following = new Following(watch, (error) => {
      this.#following.delete(following);
      if (error !== undefined) onError(error);
    });
    this.#following.add(following);
    return following;
  }

  promptsChanged(): void {
    this.#notify({ kind: "prompts_list_changed" });
  }

  resourcesChanged(): void {
    this.#notify({ kind: "resources_list_changed" });
  }

  resourceUpdated(uri: string): void {
    this.#notify({ kind: "resource_updated", uri });
  }

  #notify(event: ServerEvent): void {
    for (const following of this.#following) following.add(event);
  }
}

const MAX_UNREAD = 256;

/** The events of one stream. Several unread events of the same kind are merged into one. */
export class Following {
  readonly #watch: http.ListingWatch;
  readonly #onEnd: (error: unknown) => void;
  readonly #unread = new Map<string, ServerEvent>();
  #isOver = false;
  #wake: (() => void) | undefined;

  /** @param onEnd Called once, with the error if following failed. */
  constructor(watch: http.ListingWatch, onEnd: (error: unknown) => void) {
    this.#watch = watch;
    this.#onEnd = onEnd;
    void this.#follow();
  }

  async next(): Promise<ServerEvent | undefined> {
    for (;;) {
      for (const [text, event] of this.#unread) {
        this.#unread.delete(text);
        return event;
      }
      if (this.#isOver) return undefined;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  /** Adds an event. Only settles a promise: on workerd, the caller may be in another request. */
  add(event: ServerEvent): void {
    if (this.#isOver) return;
    // After a change of the list, a client reads all resources again.
    if (this.#unread.size >= MAX_UNREAD) {
      this.#unread.clear();
      for (const kind of ["tools_list_changed", "prompts_list_changed"] as const) {
        this.#unread.set(kind, { kind });
      }
      event = { kind: "resources_list_changed" };
    }
    this.#unread.set(event.kind === "resource_updated" ? `uri ${event.uri}` : event.kind, event);
    this.#wake?.();
  }

  stop(): void {
    this.#watch.stop();
  }

  async #follow(): Promise<void> {
    let failure: unknown;
    try {
      while ((await this.#watch.changes()).length > 0) this.add({ kind: "tools_list_changed" });
    } catch (error) {
      failure = error;
      this.#watch.stop();
    }
    this.#isOver = true;
    this.#wake?.();
    this.#onEnd(failure);
  }
}

/**
 * The source of one `subscriptions/listen` stream of the SDK, which subscribes when it begins.
 *
 * @param idle Resolves when the client waits for more, because the SDK's buffer has no limit.
 */
export function followingBus(
  begin: () => Following,
  onEnd: () => void,
  idle: () => Promise<void>,
): mcp.ServerEventBus {
  return {
    // Does nothing, because `Followers` sends the events to all streams of the endpoint.
    publish() {},
    subscribe(listener) {
      const following = begin();
      void (async () => {
        for (;;) {
          const event = await following.next();
          if (event === undefined) return onEnd();
          await idle();
          listener(event);
        }
      })();
      return () => following.stop();
    },
  };
}

/** The list of each kind of event that reports a change of a list. */
const LISTS = {
  tools_list_changed: "tools",
  prompts_list_changed: "prompts",
  resources_list_changed: "resources",
} as const;

/** Returns true if a server with these capabilities may send an event. */
export function announces(server: mcp.ServerCapabilities, { kind }: ServerEvent): boolean {
  return kind === "resource_updated"
    ? server.resources?.subscribe === true
    : server[LISTS[kind]]?.listChanged === true;
}

function notificationOf(event: ServerEvent): mcp.JSONRPCMessage {
  return event.kind === "resource_updated"
    ? { jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: event.uri } }
    : { jsonrpc: "2.0", method: `notifications/${LISTS[event.kind]}/list_changed` };
}

/**
 * The `GET` stream of clients before revision 2026-07-28.
 *
 * @param isWanted Returns true if the client receives an event.
 */
export function followingStream(
  following: Following,
  isWanted: (event: ServerEvent) => boolean,
  options: http.EventStreamOptions,
): Response {
  return http.eventStream({
    async next() {
      for (;;) {
        const event = await following.next();
        if (event === undefined) return undefined;
        if (isWanted(event)) {
          return `event: message\ndata: ${JSON.stringify(notificationOf(event))}\n\n`;
        }
      }
    },
    cancel: () => following.stop(),
  }, options).response;
}

export interface SessionKey {
  readonly principal: string | undefined;
  /** The name of the session; `undefined` if the client sent none. */
  readonly session: string | undefined;
}

/** The letters at the end of a session's name, each for a mode of elicitation. */
const LETTERS = [["f", "form"], ["u", "url"]] as const;

const NAME = /^[0-9a-f-]{36}(?:\.([fu]{1,2}))?$/;

/** Makes the name of a session, which contains the capabilities of its client. */
export function nameSession(client: mcp.ClientCapabilities): string {
  const letters = LETTERS.flatMap(([letter, mode]) => supportsMode(client, mode) ? [letter] : [])
    .join("");
  return `${crypto.randomUUID()}${letters === "" ? "" : `.${letters}`}`;
}

export function sessionOf(headers: Headers): string | undefined {
  const session = headers.get("mcp-session-id");
  return session !== null && NAME.test(session) ? session : undefined;
}

/** Returns the capabilities in a session's name. A client that changes the name only harms itself. */
export function declaredIn(session: string | undefined): mcp.ClientCapabilities {
  const letters = session === undefined ? "" : NAME.exec(session)?.[1] ?? "";
  const modes = LETTERS.flatMap(([letter, mode]) => letters.includes(letter) ? [[mode, {}]] : []);
  return modes.length === 0 ? {} : { elicitation: Object.fromEntries(modes) };
}

export type ClientResponse = mcp.JSONRPCResultResponse | mcp.JSONRPCErrorResponse;

export type SendOnStream = (message: mcp.JSONRPCMessage) => Promise<void>;

/** JSON-RPC's code for a request that the client's user has rejected. */
const REJECTED_BY_USER = -1;

/** The maximum number of questions that wait on streams of an endpoint: a quarter for a principal. */
const MAX_QUESTIONS = 1_024;

/** The questions on the streams of running calls that wait for answers. */
export class ClientAnswers {
  /** Shared by all endpoints: a call may still run when another endpoint has replaced its endpoint. */
  static readonly #waiting = new Map<string, (response: ClientResponse) => void>();
  readonly #questions = new Quotas<string | undefined>(MAX_QUESTIONS, MAX_QUESTIONS / 4);

  /** Sends a question to the client of a session. Returns `undefined` beyond the limits. */
  async ask(
    key: SessionKey,
    request: InputRequest,
    send: SendOnStream,
    signal: AbortSignal,
  ): Promise<unknown> {
    signal.throwIfAborted();
    const { principal } = key;
    if (this.#questions.exceeded(principal, 1) !== undefined) return undefined;
    this.#questions.add(principal, 1);
    // A random id, because the SDK's server of each request counts its ids from 0.
    const id = crypto.randomUUID();
    const text = textOf(key, id);
    let leave = (): void => {};
    try {
      const response = await new Promise<ClientResponse>((resolve, reject) => {
        leave = () => reject(signal.reason);
        signal.addEventListener("abort", leave, { once: true });
        ClientAnswers.#waiting.set(text, resolve);
        send({ jsonrpc: "2.0", id, ...onStream(request, id) }).catch(reject);
      });
      if ("result" in response) return response.result;
      return response.error.code === REJECTED_BY_USER ? { action: "decline" } : undefined;
    } catch (error) {
      const params = { requestId: id, reason: "The call no longer needs an answer" };
      // Ignores errors, because the client may have disconnected.
      await send({ jsonrpc: "2.0", method: "notifications/cancelled", params }).catch(() => {});
      throw error;
    } finally {
      signal.removeEventListener("abort", leave);
      ClientAnswers.#waiting.delete(text);
      this.#questions.add(principal, -1);
    }
  }

  /** Passes a client's response to the waiting question. Returns false if no question waits for it. */
  settle(key: SessionKey, response: ClientResponse): boolean {
    const resolve = ClientAnswers.#waiting.get(textOf(key, response.id));
    resolve?.(response);
    return resolve !== undefined;
  }
}

/** Adds the id that revisions before 2026-07-28 require for a question with a URL. */
function onStream({ method, params = {} }: InputRequest, id: string): InputRequest {
  const isUrl = "mode" in params && params.mode === "url";
  return { method, params: isUrl ? { ...params, elicitationId: id } : params } as InputRequest;
}

function textOf({ principal, session }: SessionKey, id: unknown): string {
  return JSON.stringify([principal ?? null, session ?? null, id]);
}

/** The maximum length of the URIs of a session, of a principal's sessions, and of all. */
const MAX_SESSION = 16_384;
const MAX_PRINCIPAL = 4 * MAX_SESSION;
const MAX_ALL = 256 * MAX_PRINCIPAL;
/** The size that each URI counts in addition to its characters. */
const URI_COST = 64;

type Sessions = BoundedMap<string, ReadonlySet<string>>;

/**
 * The resources that sessions subscribed to. Clients do not report the end of a session, so beyond
 * the limits the least recently used session of the principal is evicted.
 */
export class ResourceSubscriptions {
  readonly #maxPrincipal: number;
  readonly #principals: BoundedMap<string | undefined, Sessions> = new BoundedMap({
    maxWeight: MAX_ALL,
    weigh: ({ weight }) => weight,
  });

  /** @param hasPrincipals False if all callers are one principal, which then has the whole quota. */
  constructor(hasPrincipals: boolean) {
    this.#maxPrincipal = hasPrincipals ? MAX_PRINCIPAL : MAX_ALL;
  }

  serve(server: mcp.Server, key: SessionKey): void {
    if (server.getCapabilities().resources?.subscribe !== true) return;
    if (http.IS_WORKERS) return server.registerCapabilities({ resources: { subscribe: false } });
    server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
      this.#set(key, new Set(this.#of(key)).add(uri));
      return {};
    });
    server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
      this.#set(key, new Set([...this.#of(key) ?? []].filter((one) => one !== uri)));
      return {};
    });
  }

  has(key: SessionKey, uri: string): boolean {
    return this.#of(key)?.has(uri) === true;
  }

  #of({ principal, session }: SessionKey): ReadonlySet<string> | undefined {
    return session === undefined ? undefined : this.#principals.get(principal)?.get(session);
  }

  #set({ principal, session }: SessionKey, uris: ReadonlySet<string>): void {
    if (session === undefined) {
      throw new mcp.ProtocolError(
        mcp.ProtocolErrorCode.InvalidRequest,
        'Cannot subscribe: send the header "mcp-session-id" of the response to initialize',
      );
    }
    if (weightOf(uris) > MAX_SESSION) {
      throw new mcp.ProtocolError(
        mcp.ProtocolErrorCode.InvalidParams,
        `Cannot subscribe: the URIs of a session have more than ${MAX_SESSION} characters; ` +
          "unsubscribe from others first",
      );
    }
    const sessions = this.#principals.get(principal) ??
      new BoundedMap({ maxWeight: this.#maxPrincipal, weigh: weightOf });
    if (uris.size === 0) sessions.delete(session);
    else sessions.set(session, uris);
    // Setting the entry again updates its weight.
    this.#principals.set(principal, sessions);
  }
}

function weightOf(uris: ReadonlySet<string>): number {
  let weight = 0;
  for (const { length } of uris) weight += length + URI_COST;
  return weight;
}
