/**
 * Remembers the toolsets that selections gave, so that a server that asks again pays nothing until
 * the registry changes.
 *
 * @module
 */

import {
  type Selection,
  selectionKey,
  ToolAvailabilityContext,
  type ToolAvailabilityInput,
  type Toolset,
  toolsetOf,
  type ToolSource,
} from "../select/mod.ts";
import type { Tool } from "../tool/mod.ts";

/** How many selections are remembered: a server that builds them from requests must not grow. */
const MAX_REMEMBERED = 256;

/** The toolsets of one source. */
export class ToolsetCache {
  readonly #source: ToolSource;
  readonly #peek: () => readonly Tool[];
  #revision: number;
  #all: Toolset | undefined;
  /** Contexts are immutable, so that the object is enough of a key. */
  #byContext: WeakMap<ToolAvailabilityContext, Toolset> = new WeakMap();
  /** By what the selection says; the first one is the one unused for longest. */
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
    let toolset = this.#byKey.get(key);
    if (toolset === undefined) toolset = this.#build(selection);
    else this.#byKey.delete(key);
    this.#byKey.set(key, toolset);
    if (this.#byKey.size > MAX_REMEMBERED) this.#forgetOldest();
    return toolset;
  }

  /** The toolset of an availability context. */
  inContext(input: ToolAvailabilityInput | undefined): Toolset {
    if (input === undefined) return this.select(undefined);
    this.#follow();
    const context = ToolAvailabilityContext.from(input);
    let toolset = this.#byContext.get(context);
    if (toolset === undefined) {
      toolset = this.select({ context });
      this.#byContext.set(context, toolset);
    }
    return toolset;
  }

  #build(selection: Selection): Toolset {
    return toolsetOf(this.#source, this.#peek(), selection, "tools");
  }

  /** Drops everything that an older revision gave. */
  #follow(): void {
    if (this.#revision === this.#source.revision) return;
    this.#revision = this.#source.revision;
    this.#all = undefined;
    this.#byContext = new WeakMap();
    this.#byKey.clear();
  }

  #forgetOldest(): void {
    for (const key of this.#byKey.keys()) {
      this.#byKey.delete(key);
      return;
    }
  }
}

/** Two selections that say the same, with the same filters and policies, have one key. */
function keyOf(selection: Selection): string {
  const key = selectionKey(selection);
  if (key !== undefined) return key;
  const { filters = [], policies = [], ...data } = selection;
  return `${filters.map(numberOf)} ${policies.map(numberOf)} ${selectionKey(data)}`;
}

const numbers = new WeakMap<object, number>();
let count = 0;

/** Names an object for keys: what a function does cannot be told from outside, only which it is. */
function numberOf(object: object): number {
  let number = numbers.get(object);
  if (number === undefined) numbers.set(object, number = ++count);
  return number;
}
