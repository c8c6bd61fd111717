/**
 * Pages of listings, and the cache of what is made from lists of tools.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";
import { BoundedMap } from "./bounded_map.ts";
import { SAFE_HEADERS } from "./responses.ts";

/** A response body and its validator. */
export interface Page {
  readonly body: string;
  readonly etag: string;
}

/** Makes a page of any JSON. */
export function pageOf(value: unknown): Page {
  return withEtag(JSON.stringify(value));
}

/** True if the client's copy is current, by its `If-None-Match`. */
export function isCurrent(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

/** The response with a page, or 304 if the client's copy is current. */
export function pageResponse(request: Request, page: Page): Response {
  const headers = {
    etag: page.etag,
    "cache-control": "private, no-cache",
    // The caller decides what is listed.
    vary: "authorization, origin",
    ...SAFE_HEADERS,
  };
  return isCurrent(request.headers.get("if-none-match"), page.etag)
    ? new Response(null, { status: 304, headers })
    : new Response(page.body, {
      headers: { ...headers, "content-type": "application/json" },
    });
}

/**
 * A strong validator of the content. The registry's revision would not do: it counts from 0 in every
 * process, and a client may come back to another process.
 */
function withEtag(body: string): Page {
  let a = 0x811c9dc5;
  let b = 0x1000193;
  for (let index = 0; index < body.length; index++) {
    const unit = body.charCodeAt(index);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b) ^ (b >>> 13);
  }
  const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, "0");
  return { body, etag: `"${body.length.toString(16)}-${hex(a)}${hex(b)}"` };
}

/** How many characters of pages one handler keeps: a byte each, or two. */
const MAX_PAGES = 8 * 1_024 * 1_024;

/** Makes the cache for the pages of one handler, for all its callers and their queries. */
export function createPageCache(): ListCache<Page> {
  return new ListCache(MAX_PAGES, ({ body }) => body.length);
}

/** What it costs to keep anything, however small. */
const OVERHEAD = 512;

/**
 * Keeps values that were made of lists of tools. Clients choose what is made, by their queries: so
 * what is kept is weighed, over all lists, and not only counted.
 */
export class ListCache<Value> {
  /** A number for each list: a strong reference would keep the list alive. */
  readonly #numbers = new WeakMap<readonly Tool[], number>();
  readonly #values: BoundedMap<string, Value>;
  #count = 0;

  /**
   * @param room How much the values may weigh together.
   * @param weigh What a value weighs besides its key, in bytes or so.
   */
  constructor(room: number, weigh: (value: Value) => number) {
    this.#values = new BoundedMap({
      maxWeight: room,
      weigh: (value, key) => OVERHEAD + key.length + weigh(value),
    });
  }

  /** What is kept weighs this, and never more than there is room. */
  get weight(): number {
    return this.#values.weight;
  }

  /**
   * The value of a key, made if it is not kept. One that is made later is kept when it is there, and
   * not if it fails.
   *
   * @param tools A list that does not change.
   */
  of(tools: readonly Tool[], key: string, make: () => Value): Value;
  of(
    tools: readonly Tool[],
    key: string,
    make: () => Value | Promise<Value>,
  ): Value | Promise<Value>;
  of(
    tools: readonly Tool[],
    key: string,
    make: () => Value | Promise<Value>,
  ): Value | Promise<Value> {
    let number = this.#numbers.get(tools);
    if (number === undefined) this.#numbers.set(tools, number = this.#count++);
    const name = `${number} ${key}`;
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const made = make();
    const keep = (value: Value): Value => {
      this.#values.set(name, value);
      return value;
    };
    return made instanceof Promise ? made.then(keep) : keep(made);
  }
}
