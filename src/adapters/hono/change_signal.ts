/**
 * Says when a registry has changed, to one who asks again when it has time.
 *
 * @module
 */

import type { ToolRegistry } from "../../registry/mod.ts";

/** Follows a registry. However many changes there were, it says so once. */
export class ChangeSignal {
  readonly #controller = new AbortController();
  #changed = false;
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(registry: ToolRegistry) {
    void this.#follow(registry);
  }

  /** Waits until something has changed since the last time. `false`: nothing will any more. */
  async next(): Promise<boolean> {
    while (!this.#changed && !this.#ended) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }

  /** Stops following. */
  stop(): void {
    this.#controller.abort();
  }

  async #follow(registry: ToolRegistry): Promise<void> {
    const { signal } = this.#controller;
    while (!this.#ended) {
      try {
        // An iterator, not a listener: in workerd, the request that changes the registry must not
        // run the code of the one that follows it.
        for await (const _change of registry.changes({ signal })) this.#tell();
        this.#ended = true;
      } catch {
        // More changes at once than wait to be read: what counts is that there were some.
      }
      this.#tell(!this.#ended);
    }
  }

  #tell(changed = true): void {
    this.#changed ||= changed;
    this.#wake?.();
    this.#wake = undefined;
  }
}
