/** The tokens of callers in a call store, encrypted. One call at a time refreshes them. */

import {
  type CallStore,
  encodeJson,
  parseJson,
  type RevisedRecord,
  SettledStore,
  StoredRecords,
} from "../../execute/durable/mod.ts";
import { abortable, defined, noop, once, sleep, systemClock } from "../../tool/mod.ts";
import type { Sealer } from "../http/sealing.ts";
import { isStale, type Tokens, unlessRefused } from "./provider.ts";

/** Tokens as they are encrypted. */
export interface StoredTokens extends Tokens {
  /** The scopes that were requested. The server may name the granted ones differently. */
  readonly requested: readonly string[];
  /** The token endpoint of the server. */
  readonly server?: string | undefined;
}

interface TokenRecord {
  /** The encrypted tokens; absent if there are none. */
  readonly sealed?: string | undefined;
  /** True if a server has rejected the token: it must be refreshed. */
  readonly isRejected?: boolean;
  /** The id of the last authorization that has ended. */
  readonly authorization: string;
  readonly expiresAt: number;
}

/** A record with its revision in the store. Both are `undefined` if there is none. */
type FoundRecord = Partial<RevisedRecord<TokenRecord>>;

/** The lifetime of tokens that are not refreshed, in milliseconds: 90 days. */
const TTL_MS = 7_776_000_000;
/** The lifetime of the lock of a refresh: longer than the time limit of a request to a server. */
const LOCK_MS = 30_000;
/** The interval between two reads of a call that waits for a refresh or an authorization. */
const POLL_MS = 250;

export class TokenStore {
  readonly #records: StoredRecords<TokenRecord, SettledStore>;
  readonly #sealer: Sealer;
  /** The next read of each key for which calls wait. */
  readonly #reads: Map<string, Promise<string>> = new Map();

  constructor(store: CallStore, sealer: Sealer) {
    this.#records = new StoredRecords(new SettledStore(store), ({ expiresAt }) => expiresAt);
    this.#sealer = sealer;
  }

  /** Returns the record of a key, and its tokens. */
  async read(key: string): Promise<FoundRecord & { readonly tokens: StoredTokens | undefined }> {
    const found = await this.#records.read(key);
    const { sealed, isRejected } = found?.record ?? {};
    const bytes = sealed && await this.#sealer.open(sealed);
    // The key is encrypted, too, so that one caller's tokens cannot be stored as another one's.
    const { key: own, tokens } = bytes instanceof Uint8Array ? Object(parseJson(bytes)) : {};
    const stale = isRejected && { staleAt: 0 };
    return { ...found, tokens: own === key ? { ...tokens, ...stale } : undefined };
  }

  /** Ends an authorization: stores its tokens. Without tokens, those before stay. */
  async end(
    key: string,
    authorization: string,
    tokens?: StoredTokens,
    known?: FoundRecord,
  ): Promise<void> {
    const fresh = tokens && await this.#seal(key, tokens);
    const ended = { authorization, expiresAt: Date.now() + TTL_MS };
    await this.#change(key, (before) => ({ ...(fresh ?? before), ...ended }), known);
  }

  /** Deletes the tokens of a key. Returns false if there were none. */
  async remove(key: string): Promise<boolean> {
    for (;;) {
      const found = await this.#records.read(key);
      if (found === undefined) return false;
      const { record, revision } = found;
      if (await this.#records.store.delete(key, revision)) return record.sealed !== undefined;
    }
  }

  /** Marks tokens as invalid: they are refreshed, or else a person must give permission again. */
  async reject(key: string, sealed: string | undefined): Promise<void> {
    await this.#records.change(
      key,
      (record) => record && record.sealed === sealed ? { ...record, isRejected: true } : undefined,
    );
  }

  /** Refreshes the tokens of a key. While another call does it, in any process, waits a little. */
  async refresh(key: string, send: (refreshToken: string) => Promise<Tokens>): Promise<void> {
    const lock = key.replace("credential", "refresh");
    const { store } = this.#records;
    const expiresAt = store.timeBy(systemClock) + LOCK_MS;
    const revision = await store.create(lock, new Uint8Array(), { expiresAt });
    if (revision === undefined) return await sleep(POLL_MS);
    try {
      const { tokens, ...found } = await this.read(key);
      // Another call may have refreshed them before the lock.
      if (tokens?.refresh === undefined || !isStale(tokens)) return;
      const given = await unlessRefused(send(tokens.refresh));
      const { staleAt: _, expiresAt: _before, ...old } = tokens;
      const fresh = given && await this.#seal(key, { ...old, ...defined(given) });
      const expiresAt = Date.now() + TTL_MS;
      // Without another read, because a failed read would lose the new tokens.
      await this.#change(key, (record) =>
        // Tokens of an authorization that has ended meanwhile are newer.
        record && record.sealed === found.record?.sealed
          ? { ...fresh, authorization: record.authorization, expiresAt }
          : undefined, found);
    } finally {
      await store.delete(lock, revision).catch(noop);
    }
  }

  /**
   * Resolves when a later authorization than the one with this id has ended. Concurrent waits for a key
   * share one read of the store.
   */
  async arrived(key: string, authorization = "", signal: AbortSignal): Promise<void> {
    const readLater = async (): Promise<string> => {
      await sleep(POLL_MS);
      this.#reads.delete(key);
      return (await this.#records.read(key))?.record.authorization ?? "";
    };
    for (let last = authorization; last === authorization;) {
      // After a failed read, the call waits on: its person still has the URL. On Workers, promises of
      // an ended request reject immediately, and remain in the map.
      const read = once(this.#reads, key, readLater).catch(() => {
        this.#reads.delete(key);
        return last;
      });
      last = await abortable(read, signal);
    }
  }

  /** Records that a state was used. Returns false if it was used before. */
  async use(key: string, expiresAt: number): Promise<boolean> {
    return await this.#records.store.create(key, new Uint8Array(), { expiresAt }) !== undefined;
  }

  async #seal(key: string, tokens: StoredTokens): Promise<Pick<TokenRecord, "sealed">> {
    return { sealed: await this.#sealer.seal(encodeJson({ key, tokens })) };
  }

  /** Changes a record, which may be known. */
  async #change(
    key: string,
    change: (record: TokenRecord | undefined) => TokenRecord | undefined,
    known: FoundRecord | undefined,
  ): Promise<void> {
    const record = known && change(known.record);
    const written = record && await this.#records.write(key, record, known?.revision);
    if (written === undefined) await this.#records.change(key, change);
  }
}
