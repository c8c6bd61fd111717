/**
 * A whole turn: decodes a response's calls, runs them, and writes the messages to send back.
 *
 * @module
 */

import { clip, refuseOthers, ToolResult } from "../tool/mod.ts";
import { decodeCalls, type DecodedCall, type RoutedCall } from "./decode.ts";
import { encodeResults } from "./encode.ts";
import type { ExportNames } from "./export_names.ts";
import type { MessageOf, TargetLike } from "./targets.ts";

/**
 * Runs calls. A `ToolDispatcher` is one.
 *
 * Contract: it gives one result for each call, in the order of the calls, and does not reject when
 * a call fails.
 *
 * @typeParam Context What the host adds to the calls.
 */
export interface CallDispatcher<Context = unknown> {
  dispatchAll(
    calls: readonly {
      readonly name: string;
      readonly arguments?: unknown;
      readonly callId?: string;
    }[],
    context?: Context,
  ): Promise<readonly ToolResult[]>;
}

/** What a turn needs besides the response. */
export interface TurnOptions<Context = unknown> {
  /** Runs the calls: a `ToolDispatcher` over the tools that were exported. */
  readonly dispatcher: CallDispatcher<Context>;
  /** The names of the export. */
  readonly names: ExportNames;
  /** What the host adds to each call. */
  readonly context?: Context;
}

const FIELDS: readonly (keyof TurnOptions)[] = ["dispatcher", "names", "context"];

/** A turn. */
export interface Turn<Message = unknown> {
  readonly calls: readonly DecodedCall[];
  /** The result of each call, in their order. */
  readonly results: readonly ToolResult[];
  /** What to send back; empty if the model called nothing. */
  readonly messages: readonly Message[];
}

/**
 * Does a whole turn: reads the calls in a response, runs them in parallel, and writes the messages
 * to send back, in the order of the calls. Every call is answered, also one whose tool was never
 * exported, whose arguments are not JSON, or which was cut off.
 *
 * Calls that share an id are all run, and each is answered under that id.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { dispatchResponse, exportTools } from "@plue/tools/formats";
 *
 * const add = defineTool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   parameters: {
 *     type: "object",
 *     properties: { a: { type: "number" }, b: { type: "number" } },
 *     required: ["a", "b"],
 *   },
 *   execute: ({ a, b }) => a + b,
 * });
 * const toolset = new ToolRegistry({ tools: [add] }).select();
 * const { names } = exportTools(toolset, "openai.chat");
 *
 * const { messages } = await dispatchResponse("openai.chat", {
 *   role: "assistant",
 *   tool_calls: [{ id: "call_1", type: "function", function: { name: "add", arguments: '{"a":1,"b":2}' } }],
 * }, { dispatcher: new ToolDispatcher(toolset), names });
 * assert.deepEqual(messages, [{ role: "tool", tool_call_id: "call_1", content: "3" }]);
 * ```
 *
 * @typeParam Like The target.
 * @param target The target that the tools were exported to.
 * @param response What the provider sent, parsed.
 * @param options What runs the calls, and the names of the export.
 * @returns The calls, their results, and the messages.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If the response has another shape.
 */
export async function dispatchResponse<Like extends TargetLike, Context = unknown>(
  target: Like,
  response: unknown,
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
  return await dispatchCalls(target, decodeCalls(target, response, options.names), options);
}

/**
 * The rest of a turn whose calls were decoded already, such as those of a stream.
 *
 * @typeParam Like The target.
 * @param target The target that the tools were exported to.
 * @param calls The calls.
 * @param options What runs the calls, and the names of the export.
 * @returns The calls, their results, and the messages.
 * @throws {RangeError} If there is no such target.
 */
export async function dispatchCalls<Like extends TargetLike, Context = unknown>(
  target: Like,
  calls: readonly DecodedCall[],
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
  refuseOthers(
    "dispatch the calls",
    options,
    FIELDS,
    () => 'what the host adds to each call goes into "context"',
  );
  const { dispatcher, names, context } = options;
  if (typeof dispatcher?.dispatchAll !== "function") {
    throw new TypeError(
      "Cannot dispatch the calls: the option dispatcher must be a ToolDispatcher",
    );
  }
  const routed = calls.filter((call): call is RoutedCall => call.problem === undefined);
  const answered = routed.length === 0 ? [] : await dispatcher.dispatchAll(
    routed.map(({ name, arguments: args, callId }) => ({ name, arguments: args, callId })),
    ...(context === undefined ? [] : [context]),
  );
  const inOrder = answered.values();
  const results = calls.map(({ problem, wireName }) =>
    problem === undefined
      ? inOrder.next().value ?? ToolResult.error(
        "threw",
        `Cannot call ${JSON.stringify(clip(wireName))}: the dispatcher did not answer`,
      )
      : ToolResult.error(problem.code, problem.message)
  );
  return { calls, results, messages: encodeResults(target, calls, results, names) };
}
