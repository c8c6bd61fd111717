/**
 * What a route is and which tools it shows, and the port to the routes of the providers' formats. `serveFormats` makes them for
 * the option `formats`, so that a server without formats does not load them.
 *
 * @module
 */

import type { Context } from "hono";
import type { decodeCalls, dispatchCalls, exportTools, resumeTurn } from "../../formats/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import {
  bridgeOnce,
  type ExportPage,
  type ListCache,
  type Page,
  RequestError,
  type ToolRequest,
  type ToolServer,
} from "../http/mod.ts";

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

/** The tools as a request wants them: all that the caller sees, or through the bridge to them. */
export type ShowTools = (toolset: Toolset, throughBridge: boolean) => Toolset;

/**
 * Makes the function that shows tools.
 *
 * @param bridge Makes the bridge to a toolset; without it, requests for one are refused.
 */
export function showThrough(bridge: ((toolset: Toolset) => Toolset) | undefined): ShowTools {
  const bridgeTo = bridge && bridgeOnce(bridge);
  return (toolset, throughBridge) => {
    if (!throughBridge) return toolset;
    if (bridgeTo !== undefined) return bridgeTo(toolset);
    throw new RequestError("This server has no bridge: its owner sets the option bridge");
  };
}

/** Answers a request of one route whose caller is known. */
export type RouteAnswer = (request: ToolRequest, c: Context) => Response | Promise<Response>;

/** A route and what answers it. */
export type Route = readonly [
  method: "GET" | "POST" | "DELETE",
  path: string,
  answer: RouteAnswer,
];

/** The formats of a handler. Made by `serveFormats`. */
export interface FormatService {
  /** @ignore The page of an export. */
  readonly exportPage: ExportPage;
  /** @ignore The routes that come with the formats. */
  routes(server: ToolServer, pages: ListCache<Page>, show: ShowTools): readonly Route[];
}
