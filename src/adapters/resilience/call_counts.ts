/**
 * Counts of calls in fixed windows of time, in memory.
 *
 * @module
 */

import type { CallInfo } from "../../execute/mod.ts";
import { canonicalJson, fnv1a, once } from "../../tool/mod.ts";
import type { RateLimitWindow } from "../http/mod.ts";

/** The most windows of all owners. */
const MAX_WINDOWS = 10_000;

interface Window {
  count: number;
  readonly endsAt: number;
}

/**
 * Counts calls. A caller chooses the names of its sessions, so it must not evict the windows of others
 * with them: each owner, which is a principal under a limit, has a quota.
 */
export class CallCounts {
  /** The windows of each owner, in the order of their beginning. */
  readonly #owners: Map<string, Map<string, Window>> = new Map();
  #size = 0;

  /** Counts a call. The count is above the limit if the call is one too many. */
  take(
    owner: string,
    key: string,
    { limit, windowMs }: RateLimitWindow,
    now: number,
  ): { readonly count: number } {
    const windows = once(this.#owners, owner, () => new Map<string, Window>());
    let window = windows.get(key);
    if (window === undefined || window.endsAt <= now) {
      if (!windows.delete(key)) this.#size++;
      windows.set(key, window = { count: 0, endsAt: now + windowMs });
      if (this.#size > MAX_WINDOWS) this.#evict();
    }
    return { count: window.count < limit ? ++window.count : limit + 1 };
  }

  /** Evicts the oldest window of an owner that has more than its quota. */
  #evict(): void {
    const quota = MAX_WINDOWS / this.#owners.size;
    for (const [owner, windows] of this.#owners) {
      const [oldest] = windows.size > quota ? windows.keys() : [];
      if (oldest === undefined) continue;
      windows.delete(oldest);
      this.#size--;
      if (windows.size === 0) this.#owners.delete(owner);
      return;
    }
  }
}

/** The calls that a limit counts together, of one principal, by its fields `per` and `of`. */
export function countKey(
  { sessionId, messageId, tool, arguments: args }: CallInfo,
  per: string,
  of: string,
): string {
  const key: unknown[] = [];
  if (per !== "principal") key.push(sessionId);
  if (per === "message") key.push(messageId);
  if (of !== "all") key.push(tool.id);
  if (of === "same") {
    const text = canonicalJson(args);
    key.push(text.length, fnv1a(text), fnv1a(text, 0x9e3779b9, 0x85ebca6b));
  }
  return JSON.stringify(key);
}
