/**
 * The providers' formats over HTTP: exports in listings, whole turns, and the OpenAPI document.
 *
 * @module
 */

import type { DecodedCall, Exportable, ExportResult, TargetName } from "../../formats/mod.ts";
import type { fitBudget, FitBudgetOptions, FittedTools } from "../../finding/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { checkFunction, type Tool } from "../../tool/mod.ts";
import {
  checkObject,
  checkOptions,
  json,
  ListCache,
  type Page,
  pageOf,
  pageResponse,
  problemResponse,
  readCallIds,
  readFilters,
  refuseQuery,
  RequestError,
  targetOf,
  type ToolServer,
  withHeaders,
} from "../http/mod.ts";
import type { FormatFunctions, FormatService, RouteAnswer, ShowTools } from "./route.ts";
import {
  OPENAPI_CHECKS,
  openApiDocument,
  type OpenApiOptions,
} from "../openapi/service_document.ts";

/** Options for {@linkcode serveFormats}. */
export interface ServeFormatsOptions {
  /** What `GET /openapi.json` says besides the tools. */
  readonly openapi?: OpenApiOptions;
  /**
   * The function of `@plue/tools/finding`, for `GET /tools?format=…&tokens=4000`: an export that
   * takes at most so many tokens. Absent: a query with `tokens` is refused.
   */
  readonly fitBudget?: typeof fitBudget;
}

/**
 * Makes the formats for a handler: `GET /tools?format=…`, `POST /dispatch/:target` and
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
  checkOptions("serve formats", options, { openapi: checkObject, fitBudget: checkFunction });
  const { openapi = {}, fitBudget } = options;
  checkOptions("describe the service (openapi)", openapi, OPENAPI_CHECKS);
  return {
    exportPage(tools, query, ranked) {
      const { format = "", losses, tokens } = query;
      const fitted = tokens === undefined
        ? undefined
        : fitTo(fitBudget, available(tools), { tokens, ranked, target: format as TargetName });
      const exported = fitted?.exported ?? exportTo(formats, ownListing(ranked ?? tools), format);
      const { target, names, rejected, warnings } = exported;
      return pageOf({
        target,
        tools: exported.tools,
        // Which tool each name means: a name is not to be split.
        names: names.encodings.map(({ id, name, namespace }) => ({
          id,
          name,
          ...(namespace === undefined ? {} : { namespace }),
        })),
        rejected,
        warnings,
        ...(losses ? { losses: exported.losses } : {}),
        ...(fitted && { tokens: fitted.tokens, shown: fitted.tools, leftOut: fitted.leftOut }),
      });
    },
    routes: (server, pages, show) => [
      ["POST", "/dispatch/:target", dispatchTurn(formats, show)],
      ["GET", "/openapi.json", showOpenApi(server, pages, formats, openapi)],
    ],
  };
}

/** The tools that a model was given. */
interface Shown {
  /** Those of the caller's tools that the query asks for; `undefined` for all. */
  readonly narrowed: Toolset | undefined;
  readonly exported: ExportResult;
  readonly size: number;
}

/** How many bytes of exports are kept, and about how many one tool takes, by measurement. */
const MAX_EXPORTS = 16 * 1_024 * 1_024;
const EXPORT_OF_TOOL = 1_024;

/**
 * Runs the calls in a provider's response, and answers with the messages to send back. The query
 * is that of the listing that the model was given: names are those of that export.
 */
