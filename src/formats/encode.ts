/**
 * Writes the results of calls in a provider's form.
 *
 * @module
 */

import {
  clip,
  isObject,
  type JsonValue,
  type ToolCallError,
  type ToolContent,
  ToolResult,
} from "../tool/mod.ts";
import type { Answer, AnsweredCall, MediaFormat } from "./call_format.ts";
import { loadFound } from "./export.ts";
import { type ExportNames, quoted, type ToolEncoding } from "./export_names.ts";
import { listIn, textIn } from "./json_fields.ts";
import { type ResultLoss, writeContent, type WrittenContent } from "./result_content.ts";
import { type AnswerOf, findTarget, type MessageOf, type TargetLike } from "./targets.ts";

/**
 * Writes the result of one call as the provider's message, part, block or item. A failure is a text
 * that a model can act on, which names tools as the model knows them, marked as a failure if the
 * target has a mark for that. A result that cannot be sent (no JSON, too long, a file that is not
 * base64) is answered with a failure that says so.
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
 * @typeParam Like The target.
 * @param target The target that the tools were exported to.
 * @param call The call, as {@linkcode decodeCalls} gave it.
 * @param result What the dispatcher answered.
 * @param names The names of the export. They are needed for tools with a result schema: some targets
 * (OpenAI Responses, older revisions of MCP) hold results to the schema that they were sent.
 * @param onLoss Is told of each block of the result, such as an image, that the target does not
 * take. A text stands for it.
 * @returns The answer. `encodeResults` puts several together.
 * @throws {RangeError} If there is no such target.
 */
