/**
 * What is known of the sessions of clients before revision 2026-07-28: the resources that they
 * subscribed to. It is in this process only, so Workers, which may answer each request in another
 * one, do not offer subscriptions to these clients.
 *
 * @module
 */

import { ProtocolError, ProtocolErrorCode, type Server } from "@modelcontextprotocol/server";
import { BoundedMap, isWorkers } from "../http/mod.ts";

/** Whose session it is. */
export interface SessionKey {
  readonly principal: string | undefined;
  /** Its name; `undefined` if the client sent none. */
  readonly session: string | undefined;
}

/** How many characters the URIs of one session may have, of one principal's sessions, and of all. */
const MAX_SESSION = 16_384;
const MAX_PRINCIPAL = 4 * MAX_SESSION;
const MAX_ALL = 256 * MAX_PRINCIPAL;
/** What a URI costs besides its characters. */
const URI_COST = 64;

type Sessions = BoundedMap<string, ReadonlySet<string>>;

/**
 * The resources that sessions subscribed to. A principal with too many sessions loses the one that
 * was unused for longest: clients do not say when a session is over.
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

  /** Answers subscriptions on a server whose extension says that its resources have them. */
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

  /** Whether the session has subscribed to a resource. */
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
