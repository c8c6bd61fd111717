/**
 * The registry's tools in order of id, brought up to date by merging in what changed: one change
 * among 10,000 tools does not sort them again, and 10,000 registrations in a row sort once.
 *
 * @module
 */

import { freezeInOrder } from "../select/mod.ts";
import type { Tool } from "../tool/mod.ts";

/** A sorted list of tools that follows a map of them. */
export class ToolSnapshot {
  /** Sorted by id, in code-unit order. Replaced, never changed. */
  #sorted: readonly Tool[] = [];
  #frozen = false;
  /** The ids that were added, removed or replaced since `#sorted` was made. */
  readonly #changed: Set<string> = new Set();
  readonly #current: (id: string) => Tool | undefined;

  /** @param current Looks up the tool that has an id now. */
  constructor(current: (id: string) => Tool | undefined) {
    this.#current = current;
  }

  /** Notes that the tool with this id was added, removed or replaced. */
  touch(id: string): void {
    this.#changed.add(id);
  }

  /**
   * The tools as they are now, not frozen: to read at once, and never to hand out. To freeze a long
   * array is slow (JavaScriptCore: 2 ms for 10,000), and a listing need not wait for it.
   */
  peek(): readonly Tool[] {
    if (this.#changed.size > 0) {
      this.#sorted = merge(this.#sorted, [...this.#changed].sort(), this.#current);
      this.#changed.clear();
      this.#frozen = false;
    }
    return this.#sorted;
  }

  /** The tools as they are now. The same frozen array until the next change. */
  list(): readonly Tool[] {
    const tools = this.peek();
    if (!this.#frozen) {
      freezeInOrder(tools);
      this.#frozen = true;
    }
    return tools;
  }
}

/** Merges the tools that `changed` names, which is sorted, into `old`, which is too. */
function merge(
  old: readonly Tool[],
  changed: readonly string[],
  current: (id: string) => Tool | undefined,
): readonly Tool[] {
  const merged: Tool[] = [];
  let next = 0;
  for (const id of changed) {
    while (next < old.length && (old[next] as Tool).id < id) merged.push(old[next++] as Tool);
    if (old[next]?.id === id) next++;
    const tool = current(id);
    if (tool !== undefined) merged.push(tool);
  }
  while (next < old.length) merged.push(old[next++] as Tool);
  return merged;
}
