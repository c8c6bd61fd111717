/** Functions that take a target by its name. */

import type { AnsweredCall } from "./call_format.ts";
import type { DecodedCall } from "./decode.ts";
import type { Turn, TurnAnswers, TurnOptions } from "./dispatch_response.ts";
import type { ResultLoss } from "./encode.ts";
import type { Exportable } from "./export.ts";
import type { ExportNames } from "./export_names.ts";
import type { ExportOptions, ExportResult } from "./export_options.ts";
import * as records from "./records.ts";
import type { AccumulateOptions, CallAccumulator } from "./stream.ts";
import {
  type AnswerOf,
  type MessageOf,
  recordOf,
  type RequestOf,
  type TargetLike,
  type TargetOf,
  type ToolsOf,
} from "./targets.ts";
import type { ToolResult } from "../tool/mod.ts";

/**
 * Exports tools to a target. The result has the tools in the target's shape, the losses, the
 * rejected tools, and the names by which calls are decoded.
 *
 * The export of a frozen list is cached by target and options: a repeated export costs a look-up,
 * and a copy of the tools when the field `tools` is read.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { exportTools } from "@plue/tools/formats";
 *
 * const status = defineTool({ namespace: "chain", name: "status", description: "Tells where it is." });
 * const { tools, losses, names } = exportTools([status], "openai.chat");
 * assert.equal(tools[0]?.function.name, "chain__status");
 * assert.equal(names.idOf("chain__status"), "chain:status");
 * assert.deepEqual(losses, []);
 * ```
 *
 * @param target The name or alias of a target, or a target that `defineTarget` returned.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If two tools have the same id, an option is invalid, `toolChoice` names a
 * tool that is not sent, or `onLoss` is `throw` and parameters or a setting cannot be expressed.
 */
export function exportTools<Like extends TargetLike>(
  source: Exportable,
  target: Like,
  options?: ExportOptions,
): ExportResult<ToolsOf<Like>, TargetOf<Like>["id"], RequestOf<Like>> {
  return records.exportTools(source, recordOf(target), options) as never;
}

/** The exported tools, with warnings and errors. */
export interface ExportedWithWarnings<Tools> {
  readonly tools: Tools;
  /** The losses, then the warnings about the request, as sentences. */
  readonly warnings: readonly string[];
  /** The errors of rejected tools, each with the tool's id, in the order of the tools. */
  readonly errors: readonly (Error & { readonly tool: string })[];
}

/**
 * Exports a toolset, or a list of tools, to one target.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { Exposure } from "@plue/tools/formats";
 *
 * const ping = defineTool({ name: "ping", title: "Ping", description: "Answers." });
 * const exposure = new Exposure([ping], "mistral");
 * assert.equal(exposure.export()[0]?.function.name, "ping");
 * const { warnings, errors } = exposure.exportWithWarnings();
 * assert.deepEqual(warnings, ['"ping" at "/title": the target has no field for "title"']);
 * assert.deepEqual(errors, []);
 * ```
 */
export class Exposure<Like extends TargetLike> {
  /** The exported toolset or list of tools. */
  readonly toolset: Exportable;
  /** The target of the exports. */
  readonly target: Like;
  readonly #options: ExportOptions | undefined;

  /** @throws {RangeError} If there is no such target. */
  constructor(toolset: Exportable, target: Like, options?: ExportOptions) {
    recordOf(target);
    this.toolset = toolset;
    this.target = target;
    this.#options = options;
  }

