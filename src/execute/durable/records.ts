/** Records in a call store that several processes change, and leases on these records. */

import {
  canonicalJson,
  type Clock,
  describeTool,
  fail,
  isObject,
  isWord,
  Mutex,
  once,
  type Tool,
  toolsBehind,
} from "../../tool/mod.ts";
import { frozenCopy } from "../json_value.ts";
import type { CallStore, StoreOptions } from "./call_store.ts";
import { SettledStore } from "./settled_store.ts";

export interface RevisedRecord<R> {
  readonly record: R;
  readonly revision: number;
}

/** The maximum number of attempts of a change while other processes change the same record. */
const MAX_TRIES = 32;

type RecordStore = Pick<CallStore, "get" | "create" | "update">;

/** Records of JSON in a call store. Every change is a compare-and-set on the revision. */
export class StoredRecords<R, Store extends RecordStore = RecordStore> {
  readonly store: Store;
  readonly #expiresAt: (record: R) => number;

  /** @param expiresAt Returns the expiry of a record, in milliseconds since 1970. */
  constructor(store: Store, expiresAt: (record: R) => number) {
    this.store = store;
    this.#expiresAt = expiresAt;
  }

  encode(record: R, _key: string): Uint8Array {
    return encodeJson(record);
  }

  decode(value: Uint8Array, _key: string): R {
    return parseJson(value) as R;
  }

  optionsOf(record: R): StoreOptions {
    return { expiresAt: this.#expiresAt(record) };
  }

  async read(key: string): Promise<RevisedRecord<R> | undefined> {
    const stored = await this.store.get(key);
    return stored && { record: this.decode(stored.value, key), revision: stored.revision };
  }

  /**
   * Writes a record if the stored record has this revision; without a revision, if no record is
   * stored. Returns the new revision, or `undefined`.
   */
  async write(key: string, record: R, revision?: number): Promise<number | undefined> {
    const value = this.encode(record, key);
    const options = this.optionsOf(record);
    return revision === undefined
      ? await this.store.create(key, value, options)
      : await this.store.update(key, value, revision, options);
  }

  /**
   * Changes a record. Tries again if another process has changed the record meanwhile.
   *
   * @param change Returns the new record, or `undefined` to leave the store unchanged.
   * @param isNew True if probably no record is stored: the first attempt then reads nothing.
   * @returns The current record; `undefined` if there is none.
   * @throws {Error} If other processes change the record at every attempt.
   */
  async change(
    key: string,
    change: (record: R | undefined) => R | undefined,
    isNew = false,
  ): Promise<RevisedRecord<R> | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const found = isNew && tries === 0 ? undefined : await this.read(key);
      const record = change(found?.record);
      if (record === undefined) return found;
      const revision = await this.write(key, record, found?.revision);
      if (revision !== undefined) return { record, revision };
    }
    throw new Error("Cannot change a record: other processes change it at every attempt");
  }
}

export interface LeasedRecord {
  /** The id of the run that has the lease; empty without a lease. */
  readonly holder: string;
  /** The end of the lease, in milliseconds since 1970. */
  readonly heldUntil: number;
}

export interface Claim<R extends LeasedRecord> {
  readonly lease?: Lease<R>;
  readonly record: R | undefined;
}

export class LeasedRecords<R extends LeasedRecord> extends StoredRecords<R, SettledStore> {
  readonly clock: Clock;
  readonly leaseMs: number;

  constructor(store: CallStore, expiresAt: (record: R) => number, clock: Clock, leaseMs: number) {
    super(new SettledStore(store), expiresAt);
    this.clock = clock;
    this.leaseMs = leaseMs;
  }

  newLease(): LeasedRecord {
    return { holder: newId(), heldUntil: this.now() + this.leaseMs };
  }

  isHeld({ holder, heldUntil }: LeasedRecord): boolean {
    return holder !== "" && heldUntil > this.now();
  }

  /** The time of the leases, in milliseconds since 1970. */
  now(): number {
    return this.store.timeBy(this.clock);
  }

  /**
   * Claims the lease of a record, or returns the current record. `take` returns the record with the
   * lease, a record to store without a lease, or `undefined` to change nothing.
   */
  async claim(
    key: string,
    take: (record: R | undefined, lease: LeasedRecord) => R | undefined,
    isNew = false,
  ): Promise<Claim<R>> {
    const lease = this.newLease();
    let before: R | undefined;
    const found = await this.change(key, (record) => take(before = record, lease), isNew)
      .catch((error) => {
        // The rejected write may have stored the lease, and then no process could claim the record.
        new Lease(this, key, { record: lease as R, revision: 0 }).undo(before);
        throw error;
      });
    const { record } = found ?? {};
    return found === undefined || record?.holder !== lease.holder
      ? { record }
      : { record, lease: new Lease(this, key, found) };
  }
}

/** The lease of this process on a record. Without renewal, another process can take the lease. */
export class Lease<R extends LeasedRecord> {
  readonly key: string;
  /** The revision of the record when the lease began: higher for each later lease. */
  readonly token: number;
  readonly #records: LeasedRecords<R>;
  #known: RevisedRecord<R>;
  #isLost = false;
  /** Writes are serialized, because each write needs the previous revision. */
  readonly #writes = new Mutex();
  #disarm: () => void = () => {};

