/**
 * Changes of a caller's listing. They follow from comparing listings, and not from the registry's
 * events: a tool that the caller does not see is never named, a tool that becomes visible is
 * `added`, and unread changes are merged.
 *
 * @module
 */

import type { Registry } from "../../registry/mod.ts";
import { once, originalOf, type Tool } from "../../tool/mod.ts";

/** How one tool of a listing changed. */
export interface ListingChange {
  readonly type: "added" | "removed" | "updated";
  readonly id: string;
}

/**
 * The changes from one listing to another. Callers of one kind have the same listings, so a change of
 * 5,000 tools is compared once, and not once per stream: 1,000 streams would take seconds.
 */
const compared = new WeakMap<
  readonly Tool[],
  WeakMap<readonly Tool[], readonly ListingChange[]>
>();

function listingChanges(before: readonly Tool[], after: readonly Tool[]): readonly ListingChange[] {
  if (before === after) return [];
  return once(
    once(compared, after, () => new WeakMap()),
    before,
    () => compare(before, after),
  );
}

/**
 * Compares two listings, both in code-unit order of id.
 *
 * @returns The changes, in order of id.
 */
function compare(before: readonly Tool[], after: readonly Tool[]): readonly ListingChange[] {
  const changes: ListingChange[] = [];
  let left = 0;
  let right = 0;
  for (;;) {
    const old = before[left];
    const now = after[right];
    if (old === undefined && now === undefined) return changes;
    if (old !== undefined && (now === undefined || old.id < now.id)) {
      changes.push({ type: "removed", id: old.id });
      left++;
    } else if (now !== undefined && (old === undefined || now.id < old.id)) {
      changes.push({ type: "added", id: now.id });
      right++;
    } else {
      if (old !== now && now !== undefined && !isSame(old, now)) {
        changes.push({ type: "updated", id: now.id });
      }
      left++;
      right++;
    }
  }
}

/** Returns true if two tools are one, with the same description. */
function isSame(old: Tool | undefined, now: Tool): boolean {
  return old !== undefined && originalOf(old) === originalOf(now) &&
    old.description === now.description;
}

/** The listing that a {@linkcode ListingWatch} follows. */
export interface WatchedListing {
  /** `undefined` if the list does not change. */
  readonly registry: Registry | undefined;
  /** Gives the tools that the caller sees now. */
  list(): readonly Tool[];
  /** When the caller's token ends, in milliseconds since 1970: then the watch is over. */
  readonly expiresAt: number | undefined;
  /** Is called once, when the watch is over. */
  onStop(): void;
}

/** The maximum delay of a timer, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647;

/** Follows one caller's list. Changes of tools that the caller does not see do not count. */
export class ListingWatch {
  readonly #watched: WatchedListing;
  #listing: readonly Tool[];
  /** The registry has changed since the last look. Several changes are one. */
  #hasChanged = false;
  /** The registry can change no more. */
  #hasEnded = false;
  #isOver = false;
  #wake: (() => void) | undefined;
  #expiry: ReturnType<typeof setTimeout> | undefined;
  #unsubscribe = (): void => {};

  constructor(watched: WatchedListing) {
    this.#watched = watched;
    this.#listing = watched.list();
    void this.#follow();
    this.#awaitExpiry();
  }

  /**
   * Waits until the list is another one.
   *
   * @returns How it changed since the last time; nothing if the watch is over.
   */
  async changes(): Promise<readonly ListingChange[]> {
    while (!this.#isOver && this.#leftMs() > 0) {
      if (!this.#hasChanged) {
        if (this.#hasEnded) break;
        await new Promise<void>((resolve) => this.#wake = resolve);
        continue;
      }
      this.#hasChanged = false;
      const before = this.#listing;
      this.#listing = this.#watched.list();
      const changes = listingChanges(before, this.#listing);
      if (changes.length > 0) return changes;
    }
    this.stop();
    return [];
  }

  /** Stops following. */
  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#expiry);
    this.#unsubscribe();
    this.#wake?.();
    this.#watched.onStop();
  }

  #leftMs(): number {
    return (this.#watched.expiresAt ?? Infinity) - Date.now();
  }

  /** Ends the watch when the token expires, even if the registry does not change. */
  #awaitExpiry(): void {
    const leftMs = this.#leftMs();
    if (leftMs === Infinity) return;
    this.#expiry = setTimeout(
      () => this.#leftMs() > 0 ? this.#awaitExpiry() : this.stop(),
      Math.min(Math.max(leftMs, 0), MAX_TIMER_MS),
    );
  }

  async #follow(): Promise<void> {
    const { registry } = this.#watched;
    if (registry === undefined) return;
    let hasNews = false;
    let wake = (): void => {};
    // The subscriber only resolves a promise: in workerd, the request that changes the registry
    // must not run code of another request.
    this.#unsubscribe = registry.subscribe(() => {
      hasNews = true;
      wake();
    }, () => {
      this.#hasEnded = true;
      wake();
    });
    while (!this.#hasEnded) {
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (hasNews) resolve();
      });
      if (hasNews) this.#tell();
      hasNews = false;
    }
    this.#wake?.();
  }

  #tell(): void {
    this.#hasChanged = true;
    this.#wake?.();
  }
}
