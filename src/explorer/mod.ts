/**
 * The explorer: a web page that shows a service's tools, calls them, and explains why a caller can
 * see a tool (`@plue/tools/explorer`).
 *
 * @module
 */

import type { ExplorerPage } from "../adapters/http/mod.ts";
import { etag, html, policy } from "./built_page.ts";

/**
 * The page, for the option `explorer` of `createToolHandler`. It is one file, sends requests to its
 * own service only, and uses the token that the user enters.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { explorer } from "@plue/tools/explorer";
 * import { createToolHandler } from "@plue/tools/hono";
 *
 * const app = createToolHandler(new ToolRegistry({ tools: [] }), { explorer });
 * const page = await app.request("http://localhost/");
 *
 * assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
 * ```
 */
export const explorer: ExplorerPage = Object.freeze({ html, policy, etag });
