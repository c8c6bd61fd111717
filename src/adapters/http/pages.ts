/**
 * Pages of listings: their queries, validators and cache. An unknown query parameter is an error,
 * because ignoring a misspelt filter would show too much.
 */

import type { RequestSettings, ToolChoice } from "../../formats/mod.ts";
import * as select from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { once, type Tool } from "../../tool/mod.ts";
import { RequestError, SAFE_HEADERS } from "./responses.ts";

export interface ListingQuery {
  readonly selection: select.Selection | undefined;
  /** Words to search for; the best match comes first. If `undefined`, tools are listed by id. */
  readonly search: string | undefined;
  readonly minScore: number | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly format: string | undefined;
  readonly bridge: boolean;
  readonly tokens: number | undefined;
  /** True if an export lists the parts of tools that the target cannot express. */
  readonly losses: boolean;
  /** The model's tool choice, and whether the model may call several tools together. */
  readonly settings: RequestSettings | undefined;
  /** The query in a fixed order: queries with the same key have the same page. */
  readonly key: string;
}

export const MAX_PAGE = 1000;

/** The number of tools that a search returns without a limit in the query. */
const DEFAULT_HITS = 10;
const MAX_TEXT = 512;
/** The limit of the search index. */
const MAX_SEARCH = 8_192;

type Reader<Value = unknown> = (text: string, name: string) => Value;

/** Makes a reader that throws an error with the valid values if `valueOf` returns `undefined`. */
function fitting<Value>(
  wanted: string,
  valueOf: (text: string) => Value | undefined,
): Reader<Value> {
  return (text, name) => {
    const value = valueOf(text);
    if (value !== undefined) return value;
    const shown = JSON.stringify(text.slice(0, 60));
    throw new RequestError(`Query parameter "${name}" is ${shown}, and must be ${wanted}`);
  };
}

function flagOf(yes: string, no: string): Reader<boolean> {
  return fitting(`${yes} or ${no}`, (text) => text === yes || (text === no ? false : undefined));
}

function numberLike(wanted: string, pattern: RegExp): Reader<number> {
  return fitting(wanted, (text) => pattern.test(text) ? Number(text) : undefined);
}

function textUpTo(length: number): Reader<string> {
  return (text, name) => {
    if (text.length <= length) return text;
    throw new RequestError(`Query parameter "${name}" is longer than ${length} characters`);
  };
}

function readerOf({ shape, check }: select.ValueKind): Reader {
  return (text, name) => {
    textUpTo(MAX_TEXT)(text, name);
    const value = shape === "list"
      ? text.split(",").map((item) => item.trim())
      : shape === "flag" && /^(true|false)$/.test(text)
      ? text === "true"
      : text;
    try {
      return check("read the query", value, `"${name}"`);
    } catch (error) {
      throw new RequestError((error as Error).message);
    }
  };
}

/** The values of the parameters that are not criteria. */
interface OtherValues {
  readonly q: string;
  readonly minScore: number;
  readonly limit: number;
  readonly cursor: string;
  readonly format: string;
  readonly tokens: number;
  readonly losses: boolean;
  readonly toolChoice: ToolChoice;
  readonly parallel: boolean;
  readonly bridge: boolean;
}

function otherReaders(): { readonly [Name in keyof OtherValues]: Reader<OtherValues[Name]> } {
  return {
    q: textUpTo(MAX_SEARCH),
    minScore: numberLike("a number from 0 to 1", /^(0|1|0\.\d{1,6})$/),
    limit: numberLike(`a whole number from 1 to ${MAX_PAGE}`, /^([1-9]\d{0,2}|1000)$/),
    cursor: textUpTo(MAX_TEXT),
    format: textUpTo(MAX_TEXT),
    tokens: numberLike("a whole number from 1 to 9999999", /^[1-9]\d{0,6}$/),
    losses: flagOf("1", "0"),
    toolChoice: fitting(
      "auto, none, required or the id of a tool",
      (text): ToolChoice | undefined =>
        text === "auto" || text === "none" || text === "required"
          ? text
          : check.isToolId(text)
          ? { tool: text }
          : undefined,
    ),
    parallel: flagOf("true", "false"),
    bridge: flagOf("1", "0"),
  };
}

type QueryValues =
  & Partial<OtherValues>
  & { readonly [Name in select.VocabularyName]?: unknown };

function allReaders(): { readonly [name: string]: Reader } {
  const criteria = [...select.CRITERION_NAMES, ...select.READER_FIELDS];
  return {
    ...Object.fromEntries(criteria.map((name) => [name, readerOf(select.valueKind(name))])),
    ...otherReaders(),
  };
}

// Marked as pure, so that a bundle omits these values if it reads no queries.
const READERS = /* @__PURE__ */ allReaders();
/** The parameters of a listing, in the order of its key. */
const NAMES = /* @__PURE__ */ Object.keys(READERS);
/** Parameters that exclude each other. A bridge has its own search tool. */
const APART = [["limit", "tokens"], ["q", "bridge"], ["tokens", "bridge"]] as const;
const NO_QUERY = /* @__PURE__ */ readParameters(/* @__PURE__ */ new URLSearchParams());

export function readListingQuery(url: string): ListingQuery {
  return url.includes("?") ? readParameters(new URL(url).searchParams) : NO_QUERY;
}

