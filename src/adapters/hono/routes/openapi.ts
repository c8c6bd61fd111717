/**
 * `GET /openapi.json`: the service as the caller sees it.
 *
 * @module
 */

import type { Answer } from "../exchange.ts";
import type { FormatFunctions } from "../formats.ts";
import { pageOf } from "../listing.ts";
import { openApiDocument, type OpenApiOptions } from "../openapi.ts";
import { refuseQuery } from "../query.ts";
import { pageResponse } from "../responses.ts";
import type { ToolService } from "../service.ts";

/** The OpenAPI document of the caller's tools. */
export function showOpenApi(
  { options: { authorize }, pages }: ToolService,
  { exportTools }: FormatFunctions,
  openapi: OpenApiOptions,
): Answer {
  return (c, { toolset }) => {
    refuseQuery(c.req.url);
    const tools = toolset.available();
    const page = pages.of(tools, "openapi.json", () => {
      // Of a copy: exports of a listing itself are kept with it, unweighed.
      const exported = exportTools([...tools], "openapi@3.1");
      return pageOf(openApiDocument(exported, openapi, authorize !== undefined));
    });
    return pageResponse(c, page);
  };
}
