/**
 * Remembers the toolsets that selections gave, so that a server that asks again pays nothing until
 * the registry changes.
 *
 * @module
 */

import {
  checkSelection,
  type Selection,
  type Toolset,
  toolsetOf,
  type ToolSource,
} from "../select/mod.ts";
import { numberOf, type Tool } from "../tool/mod.ts";

/** How many selections are remembered, as a server may make one for each request. */
const MAX_REMEMBERED = 256;

export class ToolsetCache {
  readonly #source: ToolSource;
  readonly #peek: () => readonly Tool[];
  #revision: number;
  #all: Toolset | undefined;
  /** By what the selection says; the one that was unused for longest comes first. */
  readonly #byKey: Map<string, Toolset> = new Map();

  /**
   * @param source Whose tools they are.
   * @param peek The source's tools, to be read at once: they need not be frozen.
   */
  constructor(source: ToolSource, peek: () => readonly Tool[]) {
    this.#source = source;
    this.#peek = peek;
    this.#revision = source.revision;
  }

  /** The toolset of a selection, as things are now. */
  select(selection: Selection | undefined): Toolset {
    this.#follow();
    if (selection === undefined) return this.#all ??= this.#build({});
    const key = keyOf(selection);
    const known = this.#byKey.get(key);
    // The same toolset as long as its filters and policies keep the same tools.
    const toolset = known?.isCurrent() ? known : this.#build(selection);
    this.#byKey.delete(key);
    this.#byKey.set(key, toolset);
    const [oldest] = this.#byKey.keys();
    if (this.#byKey.size > MAX_REMEMBERED) this.#byKey.delete(oldest as string);
    return toolset;
  }

  #build(selection: Selection): Toolset {
    return toolsetOf(this.#source, this.#peek(), selection, "tools", () => this.#source.tools);
  }

  /** Drops everything that an older revision gave. */
  #follow(): void {
    if (this.#revision === this.#source.revision) return;
    this.#revision = this.#source.revision;
    this.#all = undefined;
    this.#byKey.clear();
  }
}

/** Two selections that say the same, with the same filters and policies, have one key. */
function keyOf(selection: Selection): string {
  const { filters = [], policies = [], ...data } = checkSelection(selection);
  return `${filters.map(numberOf)} ${policies.map(numberOf)} ${JSON.stringify(data)}`;
}
