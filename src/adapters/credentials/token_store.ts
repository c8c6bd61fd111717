/** The tokens of callers in a call store, encrypted. One process at a time refreshes them. */

import {
  type CallStore,
  encodeJson,
  type LeasedRecord,
  LeasedRecords,
  parseJson,
} from "../../execute/durable/mod.ts";
import { abortable, once, systemClock } from "../../tool/mod.ts";
import type { Sealer } from "../http/sealing.ts";
import { GrantRefused, isStale, type Tokens } from "./provider.ts";

/** Tokens as they are encrypted. */
export interface StoredTokens extends Tokens {
  /** The scopes that were requested. The server may name the granted ones differently. */
  readonly requested: readonly string[];
}

interface TokenRecord extends LeasedRecord {
  /** The encrypted tokens; empty if there are none. */
  readonly sealed: string;
  /** The id of the last authorization that has ended. */
  readonly authorization: string;
  readonly expiresAt: number;
}

/** The lifetime of tokens that are not refreshed, in milliseconds: 90 days. */
const TTL_MS = 7_776_000_000;
/** Longer than the time limit of a request to a server. */
const LEASE_MS = 30_000;
/** The interval in which a call looks for the end of another refresh, and of an authorization. */
const POLL_MS = 250;
const RELEASED: LeasedRecord = { holder: "", heldUntil: 0 };

export class TokenStore {
  readonly #records: LeasedRecords<TokenRecord>;
  readonly #sealer: Sealer;
  /** The next read of each key for which calls wait. */
  readonly #reads: Map<string, Promise<string>> = new Map();
  readonly #refreshes: Map<string, Promise<void>> = new Map();

  constructor(store: CallStore, sealer: Sealer) {
    this.#records = new LeasedRecords(store, ({ expiresAt }) => expiresAt, systemClock, LEASE_MS);
    this.#sealer = sealer;
  }

  /** Returns the tokens of a key, and the id of the last authorization. */
  async read(key: string) {
    const found = await this.#records.read(key);
    const { sealed = "", authorization } = found?.record ?? {};
    return { tokens: await this.#open(key, sealed), authorization };
  }

  /** Ends an authorization: stores its tokens. Without tokens, those before stay. */
  async end(key: string, authorization: string, tokens?: StoredTokens): Promise<void> {
    const sealed = tokens && await this.#seal(key, tokens);
    const expiresAt = Date.now() + TTL_MS;
    await this.#records.change(key, (before) => ({
      ...{ authorization, expiresAt, ...RELEASED },
      sealed: sealed ?? before?.sealed ?? "",
    }));
  }

  /** Deletes the tokens of a key. Returns false if there were none. */
  async remove(key: string): Promise<boolean> {
    for (;;) {
      const found = await this.#records.read(key);
      if (found === undefined) return false;
      if (await this.#records.store.delete(key, found.revision)) return found.record.sealed !== "";
    }
  }

  /** Marks a token as invalid: it is refreshed, or else a person must give permission again. */
  async expire(key: string, token: string): Promise<void> {
    const found = await this.#records.read(key);
    const tokens = found && await this.#open(key, found.record.sealed);
    // Another token is newer than the rejected one.
    if (found === undefined || tokens?.token !== token) return;
    const sealed = await this.#seal(key, { ...tokens, staleAt: 0 });
    await this.#records.write(key, { ...found.record, sealed }, found.revision);
  }

  /** Refreshes the tokens of a key, once for all calls. While another process does it, waits a little. */
  refresh(key: string, send: (refreshToken: string) => Promise<Tokens>): Promise<void> {
    return once(
      this.#refreshes,
      key,
      () => this.#refresh(key, send).finally(() => this.#refreshes.delete(key)),
    );
  }

  async #refresh(key: string, send: (refreshToken: string) => Promise<Tokens>): Promise<void> {
    const { lease } = await this.#records.claim(
      key,
      (record, lease) =>
        record && !this.#records.isHeld(record) ? { ...record, ...lease } : undefined,
    );
    if (lease === undefined) return await pause(POLL_MS);
    let last: Partial<TokenRecord> | undefined = {};
    try {
      const tokens = await this.#open(key, lease.record.sealed);
      // Another process may have refreshed them before the lease.
      if (tokens?.refresh === undefined || !isStale(tokens)) return;
      const fresh = await send(tokens.refresh);
      const { refresh = tokens.refresh, scopes = tokens.scopes } = fresh;
      const sealed = await this.#seal(key, { ...tokens, ...fresh, refresh, scopes });
      last = { sealed, expiresAt: Date.now() + TTL_MS };
    } catch (error) {
      if (!(error instanceof GrantRefused)) throw error;
      last = undefined;
    } finally {
      await lease.change((record) => last && { ...record, ...last, ...RELEASED });
    }
  }

  /** Resolves when an authorization has ended after the one with this id. Calls share their reads. */
  async arrived(
    key: string,
    authorization = "",
    signal: AbortSignal,
  ): Promise<void> {
    const readLater = async (): Promise<string> => {
      await pause(POLL_MS);
      this.#reads.delete(key);
      return (await this.#records.read(key))?.record.authorization ?? "";
    };
    for (let last = authorization; last === authorization;) {
      last = await abortable(once(this.#reads, key, readLater), signal);
    }
  }

  /** Records that a state was used. Returns false if it was used before. */
  async use(key: string, expiresAt: number): Promise<boolean> {
    return await this.#records.store.create(key, new Uint8Array(), { expiresAt }) !== undefined;
  }

  /** The key is encrypted, too, so that one caller's tokens cannot be stored as another one's. */
  #seal(key: string, tokens: StoredTokens): Promise<string> {
    return this.#sealer.seal(encodeJson({ key, tokens }));
  }

  async #open(key: string, sealed: string): Promise<StoredTokens | undefined> {
    const bytes = sealed === "" ? "damaged" : await this.#sealer.open(sealed);
    const content = typeof bytes === "string" ? {} : parseJson(bytes);
    const { key: own, tokens } = Object(content);
    return own === key ? tokens : undefined;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimeout(resolve, ms));
}
