/**
 * A page of tools as bytes with an ETag, made once for as long as the tools stay the same.
 *
 * @module
 */

import { searchToolset } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import type { FormatService } from "./formats.ts";
import { ListCache } from "./list_cache.ts";
import type { ListingQuery } from "./query.ts";
import { RequestError } from "./request_error.ts";

/** A response body and its validator. */
export interface Page {
  readonly body: string;
  readonly etag: string;
}

/** What a caller is told of a tool. Roles and scopes are the owner's business, and stay out. */
export function describeTool(tool: Tool): Record<string, unknown> {
  const {
    id,
    name,
    namespace,
    title,
    description,
    version,
    parameters,
    returns,
  } = tool;
  return {
    id,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(title === undefined ? {} : { title }),
    description,
    ...(version === undefined ? {} : { version }),
    parameters,
    ...(returns === undefined ? {} : { returns }),
    ...(tool.category === undefined ? {} : { category: tool.category }),
    risk: tool.risk,
    tags: tool.tags,
    annotations: tool.annotations,
    ...(tool.examples.length === 0 ? {} : { examples: tool.examples }),
    ...(tool.icons.length === 0 ? {} : { icons: tool.icons }),
    ...(tool.deprecated === false ? {} : { deprecated: tool.deprecated }),
    ...(tool.requiresApproval ? { requiresApproval: true } : {}),
    ...(tool.timeoutMs === undefined ? {} : { timeoutMs: tool.timeoutMs }),
    idempotent: tool.idempotent,
    executable: tool.execute !== undefined,
  };
}

/** How much is kept of the pages of one handler, in characters: a byte each, or two. */
const MAX_PAGES = 8 * 1_024 * 1_024;

/** Makes what remembers the pages of one handler: those of all its callers and their queries. */
export function createPageCache(): ListCache<Page> {
  return new ListCache(MAX_PAGES, ({ body }) => body.length);
}

/** Makes a page of any JSON. */
export function pageOf(value: unknown): Page {
  return withEtag(JSON.stringify(value));
}

/** Makes the page of one tool. */
export function toolPage(tool: Tool): Page {
  return pageOf(describeTool(tool));
}

/** Whether the client's copy is current, by its `If-None-Match`. */
export function isCurrent(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

/**
 * Makes the page that a query asks for.
 *
 * @param toolset What the caller sees.
 * @param listed Those of it that are available now.
 * @param formats What exports are made with; without it, there are none.
 * @throws {RequestError} If the cursor is not one that a page gave, or there is no such format.
 */
export function makePage(
  toolset: Toolset,
  listed: readonly Tool[],
  query: ListingQuery,
  formats: FormatService | undefined,
): Page {
  const { selection, format } = query;
  let shown = toolset;
  let tools = listed;
  if (selection !== undefined) {
    // Made for this page, and not kept: there are as many queries as clients like.
    shown = toolset.narrow(selection);
    const isListed = new Set(listed);
    tools = shown.tools.filter((tool) => isListed.has(tool));
  }
  if (format === undefined) return listingPage(shown, tools, query);
  if (formats !== undefined) return formats.exportPage(shown, tools, query);
  throw new RequestError(
    "This server exports no formats: its owner hands them in as the option formats",
  );
}

function listingPage(
  toolset: Toolset,
  tools: readonly Tool[],
  query: ListingQuery,
): Page {
  const { search, limit, cursor } = query;
  let found: readonly Tool[];
  let next: string | undefined;
  if (search === undefined) {
    const start = cursor === undefined ? 0 : indexAfter(tools, readCursor(cursor, "after"));
    found = tools.slice(start, start + limit);
    const last = found.at(-1);
    if (last !== undefined && start + limit < tools.length) {
      next = writeCursor("after", last.id);
    }
  } else {
    const start = cursor === undefined ? 0 : offset(readCursor(cursor, "offset"));
    // One more than the page, to know whether there is a next one.
    const hits = searchToolset(toolset, search, { limit: start + limit + 1 });
    found = hits.slice(start, start + limit);
    if (hits.length > start + limit) {
      next = writeCursor("offset", String(start + limit));
    }
  }
  return pageOf({
    tools: found.map(describeTool),
    ...(next === undefined ? {} : { nextCursor: next }),
  });
}

/** The first tool after `id`: the page goes on rightly also when that tool is gone by now. */
function indexAfter(tools: readonly Tool[], id: string): number {
  const index = tools.findIndex((tool) => tool.id > id);
  return index === -1 ? tools.length : index;
}

function offset(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw badCursor();
}

function writeCursor(kind: "after" | "offset", value: string): string {
  return btoa(`${kind} ${value}`).replaceAll("+", "-").replaceAll("/", "_")
    .replaceAll("=", "");
}

function readCursor(cursor: string, kind: "after" | "offset"): string {
  let text = "";
  try {
    text = atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    // Falls through: it does not begin with the kind.
  }
  if (!text.startsWith(`${kind} `)) throw badCursor();
  return text.slice(kind.length + 1);
}

function badCursor(): RequestError {
  return new RequestError(
    'Query parameter "cursor" must be the nextCursor of a page of the same query',
  );
}

/**
 * A strong validator of the content. The registry's revision alone would not do: it counts from 0
 * in every process, and a client may come back to another one.
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
