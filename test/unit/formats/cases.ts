/** The cases of the providers, one file each in `cases/`, and the tools of their calls. */

import { ToolDispatcher } from "../../../src/execute/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { type ExportNames, exportTools, type TargetName } from "../../../src/formats/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { defineTool, type Tool } from "../../../src/tool/mod.ts";
import aiSdk from "./cases/ai_sdk.json" with { type: "json" };
import anthropic from "./cases/anthropic.json" with { type: "json" };
import bedrock from "./cases/bedrock.json" with { type: "json" };
import cohere from "./cases/cohere.json" with { type: "json" };
import gemini from "./cases/gemini.json" with { type: "json" };
import langchain from "./cases/langchain.json" with { type: "json" };
import mcp from "./cases/mcp.json" with { type: "json" };
import mistral from "./cases/mistral.json" with { type: "json" };
import ollama from "./cases/ollama.json" with { type: "json" };
import openaiChat from "./cases/openai_chat.json" with { type: "json" };
import openaiRealtime from "./cases/openai_realtime.json" with { type: "json" };
import openaiResponses from "./cases/openai_responses.json" with { type: "json" };
import openapi from "./cases/openapi.json" with { type: "json" };

type Targets = readonly TargetName[];

/** The cases of one provider, as JSON has them. */
interface ProviderCases {
  readonly targets: Targets;
  /** The name of the tool `city:weather` for these targets. */
  readonly name: string;
  /** True if the provider's calls have ids. */
  readonly ids: boolean;
  /** One call with `$name`, `$id`, and the arguments as `$args`, or as text in `$json`. */
  readonly call: unknown;
  /** The levels that hold calls, the whole response first. */
  readonly levels: Readonly<Record<string, unknown>>;
  /** Whole responses without a call. */
  readonly silent: readonly unknown[];
  /** A call of `city:weather` for Rome and one of `clear`, streamed. */
  readonly stream?: {
    readonly target: TargetName;
    readonly events: readonly object[];
    /** The number of events until the first complete call; `null` if only the end completes it. */
    readonly first: number | null;
    readonly ids?: readonly [string, string];
  };
  /** The messages for an object, a text and a failure. */
  readonly results: readonly (readonly [Targets, unknown, unknown, unknown])[];
  /** The message for a text, an image and a PDF file. */
  readonly blocks: readonly (readonly [Targets, unknown])[];
  /** The settings for each tool choice and one call at a time; a text is a reported setting. */
  readonly settings: readonly (readonly [Targets, ...(object | string)[]])[];
  /** A tool with all fields, in the shape of each target. */
  readonly exported: Readonly<Record<string, unknown>>;
}

export const PROVIDERS: readonly ProviderCases[] = [
  ...[aiSdk, anthropic, bedrock, cohere, gemini, langchain, mcp, mistral, ollama],
  ...[openaiChat, openaiRealtime, openaiResponses, openapi],
] as unknown as readonly ProviderCases[];

/** The responses of each provider for the same call. */
export interface Fixture extends Omit<ProviderCases, "call" | "levels"> {
  /** One call, of the tool with this name. */
  call(name: string, args: unknown, id: string): unknown;
  readonly levels: Readonly<Record<string, (calls: readonly unknown[]) => unknown>>;
}

/** Copies a case and replaces its texts by values. A list replaces its text by the items. */
export function fill(value: unknown, texts: Readonly<Record<string, unknown>>): unknown {
  if (typeof value === "string") return Object.hasOwn(texts, value) ? texts[value] : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    return value.flatMap((item) => Array.isArray(item) ? [fill(item, texts)] : fill(item, texts));
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, texts)]));
}

export const FIXTURES: readonly Fixture[] = PROVIDERS.map(({ call, levels, ...cases }) => ({
  ...cases,
  call: (name, args, id) =>
    fill(call, {
      ...{ $name: name, $id: id, $args: args },
      $json: typeof args === "string" ? args : JSON.stringify(args),
    }),
  levels: Object.fromEntries(
    Object.entries(levels).map((
      [level, whole],
    ) => [level, (calls: readonly unknown[]) =>
      fill(whole, {
        $calls: calls,
        $functionCalls: calls.map((each) => (each as { functionCall?: unknown }).functionCall),
      })]
    ),
  ),
}));

/** A tool whose id no provider but MCP takes, and which strict mode changes. */
export const WEATHER: Tool = defineTool({
  namespace: "city",
  name: "weather",
  description: "Tells the weather.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, unit: { enum: ["C", "F"] } },
    required: ["city"],
    additionalProperties: false,
  },
  execute: ({ city }) => ({ city, celsius: 21 }),
});

/** A tool that may be called without arguments, which makes half a call dangerous. */
export const CLEAR: Tool = defineTool({
  name: "clear",
  description: "Deletes what is named, or all.",
  parameters: { type: "object", properties: { only: { type: "string" } } },
  execute: () => "cleared",
});

export const FAILS: Tool = defineTool({
  name: "fails",
  description: "Fails.",
  execute: () => {
    throw new Error("the disk is full");
  },
});

export const TOOLS: readonly Tool[] = Object.freeze([WEATHER, CLEAR, FAILS]);

export function namesFor(target: TargetName, tools: readonly Tool[] = TOOLS): ExportNames {
  return exportTools(tools, target).names;
}

export function dispatcherOf(tools: readonly Tool[] = TOOLS): ToolDispatcher {
  return new ToolDispatcher(buildToolset(tools, {}), {
    engine: typeboxEngine({ codeGeneration: false }),
  });
}