export function encodeResult<Like extends TargetLike>(
  target: Like,
  call: AnsweredCall,
  result: ToolResult,
  names?: ExportNames,
  onLoss: (loss: ResultLoss) => void = () => {},
): AnswerOf<Like> {
  const found = findTarget(target);
  const { calls: format } = found;
  const encoding = call.name === undefined ? undefined : names?.encodingOf(call.name);
  const { maxCharacters, media } = format;
  const limits = { maxCharacters, media: media?.takes?.(call) === false ? undefined : media };
  let answer = answerOf(call.callId, result, encoding, limits, (index, mimeType) => {
    const path = `/content/${index}`;
    onLoss({
      callId: call.callId,
      path,
      mimeType,
      message: `Cannot send "${path}" of the result (${clip(mimeType)}): ` +
        `${found.title} does not take it, and a text stands for it`,
    });
  });
  // What a call of an unknown name is refused with has the model's words already.
  if (names !== undefined && encoding !== undefined && !answer.ok) {
    answer = { ...answer, text: inWireNames(answer.text, names) };
  }
  if (names !== undefined && encoding?.searches === true && answer.ok) {
    answer = { ...answer, found: loadFound(found, names, idsIn(answer.value)) };
  }
  // The types follow from the same record as the answer.
  return format.write(call, answer) as AnswerOf<Like>;
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
 * @typeParam Like The target.
 * @param target The target that the tools were exported to.
 * @param calls The calls, as {@linkcode decodeCalls} gave them.
 * @param results Their results, in the same order.
 * @param names The names of the export; see {@linkcode encodeResult}.
 * @param onLoss Is told of what the target does not take; see {@linkcode encodeResult}.
 * @returns The messages; none for no calls.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If there are not as many results as calls.
 */
export function encodeResults<Like extends TargetLike>(
  target: Like,
  calls: readonly AnsweredCall[],
  results: readonly ToolResult[],
  names?: ExportNames,
  onLoss?: (loss: ResultLoss) => void,
): readonly MessageOf<Like>[] {
  const { calls: format } = findTarget(target);
  if (calls.length !== results.length) {
    throw new TypeError(
      `Cannot encode the results: there are ${results.length} for ${calls.length} calls, ` +
        "and each call needs its own",
    );
  }
  const parts = calls.map((call, index) =>
    // There are as many results as calls.
    encodeResult(target, call, results[index] as ToolResult, names, onLoss)
  );
  if (parts.length === 0) return [];
  return (format.gather?.(parts) ?? parts) as readonly MessageOf<Like>[];
}

/** The ids of exported tools in a text, replaced by the names that the model knows. */
function inWireNames(text: string, names: ExportNames): string {
  return text.replace(/"([\w.:-]{1,257})"/g, (found, id: string) => {
    const encoding = names.encodingOf(id);
    return encoding === undefined ? found : quoted(encoding);
  });
}

/** The ids in the result of a search for tools. */
function idsIn(value: JsonValue): readonly string[] {
  return (listIn(value, "tools") ?? []).flatMap((entry) => {
    const name = typeof entry === "string" ? entry : textIn(entry, "name");
    return name?.match(/^[\w.:-]+/) ?? [];
  });
}

/** How long the text of a failure may be, in characters. Every provider takes that many. */
const MAX_FAILURE = 16_384;

/** How many issues are listed. More do not help a model to correct a call. */
const MAX_ISSUES = 8;

/**
 * Prepares a result for `write` of a target.
 *
 * @param encoding How the tool was exported, if that is known.
 * @param format How the target takes results.
 * @param lose Is told of each block that has no place in the target.
 */
function answerOf(
  callId: string,
  result: ToolResult,
  encoding: ToolEncoding | undefined,
  { maxCharacters = Infinity, media }: {
    readonly maxCharacters?: number | undefined;
    readonly media?: MediaFormat | undefined;
  },
  lose: (index: number, mimeType: string) => void,
): Answer {
  if (typeof result?.ok !== "boolean") {
    throw new TypeError(
      "Cannot encode the result: it must be a ToolResult, as ToolResult.ok makes",
    );
  }
  if (!result.ok) return failed(result.error);
  const { blocks, content: given } = result;
  // A turn that has been JSON may hold anything.
  const isContent = blocks === true && isObject(given) && Array.isArray(given["content"]);
  const content = isContent ? given as unknown as ToolContent : undefined;
  const hasValue = content === undefined || content.structuredContent !== undefined;
  // `undefined` is not JSON: a tool that returns nothing answers `null`.
  const plain = (content === undefined ? given : content.structuredContent) ?? null;
  let json: string | undefined;
  let written: WrittenContent | undefined;
  try {
    json = JSON.stringify(plain);
    written = content &&
      writeContent(content.content, media, callId, hasValue ? json : undefined);
  } catch {
    json = undefined;
  }
  if (json === undefined) {
    const message = "Cannot send the result: it is not JSON";
    return failed(ToolResult.error("invalid_result", message).error);
  }
  if (written?.broken !== undefined) {
    const message = `Cannot send the result: "/content/${written.broken}" is not base64, ` +
      "which is padded and has no line breaks";
    return failed(ToolResult.error("invalid_result", message).error);
  }
  const text = written?.text ?? (typeof plain === "string" ? plain : json);
  const value = hasValue ? plain : text;
  if (text.length > maxCharacters) {
    const message =
      `Cannot send the result: it has ${text.length} characters, and at most ${maxCharacters} are taken`;
    return failed(ToolResult.error("output_too_large", message).error);
  }
  for (const { index, mimeType } of written?.lost ?? []) lose(index, mimeType);
  return {
    ok: true,
    // `JSON.stringify` has accepted it.
    value: (encoding?.wrapsResult === true ? { result: value } : value) as JsonValue,
    text,
    typed: hasValue && encoding?.sendsReturns === true,
    ...(content === undefined || written === undefined ? {} : {
      blocks: {
        content: content.content,
        hasText: written.hasText,
        hasValue,
        ...(written.parts === undefined ? {} : { parts: written.parts }),
        ...(content.metadata === undefined ? {} : { metadata: content.metadata }),
      },
    }),
  };
}

function failed(error: ToolCallError): Answer {
  return { ok: false, error, text: failureText(error).slice(0, MAX_FAILURE) };
}

/** A failure in words: its message, and the issues that the message does not name. */
function failureText(error: ToolCallError): string {
  const { message, issues = [] } = error;
  const more = issues.slice(0, MAX_ISSUES).filter((issue) => !message.includes(issue.message));
  return [message, ...more.map((issue) => `- ${issue.path || "the whole"}: ${issue.message}`)]
    .join("\n");
}
