/**
 * `GET /` with the option `explorer`: the page that shows the tools to people.
 *
 * @module
 */

import { type Check, isObject, must } from "../../tool/mod.ts";
import { isCurrent, SAFE_HEADERS } from "../http/mod.ts";

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

/** The page, or that the client's copy is current. */
export function explorerResponse(
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
