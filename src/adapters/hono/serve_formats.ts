/** Serves providers' formats over HTTP: exports, the calls of a model's response, OpenAPI. */

import type * as types from "../../formats/mod.ts";
import type { DecodedCall, TargetName } from "../../formats/mod.ts";
import type { DispatchContext } from "../../execute/mod.ts";
import type { fitBudget, FitBudgetOptions, FittedTools } from "../../finding/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { isObject, type Tool, type ToolResult } from "../../tool/mod.ts";
import * as http from "../http/mod.ts";
import {
  OPENAPI_CHECKS,
  openApiDocument,
  type OpenApiOptions,
} from "../openapi/service_document.ts";

/** The functions of the module `@plue/tools/formats` that serving formats needs. */
export type FormatFunctions = Pick<
  typeof import("../../formats/mod.ts"),
  "exportTools" | "decodeCalls" | "dispatchCalls" | "resumeTurn"
>;

/** Options for {@linkcode serveFormats}. */
export interface ServeFormatsOptions {
  /** The description of the service in `GET /openapi.json`. */
  readonly openapi?: OpenApiOptions;
  /**
   * The function of `@plue/tools/finding`, for exports with a token budget:
   * `GET /tools?format=…&tokens=4000`. By default, such a query is rejected.
   */
  readonly fitBudget?: typeof fitBudget;
}

/**
 * Creates the formats of a handler: `GET /tools?format=…`, `POST /dispatch/:target` and
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
 * @throws {TypeError} If an option is unknown or invalid.
 */
export function serveFormats(
  formats: FormatFunctions,
  options: ServeFormatsOptions = {},
): http.FormatService {
  http.checkOptions("serve formats", options, {
    openapi: http.checkObject,
    fitBudget: check.checkFunction,
  });
  const { openapi = {}, fitBudget } = options;
  http.checkOptions("describe the service (openapi)", openapi, OPENAPI_CHECKS);
  return {
    exportPage(tools, query, ranked) {
      const { format = "", losses, tokens, settings } = query;
      const fitted = tokens === undefined
        ? undefined
        : fitTo(fitBudget, available(tools), { tokens, ranked, target: format as TargetName });
      const exported = fitted?.exported ??
        exportTo(formats, ownListing(ranked ?? tools), format, settings);
      const { target, names, rejected } = exported;
      // A budget applies to tools, so the chosen tools are exported again with the settings.
      const { request, warnings } = fitted === undefined || settings === undefined
        ? exported
        : exportTo(
          formats,
          available(tools).filter(({ id }) => names.encodingOf(id) !== undefined),
          format,
          settings,
        );
      return http.pageOf({
        target,
        tools: exported.tools,
        // JSON omits `undefined` members.
        request: settings && request,
        // The namespace is sent separately, because a name cannot be split into its parts.
        names: names.encodings.map(({ id, name, namespace }) => ({ id, name, namespace })),
        rejected,
        warnings,
        losses: losses ? exported.losses : undefined,
        ...(fitted && { tokens: fitted.tokens, shown: fitted.tools, leftOut: fitted.leftOut }),
      });
    },
    routes: (server, show) => [
      { method: "POST", path: "/dispatch/:target", answer: dispatchTurn(formats, show) },
      { method: "GET", path: "/openapi.json", answer: showOpenApi(server, formats, openapi) },
    ],
  };
}

interface Shown {
  /** The caller's tools that the query selects; `undefined` for all. */
  readonly narrowed: Toolset | undefined;
  readonly exported: types.ExportResult;
  readonly size: number;
}

/** The maximum size of cached exports, and the estimated size of one tool, in bytes. */
const MAX_EXPORTS = 16 * 1_024 * 1_024;
const EXPORT_OF_TOOL = 1_024;

/** The maximum size of the results of a turn, in bytes. Writing them blocks the process. */
const MAX_TURN_BYTES = 8 * 1_024 * 1_024;

