/** What rules remember of sessions, in a call store. */

import { type CallStore, digestOf, ownerDigest, StoredRecords } from "../../execute/durable/mod.ts";
import type { Call } from "../../execute/mod.ts";
import { type EarlierCall, type Marks, tenantOf } from "./rule.ts";

/** The maximum number of calls that are stored for a mark. The store bounds the whole session. */
const MAX_CALLS = 8;
/** Marks are stored for a little longer than their time, and renewed once less than it is left. */
const RENEWAL = 1.01;

interface Stored {
  readonly marks: Marks;
  readonly expiresAt: number;
}

export class SessionStore {
  readonly #records: StoredRecords<Stored>;
  readonly #ttlMs: number;

  constructor(store: CallStore, ttlMs: number) {
    this.#records = new StoredRecords(store, ({ expiresAt }) => expiresAt);
    this.#ttlMs = ttlMs;
  }

  async marksOf(call: Call): Promise<Marks> {
    return (await this.#records.read(await sessionKey(call)))?.record.marks ?? {};
  }

  async mark(call: Call, names: readonly string[]): Promise<void> {
    await this.#change(call, (marks) => {
      const open = names.filter((name) => (marks[name]?.length ?? 0) < MAX_CALLS);
      const added = open.map((name) => [name, [...marks[name] ?? [], sourceOf(call)]]);
      return open.length === 0 ? undefined : { ...marks, ...Object.fromEntries(added) };
    });
  }

  async unmark(call: Call, names: readonly string[]): Promise<void> {
    const { tool, callId } = sourceOf(call);
    await this.#change(call, (marks) => {
      const left = Object.entries(marks).map(([name, calls]) => {
        const index = calls.findIndex((one) => one.tool === tool && one.callId === callId);
        // A full list may lack a call that has run, so it stays.
        const isKept = !names.includes(name) || index < 0 || calls.length === MAX_CALLS;
        return [name, isKept ? calls : calls.toSpliced(index, 1)] as const;
      });
      return Object.fromEntries(left.filter(([, calls]) => calls.length > 0));
    });
  }

  async #change(call: Call, change: (marks: Marks) => Marks | undefined): Promise<void> {
    const now = call.settings.clock.timestamp();
    // Full lists are written again from time to time, so that they do not expire in a session in use.
    const isOld = (stored: Stored): boolean => stored.expiresAt < now + this.#ttlMs;
    const expiresAt = now + Math.ceil(this.#ttlMs * RENEWAL);
    await this.#records.change(await sessionKey(call), (stored) => {
      const marks = change(stored?.marks ?? {}) ??
        (stored && isOld(stored) ? stored.marks : undefined);
      return marks && { marks, expiresAt };
    });
  }
}

function sourceOf({ tool: { id }, callId }: Call): EarlierCall {
  return { tool: id, callId };
}

/** Calls without a session are one session of their principal. */
async function sessionKey(call: Call): Promise<string> {
  const owner = JSON.stringify([call.options.principal ?? null, tenantOf(call) ?? null]);
  const session = JSON.stringify(call.options.sessionId ?? null);
  return `labels.${await ownerDigest(owner)}.${await digestOf(session)}`;
}
