/**
 * The responses that several routes make.
 *
 * @module
 */

import type { Context } from "hono";
import { withHeaders } from "./headers.ts";
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

/**
 * Makes a handler answer HEAD too: how long the body of GET is, and not the body. Without being told,
 * servers would say that it has no bytes.
 */
export function withHead(
  answer: (c: Context) => Response | Promise<Response>,
): (c: Context) => Response | Promise<Response> {
  return (c) => c.req.raw.method === "HEAD" ? headOf(answer(c)) : answer(c);
}

async function headOf(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  // Not modified, or a stream that nobody is to follow.
  if (response.body === null) return response;
  const { status, headers } = response;
  const { byteLength } = await response.arrayBuffer();
  return withHeaders(new Response(null, { status, headers }), [
    ["content-length", String(byteLength)],
  ]);
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
