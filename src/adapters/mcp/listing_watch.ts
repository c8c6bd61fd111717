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
  /** When the caller may not look any more, in milliseconds since 1970. */
  readonly expiresAt: number | undefined;
  /** Is called once, when it is over. */
  onStop(): void;
}

/** Follows one caller's list. Changes of tools that the caller does not see are none. */
export class ListingWatch {
  readonly #watched: WatchedListing;
  readonly #signal: ChangeSignal;
  #listing: readonly Tool[];
  #isOver = false;

  constructor(watched: WatchedListing) {
    this.#watched = watched;
    this.#listing = watched.list();
    this.#signal = new ChangeSignal(watched.registry);
  }

  /**
   * Waits until the list is another one. However often it changed, it says so once.
   *
   * @returns `false`: it will not say so any more.
   */
  async changed(): Promise<boolean> {
    while (await this.#signal.next()) {
      if (this.#isOver || Date.now() >= (this.#watched.expiresAt ?? Infinity)) break;
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
    this.#signal.stop();
    this.#watched.onStop();
  }
}
