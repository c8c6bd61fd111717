/**
 * Sessions of clients before revision 2026-07-28. The name of a session contains the capabilities
 * of its client. All else is in this process only: questions that wait for the client's answer,
 * which arrives as another request, and subscriptions to resources. Workers offer neither, because
 * they may serve each request in another isolate.
 *
 * @module
 */

import {
  type ClientCapabilities,
  type InputRequest,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  type JSONRPCResultResponse,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
} from "@modelcontextprotocol/server";
import { BoundedMap, isWorkers } from "../http/mod.ts";
import { supportsMode } from "./questions.ts";

/** The identity of a session. */
export interface SessionKey {
  readonly principal: string | undefined;
  /** Its name; `undefined` if the client sent none. */
  readonly session: string | undefined;
}

/** The letters at the end of a session's name, and the modes of elicitation that they declare. */
const LETTERS = [["f", "form"], ["u", "url"]] as const;

const NAME = /^[0-9a-f-]{36}(?:\.([fu]{1,2}))?$/;

/** Makes the name of a session, which contains the capabilities of its client. */
export function nameSession(client: ClientCapabilities): string {
  const letters = LETTERS.flatMap(([letter, mode]) => supportsMode(client, mode) ? [letter] : [])
    .join("");
  return `${crypto.randomUUID()}${letters === "" ? "" : `.${letters}`}`;
}

/** The session that a request names, if it has the form of one. */
export function sessionOf(headers: Headers): string | undefined {
  const session = headers.get("mcp-session-id");
  return session !== null && NAME.test(session) ? session : undefined;
}

/** Returns the capabilities of a session's client. A client that changes the name harms itself only. */
export function declaredIn(session: string | undefined): ClientCapabilities {
  const letters = session === undefined ? "" : NAME.exec(session)?.[1] ?? "";
  const modes = LETTERS.flatMap(([letter, mode]) => letters.includes(letter) ? [[mode, {}]] : []);
  return modes.length === 0 ? {} : { elicitation: Object.fromEntries(modes) };
}

/** A client's answer to a question. */
export type ClientResponse = JSONRPCResultResponse | JSONRPCErrorResponse;

/** Sends a message on the stream of a request. */
export type SendOnStream = (message: JSONRPCMessage) => Promise<void>;

/** JSON-RPC's code for a request that the client's user has rejected. */
const REJECTED_BY_USER = -1;

/** The questions that wait for the answers of clients. Each is on the stream of a running call. */
export class ClientAnswers {
  readonly #waiting = new Map<string, (response: ClientResponse) => void>();

  /**
   * Asks the client of a session.
   *
   * @returns Its result; `undefined` if it has none.
   * @throws The signal's reason.
   */
  async ask(
    key: SessionKey,
    request: InputRequest,
    send: SendOnStream,
    signal: AbortSignal,
  ): Promise<unknown> {
    signal.throwIfAborted();
    // The server of each request would count from 0.
    const id = crypto.randomUUID();
    const text = textOf(key, id);
    let leave = (): void => {};
    try {
      const response = await new Promise<ClientResponse>((resolve, reject) => {
        leave = () => reject(signal.reason);
        signal.addEventListener("abort", leave, { once: true });
        this.#waiting.set(text, resolve);
        send({ jsonrpc: "2.0", id, ...onStream(request, id) }).catch(reject);
      });
      if ("result" in response) return response.result;
      return response.error.code === REJECTED_BY_USER ? { action: "decline" } : undefined;
    } catch (error) {
      const params = { requestId: id, reason: "The question is void" };
      // Ignore errors: the client may be gone.
      await send({ jsonrpc: "2.0", method: "notifications/cancelled", params }).catch(() => {});
      throw error;
    } finally {
      signal.removeEventListener("abort", leave);
      this.#waiting.delete(text);
    }
  }

  /** Passes a client's response to the question that waits for it. Returns true if there is one. */
  settle(key: SessionKey, response: ClientResponse): boolean {
    const resolve = this.#waiting.get(textOf(key, response.id));
    resolve?.(response);
    return resolve !== undefined;
  }
}

/** The request as these revisions have it: an address to visit has an id. */
function onStream({ method, params = {} }: InputRequest, id: string): InputRequest {
  const isUrl = "mode" in params && params.mode === "url";
  return { method, params: isUrl ? { ...params, elicitationId: id } : params } as InputRequest;
}

function textOf({ principal, session }: SessionKey, id: unknown): string {
  return JSON.stringify([principal ?? null, session ?? null, id]);
}

/**
 * The maximum length of the URIs of one session, of one principal's sessions, and of all, in
 * characters.
 */
const MAX_SESSION = 16_384;
const MAX_PRINCIPAL = 4 * MAX_SESSION;
const MAX_ALL = 256 * MAX_PRINCIPAL;
/** The cost of a URI in addition to its characters. */
const URI_COST = 64;

type Sessions = BoundedMap<string, ReadonlySet<string>>;

/**
 * The resources that sessions subscribed to. If a principal has too many sessions, its least
 * recently used one is evicted: clients do not report the end of a session.
 */
export class ResourceSubscriptions {
  readonly #maxPrincipal: number;
  readonly #principals: BoundedMap<string | undefined, Sessions> = new BoundedMap({
    maxWeight: MAX_ALL,
    weigh: ({ weight }) => weight,
  });

  /** @param tellsCallersApart Otherwise all callers are one principal, which may have all of it. */
  constructor(tellsCallersApart: boolean) {
    this.#maxPrincipal = tellsCallersApart ? MAX_PRINCIPAL : MAX_ALL;
  }

  /** Serves subscriptions if the extension declares that its resources support them. */
  serve(server: Server, key: SessionKey): void {
    if (server.getCapabilities().resources?.subscribe !== true) return;
    if (isWorkers()) return server.registerCapabilities({ resources: { subscribe: false } });
    server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
      this.#set(key, new Set(this.#of(key)).add(uri));
      return {};
    });
    server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
      const uris = new Set(this.#of(key));
      uris.delete(uri);
      this.#set(key, uris);
      return {};
    });
  }

  /** Returns true if the session has subscribed to a resource. */
  has(key: SessionKey, uri: string): boolean {
    return this.#of(key)?.has(uri) === true;
  }

  #of({ principal, session }: SessionKey): ReadonlySet<string> | undefined {
    return session === undefined ? undefined : this.#principals.get(principal)?.get(session);
  }

  #set({ principal, session }: SessionKey, uris: ReadonlySet<string>): void {
    if (session === undefined) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidRequest,
        'Cannot subscribe: send the header "mcp-session-id" that the answer to initialize has',
      );
    }
    if (weightOf(uris) > MAX_SESSION) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `Cannot subscribe: the URIs of a session have more than ${MAX_SESSION} characters; ` +
          "unsubscribe from others first",
      );
    }
    const sessions = this.#principals.get(principal) ??
      new BoundedMap({ maxWeight: this.#maxPrincipal, weigh: weightOf });
    if (uris.size === 0) sessions.delete(session);
    else sessions.set(session, uris);
    // Weighs the sessions again.
    this.#principals.set(principal, sessions);
  }
}

function weightOf(uris: ReadonlySet<string>): number {
  let weight = 0;
  for (const { length } of uris) weight += length + URI_COST;
  return weight;
}