function turnBody(
  target: string,
  calls: readonly Pick<DecodedCall, "callId" | "name" | "wireName">[],
  { messages, results, suspended, losses }: Awaited<ReturnType<FormatFunctions["dispatchCalls"]>>,
) {
  return {
    target,
    messages,
    // A suspended call continues with its ticket at /calls/:id, or here with "calls" and "answers".
    suspended: suspended.length === 0 ? undefined : suspended,
    losses: losses.length === 0 ? undefined : losses,
    calls: calls.map(({ callId, name, wireName }, index) => ({
      callId,
      name: name ?? null,
      wireName,
      result: results[index],
    })),
  };
}

/**
 * Runs the calls in a provider's response, and returns the messages to send back. The query must equal
 * the query with which the model's tools were exported, because calls use the exported names. If calls
 * wait for answers, the client sends the calls again with the answers, and gets the missing messages.
 */
function dispatchTurn(formats: FormatFunctions, show: http.ShowTools): http.RequestAnswer {
  const turns = new http.ListCache<Shown>(MAX_EXPORTS, ({ size }) => size * EXPORT_OF_TOOL);
  return async (request) => {
    const { raw, server, param: target, caller: { principal }, toolset } = request;
    const { selection, bridge, key } = http.readFilters("a turn", raw.url, { allowsBridge: true });
    server.requireExecution();
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
    const body = await request.readJson();
    const turn = turnIn(body);
    const { callId = crypto.randomUUID(), ...ids } = http.readCallIds({}, raw.headers);
    const calls = turn?.calls ?? forClient(
      () => formats.decodeCalls(target as TargetName, body, exported.names),
      TypeError,
    );
    const begun = turn === undefined ? calls : answeredIn(turn);
    const refused = await request.charge(begun.length - 1);
    if (refused !== undefined) return refused;
    const running = server.running.begin({ principal, callId }, raw);
    const recorded = begun.map((call) => {
      const { name, wireName, callId } = call;
      // The log omits the names of returned suspended calls, because a client can change them.
      const called = turn === undefined ? wireName : "";
      return request.beginCall(
        turn !== undefined || name === undefined ? called : http.targetOf(shown, call).toolId,
        callId,
      );
    });
    // Calls with a problem already have results.
    const routed = recorded.filter((_, index) => begun[index]?.problem === undefined);
    const dispatcher = http.withAllLayers(server.dispatcherOf(shown), "serveFormats()");
    const options: types.TurnOptions<DispatchContext> = {
      dispatcher: {
        async dispatchAll(list, context) {
          const results = await dispatcher.dispatchAll(list, context);
          results.forEach((result, index) => routed[index]?.end(result));
          return results;
        },
      },
      names: exported.names,
      context: {
        ...request.hostContext(),
        ...ids,
        signal: running.signal,
        maxOutputBytes: Math.ceil(MAX_TURN_BYTES / Math.max(begun.length, 1)),
      },
    };
    const work =
      (turn === undefined
        ? formats.dispatchCalls(target as TargetName, calls, options)
        : formats.resumeTurn(target as TargetName, turn, turn.answers, options).catch((error) => {
          throw error instanceof TypeError
            ? new http.RequestError(error.message, "/answers")
            : error;
        }))
        .finally(() => running.end());
    request.keepAlive(work.catch(() => {}));
    const ended = await work;
    if (turn === undefined) ended.results.forEach((result, index) => recorded[index]?.end(result));
    const response = http.json(turnBody(exported.target, calls, ended));
    return http.withHeaders(response, [["x-call-id", callId]]);
  };
}

interface ReturnedTurn {
  readonly calls: readonly DecodedCall[];
  readonly results: readonly ToolResult[];
  readonly answers: types.TurnAnswers;
}

