/**
 * `POST /dispatch/:target`: a provider's whole response in, the messages to send back out.
 *
 * @module
 */

import type { DecodedCall, ExportResult, TargetName } from "../../../formats/mod.ts";
import type { Toolset } from "../../../select/mod.ts";
import { readCallIds } from "../envelope.ts";
import { type Answer, keepAlive } from "../exchange.ts";
import { exportTo } from "../export_to.ts";
import type { FormatFunctions } from "../formats.ts";
import { ListCache } from "../list_cache.ts";
import { badRequest, problemResponse } from "../problem.ts";
import { readListingQuery } from "../query.ts";
import { RequestError } from "../request_error.ts";
import { json } from "../responses.ts";
import type { ToolService } from "../service.ts";
import { unobserved } from "../telemetry.ts";

/** What a model was given. */
interface Shown {
  /** The part of the caller's tools that the query asks for; `undefined` if for all. */
  readonly narrowed: Toolset | undefined;
  readonly exported: ExportResult;
  readonly size: number;
}

/** How much is kept of exports, in bytes: what one tool takes there is measured, roughly. */
const MAX_EXPORTS = 16 * 1_024 * 1_024;
const EXPORT_OF_TOOL = 1_024;

/**
 * Runs the calls in a provider's response, and answers with the messages to send back. The query
 * is that of the listing that the model was given: names are those of that export.
 */
export function dispatchTurn(
  service: ToolService,
  formats: FormatFunctions,
): Answer {
  const { access } = service;
  const turns = new ListCache<Shown>(MAX_EXPORTS, ({ size }) => size * EXPORT_OF_TOOL);
  return async (c, { caller, toolset, exchange }) => {
    const { selection, search, cursor, format, key } = readListingQuery(c.req.url);
    if (search !== undefined || cursor !== undefined || format !== undefined) {
      return problemResponse(
        badRequest("The query of a turn has filters only"),
      );
    }
    const closed = service.executionClosed;
    if (closed !== undefined) return problemResponse(closed);
    const target = c.req.param("target") ?? "";
    const { narrowed, exported } = turns.of(toolset.available(), `${target} ${key}`, () => {
      const narrowed = selection && toolset.narrow(selection);
      // Of a copy: exports of a listing itself are kept with it, unweighed.
      const tools = [...(narrowed ?? toolset).available()];
      return { narrowed, exported: exportTo(formats, tools, target), size: tools.length };
    });
    const shown = narrowed ?? toolset;
    const client = c.req.raw;
    const { headers } = client;
    return await service.withBody(c, async (text) => {
      const { callId = crypto.randomUUID(), ...ids } = readCallIds({}, headers);
      const calls = callsIn(formats, target, text, exported);
      const refused = await access.charge(caller, client, exchange, calls.length - 1);
      if (refused !== undefined) return refused;
      const { principal } = caller;
      const running = service.running.begin({ principal, callId }, client);
      const begun = calls.map(({ name, wireName, callId }) => {
        const tool = name === undefined ? undefined : shown.get(name);
        const span = tool === undefined
          ? unobserved
          : access.observe({ tool, callId, sessionId: ids.sessionId, headers });
        return { span, settle: exchange.begin(name ?? wireName, callId, span) };
      });
      // Those that the dispatcher is given: the others cannot be run, and their result is known.
      const routed = begun.filter((_, index) => calls[index]?.problem === undefined);
      const dispatcher = access.dispatcherOf(shown);
      const turn = formats.dispatchCalls(target as TargetName, calls, {
        dispatcher: {
          dispatchAll: (list, context) =>
            dispatcher.dispatchAll(list, context, async (index, begin) => {
              const result = await (routed[index]?.span.run(begin) ?? begin());
              routed[index]?.settle(result);
              return result;
            }),
        },
        names: exported.names,
        context: { ...ids, principal, signal: running.signal },
      }).finally(() => running.end());
      keepAlive(c, turn.catch(() => {}));
      const { messages, results } = await turn;
      results.forEach((result, index) => begun[index]?.settle(result));
      return withCallId(
        callId,
        json({
          target: exported.target,
          messages,
          calls: calls.map(({ callId, name, wireName }, index) => ({
            callId,
            name: name ?? null,
            wireName,
            result: results[index],
          })),
        }),
      );
    });
  };
}

function callsIn(
  formats: FormatFunctions,
  target: string,
  text: string,
  { names }: ExportResult,
): readonly DecodedCall[] {
  let response: unknown;
  try {
    response = JSON.parse(text);
  } catch {
    // The engine's own message would echo a part of the body.
    throw new RequestError("Cannot read the body: it is not JSON");
  }
  try {
    return formats.decodeCalls(target as TargetName, response, names);
  } catch (error) {
    // It says where the response is wrong, and quotes nothing of it.
    if (error instanceof TypeError) throw new RequestError(error.message);
    throw error;
  }
}

function withCallId(callId: string, response: Response): Response {
  response.headers.set("x-call-id", callId);
  return response;
}
