/**
 * The responses that several routes make.
 *
 * @module
 */

import type { Context } from "hono";
import { isCurrent, type Page } from "./listing.ts";
import { problemResponse } from "./problem.ts";

/** An answer of this moment. */
export function json(value: unknown, status: number = 200): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
    },
  });
}

/** A page, or that the client's copy is current. */
export function pageResponse(c: Context, page: Page): Response {
  const headers = {
    etag: page.etag,
    "cache-control": "private, no-cache",
    // Who calls decides what is listed.
    vary: "authorization, origin",
  };
  return isCurrent(c.req.raw.headers.get("if-none-match"), page.etag)
    ? new Response(null, { status: 304, headers })
    : new Response(page.body, {
      headers: { ...headers, "content-type": "application/json" },
    });
}

/** The route is there, and takes other methods. */
export function methodNotAllowed(allow: string): Response {
  return problemResponse({
    status: 405,
    code: "method_not_allowed",
    detail: `This route takes ${allow}`,
    headers: { allow },
  });
}

/** Whether an answer is a response. By shape: it may come from another realm or polyfill. */
export function isResponse(value: unknown): value is Response {
  return typeof value === "object" && value !== null && "headers" in value &&
    "status" in value;
}
