/**
 * The query of a listing: a selection, a search and a page. What it does not know is an error
 * that says so: a misspelt filter that is ignored would show too much.
 *
 * @module
 */

import type { Selection, ToolAvailabilityFields } from "../../select/mod.ts";
import { isRiskLevel, isToolName, RISK_LEVELS } from "../../tool/mod.ts";
import { RequestError } from "./request_error.ts";

/** A query, read. */
export interface ListingQuery {
  /** What it narrows the caller's tools to; `undefined` if to nothing. */
  readonly selection: Selection | undefined;
  /** Words to search for, best match first; `undefined` lists by id. */
  readonly search: string | undefined;
  /** How many tools the page has at most. */
  readonly limit: number;
  /** Where the page begins, as the page before it said. */
  readonly cursor: string | undefined;
  /** The target to export to; `undefined` for the handler's own shape. */
  readonly format: string | undefined;
  /** Whether an export says what the target cannot. */
  readonly losses: boolean;
  /** Names the page among those of one toolset: the query in a fixed order. */
  readonly key: string;
}

/** How many tools a page may have. */
export const MAX_PAGE = 1000;

/** How many tools a search answers where the query does not say: the best ones. */
const DEFAULT_HITS = 10;
const MAX_TEXT = 512;
const FLAGS = [
  "hasWorkspace",
  "hasTerminal",
  "hasEditor",
  "hasGit",
  "readOnly",
] as const;

type Reader = (value: string, name: string) => unknown;

const oneWord: Reader = (value, name) => {
  if (value.length > MAX_TEXT) {
    throw new RequestError(
      `Query parameter "${name}" is longer than ${MAX_TEXT} characters`,
    );
  }
  return value;
};

const READERS = {
  role: oneWord,
  maxRisk: (value, name) => {
    if (isRiskLevel(value)) return value;
    throw unfit(name, value, `one of ${RISK_LEVELS.join(", ")}`);
  },
  category: words,
  tagsAny: words,
  tagsAll: words,
  namespace: (value, name) => {
    if (isToolName(value)) return value;
    throw unfit(name, value, "a namespace");
  },
  q: oneWord,
  limit: (value, name) => {
    const limit = /^\d{1,4}$/.test(value) ? Number(value) : 0;
    if (limit >= 1 && limit <= MAX_PAGE) return limit;
    throw unfit(name, value, `a whole number from 1 to ${MAX_PAGE}`);
  },
  cursor: oneWord,
  format: oneWord,
  losses: (value, name) => {
    if (value === "1" || value === "0") return value === "1";
    throw unfit(name, value, "1 or 0");
  },
  hasWorkspace: flag,
  hasTerminal: flag,
  hasEditor: flag,
  hasGit: flag,
  readOnly: flag,
} as const satisfies Record<string, Reader>;

/** The parameters of a listing, in the order of its key. */
const NAMES: ReadonlySet<string> = new Set(Object.keys(READERS));

/**
 * Reads the query of a listing.
 *
 * @param url The request's.
 * @throws {RequestError} If a parameter is unknown, empty, given twice, or has a bad value.
 */
export function readListingQuery(url: string): ListingQuery {
  return url.includes("?") ? readParameters(new URL(url).searchParams) : NO_QUERY;
}

function readParameters(parameters: URLSearchParams): ListingQuery {
  for (const name of parameters.keys()) {
    if (!NAMES.has(name)) {
      throw new RequestError(
        `Query parameter ${JSON.stringify(name.slice(0, 60))} is unknown: known are ${
          [...NAMES].join(", ")
        }`,
      );
    }
  }
  const read = <Name extends keyof typeof READERS>(
    name: Name,
  ): ReturnType<(typeof READERS)[Name]> | undefined => {
    const values = parameters.getAll(name);
    const [value] = values;
    if (value === undefined) return undefined;
    if (values.length > 1) {
      throw new RequestError(`Query parameter "${name}" is given twice`);
    }
    if (value === "") {
      throw new RequestError(`Query parameter "${name}" is empty`);
    }
    return READERS[name](value, name) as ReturnType<(typeof READERS)[Name]>;
  };

  const context: Record<string, boolean> = {};
  for (const name of FLAGS) {
    const value = read(name);
    if (value !== undefined) context[name] = value;
  }
  const selection = {
    ...present("role", read("role") as string | undefined),
    ...present("maxRisk", read("maxRisk")),
    ...present("categories", read("category")),
    ...present("tagsAny", read("tagsAny")),
    ...present("tagsAll", read("tagsAll")),
    ...present("namespace", read("namespace")),
    ...present(
      "context",
      Object.keys(context).length === 0 ? undefined : context as ToolAvailabilityFields,
    ),
  };
  const format = read("format") as string | undefined;
  if (format === undefined && parameters.has("losses")) {
    throw new RequestError('Query parameter "losses" goes with "format"');
  }
  // An export is whole; only a search has a limit.
  const paging = ["cursor", parameters.has("q") ? "" : "limit"].find((name) =>
    parameters.has(name)
  );
  if (format !== undefined && paging !== undefined) {
    throw new RequestError(
      `Query parameter "${paging}" does not go with "format": an export is whole`,
    );
  }
  return {
    format,
    losses: read("losses") ?? false,
    selection: Object.keys(selection).length === 0 ? undefined : selection,
    search: read("q") as string | undefined,
    limit: read("limit") ?? (parameters.has("q") ? DEFAULT_HITS : MAX_PAGE),
    cursor: read("cursor") as string | undefined,
    key: JSON.stringify([...NAMES].map((name) => parameters.get(name) ?? 0)),
  };
}

/** What a listing without a query is. Most are. */
const NO_QUERY: ListingQuery = readParameters(new URLSearchParams());

/**
 * Refuses every parameter: for routes that have none.
 *
 * @param url The request's.
 */
export function refuseQuery(url: string): void {
  if (!url.includes("?")) return;
  const [name] = new URL(url).searchParams.keys();
  if (name !== undefined) {
    throw new RequestError(
      `Query parameter ${JSON.stringify(name.slice(0, 60))} is unknown: this route has none`,
    );
  }
}

function words(value: string, name: string): readonly string[] {
  oneWord(value, name);
  const list = value.split(",").map((word) => word.trim());
  if (list.includes("")) throw unfit(name, value, 'words, separated by ","');
  return list;
}

function flag(value: string, name: string): boolean {
  if (value === "true" || value === "false") return value === "true";
  throw unfit(name, value, "true or false");
}

function unfit(name: string, value: string, wanted: string): RequestError {
  return new RequestError(
    `Query parameter "${name}" is ${JSON.stringify(value.slice(0, 60))}, and must be ${wanted}`,
  );
}

function present<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { [_ in Name]?: Value } {
  return value === undefined ? {} : { [name]: value } as { [_ in Name]?: Value };
}
