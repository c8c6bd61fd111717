/**
 * What the handler needs of the providers' formats. It is handed in, made by `serveFormats`: whoever
 * does not serve formats does not load them.
 *
 * @module
 */

import type { decodeCalls, dispatchCalls, exportTools } from "../../formats/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import type { Answer } from "./exchange.ts";
import type { Page } from "./listing.ts";
import type { ListingQuery } from "./query.ts";
import type { ToolService } from "./service.ts";

/**
 * The functions of `@plue/tools/formats` that serving formats takes. The whole module will do:
 * `import * as formats from "@plue/tools/formats"`.
 */
export interface FormatFunctions {
  readonly exportTools: typeof exportTools;
  readonly decodeCalls: typeof decodeCalls;
  readonly dispatchCalls: typeof dispatchCalls;
}

/** A route and what answers it. */
export type Route = readonly [
  method: "GET" | "POST",
  path: string,
  answer: Answer,
];

/** The formats, as the handler asks for them. Made by `serveFormats`. */
export interface FormatService {
  /** @ignore The page of an export. */
  exportPage(
    toolset: Toolset,
    tools: readonly Tool[],
    query: ListingQuery,
  ): Page;
  /** @ignore The routes that come with the formats. */
  routes(service: ToolService): readonly Route[];
}
