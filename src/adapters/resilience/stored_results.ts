/**
 * Results in a call store, which can be invalidated by tag.
 *
 * @module
 */

import {
  type CallStore,
  MAX_STORED_BYTES,
  ownerDigest,
  type StoredValue,
} from "../../execute/durable/mod.ts";
import { jsonEqual, type ToolSuccess } from "../../tool/mod.ts";

/** The key and the generation of each tag. A tag has another generation after each `invalidate`. */
type Generations = readonly (readonly [key: string, generation: string])[];

/** The part of a result that is stored. */
export interface StoredResult extends Pick<ToolSuccess, "content" | "blocks"> {
  /** The tags when its call began. */
  readonly tags: Generations;
}

/** Where the result of a call is stored. */
export interface Slot {
  readonly key: string;
  /** The revision of the value that is replaced. */
  readonly revision: number | undefined;
  readonly tags: Generations;
}

const ENCODER = new TextEncoder();

export class StoredResults {
  readonly #store: CallStore;

  constructor(store: CallStore) {
    this.#store = store;
  }

  /**
   * Returns the result under a key, or the slot for it.
   *
   * @param maxBytes A result that is larger is not returned.
   */
  async find(
    key: string,
    names: readonly string[],
    maxBytes: number,
  ): Promise<StoredResult | Slot> {
    const stored = await this.#store.get(key);
    // Before the tool runs: a result that is invalidated meanwhile is not returned later.
    const tags = await Promise.all(names.map(async (name) => {
      const tag = await tagKey(name);
      const generation = await this.#store.get(tag);
      return [tag, generation === undefined ? "" : textOf(generation)] as const;
    }));
    if (stored !== undefined && stored.value.byteLength <= maxBytes) {
      const result: StoredResult = JSON.parse(textOf(stored));
      if (jsonEqual(result.tags, tags)) return result;
    }
    return { key, revision: stored?.revision, tags };
  }

  /** Stores a result, unless it is too large, or another call was faster. */
  async put(
    { key, revision, tags }: Slot,
    { content, blocks }: ToolSuccess,
    expiresAt: number,
  ): Promise<void> {
    const result = { content, blocks, tags };
    const value = ENCODER.encode(JSON.stringify(result));
    if (value.byteLength <= MAX_STORED_BYTES) await this.#write(key, value, revision, expiresAt);
  }

  /** Gives a tag another generation. */
  async invalidate(name: string, expiresAt: number): Promise<void> {
    const key = await tagKey(name);
    const value = ENCODER.encode(crypto.randomUUID());
    for (;;) {
      const revision = (await this.#store.get(key))?.revision;
      if (await this.#write(key, value, revision, expiresAt) !== undefined) return;
    }
  }

  #write(
    key: string,
    value: Uint8Array,
    revision: number | undefined,
    expiresAt: number,
  ): Promise<number | undefined> {
    return revision === undefined
      ? this.#store.create(key, value, { expiresAt })
      : this.#store.update(key, value, revision, { expiresAt });
  }
}

async function tagKey(name: string): Promise<string> {
  return `tag.shared.${await ownerDigest(name)}`;
}

function textOf({ value }: StoredValue): string {
  return new TextDecoder().decode(value);
}
