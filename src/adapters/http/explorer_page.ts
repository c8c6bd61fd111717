/**
 * `GET /` with the option `explorer`: the page that shows the tools to people.
 *
 * @module
 */

import { type Check, isObject, must } from "../../tool/mod.ts";
import { isCurrent } from "./page.ts";
import type { HttpPart } from "./handler.ts";
import { SAFE_HEADERS } from "./responses.ts";

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
export const checkExplorer: Check<ExplorerPage> = must(
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
  checkExplorer("serve the explorer", page, "it");
  return () => ({
    routes: [{
      method: "GET",
      path: "/",
      answerPublic: (request) => explorerResponse(request, page),
    }],
  });
}

/** The response with the page, or 304 if the client's copy is current. */
function explorerResponse(
  { headers }: Request,
  { html, policy, etag }: ExplorerPage,
): Response {
  const own = {
    etag,
    "cache-control": "no-cache",
    "content-security-policy": policy,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    ...SAFE_HEADERS,
  };
  return isCurrent(headers.get("if-none-match"), etag)
    ? new Response(null, { status: 304, headers: own })
    : new Response(html, { headers: { ...own, "content-type": "text/html; charset=utf-8" } });
}
