/**
 * Delivers the changes of a registry to its subscribers, in order, whatever they do meanwhile.
 *
 * @module
 */

import { callHook, type Tool } from "../tool/mod.ts";

/** One change of a registry. */
export interface ToolChange {
  readonly type: "added" | "removed" | "updated" | "available" | "unavailable";
  /**
   * The tool that was added or removed, that took the place of `previous`, or whose `isAvailable`
   * function now says something else.
   */
  readonly tool: Tool;
  /** For `updated`: the tool that was there before. */
  readonly previous?: Tool;
  /** When it happened, in milliseconds since 1970, by the registry's clock. */
  readonly timestamp: number;
}

/** What a change says besides its tool. */
export interface ToolChangeDetails {
  /**
   * When it happened, in milliseconds since 1970.
   *
   * @default {Date.now()}
   */
  readonly timestamp?: number | undefined;
}

interface UpdateDetails extends ToolChangeDetails {
  readonly previous?: Tool | undefined;
}

type ChangeOf<Details = ToolChangeDetails> = (tool: Tool, details?: Details) => ToolChange;

/**
 * Makes changes, as a registry does: for a registry of your own, and for tests of listeners.
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
  /** The tool was added. */
  readonly added: ChangeOf;
  /** The tool was removed. */
  readonly removed: ChangeOf;
  /** The tool took the place of the one with its id: of `previous`. */
  readonly updated: ChangeOf<UpdateDetails>;
  /** The tool's `isAvailable` function says yes again. */
  readonly available: ChangeOf;
  /** The tool's `isAvailable` function does not say yes any more. */
  readonly unavailable: ChangeOf;
} = Object.freeze({
  added: changeOf("added"),
  removed: changeOf("removed"),
  updated: changeOf("updated"),
  available: changeOf("available"),
  unavailable: changeOf("unavailable"),
});

function changeOf(type: ToolChange["type"]): ChangeOf<UpdateDetails> {
  return (tool, { previous, timestamp = Date.now() } = {}) =>
    Object.freeze({ type, tool, ...(previous && { previous }), timestamp });
}

/** A function that is called with every change. */
export type ToolChangeListener = (change: ToolChange) => void;

interface Subscription {
  readonly listener: ToolChangeListener;
  readonly onEnd: (() => void) | undefined;
  active: boolean;
}

/** The subscribers of one registry. */
export class ChangeFeed {
  /** Replaced, never changed: a change goes to the subscribers of the moment it happened. */
  #subscriptions: readonly Subscription[] = [];
  /** Changes that wait because a listener made them while another was being delivered. */
  readonly #waiting: { readonly change: ToolChange; readonly to: readonly Subscription[] }[] = [];
  #delivering = false;
  #ended = false;
  readonly #onError: (error: unknown, change: ToolChange) => void;

  /** @param onError Called when a listener throws or rejects. Must not throw. */
  constructor(onError: (error: unknown, change: ToolChange) => void) {
    this.#onError = onError;
  }

  /** Whether there is no listener, so that a change need not be made. */
  get isSilent(): boolean {
    return this.#subscriptions.length === 0;
  }

  /**
   * Subscribes. The answer ends the subscription; a second call of it does nothing.
   *
   * @param listener Receives every change from now on.
   * @param onEnd Is called when the feed ends. Must not throw.
   */
  subscribe(listener: ToolChangeListener, onEnd?: () => void): () => void {
    if (this.#ended) {
      onEnd?.();
      return () => {};
    }
    const subscription: Subscription = { listener, onEnd, active: true };
    this.#subscriptions = [...this.#subscriptions, subscription];
    return () => {
      subscription.active = false;
      this.#subscriptions = this.#subscriptions.filter((other) => other !== subscription);
    };
  }

  /** Ends every subscription, once the changes that wait are delivered. */
  end(): void {
    this.#ended = true;
    if (!this.#delivering) this.#endAll();
  }

  /** Delivers a change, or keeps it for the delivery that is under way. */
  emit(change: ToolChange): void {
    this.#waiting.push({ change, to: this.#subscriptions });
    if (this.#delivering) return;
    this.#delivering = true;
    for (let next; (next = this.#waiting.shift());) {
      const { change, to } = next;
      for (const { active, listener } of to) {
        if (active) callHook(() => listener(change), (error) => this.#onError(error, change));
      }
    }
    this.#delivering = false;
    if (this.#ended) this.#endAll();
  }

  #endAll(): void {
    const ended = this.#subscriptions;
    this.#subscriptions = [];
    for (const { onEnd } of ended) onEnd?.();
  }
}
