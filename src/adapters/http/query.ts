/**
 * The query of a listing: a selection, a search and a page. An unknown parameter is an error: a
 * misspelt filter that is ignored would show too much.
 */

import type { RequestSettings, ToolChoice } from "../../formats/mod.ts";
import {
  CRITERION_NAMES,
  READER_FIELDS,
  type Selection,
  selectionFrom,
  type ValueKind,
  valueKind,
  type VocabularyName,
} from "../../select/mod.ts";
import { defined, isToolId } from "../../tool/mod.ts";
import { RequestError } from "./responses.ts";

export interface ListingQuery {
  /** The selection of the caller's tools; `undefined` for all of them. */
  readonly selection: Selection | undefined;
  /** Words to search for, best match first; `undefined` lists by id. */
  readonly search: string | undefined;
  readonly minScore: number | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
  /** The target to export to; `undefined` for the handler's own format. */
  readonly format: string | undefined;
  readonly bridge: boolean;
  /** The maximum number of tokens of an export. */
  readonly tokens: number | undefined;
  /** True if an export lists what the target cannot express. */
  readonly losses: boolean;
  /** Whether the model must call a tool, and may call several together. */
  readonly settings: RequestSettings | undefined;
  /** The query in a fixed order: two queries with one key have the same page. */
  readonly key: string;
}

export const MAX_PAGE = 1000;

/** The number of tools that a search returns without a limit in the query. */
const DEFAULT_HITS = 10;
const MAX_TEXT = 512;
/** The maximum length of a search query, which equals the limit of plue's index. */
const MAX_SEARCH = 8_192;

type Reader = (value: string, name: string) => unknown;

/** Reads a value from a table; other text is an error that lists the valid values. */
function fitting<Value>(
  wanted: string,
  valueOf: (text: string) => Value | undefined,
): (text: string, name: string) => Value {
  return (text, name) => {
    const value = valueOf(text);
    if (value !== undefined) return value;
    throw unfit(name, text, wanted);
  };
}

function either(yes: string, no: string): (text: string, name: string) => boolean {
  return fitting(`${yes} or ${no}`, (text) => text === yes || (text === no ? false : undefined));
}

const digit = either("1", "0");
const flag = either("true", "false");

function oneWord(value: string, name: string): string {
  return atMost(MAX_TEXT, value, name);
}

