/** Tools for the AI SDK, LangChain and the OpenAI Agents SDK. None of these packages is imported. */

import {
  type AiSdkTool,
  type AiSdkToolResult,
  type AnsweredCall,
  type CallDispatcher,
  dispatchResponse,
  encodeResult,
  encodeResults,
  type Exportable,
  type ExportOptions,
  Exposure,
  type LangChainTool,
  type LangChainToolMessage,
  type MessageOf,
  targetOf,
  type ToolsOf,
  type WireValue,
} from "../../formats/mod.ts";
import {
  clip,
  defined,
  fail,
  isFunction,
  isObject,
  isSuspended,
  rejectUnknownFields,
  setOwn,
  ToolResult,
} from "../../tool/mod.ts";

/** Options of tools that a framework runs. */
export interface FrameworkOptions<Context = unknown> {
  /** Runs the calls: a `ToolDispatcher` over the tools. */
  readonly dispatcher: CallDispatcher<Context>;
  /** Fields that the host adds to each call. */
  readonly context?: Context;
  readonly options?: ExportOptions;
}

const FIELDS: readonly (keyof FrameworkOptions)[] = ["dispatcher", "context", "options"];

const KIT: readonly (keyof LangChainKit)[] = ["tool", "ToolMessage"];

type FrameworkTarget = "ai-sdk" | "langchain" | "openai.chat.strict";

interface Runnable<Target extends FrameworkTarget> {
  readonly tools: ToolsOf<Target>;
  answer(call: unknown, signal: AbortSignal | undefined): Promise<{
    readonly message: MessageOf<Target>;
    readonly result: ToolResult;
  }>;
}

function runnable<Target extends FrameworkTarget, Context>(
  target: Target,
  source: Exportable,
  given: FrameworkOptions<Context>,
  fields: readonly string[] = FIELDS,
): Runnable<Target> {
  const action = `make tools for ${targetOf(target).title}`;
  rejectUnknownFields(action, Object(given), fields);
  const { dispatcher, context, options }: FrameworkOptions<Context> = Object(given);
  if (!isFunction(dispatcher?.dispatchAll)) {
    fail(action, "the option dispatcher must be a ToolDispatcher over the tools");
  }
  if (options?.toolChoice !== undefined || options?.parallel !== undefined) {
    fail(action, "toolChoice and parallel have no effect here");
  }
  const exposure = new Exposure(source, target, options);
  const tools = exposure.export();
  const { names } = exposure.result();
  return {
    tools,
    async answer(call, signal) {
      const more = { ...context, ...defined({ signal }) } as Context;
      const turn = await dispatchResponse(target, call, { dispatcher, names, context: more });
      // One call has one result, and one message unless it is suspended.
      const result = turn.results[0] as ToolResult;
      const [message = encodeResults(target, turn.calls, [failureOf(result)], names)[0]] =
        turn.messages;
      return { message: message as MessageOf<Target>, result };
    },
  };
}

/** The model's result for a suspended call: frameworks cannot pass questions to a person. */
function failureOf(result: ToolResult): ToolResult {
  if (!isSuspended(result)) return result;
  const { error: { code, message }, questions } = result;
  const asked = questions.map((question) => clip(question.message, 300)).join("; ");
  const advice = "The call resumes after the answer; do not repeat it";
  return ToolResult.error(code, `${message}. The call waits for: ${asked}. ${advice}`);
}

type AiSdkOutput<Version extends 6 | 7> = Version extends 6
  ? Exclude<AiSdkToolResult["output"], { type: "content" | "json" }> | {
    type: "content";
    value: AiSdk6ContentPart[];
  } | { type: "json"; value: WireValue }
  : AiSdkToolResult["output"];

/** A part of a result in AI SDK 6. */
export type AiSdk6ContentPart =
  | { type: "text"; text: string }
  | { type: "image-data"; data: string; mediaType: string }
  | { type: "file-data"; data: string; mediaType: string; filename?: string };

/** A tool that this version of the AI SDK runs. */
export interface RunnableAiSdkTool<Version extends 6 | 7 = 7> extends AiSdkTool {
  /** Runs the tool. A result with blocks stays whole, with `blocks: true`, for the application. */
  execute(
    input: unknown,
    options: { readonly toolCallId: string; readonly abortSignal?: AbortSignal | undefined },
  ): Promise<unknown>;
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
  source: Exportable,
  options: AiSdkOptions<Context, Version>,
): { [name: string]: RunnableAiSdkTool<Version> } {
  const { tools, answer } = runnable("ai-sdk", source, options, [...FIELDS, "version"]);
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
        throw new Error(part.output.value, isSuspended(result) ? { cause: result } : undefined);
      }
      if (result.ok && result.blocks === true) return { ...Object(result.content), blocks: true };
      const value = part?.output.value;
      return looksLikeBlocks(value) ? blocksOf(value) : value;
    };
    const toModelOutput: RunnableAiSdkTool["toModelOutput"] = ({ toolCallId, output }) => {
      const { blocks } = Object(output);
      const result: ToolResult = { ...ToolResult.ok(output), ...(blocks === true && { blocks }) };
      return encodeResult("ai-sdk", { callId: toolCallId, wireName: toolName }, result).output;
    };
    const runs = {
      ...tool,
      execute,
      toModelOutput: version === 7
        ? toModelOutput
        : (given: { toolCallId: string; output: unknown }) => olderOutput(toModelOutput(given)),
    };
    // The version determines the form of the output, so the type is right.
    setOwn(set, toolName, runs as unknown as RunnableAiSdkTool<Version>);
  }
  return set;
}

/** True if `toModelOutput` would read a value as a result with blocks. */
function looksLikeBlocks(value: unknown): boolean {
  return isObject(value) && value["blocks"] === true && Array.isArray(value["content"]);
}

