/** Delivers a registry's changes to its subscribers in order, even if listeners make changes. */

import { callHook, type Tool } from "../tool/mod.ts";

/** One change of a registry. */
export interface ToolChange {
  /**
   * The kind of change. The tool was added or removed, or replaced `previous` (`updated`); or its
   * `isAvailable` function returns true again (`available`) or no longer (`unavailable`).
   */
  readonly type: "added" | "removed" | "updated" | "available" | "unavailable";
  /** The added or removed tool, the replacement, or the tool whose availability has changed. */
  readonly tool: Tool;
  /** The replaced tool of an `updated` change. */
  readonly previous?: Tool;
  /** The time of the change by the registry's clock, in milliseconds since 1970. */
  readonly timestamp: number;
}

/** The fields of a change, without the tool. */
export interface ToolChangeDetails {
  /** The time of the change, in milliseconds since 1970. @default {Date.now()} */
  readonly timestamp?: number | undefined;
}

interface UpdateDetails extends ToolChangeDetails {
  readonly previous?: Tool | undefined;
}

/**
 * Creates changes for your implementation of a registry, and for tests of listeners.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolChange } from "@plue/tools";
 *
 * const echo = defineTool({ name: "echo", description: "Answers what it is given." });
 *
 * assert.equal(ToolChange.added(echo).type, "added");
 * assert.equal(ToolChange.removed(echo).tool, echo);
 * assert.equal(ToolChange.updated(echo, { timestamp: 0 }).timestamp, 0);
 * ```
 */
export const ToolChange: {
  readonly [Type in ToolChange["type"]]: (
    tool: Tool,
    details?: Type extends "updated" ? UpdateDetails : ToolChangeDetails,
  ) => ToolChange;
} = {
  added: (tool, details) => makeChange("added", tool, details),
  removed: (tool, details) => makeChange("removed", tool, details),
  updated: (tool, details) => makeChange("updated", tool, details),
  available: (tool, details) => makeChange("available", tool, details),
  unavailable: (tool, details) => makeChange("unavailable", tool, details),
};

export function makeChange(
  type: ToolChange["type"],
  tool: Tool,
  { previous, timestamp = Date.now() }: UpdateDetails = {},
): ToolChange {
  return Object.freeze({ type, tool, ...(previous && { previous }), timestamp });
}

/** A function that is called with every change. */
export type ToolChangeListener = (change: ToolChange) => void;

interface Subscription {
  readonly listener: ToolChangeListener;
  readonly onEnd: (() => void) | undefined;
}

export class ChangeFeed {
  readonly #subscriptions: Set<Subscription> = new Set();
  /** Pending deliveries of changes that a listener made while another change was delivered. */
  readonly #waiting: (() => void)[] = [];
  #isDelivering = false;
  #isEnded = false;
  readonly #onError: (error: unknown, change: ToolChange) => void;

  /** @param onError Called when a listener throws or rejects. Must not throw. */
  constructor(onError: (error: unknown, change: ToolChange) => void) {
    this.#onError = onError;
  }

  get isSilent(): boolean {
    return this.#subscriptions.size === 0;
  }

  /** Returns a function that ends the subscription. `onEnd` must not throw. */
  subscribe(listener: ToolChangeListener, onEnd?: () => void): () => void {
    const subscription: Subscription = { listener, onEnd };
    if (this.#isEnded) onEnd?.();
    else this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }

  emit(change: ToolChange): void {
    const subscriptions = [...this.#subscriptions];
    this.#deliver(() => {
      for (const subscription of subscriptions) {
        if (!this.#subscriptions.has(subscription)) continue;
        callHook(() => subscription.listener(change), (error) => this.#onError(error, change));
      }
    });
  }

  end(): void {
    this.#isEnded = true;
    this.#deliver(() => {
      const ended = [...this.#subscriptions];
      this.#subscriptions.clear();
      for (const { onEnd } of ended) onEnd?.();
    });
  }

  #deliver(work: () => void): void {
    this.#waiting.push(work);
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    for (let next; (next = this.#waiting.shift());) next();
    this.#isDelivering = false;
  }
}
