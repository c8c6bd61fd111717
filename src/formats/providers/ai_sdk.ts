/** The Vercel AI SDK: a `ToolSet` for `generateText` and `streamText`, and its calls. */

import { defined, type JsonSchema, type JsonValue, setOwn } from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import type { ProviderHints } from "../provider_hints.ts";

// Tools

/** The symbol that identifies the SDK's schemas. All copies of the SDK have the same symbol. */
const SCHEMA: unique symbol = Symbol.for("vercel.ai.schema") as never;

/**
 * A schema of the SDK's `jsonSchema()`. The SDK does not export the symbol in its type, so this
 * type is a Standard Schema that accepts everything. At run time, the SDK checks the symbol first.
 */
export interface AiSdkSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    validate(value: unknown): { readonly value: unknown };
  };
  readonly [SCHEMA]: true;
  readonly _type: unknown;
  readonly validate: undefined;
  readonly jsonSchema: kit.WireSchema;
}

/** A tool without `execute`: the SDK returns its calls, and a dispatcher runs them. */
export interface AiSdkTool {
  description: string;
  inputSchema: AiSdkSchema;
  outputSchema?: AiSdkSchema;
  inputExamples?: { input: { [key: string]: unknown } }[];
  title?: string;
  strict?: boolean;
  metadata?: { [key: string]: kit.WireValue };
  deferLoading?: boolean;
  providerOptions?: { [provider: string]: { [option: string]: kit.WireValue } };
}

/** The SDK passes the schema on, so the rules depend on the provider, which is not known here. */
const KEYWORDS: kit.KeywordTable = Object.freeze({
  ...kit.READ_BY_THE_MODEL,
  ...kit.replacing("boolean schema"),
});

const ACCEPTS_ALL: AiSdkSchema["~standard"] = Object.freeze({
  version: 1,
  vendor: "plue",
  validate: (value) => ({ value }),
});

function schemaOf(schema: JsonSchema): AiSdkSchema {
  return {
    "~standard": ACCEPTS_ALL,
    [SCHEMA]: true,
    _type: undefined,
    validate: undefined,
    jsonSchema: kit.asObject(schema),
  };
}

/** The SDK's types require a result schema if there is no `execute`. */
const ANYTHING: AiSdkSchema = Object.freeze(schemaOf(true));

function providerOptions(hints: ProviderHints): AiSdkTool["providerOptions"] {
  const { allowedCallers, async, cacheControl, eagerInputStreaming, deferLoading } = hints;
  const both = { allowedCallers: allowedCallers && [...allowedCallers], deferLoading };
  const options = Object.entries({
    openai: defined({ ...both, async }),
    anthropic: defined({
      ...both,
      cacheControl: cacheControl && { ...cacheControl },
      eagerInputStreaming,
    }),
  }).filter(([, fields]) => Object.keys(fields).length > 0);
  return options.length === 0 ? undefined : Object.fromEntries(options);
}

/** The settings of `generateText` and `streamText`. */
export interface AiSdkRequest {
  toolChoice?: "auto" | "none" | "required" | { type: "tool"; toolName: string };
  providerOptions?: { [provider: string]: { [option: string]: boolean } };
}

function isCall(part: kit.JsonRecord): boolean {
  return part["type"] === "tool-call" && part["providerExecuted"] !== true;
}

/** The part that answers one call. */
export interface AiSdkToolResult {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output:
    | { type: "text"; value: string }
    | { type: "json"; value: JsonValue }
    | { type: "error-text"; value: string }
    | { type: "content"; value: AiSdkContentPart[] };
}

/** A part of a result. */
export type AiSdkContentPart =
  | { type: "text"; text: string }
  | {
    type: "file";
    mediaType: string;
    data: { type: "data"; data: string };
    filename?: string;
  };

/** The Vercel AI SDK. */
export const AI_SDK: kit.Target<
  "ai-sdk",
  AiSdkTool,
  Record<string, AiSdkTool>,
  AiSdkToolResult,
  { role: "tool"; content: AiSdkToolResult[] },
  AiSdkRequest
