/**
 * The tools of a registry by id and by alias, their revision, and their list in order of id. The
 * list is brought up to date by merging in what changed: one change among 10,000 tools does not
 * sort them again, and 10,000 registrations in a row sort once.
 *
 * @module
 */

import { claimNames, freezeInOrder } from "../select/mod.ts";
import type { Tool } from "../tool/mod.ts";
import type { ToolLifecycle } from "./lifecycle.ts";
import type { AdmissionAction } from "./options.ts";

/** A map of tools that counts its changes. */
export class ToolMap {
  /** By id, in order of registration. */
  readonly #lives: Map<string, ToolLifecycle> = new Map();
  /** Ids by alias. */
  readonly #aliases: Map<string, string> = new Map();
  /** Sorted by id, in code-unit order. Replaced, never changed. */
  #sorted: readonly Tool[] = [];
  #isFrozen = false;
  #ids: readonly string[] | undefined;
  /** The ids that were added, removed or replaced since `#sorted` was made. */
  readonly #changed: Set<string> = new Set();
  /** Counts changes, from 0. */
  revision = 0;

  /** The number of tools. */
  get size(): number {
    return this.#lives.size;
  }

  /** The tools as they are now. The same frozen array until the next change. */
  get tools(): readonly Tool[] {
    const tools = this.peek();
    if (!this.#isFrozen) {
      freezeInOrder(tools);
      this.#isFrozen = true;
    }
    return tools;
  }

  /** The ids of `tools`, in the same order. */
  get ids(): readonly string[] {
    return this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id));
  }

  /**
   * The tools as they are now, not frozen: to read at once, and never to hand out. To freeze a long
   * array is slow (JavaScriptCore: 2 ms for 10,000), and a listing need not wait for it.
   */
  peek(): readonly Tool[] {
    if (this.#changed.size > 0) {
      this.#sorted = merge(this.#sorted, [...this.#changed].sort(), (id) => this.get(id)?.tool);
      this.#changed.clear();
      this.#isFrozen = false;
    }
    return this.#sorted;
  }

  get(id: string): ToolLifecycle | undefined {
    return this.#lives.get(id);
  }

  has(id: string): boolean {
    return this.#lives.has(id);
  }

  /** In order of registration. */
  values(): readonly ToolLifecycle[] {
    return [...this.#lives.values()];
  }

  /** Refuses tools whose ids or aliases are those of other tools. */
  checkNames(added: readonly ToolLifecycle[], action: AdmissionAction): void {
    const ownerOf = (name: string): string | undefined =>
      this.has(name) ? name : this.#aliases.get(name);
    const claimed = new Map<string, string>();
    for (const { tool } of added) claimNames(`${action} tool "${tool.id}"`, tool, ownerOf, claimed);
  }

  /** Sets a tool, or replaces the one with its id. */
  set(life: ToolLifecycle): void {
    const { id, aliases } = life.tool;
    this.#forgetAliases(id);
    this.#lives.set(id, life);
    for (const alias of aliases) this.#aliases.set(alias, id);
    this.#touch(id);
  }

  /** Removes a tool, if it is there. */
  delete(id: string): void {
    this.#forgetAliases(id);
    if (this.#lives.delete(id)) this.#touch(id);
  }

  #forgetAliases(id: string): void {
    for (const alias of this.get(id)?.tool.aliases ?? []) this.#aliases.delete(alias);
  }

  #touch(id: string): void {
    this.#changed.add(id);
    this.#ids = undefined;
    this.revision++;
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
