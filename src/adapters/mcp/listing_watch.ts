/**
 * Says when a caller's list of tools has changed.
 *
 * @module
 */

import type { ToolRegistry } from "../../registry/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import { ChangeSignal } from "../hono/change_signal.ts";

/** What a watch looks at. */
export interface WatchedListing {
  readonly registry: ToolRegistry;
  /** Gives the caller's tools of the moment. */
  list(): readonly Tool[];
  /** When the caller may not look any more, in milliseconds since 1970: then it is over. */
  readonly expiresAt: number | undefined;
  /** Is called once, when it is over. */
  onStop(): void;
}

/** Above this, a timer fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** Follows one caller's list. Changes of tools that the caller does not see are none. */
export class ListingWatch {
  readonly #watched: WatchedListing;
  readonly #signal: ChangeSignal;
  #listing: readonly Tool[];
  #isOver = false;
  #expiry: ReturnType<typeof setTimeout> | undefined;

  constructor(watched: WatchedListing) {
    this.#watched = watched;
    this.#listing = watched.list();
    this.#signal = new ChangeSignal(watched.registry);
    this.#awaitExpiry();
  }

  /**
   * Waits until the list is another one. However often it changed, it says so once.
   *
   * @returns `false`: it will not say so any more.
   */
  async changed(): Promise<boolean> {
    while (await this.#signal.next()) {
      if (this.#isOver || this.#leftMs() <= 0) break;
      const before = this.#listing;
      const after = this.#listing = this.#watched.list();
      if (after.length !== before.length || after.some((tool, index) => tool !== before[index])) {
        return true;
      }
    }
    this.stop();
    return false;
  }

  /** Stops following. */
  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#expiry);
    this.#signal.stop();
    this.#watched.onStop();
  }

  #leftMs(): number {
    return (this.#watched.expiresAt ?? Infinity) - Date.now();
  }

  /** Nobody may look on who may not come again, however quiet the registry is. */
  #awaitExpiry(): void {
    const leftMs = this.#leftMs();
    if (leftMs === Infinity) return;
    this.#expiry = setTimeout(
      () => this.#leftMs() > 0 ? this.#awaitExpiry() : this.stop(),
      Math.min(Math.max(leftMs, 0), MAX_TIMER_MS),
    );
  }
}
