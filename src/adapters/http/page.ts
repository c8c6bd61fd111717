/**
 * Pages: listings with the cache of values that are made from lists of tools, and `GET /` with the
 * option `explorer`, the page that shows the tools to people.
 */

import type { HttpPart } from "./request.ts";
import {
  BoundedMap,
  type Check,
  createCheck,
  isObject,
  numberOf,
  once,
  type Tool,
} from "../../tool/mod.ts";
import { SAFE_HEADERS } from "./responses.ts";

/** A response body and its validator. */
export interface Page {
  readonly body: string;
  readonly etag: string;
}

export function pageOf(value: unknown): Page {
  return withEtag(JSON.stringify(value));
}

/** True if the client's copy is current, by its `If-None-Match`. */
export function isCurrent(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

export function pageResponse(request: Request, page: Page): Response {
  return responseWithEtag(request, page, "application/json", {
    "cache-control": "private, no-cache",
    // The list depends on the caller.
    vary: "authorization, origin",
  });
}

/** Returns the page, or 304 if the client's copy is current. */
function responseWithEtag(
  request: Request,
  { body, etag }: Page,
  type: string,
  more: Readonly<Record<string, string>>,
): Response {
  const headers = { etag, ...more, ...SAFE_HEADERS };
  return isCurrent(request.headers.get("if-none-match"), etag)
    ? new Response(null, { status: 304, headers })
    : new Response(body, { headers: { ...headers, "content-type": type } });
}

/**
 * Adds a strong validator of the content. The registry's revision counts from 0 in every process,
 * and the next request of a client may reach another process.
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

/** The maximum size of the cached pages of one handler, in characters. */
const MAX_PAGES = 8 * 1_024 * 1_024;

const caches = new WeakMap<object, ListCache<Page>>();

/** Returns the cache for the pages of one server. */
export function pagesOf(server: object): ListCache<Page> {
  return once(caches, server, () => new ListCache(MAX_PAGES, ({ body }) => body.length));
}

/** The weight of every entry, in addition to its value. */
const OVERHEAD = 512;

/**
 * Caches values that are made from lists of tools. Clients choose the values by their queries: the
 * weight of all is bounded.
 */
export class ListCache<Value> {
  readonly #values: BoundedMap<string, Value>;

  /** @param weigh Returns the weight of a value, without its key, in bytes. */
  constructor(maxWeight: number, weigh: (value: Value) => number) {
    this.#values = new BoundedMap({
      maxWeight,
      weigh: (value, key) => OVERHEAD + key.length + weigh(value),
    });
  }

  get weight(): number {
    return this.#values.weight;
  }

  /**
   * Returns the value of a key, or makes it. A promised value is cached when it resolves, and not
   * if it rejects.
   */
  of<Made extends Value | Promise<Value>>(
    tools: readonly Tool[],
    key: string,
    make: () => Made,
  ): Value | Made {
    // A strong reference would keep the list alive.
    const name = `${numberOf(tools)} ${key}`;
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const made = make();
    if (made instanceof Promise) made.then((value) => this.#values.set(name, value), () => {});
    else this.#values.set(name, made as Value);
    return made;
  }
}

/** A page of one file, as `@plue/tools/explorer` has it. */
export interface ExplorerPage {
  /** The whole page. */
  readonly html: string;
  /** Its `Content-Security-Policy`: it names the page's own script and style by their digests. */
  readonly policy: string;
  /** Its validator, a strong `ETag`. */
  readonly etag: string;
}

/** Checks that an option is a page. */
export const checkExplorer: Check<ExplorerPage> = /* @__PURE__ */ createCheck(
  "the explorer of @plue/tools/explorer",
  (value): value is ExplorerPage =>
    isObject(value) &&
    ["html", "policy", "etag"].every((field) => typeof value[field] === "string"),
);

/**
 * The part that shows the tools to people: `GET /`. The page is public; it reads the tools from the
 * other routes, as the caller whose token was pasted into it.
 *
 * @param page `explorer` of `@plue/tools/explorer`.
 * @throws {TypeError} If it is not such a page.
 */
export function serveExplorer(page: ExplorerPage): HttpPart {
  const { html: body, policy, etag } = checkExplorer("serve the explorer", page, "it");
  const answerPublic = (request: Request): Response =>
    responseWithEtag(request, { body, etag }, "text/html; charset=utf-8", {
      "cache-control": "no-cache",
      "content-security-policy": policy,
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    });
  return () => ({ routes: [{ method: "GET", path: "/", answerPublic }] });
}
