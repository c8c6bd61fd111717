/** Labels of sessions and counts of calls, in a call store. */

import * as durable from "../../execute/durable/mod.ts";
import { type Call, inTime } from "../../execute/mod.ts";
import { once } from "../../tool/mod.ts";
import type { Marks, Scope } from "./rule.ts";

const LONGEST_DAY_MS = 25 * 3_600_000;

interface Stored {
  readonly marks?: Marks;
  readonly count?: number;
  readonly expiresAt: number;
}

const NOTHING: Stored = { expiresAt: 0 };

export class SessionStore {
  readonly #records: durable.StoredRecords<Stored>;
  readonly #ttlMs: number;
  readonly #changes = new Map<string, Promise<unknown>>();

  constructor(store: durable.CallStore, ttlMs: number) {
    this.#records = new durable.StoredRecords(store, ({ expiresAt }) => expiresAt);
    this.#ttlMs = ttlMs;
  }

  async marksOf(call: Call): Promise<Marks> {
    const stored = await this.#records.read(await keyOf(call, "labels", [call.options.sessionId]));
    return stored?.record.marks ?? {};
  }

  async mark(call: Call, names: readonly string[]): Promise<void> {
    const key = await keyOf(call, "labels", [call.options.sessionId]);
    const until = Math.ceil(call.settings.clock.timestamp() + this.#ttlMs);
    const source = { tool: call.tool.id, callId: call.callId };
    await this.#records.change(key, ({ marks = {}, expiresAt } = NOTHING) => {
      const added = names.filter((name) => marks[name] === undefined);
      // Known marks are written again when 1 % of `ttlMs` has passed, so that they do not expire.
      if (added.length === 0 && expiresAt > until - this.#ttlMs / 100) return undefined;
      const brought = Object.fromEntries(added.map((name) => [name, source]));
      return { marks: { ...marks, ...brought }, expiresAt: until };
    });
  }

  /** Counts a call in a scope, unless its tool does not run. Returns false at the maximum. */
  async count(call: Call, scope: Scope, most: number, isDry: boolean): Promise<boolean> {
    const key = await keyOf(call, "counts", scope);
    const lifetimeMs = scope[1] === "day" ? LONGEST_DAY_MS : this.#ttlMs;
    const expiresAt = call.settings.clock.timestamp() + lifetimeMs;
    let isWithin = false;
    const counted = this.#change(call, key, ({ count = 0 } = NOTHING) => {
      isWithin = count < most;
      return isWithin && !isDry ? { count: count + 1, expiresAt } : undefined;
    });
    call.defer(async () => {
      await counted;
      if (!isWithin || isDry || call.toolState !== "not started") return;
      await this.#change(call, key, ({ count = 1 } = NOTHING) => ({ count: count - 1, expiresAt }));
    });
    await counted;
    return isWithin;
  }

  /** Changes a count after its earlier changes: at the same time, most of them would have to retry. */
  #change(call: Call, key: string, change: (stored?: Stored) => Stored | undefined) {
    const work = () => inTime(call.settings, this.#records.change(key, change));
    const changed = (this.#changes.get(key) ?? Promise.resolve()).then(work, work);
    const forget = () => this.#changes.get(key) === changed && this.#changes.delete(key);
    changed.then(forget, forget);
    this.#changes.set(key, changed);
    return changed;
  }
}

/** Calls without a session are one session of their principal. */
async function keyOf(call: Call, kind: string, scope: readonly unknown[]): Promise<string> {
  const owner = JSON.stringify([
    call.options.principal ?? null,
    durable.tenantOf(call.options.context) ?? null,
  ]);
  const digest = await durable.digestOf(JSON.stringify(scope));
  return `${kind}.${await durable.ownerDigest(owner)}.${digest}`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns the date and the time in a time zone: `2026-11-28` and `09:30`. */
export function localTime(now: number, timeZone = "UTC"): readonly string[] {
  // Sweden writes dates and times as ISO 8601 does.
  const create = () =>
    new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" });
  return once(formats, timeZone, create).format(now).split(" ");
}