  /** Exports the current tools with {@linkcode exportTools}. */
  result(): ExportResult<ToolsOf<Like>, TargetOf<Like>["id"], RequestOf<Like>> {
    return exportTools(this.toolset, this.target, this.#options);
  }

  /** Returns the tools in the target's shape. Throws a `TypeError` if a tool was rejected. */
  export(): ToolsOf<Like> {
    return records.allTools(this.result());
  }

  /** Exports the tools, with warnings about losses and errors for rejected tools. */
  exportWithWarnings(): ExportedWithWarnings<ToolsOf<Like>> {
    const { tools, rejected, losses, warnings } = this.result();
    return {
      tools,
      warnings: [
        ...losses.map(({ tool, path, message }) => `"${tool}" at "${path}": ${message}`),
        ...warnings.map(({ message }) => message),
      ],
      errors: rejected.map(({ tool, message }) => Object.assign(new TypeError(message), { tool })),
    };
  }
}

/**
 * Decodes the calls in a provider's response, or in a part of one: the message, its content, a list
 * of calls, one call. Names become ids again, and the changes of the export to arguments are undone:
 * nulls that strict mode added, renamed keys, values written as text.
 *
 * `dispatchCalls` runs the calls and answers all of them. If you run them yourself, answer a call
 * that has a `problem` with `ToolResult.error(problem.code, problem.message)`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { decodeCalls, exportTools } from "@plue/tools/formats";
 *
 * const status = defineTool({ namespace: "chain", name: "status", description: "Tells where it is." });
 * const { names } = exportTools([status], "anthropic");
 * const block = { type: "tool_use", id: "toolu_1", name: "chain__status", input: {} };
 * assert.equal(decodeCalls("anthropic", [block], names)[0]?.name, "chain:status");
 * ```
 *
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If the response has another shape.
 */
export function decodeCalls(
  target: TargetLike,
  response: unknown,
  names: ExportNames,
): readonly DecodedCall[] {
  return records.decodeCalls(recordOf(target), response, names);
}

/**
 * Reads the calls of a streamed response from the events of the provider's API or SDK.
 *
 * A call is returned when it is complete: after the event that ends the call if the target has such
 * events (Responses, Anthropic, Bedrock, Cohere), otherwise when the model stops. A call that the
 * token limit or a broken connection cut off is rejected.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { accumulateCalls, exportTools } from "@plue/tools/formats";
 *
 * const { names } = exportTools([defineTool({ name: "add", description: "Adds." })], "anthropic");
 * const stream = accumulateCalls("anthropic", names);
 * const block = { type: "tool_use", id: "toolu_1", name: "add", input: {} };
 * stream.push({ type: "content_block_start", index: 0, content_block: block });
 * for (const partial_json of ['{"a":', "1}"]) {
 *   const delta = { type: "input_json_delta", partial_json };
 *   stream.push({ type: "content_block_delta", index: 0, delta });
 * }
 * const [call] = stream.push({ type: "content_block_stop", index: 0 });
 * assert.deepEqual(call?.arguments, { a: 1 });
 * ```
 *
 * @throws {RangeError} If there is no such target, or a bound is not a whole number above 0.
 * @throws {TypeError} If the target does not stream calls.
 */
export function accumulateCalls(
  target: TargetLike,
  names: ExportNames,
  options?: AccumulateOptions,
): CallAccumulator {
  return records.accumulateCalls(recordOf(target), names, options);
}

/**
 * Writes the result of one call as the provider's message, part, block or item. A failure is a text
 * with the tool names that the model uses, and is marked if the target has a field for failures.
 * A result becomes a failure if it is not JSON, is too long, or has a file that is not base64.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolResult } from "@plue/tools";
 * import { encodeResult } from "@plue/tools/formats";
 *
 * const call = { callId: "toolu_1", wireName: "weather" };
 * const content = '{"celsius":21}';
 * const block = encodeResult("anthropic", call, ToolResult.ok({ celsius: 21 }));
 * assert.deepEqual(block, { type: "tool_result", tool_use_id: "toolu_1", content });
 * ```
 *
 * @param names The names of the export. Tools with a result schema need them, because some targets
 * (OpenAI Responses, older revisions of MCP) expect results in the form of the exported schema.
 * @param onLoss Called for each block, such as an image, that the target does not accept. A text is
 * sent instead of the block.
 * @throws {RangeError} If there is no such target.
 */
export function encodeResult<Like extends TargetLike>(
  target: Like,
  call: AnsweredCall,
  result: ToolResult,
  names?: ExportNames,
  onLoss?: (loss: ResultLoss) => void,
): AnswerOf<Like> {
  return records.encodeResult(recordOf(target), call, result, names, onLoss) as never;
}

/**
 * Writes the results of all calls of a response as the messages to send back, in the order of the
 * calls. There is one message per call, or one message for all calls if the target requires that
 * (Anthropic, Gemini, Bedrock, AI SDK).
 *
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If the number of results differs from the number of calls.
 */
export function encodeResults<Like extends TargetLike>(
  target: Like,
  calls: readonly AnsweredCall[],
  results: readonly ToolResult[],
  names?: ExportNames,
  onLoss?: (loss: ResultLoss) => void,
): readonly MessageOf<Like>[] {
  return records.encodeResults(recordOf(target), calls, results, names, onLoss) as never;
}

/**
 * Runs a whole turn: reads the calls in a response, runs them in parallel, and writes the messages
 * to send back, in the order of the calls. Every call is answered, even if its tool was not
 * exported, its arguments are not JSON, or it was cut off. Calls that share an id are all run.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { dispatchResponse, exportTools } from "@plue/tools/formats";
 *
 * const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
 * const toolset = new ToolRegistry({ tools: [ping] }).select();
 * const dispatcher = new ToolDispatcher(toolset);
 * const { names } = exportTools(toolset, "anthropic");
 *
 * const response = { content: [{ type: "tool_use", id: "t1", name: "ping", input: {} }] };
 * const { messages } = await dispatchResponse("anthropic", response, { dispatcher, names });
 * assert.equal(messages[0]?.content[0]?.content, "pong");
 * ```
 *
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If the response has another shape.
 */
export async function dispatchResponse<Like extends TargetLike, Context = unknown>(
  target: Like,
  response: unknown,
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
  return await records.dispatchResponse(recordOf(target), response, options) as never;
}

/** Runs the calls of a turn that are decoded already, such as the calls of a stream. */
export async function dispatchCalls<Like extends TargetLike, Context = unknown>(
  target: Like,
  calls: readonly DecodedCall[],
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
  return await records.dispatchCalls(recordOf(target), calls, options) as never;
}

/**
 * Resumes the calls of a turn that wait for answers, in this process or another one with the same
 * tickets. Calls without an answer continue to wait, and so do calls that cannot be resumed because a
 * store is unreachable or too many calls run: pass their answers again later.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { memoryCallStore, storedTickets } from "@plue/tools/calls";
 * import { dispatchResponse, exportTools, resumeTurn } from "@plue/tools/formats";
 *
 * const rm = { name: "rm", description: "Deletes.", requiresApproval: true, execute: () => "gone" };
 * const toolset = new ToolRegistry({ tools: [rm] }).select();
 * const tickets = storedTickets(memoryCallStore());
 * const dispatcher = new ToolDispatcher(toolset, { approve: "ask", tickets });
 * const { names } = exportTools(toolset, "anthropic");
 *
 * const content = [{ type: "tool_use", id: "t1", name: "rm", input: {} }];
 * const turn = await dispatchResponse("anthropic", { content }, { dispatcher, names });
 * assert.equal(turn.suspended.length, 1);
 *
 * const answers = { t1: { "plue:approval": { action: "accept" } } } as const;
 * const { messages } = await resumeTurn("anthropic", turn, answers, { dispatcher, names });
 * assert.equal(messages[0]?.content[0]?.content, "gone");
 * ```
 *
 * @param turn The turn, which may have been stored as JSON meanwhile.
 * @returns The turn with all results so far.
 * @throws {TypeError} If an answer is invalid, or its call has no such question. Nothing has run then.
 */
export async function resumeTurn<Like extends TargetLike, Context = unknown>(
  target: Like,
  turn: Pick<Turn, "calls" | "results">,
  answers: TurnAnswers,
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
  return await records.resumeTurn(recordOf(target), turn, answers, options) as never;
}