export function readValues(parameters: URLSearchParams, known: readonly string[]): QueryValues {
  const values: Record<string, unknown> = {};
  for (const [parameter, value] of parameters) {
    const name = known.find((one) => one === parameter);
    if (name === undefined) {
      throw new RequestError(
        `Query parameter ${JSON.stringify(parameter.slice(0, 60))} is unknown: ${
          known.length === 0 ? "this route has none" : `known are ${known.join(", ")}`
        }`,
      );
    }
    if (name in values) throw new RequestError(`Query parameter "${name}" is given twice`);
    if (value === "") throw new RequestError(`Query parameter "${name}" is empty`);
    values[name] = (READERS[name] ?? textUpTo(MAX_TEXT))(value, name);
  }
  return values;
}

function readParameters(parameters: URLSearchParams): ListingQuery {
  const values = readValues(parameters, NAMES);
  const { q, minScore, limit, cursor, bridge = false, ...exported } = values;
  const { format, tokens, losses, toolChoice, parallel, ...criteria } = exported;
  for (const [name, value] of Object.entries({ losses, tokens, toolChoice, parallel })) {
    if (format === undefined && value !== undefined) {
      throw new RequestError(`Query parameter "${name}" needs the parameter "format"`);
    }
  }
  for (const [name, other] of APART) {
    if (values[name] !== undefined && values[other]) {
      throw new RequestError(`Query parameter "${name}" cannot be used with "${other}"`);
    }
  }
  if (q === undefined && minScore !== undefined) {
    throw new RequestError('Query parameter "minScore" needs the parameter "q"');
  }
  // An export has no pages, so it cannot have a cursor. With `q`, it can have a limit.
  if (format !== undefined && (cursor !== undefined || limit !== undefined && q === undefined)) {
    const paging = cursor === undefined ? "limit" : "cursor";
    throw new RequestError(
      `Query parameter "${paging}" cannot be used with "format": an export has no pages`,
    );
  }
  return {
    format,
    bridge,
    tokens,
    losses: losses ?? false,
    settings: toolChoice === undefined && parallel === undefined
      ? undefined
      : check.defined({ toolChoice, parallel }),
    selection: select.selectionFrom(criteria),
    search: q,
    minScore,
    limit: limit ?? (q === undefined ? MAX_PAGE : DEFAULT_HITS),
    cursor,
    key: JSON.stringify(NAMES.map((name) => parameters.get(name) ?? 0)),
  };
}

/** Reads the query of a route whose only parameters are filters, and `bridge` if `allowsBridge`. */
export function readFilters(
  what: string,
  url: string,
  { allowsBridge = false }: { readonly allowsBridge?: boolean } = {},
): ListingQuery {
  const query = readListingQuery(url);
  const { search, cursor, format, limit, bridge } = query;
  if (
    search === undefined && cursor === undefined && format === undefined && limit === MAX_PAGE &&
    (allowsBridge || !bridge)
  ) return query;
  const allowed = allowsBridge ? 'filters and "bridge"' : "filters";
  throw new RequestError(`The query of ${what} may have only ${allowed}`);
}

export function readBridgeQuery(url: string): boolean {
  return url.includes("?") && (readValues(new URL(url).searchParams, ["bridge"]).bridge ?? false);
}

/** A response body and its validator. */
export interface Page {
  readonly body: string;
  readonly etag: string;
}

/**
 * Makes a page with a strong validator of its content. The registry's revision cannot be the validator:
 * each process counts from 0, and a client's next request may reach another process.
 */
export function pageOf(value: unknown): Page {
  const body = JSON.stringify(value);
  return { body, etag: `"${check.fingerprint(body)}"` };
}

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

export function responseWithEtag(
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

/** The maximum size of the cached pages of one handler, in characters. */
const MAX_PAGES = 8 * 1_024 * 1_024;

const caches = new WeakMap<object, ListCache<Page>>();

export function pagesOf(server: object): ListCache<Page> {
  return once(caches, server, () => new ListCache(MAX_PAGES, ({ body }) => body.length));
}

/** The size that each entry counts in addition to its key and value. */
const OVERHEAD = 512;

/** Caches values made of lists of tools. Clients choose them, so their total weight is bounded. */
export class ListCache<Value> {
  readonly #values: check.BoundedMap<string, Value>;

  /** @param weigh Returns the weight of a value, without its key, in bytes. */
  constructor(maxWeight: number, weigh: (value: Value) => number) {
    this.#values = new check.BoundedMap({
      maxWeight,
      weigh: (value, key) => OVERHEAD + key.length + weigh(value),
    });
  }

  get weight(): number {
    return this.#values.weight;
  }

  /** Returns the value of a key, or makes it. A promise is cached when it resolves. */
  of<Made extends Value | Promise<Value>>(
    tools: readonly Tool[],
    key: string,
    make: () => Made,
  ): Value | Made {
    // A strong reference would keep the list alive.
    const name = `${check.numberOf(tools)} ${key}`;
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
  /** The page's HTML, with its script and style. */
  readonly html: string;
  /** The page's `Content-Security-Policy`, which allows its script and style by their digests. */
  readonly policy: string;
  /** The page's validator: a strong `ETag`. */
  readonly etag: string;
}
