/**
 * `GET /openapi.json`: the service as the caller sees it.
 *
 * @module
 */

import type { Tool } from "../../../tool/mod.ts";
import type { Answer } from "../exchange.ts";
import type { FormatFunctions } from "../formats.ts";
import { type Page, pageOf } from "../listing.ts";
import { openApiDocument, type OpenApiOptions } from "../openapi.ts";
import { refuseQuery } from "../query.ts";
import { pageResponse } from "../responses.ts";
import type { ToolService } from "../service.ts";

/** The OpenAPI document of the caller's tools. */
export function showOpenApi(
  { options: { authorize } }: ToolService,
  { exportTools }: FormatFunctions,
  openapi: OpenApiOptions,
): Answer {
  const pages = new WeakMap<readonly Tool[], Page>();
  return (c, { toolset }) => {
    refuseQuery(c.req.url);
    const tools = toolset.available();
    let page = pages.get(tools);
    if (page === undefined) {
      const exported = exportTools(tools, "openapi@3.1");
      page = pageOf(
        openApiDocument(exported, openapi, authorize !== undefined),
      );
      pages.set(tools, page);
    }
    return pageResponse(c, page);
  };
}