  get record(): R {
    return this.#known.record;
  }

  constructor(records: LeasedRecords<R>, key: string, known: RevisedRecord<R>) {
    this.#records = records;
    this.key = key;
    this.#known = known;
    this.token = known.revision;
  }

  /**
   * Renews the lease until {@linkcode end} is called.
   *
   * @param lost Called if another process has claimed the lease or ended the record.
   * @param log Receives errors of the store, which may be temporary.
   * @param renewing Called before each renewal.
   */
  renew(lost: () => void, log: (error: unknown) => void, renewing?: () => void): void {
    const { clock, leaseMs } = this.#records;
    this.#disarm = clock.setTimeout(() => {
      this.renew(lost, log, renewing);
      renewing?.();
      const until = this.#records.now() + leaseMs;
      // A clock that was set back must not shorten the lease.
      this.change((record) => ({ ...record, heldUntil: Math.max(record.heldUntil, until) }))
        .then((isHeld) => isHeld || lost(), log);
    }, leaseMs / 3);
  }

  /** Restores the record `before` once the store responds. Without it, deletes the record. */
  undo(before: R | undefined, tries = 0): void {
    const { clock, leaseMs } = this.#records;
    this.change(() => before).catch(() => {
      if (tries < MAX_TRIES) clock.setTimeout(() => this.undo(before, tries + 1), leaseMs / 30);
    });
  }

  /** Stops renewing the lease, and waits for the writes in flight. */
  async end(): Promise<void> {
    this.#disarm();
    await this.#writes.run(() => Promise.resolve());
  }

  /**
   * Changes the record, or deletes the record if `change` returns nothing. If this process no
   * longer has the lease, writes nothing and returns false.
   */
  change(change: (record: R) => R | undefined): Promise<boolean> {
    return this.#writes.run(() => this.#change(change));
  }

  async #change(change: (record: R) => R | undefined): Promise<boolean> {
    const { holder } = this.#known.record;
    for (let tries = 0; !this.#isLost && tries < MAX_TRIES; tries++) {
      const { record: before, revision: last } = this.#known;
      const record = change(before);
      const revision = record === undefined
        ? await this.#records.store.delete(this.key, last) ? last : undefined
        : await this.#records.write(this.key, record, last);
      if (revision !== undefined) {
        if (record?.holder === holder) this.#known = { record, revision };
        else this.#isLost = true;
        return true;
      }
      // An earlier write of this process may have been made although the store reported an error.
      const found = await this.#records.read(this.key);
      if (found?.record.holder === holder) this.#known = found;
      else this.#isLost = true;
    }
    return false;
  }
}

/** Returns a random id: 22 letters, digits, `_` and `-`. */
export function newId(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(16)));
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeJson(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

export function parseJson(bytes: Uint8Array): unknown {
  return JSON.parse(decoder.decode(bytes));
}

export async function digestOf(text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}

/** Encodes a few bytes as letters, digits, `_` and `-`. */
export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const definitions = new WeakMap<Tool, Promise<string>>();

/** Returns the digest of a tool's public fields and, for a view, of its original tool's fields. */
export function definitionDigest(tool: Tool): Promise<string> {
  return once(definitions, tool, () => digestOf(definitionText(tool)));
}

/** Returns the text that `definitionDigest` hashes. */
export function definitionText(tool: Tool): string {
  const described = toolsBehind(tool).map((one) => describeTool(one));
  // `JSON.stringify` omits absent fields.
  return canonicalJson(JSON.parse(JSON.stringify(described)));
}

/** Returns the text that represents a principal in the keys of a store. */
export function ownerDigest(principal: string | undefined): Promise<string> {
  return digestOf(JSON.stringify(principal ?? null));
}

/**
 * Returns the digest of a host's context; `undefined` without a context. The digest binds results
 * and approvals to one context, such as a tenant. If a context is not JSON, only its members that
 * are JSON are included: other members, such as a database, cannot be compared.
 */
export async function contextDigest(context: unknown): Promise<string | undefined> {
  if (context === undefined) return undefined;
  const json = frozenCopy(context);
  return await digestOf(canonicalJson(json === undefined ? [membersOf(context)] : json));
}

function membersOf(context: unknown): Readonly<Record<string, unknown>> {
  const members = Object.entries(Object(context)).map(([name, value]) => [name, frozenCopy(value)]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** Returns the tenant in a host's context as a text, so that 7 and "7" are one tenant. */
export function tenantOf(context: unknown): string | undefined {
  const tenant: unknown = isObject(context) ? context["tenant"] ?? undefined : undefined;
  if (tenant === undefined || isWord(tenant)) return tenant;
  // Above the safe integers, different numbers in a text or a database are one number here.
  return Number.isSafeInteger(tenant) ? String(tenant) : fail(
    "read the tenant",
    'the member "tenant" of the context must be a text or a whole number',
  );
}
