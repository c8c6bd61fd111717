/** Tools that a framework runs, and the tools for the AI SDK, which is not imported. */

import type * as types from "../../formats/mod.ts";
import { AI_SDK } from "../../formats/providers/ai_sdk.ts";
import * as formats from "../../formats/records.ts";
import type { CallInfo } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { defined, fail, isFunction, isObject, ToolResult } from "../../tool/mod.ts";
import type { CallApprovals, FrameworkApprovals } from "./approvals.ts";

/** Options of tools that a framework runs. */
export interface FrameworkOptions<Context = unknown> {
  /** Runs the calls: a `ToolDispatcher` over the tools. */
  readonly dispatcher: types.CallDispatcher<Context>;
  /** Fields that the host adds to each call. */
  readonly context?: Context;
  readonly options?: types.ExportOptions;
  /** Stores the approvals that the framework requests from a person. */
  readonly approvals?: FrameworkApprovals;
}

export const FIELDS: readonly (keyof FrameworkOptions)[] = [
  ...["dispatcher", "context", "options", "approvals"] as const,
];

interface Runnable<Of extends types.Target> {
  readonly tools: types.ToolsOf<Of>;
  /** Returns the id of the approval that a call needs. Absent without the option `approvals`. */
  readonly request?: (
    call: unknown,
    record: Parameters<CallApprovals["request"]>[1],
  ) => Promise<string | undefined>;
  /** @param action The decision of the framework's user, if the call needs approval. */
  answer(call: unknown, signal: AbortSignal | undefined, action?: check.Answer["action"]): Promise<{
    readonly message: types.MessageOf<Of>;
    readonly result: ToolResult;
  }>;
}

export function runnable<Of extends types.Target, Context>(
  target: Of,
  source: types.Exportable,
  settings: FrameworkOptions<Context>,
  fields: readonly string[] = FIELDS,
): Runnable<Of> {
  const action = `make tools for ${target.title}`;
  check.rejectUnknownFields(action, Object(settings), fields);
  const { dispatcher, context, options }: FrameworkOptions<Context> = Object(settings);
  if (!isFunction(dispatcher?.dispatchAll)) {
    fail(action, "the option dispatcher must be a ToolDispatcher over the tools");
  }
  if (options?.toolChoice !== undefined || options?.parallel !== undefined) {
    fail(action, "toolChoice and parallel have no effect here");
  }
  const approvals = settings.approvals?.forCalls(action, dispatcher, Object(context));
  const exported = formats.exportTools(source, target, options);
  const { names } = exported;
  // A framework passes one call at a time.
  const decode = (call: unknown) =>
    formats.decodeCalls(target, call, names)[0] as types.DecodedCall;
  return {
    tools: formats.allTools(exported),
    ...approvals && { request: (call, record) => approvals.request(decode(call), record) },
    async answer(call, signal, action = "accept") {
      const onQuestion = approvals &&
        ((question: check.Question, info: CallInfo) => approvals.answer(question, info, action));
      const more = { ...context, ...defined({ signal, onQuestion }) } as Context;
      const turn = await formats.dispatchCalls(target, [decode(call)], {
        dispatcher,
        names,
        context: more,
      });
      // One call has one result, and one message unless it is suspended.
      const result = turn.results[0] as ToolResult;
      const [message = formats.encodeResults(target, turn.calls, [failureOf(result)], names)[0]] =
        turn.messages;
      return { message: message as types.MessageOf<Of>, result };
    },
  };
}

/** The model's result for a suspended call: frameworks cannot pass questions to a person. */
function failureOf(result: ToolResult): ToolResult {
  if (!check.isSuspended(result)) return result;
  const { error: { code, message }, questions } = result;
  const messages = questions.map((question) => check.clip(question.message, 300)).join("; ");
  const advice = "The call resumes after the answer; do not repeat it";
  return ToolResult.error(code, `${message}. The call waits for: ${messages}. ${advice}`);
}

type AiSdkOutput<Version extends 6 | 7> = Version extends 6
  ? Exclude<types.AiSdkToolResult["output"], { type: "content" | "json" }> | {
    type: "content";
    value: AiSdk6ContentPart[];
  } | { type: "json"; value: types.WireValue }
  : types.AiSdkToolResult["output"];

/** A part of a result in AI SDK 6. */
export type AiSdk6ContentPart =
  | { type: "text"; text: string }
  | { type: "image-data"; data: string; mediaType: string }
  | { type: "file-data"; data: string; mediaType: string; filename?: string };

/** A tool that this version of the AI SDK runs. */
export interface RunnableAiSdkTool<Version extends 6 | 7 = 7> extends types.AiSdkTool {
  /** Runs the tool. A result with blocks stays whole, with `blocks: true`, for the application. */
  execute(
    input: unknown,
    options: { readonly toolCallId: string; readonly abortSignal?: AbortSignal | undefined },
  ): Promise<unknown>;
  /** Returns true for a call that needs approval. Absent without the option `approvals`. */
  needsApproval?(
    input: unknown,
    options: { readonly toolCallId: string; readonly messages: readonly unknown[] },
  ): Promise<boolean>;
  /** Returns an output in the form for the model. The output may have been stored as JSON. */
  toModelOutput(options: {
    readonly toolCallId: string;
    readonly output: unknown;
  }): AiSdkOutput<Version>;
}

