/**
 * The providers' formats over HTTP: exports in listings, whole turns, and the OpenAPI document.
 *
 * @module
 */

import { searchToolset } from "../../registry/mod.ts";
import { checkObject, checkOptions } from "./checks.ts";
import { exportTo } from "./export_to.ts";
import type { FormatFunctions, FormatService } from "./formats.ts";
import { pageOf } from "./listing.ts";
import { OPENAPI_CHECKS, type OpenApiOptions } from "./openapi.ts";
import { dispatchTurn } from "./routes/dispatch.ts";
import { showOpenApi } from "./routes/openapi.ts";

/** Options for {@linkcode serveFormats}. */
export interface ServeFormatsOptions {
  /** What `GET /openapi.json` says besides the tools. */
  readonly openapi?: OpenApiOptions;
}

/**
 * Makes what the handler serves formats with: `GET /tools?format=…`, `POST /dispatch/:target` and
 * `GET /openapi.json`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import * as formats from "@plue/tools/formats";
 * import { createToolHandler, serveFormats } from "@plue/tools/hono";
 *
 * const registry = new ToolRegistry({ tools: [{ name: "ping", description: "Answers." }] });
 * const app = createToolHandler(registry, { formats: serveFormats(formats) });
 *
 * const response = await app.request("http://localhost/tools?format=anthropic");
 * const { tools } = await response.json();
 * assert.equal(tools[0].name, "ping");
 * ```
 *
 * @param formats The module `@plue/tools/formats`.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function serveFormats(
  formats: FormatFunctions,
  options: ServeFormatsOptions = {},
): FormatService {
  checkOptions("serve formats", options, { openapi: checkObject });
  const { openapi = {} } = options;
  checkOptions("describe the service (openapi)", openapi, OPENAPI_CHECKS);
  return {
    exportPage(toolset, tools, { format = "", search, limit, losses }) {
      // Of a copy: exports of a listing itself are kept with it, unweighed.
      const found = search === undefined ? [...tools] : searchToolset(toolset, search, { limit });
      const exported = exportTo(formats, found, format);
      const { target, names, rejected, warnings } = exported;
      return pageOf({
        target,
        tools: exported.tools,
        // Which tool is meant by which name: never split a name.
        names: names.encodings.map(({ id, name, namespace }) => ({
          id,
          name,
          ...(namespace === undefined ? {} : { namespace }),
        })),
        rejected,
        warnings,
        ...(losses ? { losses: exported.losses } : {}),
      });
    },
    routes: (service) => [
      ["POST", "/dispatch/:target", dispatchTurn(service, formats)],
      ["GET", "/openapi.json", showOpenApi(service, formats, openapi)],
    ],
  };
}