function readerOf({ shape, check }: ValueKind): Reader {
  return (text, name) => {
    oneWord(text, name);
    const value = shape === "list"
      ? text.split(",").map((item) => item.trim())
      : shape === "flag"
      ? FLAGS.get(text) ?? text
      : text;
    try {
      return check("read the query", value, `"${name}"`);
    } catch (error) {
      throw new RequestError((error as Error).message);
    }
  };
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([["true", true], ["false", false]]);

function atMost(length: number, value: string, name: string): string {
  if (value.length <= length) return value;
  throw new RequestError(`Query parameter "${name}" is longer than ${length} characters`);
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

const OTHERS: {
  readonly [Name in keyof OtherValues]: (value: string, name: string) => OtherValues[Name];
} = {
  q: (value, name) => atMost(MAX_SEARCH, value, name),
  minScore: fitting("a number from 0 to 1", numberLike(/^(0|1|0\.\d{1,6})$/)),
  limit: fitting(`a whole number from 1 to ${MAX_PAGE}`, (text) => {
    const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
    return limit >= 1 && limit <= MAX_PAGE ? limit : undefined;
  }),
  cursor: oneWord,
  format: oneWord,
  tokens: fitting("a whole number from 1 to 9999999", numberLike(/^[1-9]\d{0,6}$/)),
  losses: digit,
  toolChoice: fitting(
    "auto, none, required or the id of a tool",
    (text): ToolChoice | undefined => {
      if (text === "auto" || text === "none" || text === "required") return text;
      return isToolId(text) ? { tool: text } : undefined;
    },
  ),
  parallel: flag,
  bridge: digit,
};

type QueryValues = Partial<OtherValues> & { readonly [Name in VocabularyName]?: unknown };

const READERS: { readonly [name: string]: Reader } = {
  ...Object.fromEntries(
    [...CRITERION_NAMES, ...READER_FIELDS].map((name) => [name, readerOf(valueKind(name))]),
  ),
  ...OTHERS,
};

/** The parameters of a listing, in the order of its key. */
const NAMES = Object.keys(READERS);

/** Reads the query of a listing. */
export function readListingQuery(url: string): ListingQuery {
  return url.includes("?") ? readParameters(new URL(url).searchParams) : NO_QUERY;
}

/** Parameters that exclude each other. A bridge has its own search tool. */
const APART = [["limit", "tokens"], ["q", "bridge"], ["tokens", "bridge"]] as const;

/** Reads the parameters of a query, and rejects unknown ones. */
export function readValues(parameters: URLSearchParams, known: readonly string[]): QueryValues {
  const values: Record<string, unknown> = {};
  for (const [given, value] of parameters) {
    const name = known.find((one) => one === given);
    if (name === undefined) {
      throw new RequestError(
        `Query parameter ${JSON.stringify(given.slice(0, 60))} is unknown: ${
          known.length === 0 ? "this route has none" : `known are ${known.join(", ")}`
        }`,
      );
    }
    if (name in values) throw new RequestError(`Query parameter "${name}" is given twice`);
    if (value === "") throw new RequestError(`Query parameter "${name}" is empty`);
    values[name] = READERS[name]?.(value, name);
  }
  return values;
}

function readParameters(parameters: URLSearchParams): ListingQuery {
  const values = readValues(parameters, NAMES);
  const { q, minScore, limit, cursor, bridge = false, ...exported } = values;
  const { format, tokens, losses, toolChoice, parallel, ...criteria } = exported;
  for (const [name, value] of Object.entries({ losses, tokens, toolChoice, parallel })) {
    if (format === undefined && value !== undefined) {
      throw new RequestError(`Query parameter "${name}" goes with "format"`);
    }
  }
  for (const [name, other] of APART) {
    if (values[name] !== undefined && values[other]) {
      throw new RequestError(`Query parameter "${name}" does not go with "${other}"`);
    }
  }
  if (q === undefined && minScore !== undefined) {
    throw new RequestError('Query parameter "minScore" goes with "q"');
  }
  // An export is complete; only a search has a limit.
  const paging = cursor !== undefined
    ? "cursor"
    : limit !== undefined && q === undefined
    ? "limit"
    : undefined;
  if (format !== undefined && paging !== undefined) {
    throw new RequestError(
      `Query parameter "${paging}" does not go with "format": an export is whole`,
    );
  }
  return {
    format,
    bridge,
    tokens,
    losses: losses ?? false,
    settings: toolChoice === undefined && parallel === undefined
      ? undefined
      : defined({ toolChoice, parallel }),
    selection: selectionFrom(criteria),
    search: q,
    minScore,
    limit: limit ?? (q === undefined ? MAX_PAGE : DEFAULT_HITS),
    cursor,
    key: JSON.stringify(NAMES.map((name) => parameters.get(name) ?? 0)),
  };
}

/** The query of a request without parameters, the most frequent case. */
const NO_QUERY: ListingQuery = readParameters(new URLSearchParams());

/** Reads the query of a route that takes filters only. */
export function readFilters(
  what: string,
  url: string,
  { takesBridge = false }: { readonly takesBridge?: boolean } = {},
): ListingQuery {
  const query = readListingQuery(url);
  const { search, cursor, format, limit, bridge } = query;
  if (
    search === undefined && cursor === undefined && format === undefined && limit === MAX_PAGE &&
    (takesBridge || !bridge)
  ) return query;
  const allowed = takesBridge ? 'filters and "bridge"' : "filters";
  throw new RequestError(`The query of ${what} may have ${allowed} only`);
}

/** Reads the query of a route whose one parameter is `bridge`. */
export function readBridgeQuery(url: string): boolean {
  return url.includes("?") && (readValues(new URL(url).searchParams, ["bridge"]).bridge ?? false);
}

function numberLike(pattern: RegExp): (text: string) => number | undefined {
  return (text) => pattern.test(text) ? Number(text) : undefined;
}

function unfit(name: string, value: string, wanted: string): RequestError {
  return new RequestError(
    `Query parameter "${name}" is ${JSON.stringify(value.slice(0, 60))}, and must be ${wanted}`,
  );
}