/** Options of tools for the AI SDK. */
export interface AiSdkOptions<Context = unknown, Version extends 6 | 7 = 7>
  extends FrameworkOptions<Context> {
  /** The major version of `ai`, for the form of images and files. @default {7} */
  readonly version?: Version;
}

/**
 * Returns the tools as a `ToolSet` of the AI SDK (`ai` 6 and 7), which runs them. A failed call
 * throws its message, which the SDK shows to the model. If the call is suspended, the `cause` of
 * the error is the result with the questions and the ticket.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { toAiSdkTools } from "@plue/tools/frameworks";
 *
 * const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
 * const toolset = new ToolRegistry({ tools: [ping] }).select();
 * const tools = toAiSdkTools(toolset, { dispatcher: new ToolDispatcher(toolset) });
 * // await generateText({ model, prompt, tools, stopWhen: isStepCount(10) });
 * assert.equal(await tools["ping"]?.execute({}, { toolCallId: "call_1" }), "pong");
 * ```
 *
 * @throws {TypeError} If an option is invalid, or a tool cannot be exported.
 */
export function toAiSdkTools<Context, Version extends 6 | 7 = 7>(
  source: types.Exportable,
  options: AiSdkOptions<Context, Version>,
): { [name: string]: RunnableAiSdkTool<Version> } {
  const { tools, answer, request } = runnable(AI_SDK, source, options, [...FIELDS, "version"]);
  const version: unknown = options.version ?? 7;
  if (version !== 6 && version !== 7) {
    fail("make tools for Vercel AI SDK 7", "the option version must be 6 or 7");
  }
  const set: { [name: string]: RunnableAiSdkTool<Version> } = {};
  for (const [toolName, tool] of Object.entries(tools)) {
    const execute: RunnableAiSdkTool["execute"] = async (input, { toolCallId, abortSignal }) => {
      const call = { type: "tool-call", toolCallId, toolName, input };
      const { message: { content: [part] }, result } = await answer(call, abortSignal);
      if (part?.output.type === "error-text") {
        // The application finds the ticket of a suspended call in the cause of the error.
        throw new Error(
          part.output.value,
          check.isSuspended(result) ? { cause: result } : undefined,
        );
      }
      if (result.ok && result.blocks === true) return { ...Object(result.content), blocks: true };
      const value = part?.output.value;
      return looksLikeBlocks(value) ? blocksOf(value) : value;
    };
    const needsApproval: RunnableAiSdkTool["needsApproval"] = request &&
      (async (input, { toolCallId, messages }) => {
        const call = { type: "tool-call", toolCallId, toolName, input };
        const record = hasCall(messages, toolCallId) ? "never" : "always";
        return await request(call, record) !== undefined;
      });
    const toModelOutput: RunnableAiSdkTool["toModelOutput"] = ({ toolCallId, output }) => {
      const { blocks } = Object(output);
      const result: ToolResult = { ...ToolResult.ok(output), ...(blocks === true && { blocks }) };
      return formats.encodeResult(AI_SDK, { callId: toolCallId, wireName: toolName }, result)
        .output;
    };
    const runs = {
      ...tool,
      execute,
      ...defined({ needsApproval }),
      toModelOutput: version === 7
        ? toModelOutput
        : (result: { toolCallId: string; output: unknown }) => olderOutput(toModelOutput(result)),
    };
    // The version determines the form of the output, so the type is right.
    check.setOwn(set, toolName, runs as unknown as RunnableAiSdkTool<Version>);
  }
  return set;
}

/** True if a conversation has a call, so that the call is not new. The client may have written it. */
function hasCall(messages: readonly unknown[], toolCallId: string): boolean {
  return messages.map((message): unknown => Object(message).content).filter(Array.isArray).flat()
    .some((part) => Object(part).type === "tool-call" && Object(part).toolCallId === toolCallId);
}

function looksLikeBlocks(value: unknown): boolean {
  return isObject(value) && value["blocks"] === true && Array.isArray(value["content"]);
}

/** Returns blocks with a value. `blocks` marks them, because outputs are stored as JSON. */
function blocksOf(value: unknown): object {
  const content = [{ type: "text", text: JSON.stringify(value) }];
  return { content, structuredContent: value, blocks: true };
}

function olderOutput(output: AiSdkOutput<7>): AiSdkOutput<6> {
  // The types of this version are mutable, but the SDK does not change a value.
  if (output.type !== "content") return output as AiSdkOutput<6>;
  return {
    type: "content",
    value: output.value.map((part): AiSdk6ContentPart => {
      if (part.type === "text") return part;
      const { mediaType, data: { data }, filename } = part;
      return mediaType.startsWith("image/")
        ? { type: "image-data", data, mediaType }
        : { type: "file-data", data, mediaType, ...defined({ filename }) };
    }),
  };
}
