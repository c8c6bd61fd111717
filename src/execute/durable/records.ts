/**
 * Records in a call store that several processes change, and leases on them. Keys contain SHA-256 digests
 * in base64url.
 */

import { canonicalJson, type Clock, describeTool, once, type Tool } from "../../tool/mod.ts";
import { frozenCopy } from "../json_value.ts";
import type { CallStore, StoreOptions } from "./call_store.ts";
import { SettledStore } from "./settled_store.ts";

export interface RevisedRecord<R> {
  readonly record: R;
  readonly revision: number;
}

/** The maximum number of attempts of a change while other processes change the same record. */
const MAX_TRIES = 32;

/** The functions of a call store that records use. */
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

  /** Returns the options of a write. */
  optionsOf(record: R): StoreOptions {
    return { expiresAt: this.#expiresAt(record) };
  }

  async read(key: string): Promise<RevisedRecord<R> | undefined> {
    const stored = await this.store.get(key);
    return stored && { record: this.decode(stored.value, key), revision: stored.revision };
  }

  /**
   * Writes a record if the stored one has this revision, or if there is none and no revision is given.
   * Returns the new revision, or `undefined`.
   */
  async write(key: string, record: R, revision?: number): Promise<number | undefined> {
    const value = this.encode(record, key);
    const options = this.optionsOf(record);
    return revision === undefined
      ? await this.store.create(key, value, options)
      : await this.store.update(key, value, revision, options);
  }

  /**
   * Changes a record. Tries again if another process has changed it meanwhile.
   *
   * @param change Returns the new record, or `undefined` to leave the store unchanged.
   * @param isNew True if the store probably has no record yet: then it is not read first.
   * @returns The current record; `undefined` if there is none.
   * @throws {Error} If other processes change it at every attempt.
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
  /** The id of the run that has the lease; empty if none has it. */
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
   * Takes the lease of a record, or returns the current record. `take` returns the record with the
   * lease; or a record without it, to store that; or `undefined`, to change nothing.
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
        // The lease may have been stored although the write rejected, and no process would run.
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
  /** The last write. Writes are serialized, because each needs the revision of the one before. */
  #turn: Promise<unknown> = Promise.resolve();
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
   * @param lost Is called if another process has taken the lease, or has ended the record.
   * @param log Receives errors of the store, which may be temporary.
   * @param renewing Is called before each renewal.
   */
  renew(lost: () => void, log: (error: unknown) => void, renewing?: () => void): void {
    const { clock, leaseMs } = this.#records;
    this.#disarm = clock.setTimeout(() => {
      this.renew(lost, log, renewing);
      renewing?.();
      const until = this.#records.now() + leaseMs;
      // A clock that was set back must not end the lease for other processes.
      this.change((record) => ({ ...record, heldUntil: Math.max(record.heldUntil, until) }))
        .then((isHeld) => isHeld || lost(), log);
    }, leaseMs / 3);
  }

  /** Writes an earlier record back once the store answers; deletes the record if there was none. */
  undo(before: R | undefined, tries = 0): void {
    const { clock, leaseMs } = this.#records;
    this.change(() => before).catch(() => {
      if (tries < MAX_TRIES) clock.setTimeout(() => this.undo(before, tries + 1), leaseMs / 30);
    });
  }

  /** Stops renewing the lease, and waits for the writes in flight. */
  async end(): Promise<void> {
    this.#disarm();
    await this.#turn;
  }

  /**
   * Changes the record, or deletes it if `change` returns nothing. Returns false, and writes nothing, if
   * this process no longer has the lease.
   */
  change(change: (record: R) => R | undefined): Promise<boolean> {
    const changed = this.#turn.then(() => this.#change(change));
    this.#turn = changed.catch(() => {});
    return changed;
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
      // The process may have made the write before, although the store has reported an error.
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

/** A few bytes as letters, digits, `_` and `-`. */
export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const definitions = new WeakMap<Tool, Promise<string>>();

/** Returns the digest of a tool's public fields, and of a view's original tool. */
export function definitionDigest(tool: Tool): Promise<string> {
  return once(definitions, tool, () => digestOf(definitionText(tool)));
}

/** Returns the text of that digest. */
export function definitionText(tool: Tool): string {
  const told = [];
  for (let one: Tool | undefined = tool; one; one = one.view?.tool) told.push(describeTool(one));
  // JSON omits absent fields.
  return canonicalJson(JSON.parse(JSON.stringify(told)));
}

/** Returns the text that represents a principal in the keys of a store. */
export function ownerDigest(principal: string | undefined): Promise<string> {
  return digestOf(JSON.stringify(principal ?? null));
}

/**
 * The digest of a host's context, so that a result or an approval for one tenant does not count for
 * another; `undefined` for no context. If a context is not JSON, only its members that are JSON
 * count: other members, such as a database, cannot be compared.
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