function dispatchTurn(formats: FormatFunctions, show: ShowTools): RouteAnswer {
  const turns = new ListCache<Shown>(MAX_EXPORTS, ({ size }) => size * EXPORT_OF_TOOL);
  return async (request, c) => {
    const { raw, server, caller: { principal }, toolset } = request;
    const { selection, bridge, key } = readFilters("a turn", raw.url, { takesBridge: true });
    if (server.executionClosed !== undefined) return problemResponse(server.executionClosed);
    const target = c.req.param("target") ?? "";
    const { narrowed, exported } = turns.of(toolset.available(), `${target} ${key}`, () => {
      const narrowed = selection && toolset.narrow(selection);
      const shown = show(narrowed ?? toolset, bridge);
      const exported = exportTo(formats, ownListing(shown), target);
      return {
        narrowed: bridge ? shown : narrowed,
        exported,
        size: exported.names.encodings.length,
      };
    });
    const shown = narrowed ?? toolset;
    const response = await request.readJson();
    const { callId = crypto.randomUUID(), ...ids } = readCallIds({}, raw.headers);
    const calls = callsIn(formats, target, response, exported);
    const refused = await request.charge(calls.length - 1);
    if (refused !== undefined) return refused;
    const running = server.running.begin({ principal, callId }, raw);
    const recorded = calls.map((call) => {
      const { name, wireName, callId } = call;
      const target = name === undefined ? { toolId: wireName } : targetOf(shown, call);
      return request.beginCall(target.toolId, callId);
    });
    const turn = formats.dispatchCalls(target as TargetName, calls, {
      dispatcher: server.dispatcherOf(shown),
      names: exported.names,
      context: { ...request.hostContext(), ...ids, signal: running.signal },
    }).finally(() => running.end());
    request.keepAlive(turn.catch(() => {}));
    const { messages, results, suspended } = await turn;
    results.forEach((result, index) => recorded[index]?.end(result));
    return withHeaders(
      json({
        target: exported.target,
        messages,
        // Each goes on with its ticket at /calls/:id.
        ...(suspended.length === 0 ? {} : { suspended }),
        calls: calls.map(({ callId, name, wireName }, index) => ({
          callId,
          name: name ?? null,
          wireName,
          result: results[index],
        })),
      }),
      [["x-call-id", callId]],
    );
  };
}

function available(tools: readonly Tool[] | Toolset): readonly Tool[] {
  return Array.isArray(tools) ? tools : (tools as Toolset).available();
}

/**
 * What to export of the caller's tools: copies, because an export of the listing itself would be kept
 * with it, without a bound.
 */
function ownListing(tools: readonly Tool[] | Toolset): Exportable {
  const { bridge } = tools as Partial<Toolset>;
  return {
    available: () => [...available(tools)],
    bridge: bridge && { loadable: () => bridge.loadable()?.slice() },
  };
}

/** @throws {RequestError} If it is no response of that provider. */
function callsIn(
  formats: FormatFunctions,
  target: string,
  response: unknown,
  { names }: ExportResult,
): readonly DecodedCall[] {
  try {
    return formats.decodeCalls(target as TargetName, response, names);
  } catch (error) {
    // The message says where the response is wrong, and does not quote it.
    if (error instanceof TypeError) throw new RequestError(error.message);
    throw error;
  }
}

/**
 * Exports tools.
 *
 * @throws {RequestError} If there is no such target; it names those that there are.
 */
function exportTo(
  { exportTools }: FormatFunctions,
  tools: Exportable,
  target: string,
): ExportResult {
  try {
    return exportTools(tools, target as TargetName);
  } catch (error) {
    throw error instanceof RangeError ? new RequestError(error.message) : error;
  }
}

/**
 * Chooses tools for a budget.
 *
 * @throws {RequestError} If the server fits none, there is no such target, or not even one tool
 * fits; it says what the smallest takes.
 */
function fitTo(
  fit: typeof fitBudget | undefined,
  tools: readonly Tool[],
  options: FitBudgetOptions,
): FittedTools {
  if (fit === undefined) {
    throw new RequestError(
      "This server fits no budgets: its owner sets the option fitBudget of serveFormats",
    );
  }
  try {
    return fit(tools, options);
  } catch (error) {
    throw error instanceof RangeError ? new RequestError(error.message) : error;
  }
}

/** `GET /openapi.json`: the service as the caller sees it. */
function showOpenApi(
  { authorizes }: ToolServer,
  pages: ListCache<Page>,
  { exportTools }: FormatFunctions,
  openapi: OpenApiOptions,
): RouteAnswer {
  return ({ raw, toolset }) => {
    refuseQuery(raw.url);
    const tools = toolset.available();
    const page = pages.of(tools, "openapi.json", () => {
      // A copy, because an export of the listing itself would be kept with it, without a bound.
      const exported = exportTools([...tools], "openapi@3.1");
      return pageOf(openApiDocument(exported, openapi, authorizes));
    });
    return pageResponse(raw, page);
  };
}
