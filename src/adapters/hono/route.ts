/**
 * What a route is, and the port to the routes of the providers' formats. `serveFormats` makes them for
 * the option `formats`, so that a server without formats does not load them.
 *
 * @module
 */

import type { Context } from "hono";
import type { decodeCalls, dispatchCalls, exportTools } from "../../formats/mod.ts";
import type { ExportPage, ListCache, Page, ToolRequest, ToolServer } from "../http/mod.ts";

/**
 * The functions of `@plue/tools/formats` that serving formats takes. The whole module will do:
 * `import * as formats from "@plue/tools/formats"`.
 */
export interface FormatFunctions {
  readonly exportTools: typeof exportTools;
  readonly decodeCalls: typeof decodeCalls;
  readonly dispatchCalls: typeof dispatchCalls;
}

/** Answers a request of one route whose caller is known. */
export type RouteAnswer = (request: ToolRequest, c: Context) => Response | Promise<Response>;

/** A route and what answers it. */
export type Route = readonly [
  method: "GET" | "POST",
  path: string,
  answer: RouteAnswer,
];

/** The formats of a handler. Made by `serveFormats`. */
export interface FormatService {
  /** @ignore The page of an export. */
  readonly exportPage: ExportPage;
  /** @ignore The routes that come with the formats. */
  routes(server: ToolServer, pages: ListCache<Page>): readonly Route[];
}
