/**
 * Writes the results of calls as a provider wants them back.
 *
 * @module
 */

import type { ToolResult } from "../../tool/mod.ts";
import type { ExportNames, TargetName } from "../types.ts";
import { answerOf } from "./answer.ts";
import { type AnswerOf, callFormatOf, type MessageOf } from "./formats.ts";
import type { AnsweredCall } from "./types.ts";

/**
 * Writes the result of one call as the provider's message, part, block or item. A failure says what
 * was wrong in words that a model can act on, and is marked as a failure where the target has a
 * mark. A result that cannot be sent (no JSON, too long) is answered with a failure that says so.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolResult } from "@plue/tools";
 * import { encodeResult } from "@plue/tools/formats";
 *
 * const call = { callId: "toolu_1", wireName: "weather" };
 * assert.deepEqual(encodeResult("anthropic", call, ToolResult.ok({ celsius: 21 })), {
 *   type: "tool_result",
 *   tool_use_id: "toolu_1",
 *   content: '{"celsius":21}',
 * });
 * ```
 *
 * @typeParam Name The target.
 * @param target The target that the tools were exported to.
 * @param call The call, as {@linkcode decodeCalls} gave it.
 * @param result What the dispatcher answered.
 * @param names The names of the export. They are needed for tools with a result schema: some targets
 * (OpenAI Responses, older revisions of MCP) hold results to the schema that they were sent.
 * @returns The answer. `encodeResults` puts several together.
 * @throws {RangeError} If there is no such target.
 */
export function encodeResult<Name extends TargetName>(
  target: Name,
  call: AnsweredCall,
  result: ToolResult,
  names?: ExportNames,
): AnswerOf<Name> {
  const format = callFormatOf(target);
  const encoding = call.name === undefined ? undefined : names?.encodingOf(call.name);
  const answer = answerOf(result, encoding, format.maxCharacters);
  return format.write(call, answer);
}

/**
 * Writes the results of all calls of a response as the messages to send back, in the order of the
 * calls: one message each, or one for all where the target wants that (Anthropic, Gemini, Bedrock,
 * AI SDK).
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolResult } from "@plue/tools";
 * import { encodeResults } from "@plue/tools/formats";
 *
 * const calls = [{ callId: "t1", wireName: "add" }, { callId: "t2", wireName: "add" }];
 * const results = [ToolResult.ok(3), ToolResult.ok(7)];
 * assert.equal(encodeResults("openai.chat", calls, results).length, 2);
 * assert.equal(encodeResults("anthropic", calls, results).length, 1);
 * ```
 *
 * @typeParam Name The target.
 * @param target The target that the tools were exported to.
 * @param calls The calls, as {@linkcode decodeCalls} gave them.
 * @param results Their results, in the same order.
 * @param names The names of the export; see {@linkcode encodeResult}.
 * @returns The messages; none for no calls.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If there are not as many results as calls.
 */
export function encodeResults<Name extends TargetName>(
  target: Name,
  calls: readonly AnsweredCall[],
  results: readonly ToolResult[],
  names?: ExportNames,
): readonly MessageOf<Name>[] {
  const format = callFormatOf(target);
  if (calls.length !== results.length) {
    throw new TypeError(
      `Cannot encode the results: there are ${results.length} for ${calls.length} calls, ` +
        "and each call needs its own",
    );
  }
  const parts = calls.map((call, index) =>
    // There are as many results as calls.
    encodeResult(target, call, results[index] as ToolResult, names)
  );
  return parts.length === 0 ? [] : format.gather(parts);
}
