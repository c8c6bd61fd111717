/**
 * Responses with an ETag.
 *
 * @module
 */

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