function turnIn(body: unknown): ReturnedTurn | undefined {
  if (!isObject(body) || !Array.isArray(body["calls"]) || body["answers"] === undefined) {
    return undefined;
  }
  const calls: DecodedCall[] = [];
  const results: ToolResult[] = [];
  body["calls"].forEach((call: unknown, index) => {
    const { callId, name, wireName, result } = isObject(call) ? call : {};
    if (typeof callId !== "string" || typeof wireName !== "string" || !isResult(result)) {
      throw new http.RequestError(
        "Cannot read the turn: each call must have the callId, wireName and result",
        `/calls/${index}`,
      );
    }
    const named = typeof name === "string" ? { name } : {};
    calls.push({ callId, wireName, ...named, arguments: {}, raw: undefined } as DecodedCall);
    results.push(result);
  });
  return { calls, results, answers: body["answers"] as types.TurnAnswers };
}

function isResult(value: unknown): value is ToolResult {
  // Rejects a result that is nested too deeply to be written to the response.
  if (!isObject(value) || new check.JsonReader({}).read(value) === check.STOPPED) return false;
  const { ok, error } = value;
  return ok === true ||
    ok === false && isObject(error) && check.isFailureCode(error["code"]) &&
      typeof error["message"] === "string";
}

function answeredIn({ calls, results, answers }: ReturnedTurn): readonly DecodedCall[] {
  return calls.filter(({ callId }, index) =>
    check.isSuspended(results[index] as ToolResult) && isObject(answers) &&
    Object.hasOwn(answers, callId)
  );
}

/**
 * Runs a function of the formats. The client causes errors of the given kinds. They are safe to
 * send, because they do not quote the request.
 */
function forClient<T>(work: () => T, ...kinds: (typeof TypeError | typeof RangeError)[]): T {
  try {
    return work();
  } catch (error) {
    const isOfClient = kinds.some((kind) => error instanceof kind);
    throw isOfClient ? new http.RequestError((error as Error).message) : error;
  }
}

function available(tools: readonly Tool[] | Toolset): readonly Tool[] {
  return Array.isArray(tools) ? tools : (tools as Toolset).available();
}

/** Copies the list, because exports of the listing itself would be cached without a limit. */
function ownListing(tools: readonly Tool[] | Toolset): types.Exportable {
  const { bridge } = tools as Partial<Toolset>;
  return {
    available: () => [...available(tools)],
    bridge: bridge && { loadable: () => bridge.loadable()?.slice() },
  };
}

function exportTo(
  { exportTools }: FormatFunctions,
  tools: types.Exportable,
  target: string,
  settings?: types.RequestSettings,
): types.ExportResult {
  // With settings, the chosen tool may not be exported.
  const kinds = settings === undefined ? [RangeError] : [RangeError, TypeError];
  return forClient(() => exportTools(tools, target as TargetName, settings), ...kinds);
}

function fitTo(
  fit: typeof fitBudget | undefined,
  tools: readonly Tool[],
  options: FitBudgetOptions,
): FittedTools {
  if (fit !== undefined) return forClient(() => fit(tools, options), RangeError);
  throw new http.RequestError(
    "This server has no token budgets: the option fitBudget of serveFormats is not set",
  );
}

function showOpenApi(
  server: http.ToolServer,
  { exportTools }: FormatFunctions,
  openapi: OpenApiOptions,
): http.RequestAnswer {
  /** The last page, because the cache does not store pages that are larger than itself. */
  let last: readonly [tools: readonly Tool[], root: string, page: http.Page] | undefined;
  return ({ raw, toolset }) => {
    http.refuseQuery(raw.url);
    const tools = toolset.available();
    // The app may be below a path. Without servers, the routes would be at the root of the host.
    const root = new URL(raw.url).pathname.replace(/\/openapi\.json\/?$/, "");
    const make = (): http.Page => {
      const exported = exportTools([...tools], "openapi@3.1");
      const described = { ...root && { servers: [root] }, ...openapi };
      return http.pageOf(openApiDocument(exported, described, server.authorizes));
    };
    if (last?.[0] !== tools || last[1] !== root) {
      last = [tools, root, http.pagesOf(server).of(tools, `openapi.json ${root}`, make)];
    }
    return http.pageResponse(raw, last[2]);
  };
}
