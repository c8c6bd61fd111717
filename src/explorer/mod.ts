/**
 * The explorer: a page on which people look at a service's tools, call them, and see why each caller
 * sees what it sees (`@plue/tools/explorer`).
 *
 * @module
 */

import type { ExplorerPage } from "../adapters/http/mod.ts";
import { etag, html, policy } from "./built_page.ts";

/**
 * The page, for the option `explorer` of `createToolHandler`. It is one file, asks no other host for
 * anything, and calls the service as the caller whose token was pasted into it.
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
