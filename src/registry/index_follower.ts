/**
 * Keeps a search index in step with a registry, from the first search on.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";
import type { ToolIndex } from "./search/mod.ts";

/** The search index of one registry. Registering a tool never fails because of it. */
export class IndexFollower {
  readonly #make: () => ToolIndex;
  readonly #onError: (toolId: string, error: unknown) => void;
  #index: ToolIndex | undefined;

  /**
   * @param make Makes an empty index.
   * @param onError Is told when the index could not follow a change. Must not throw.
   */
  constructor(make: () => ToolIndex, onError: (toolId: string, error: unknown) => void) {
    this.#make = make;
    this.#onError = onError;
  }

  /** The index. Where there is none, it is made of what `tools` gives. */
  of(tools: () => readonly Tool[]): ToolIndex {
    if (this.#index === undefined) {
      const index = this.#make();
      for (const tool of tools()) index.add(tool);
      this.#index = index;
    }
    return this.#index;
  }

  add(tool: Tool): void {
    this.#follow(tool.id, (index) => index.add(tool));
  }

  remove(id: string): void {
    this.#follow(id, (index) => index.remove(id));
  }

  /** Forgets the index. The next search makes another. */
  clear(): void {
    this.#index = undefined;
  }

  #follow(id: string, change: (index: ToolIndex) => void): void {
    if (this.#index === undefined) return;
    try {
      change(this.#index);
    } catch (error) {
      // Half a change may be in it. The next search makes another, and throws what that throws.
      this.clear();
      this.#onError(id, error);
    }
  }
}
