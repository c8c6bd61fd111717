/**
 * The port to the formats of the providers. `serveFormats` makes them for the option `formats`, so that
 * a server without formats does not load them.
 *
 * @module
 */

import type { decodeCalls, dispatchCalls, exportTools, resumeTurn } from "../../formats/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import { showThrough, type ShowTools } from "./bridge.ts";
import { createPageCache, type ListCache } from "./list_cache.ts";
import type { Page } from "./page.ts";
import type { HttpPart, Route } from "./part.ts";
import type { ListingQuery } from "./query.ts";
import type { ToolServer } from "./request.ts";

/**
 * The functions of `@plue/tools/formats` that serving formats takes. The whole module will do:
 * `import * as formats from "@plue/tools/formats"`.
 */
export interface FormatFunctions {
  readonly exportTools: typeof exportTools;
  readonly decodeCalls: typeof decodeCalls;
  readonly dispatchCalls: typeof dispatchCalls;
  readonly resumeTurn: typeof resumeTurn;
}

/** Makes the page of a query that names a format, of the tools that it asks for. */
export type ExportPage = (
  tools: readonly Tool[] | Toolset,
  query: ListingQuery,
  /** What the query's words found of the tools, best first; absent where it has none. */
  ranked?: readonly Tool[],
) => Page;

/** The formats of a handler. Made by `serveFormats`. */
export interface FormatService {
  /** @ignore The page of an export. */
  readonly exportPage: ExportPage;
  /** @ignore The routes that come with the formats. */
  routes(server: ToolServer, pages: ListCache<Page>, show: ShowTools): readonly Route[];
}

/** Options for {@linkcode serveTurns}. */
export interface ServeTurnsOptions {
  /** Makes the bridge of `?bridge=1`: `createToolBridge`. @default {none} */
  readonly bridge?: ((toolset: Toolset) => Toolset) | undefined;
  /** @ignore The cache of the pages, which other routes use too. */
  readonly pages?: ListCache<Page>;
}

/**
 * The part for the routes of the formats: `POST /dispatch/:target` and `GET /openapi.json`.
 *
 * @param formats `serveFormats(…)`.
 */
export function serveTurns(formats: FormatService, options: ServeTurnsOptions = {}): HttpPart {
  const { bridge, pages = createPageCache() } = options;
  return (server) => ({ routes: formats.routes(server, pages, showThrough(bridge)) });
}