> = /* @__PURE__ */ kit.makeTarget({
  id: "ai-sdk",
  title: "Vercel AI SDK 7",
  source: "ai 7.0.173, @ai-sdk/provider-utils 5.0.81; 2026-11-20",
  features: [
    ...["title", "returns", "examples", "annotations", "icons", "meta", "strict"] as const,
    ...kit.HINT_FEATURES.filter((feature) => feature !== "taskSupport"),
  ],
  extra: "all",
  input: KEYWORDS,
  output: { keywords: KEYWORDS, root: "any" },
  draft07: true,
  wire({ tool, hints, returns, description, parameters, examples }) {
    return {
      description,
      inputSchema: schemaOf(parameters),
      outputSchema: returns === undefined ? ANYTHING : schemaOf(returns),
      ...defined({
        inputExamples: kit.unlessEmpty(examples.map(({ input }) => ({ input }))),
        title: tool.title,
        strict: hints.strict,
      }),
      // The values are JSON, but with readonly types, which the SDK's types do not accept.
      metadata: {
        id: tool.id,
        annotations: tool.annotations,
        ...defined({ icons: kit.unlessEmpty(tool.icons), meta: tool.meta }),
      } as unknown as { [key: string]: kit.WireValue },
      ...defined({
        deferLoading: hints.deferLoading,
        providerOptions: tool.meta === undefined ? undefined : providerOptions(hints),
      }),
    };
  },
  assemble(tools) {
    const set: Record<string, AiSdkTool> = {};
    for (const { view, wire } of tools) setOwn(set, view.name, wire);
    return set;
  },
  choose({ toolChoice, parallel }) {
    const named = typeof toolChoice === "object"
      ? { type: "tool" as const, toolName: toolChoice.name }
      : toolChoice;
    return defined({
      toolChoice: named,
      // The SDK has no setting for several calls in one response, but some providers have one.
      providerOptions: parallel === undefined ? undefined : {
        openai: { parallelToolCalls: parallel },
        mistral: { parallelToolCalls: parallel },
        anthropic: { disableParallelToolUse: !parallel },
      },
    });
  },
  calls: {
    // Reads a result with `toolCalls`, a message, a list of parts, or one part.
    read: kit.callReader({
      title: "an AI SDK result",
      lists: ["toolCalls", "content"],
      marks: ["providerExecuted"],
      onlyCalls: true,
      reasonOf: (result) => result["finishReason"],
      isCall,
      call: (part) => kit.callFrom({ id: "toolCallId", name: "toolName", input: "input" }, part),
    }),
    write({ callId: toolCallId, wireName: toolName }, answer) {
      const head = { type: "tool-result", toolCallId, toolName } as const;
      if (!answer.ok) return { ...head, output: { type: "error-text", value: answer.text } };
      const parts = answer.blocks?.parts as AiSdkContentPart[] | undefined;
      if (parts !== undefined) return { ...head, output: { type: "content", value: parts } };
      return answer.blocks !== undefined || typeof answer.value === "string"
        ? { ...head, output: { type: "text", value: answer.text } }
        : { ...head, output: { type: "json", value: answer.value } };
    },
    gather: (parts) => [{ role: "tool", content: [...parts] }],
    // The SDK passes every file to the provider's package, which accepts or rejects the file.
    media: {
      text: (text) => ({ type: "text", text }),
      file: ({ mimeType: mediaType, data, name }) => ({
        type: "file",
        mediaType,
        data: { type: "data", data },
        ...defined({ filename: name }),
      }),
    },
    // A part of the type `tool-call` has the whole call.
    stream() {
      let count = 0;
      return {
        steps: (event) => {
          if (event["type"] === "finish" || event["type"] === "finish-step") {
            return [{ type: "finish", cutOff: false }];
          }
          return isCall(event) ? [{ type: "whole", key: `${count++}`, raw: event }] : [];
        },
        rebuild: () => undefined,
      };
    },
  },
});
