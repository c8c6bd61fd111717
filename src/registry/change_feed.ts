/**
 * Tells subscribers what changed in a registry, in order, whatever they do meanwhile.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";

/** One change of a registry. */
export interface ToolChange {
  readonly type: "added" | "removed" | "updated";
  /** The tool that was added or removed, or that took the place of `previous`. */
  readonly tool: Tool;
  /** For `updated`: the tool that was there before. */
  readonly previous?: Tool;
  /** When it happened, in milliseconds since 1970, by the registry's clock. */
  readonly timestamp: number;
}

/** Is told of every change. */
export type ToolChangeListener = (change: ToolChange) => void;

interface Subscription {
  readonly listener: ToolChangeListener;
  readonly onEnd: (() => void) | undefined;
  active: boolean;
}

/** The subscribers of one registry. */
export class ChangeFeed {
  /** Replaced, never changed, so that a change goes to those who were there when it happened. */
  #subscriptions: readonly Subscription[] = [];
  /** Changes that wait because a listener made them while another was being delivered. */
  readonly #waiting: { readonly change: ToolChange; readonly to: readonly Subscription[] }[] = [];
  #delivering = false;
  #ended = false;
  readonly #onError: (error: unknown, change: ToolChange) => void;

  /** @param onError Is told when a listener throws. Must not throw. */
  constructor(onError: (error: unknown, change: ToolChange) => void) {
    this.#onError = onError;
  }

  /** Whether nobody listens, so that a change need not be described. */
  get isSilent(): boolean {
    return this.#subscriptions.length === 0;
  }

  /**
   * Subscribes. The answer ends the subscription; a second call of it does nothing.
   *
   * @param listener Is told of every change from now on.
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
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#deliver(next.change, next.to);
    }
    this.#delivering = false;
    if (this.#ended) this.#endAll();
  }

  #endAll(): void {
    const ended = this.#subscriptions;
    this.#subscriptions = [];
    for (const { onEnd } of ended) onEnd?.();
  }

  #deliver(change: ToolChange, to: readonly Subscription[]): void {
    for (const subscription of to) {
      if (!subscription.active) continue;
      try {
        subscription.listener(change);
      } catch (error) {
        this.#onError(error, change);
      }
    }
  }
}