/** Returns blocks with a value. The mark of blocks is a field, because outputs are stored as JSON. */
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

/** The exports of `langchain` and `@langchain/core` with these names. */
export interface LangChainKit {
  readonly tool: (run: never, fields: never) => unknown;
  readonly ToolMessage: new (fields: never) => unknown;
}

/** The parameters with which LangChain runs a tool. */
type LangChainRun = (
  args: unknown,
  config: { readonly signal?: AbortSignal; readonly toolCall?: { readonly id?: string } },
) => Promise<unknown>;

/**
 * Returns the tools for `createAgent`, `ToolNode` and `bindTools` of LangChain JS. A failed call
 * returns a `ToolMessage` with the status `error`; if the tool was invoked with arguments alone, it
 * throws. LangChain validates arguments before plue, with its own messages.
 *
 * @example Usage
 * ```ts ignore
 * import { createAgent, tool, ToolMessage } from "langchain";
 *
 * const tools = toLangChainTools(toolset, { dispatcher, tool, ToolMessage });
 * const agent = createAgent({ model, tools });
 * ```
 *
 * @param options The dispatcher, and LangChain's `tool` and `ToolMessage`.
 * @throws {TypeError} If an option is invalid, or a tool cannot be exported.
 */
export function toLangChainTools<Kit extends LangChainKit, Context>(
  source: Exportable,
  options: FrameworkOptions<Context> & Kit,
): ReturnType<Kit["tool"]>[] {
  const { tools, answer } = runnable("langchain", source, options, [...FIELDS, ...KIT]);
  for (const name of KIT) {
    if (!isFunction(options[name])) {
      fail("make tools for LangChain JS", `the option ${name} must be the export of LangChain`);
    }
  }
  // LangChain's types have an overload for each schema library; this is their common form.
  const { tool, ToolMessage } = options as unknown as {
    tool(run: LangChainRun, fields: LangChainTool): ReturnType<Kit["tool"]>;
    readonly ToolMessage: new (fields: LangChainToolMessage) => unknown;
  };
  return tools.map((fields) =>
    tool(async (args, { signal, toolCall }) => {
      const id = toolCall?.id;
      const call = { type: "tool_call", name: fields.name, args, id };
      const { message } = await answer(call, signal);
      if (id !== undefined) return new ToolMessage(message);
      // A failure has a text as its content.
      if (message.status === "error") throw new Error(String(message.content));
      return message.content;
    }, fields)
  );
}

/** A part of a result in the OpenAI Agents SDK. */
export type AgentsOutput =
  | { type: "text"; text: string }
  | { type: "image"; image: string }
  | { type: "file"; file: { data: string; mediaType: string; filename: string } };

/** A tool of the OpenAI Agents SDK, in the form that its `tool()` returns. */
export interface AgentsTool {
  type: "function";
  name: string;
  description: string;
  parameters: {
    type: "object";
    properties: { [name: string]: unknown };
    required: string[];
    additionalProperties: false;
  };
  strict: boolean;
  invoke(
    runContext: unknown,
    input: string,
    details?: { readonly toolCall?: { readonly callId: string }; readonly signal?: AbortSignal },
  ): Promise<string | AgentsOutput[]>;
  needsApproval(): Promise<boolean>;
  isEnabled(): Promise<boolean>;
}

/**
 * Returns the tools for an agent of the OpenAI Agents SDK (`@openai/agents`). They are strict if
 * their schemas allow it. The result of a failed call is its message, which begins with its code.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { toOpenAiAgentsTools } from "@plue/tools/frameworks";
 *
 * const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
 * const toolset = new ToolRegistry({ tools: [ping] }).select();
 * const [tool] = toOpenAiAgentsTools(toolset, { dispatcher: new ToolDispatcher(toolset) });
 * // new Agent({ name: "Assistant", tools: [tool] })
 * assert.equal(await tool?.invoke(undefined, "{}"), "pong");
 * ```
 *
 * @throws {TypeError} If an option is invalid, or a tool cannot be exported.
 */
export function toOpenAiAgentsTools<Context>(
  source: Exportable,
  options: FrameworkOptions<Context>,
): AgentsTool[] {
  const { tools, answer } = runnable("openai.chat.strict", source, options);
  return tools.map((
    { type, function: { name, description = "", parameters, strict = false } },
  ) => ({
    type,
    name,
    description,
    // Only strict tools fit the SDK's type; the SDK sends the schema unchanged.
    parameters: parameters as AgentsTool["parameters"],
    strict,
    async invoke(_runContext, input, details) {
      const id = details?.toolCall?.callId ?? "call_1";
      const call = { id, type: "function", function: { name, arguments: input } };
      const { message, result } = await answer(call, details?.signal);
      return result.ok && result.blocks === true
        ? outputOf({ callId: id, wireName: name }, result)
        : message.content;
    },
    needsApproval: () => Promise.resolve(false),
    isEnabled: () => Promise.resolve(true),
  }));
}

/** Writes a result with blocks. The SDK sends it to the Responses API. */
function outputOf(call: AnsweredCall, result: ToolResult): string | AgentsOutput[] {
  const written = encodeResult("openai.responses", call, result);
  if (written.type === "tool_search_output") return "";
  const { output } = written;
  if (typeof output === "string") return output;
  return output.map((part): AgentsOutput => {
    if (part.type === "input_text") return { type: "text", text: part.text };
    if (part.type === "input_image") return { type: "image", image: part.image_url };
    const [head = "", data = ""] = part.file_data.split(",");
    const mediaType = head.slice("data:".length, -";base64".length);
    return { type: "file", file: { data, mediaType, filename: part.filename } };
  });
}
