/** The hints of a tool for providers, and tools that a provider runs by itself. */

import { fail, isObject, makeTool, type Tool } from "../tool/mod.ts";

/**
 * The hints of a tool for providers. They are in the tool's `meta`, under `provider`, where importers
 * write them. The rest of `meta` is MCP's `_meta`.
 */
export interface ProviderHints {
  /**
   * `true`: use strict mode for this tool, even if the target is the one without it (`openai.chat`
   * instead of `openai.chat.strict`). For a target without a strict mode, this is a loss. `false`: do
   * not use it.
   */
  readonly strict?: boolean;
  /** Load the tool only when a tool search finds it (OpenAI Responses, Anthropic). */
  readonly deferLoading?: boolean;
  /**
   * The tool searches the deferred tools. Its result has a list `tools`, each entry an id, a
   * text that begins with one, or an object with the id as `name`. OpenAI Responses and Anthropic are
   * sent it and its results as their own client-side tool search; elsewhere it is a tool as others.
   */
  readonly toolSearch?: boolean;
  /** The allowed callers: `direct`, `programmatic`, or a version of Anthropic's code execution. */
  readonly allowedCallers?: readonly string[];
  /** It runs long; the model need not wait (OpenAI Responses, Gemini Live). */
  readonly async?: boolean;
  /** Anthropic's `cache_control`; a `cachePoint` behind the tool for Bedrock. */
  readonly cacheControl?: { readonly type: "ephemeral"; readonly ttl?: "5m" | "1h" };
  /** Anthropic's `eager_input_streaming`. */
  readonly eagerInputStreaming?: boolean;
  /** MCP 2025-11-25's `execution.taskSupport`. */
  readonly taskSupport?: "forbidden" | "optional" | "required";
  /** MCP's annotations as a server gave them; `null` if it gave none. */
  readonly annotations?: { readonly [hint: string]: unknown } | null;
  /** `null` if the source had no description: the tool's own is made up and not sent back. */
  readonly description?: null;
  /** `null` if the source had no title: the tool's own is made up and not sent back. */
  readonly title?: null;
  /**
   * Where the tool was imported from: `mcp`, `openapi`, `openai`, `anthropic`, `gemini`, `bedrock`.
   */
  readonly source?: string;
  /** The surface of the source, if it has several: OpenAI's `chat`, `responses` or `realtime`. */
  readonly surface?: string;
  /** The name in the source, if the tool's own name differs. */
  readonly name?: string;
  /** Optional properties were required and nullable in the source (OpenAI's strict mode). */
  readonly unstrict?: boolean;
  /** Fields of the source that a tool does not have. They are sent back to the source only. */
  readonly extra?: { readonly [field: string]: unknown };
  /** How a call becomes an HTTP request, for a tool that was imported from OpenAPI. */
  readonly operation?: { readonly [field: string]: unknown };
  /**
   * The provider runs the tool by itself: its entry among the tools of each target, by the target's
   * id. `providerTool` sets it.
   */
  readonly definitions?: { readonly [target: string]: object };
  /** A namespace's description (OpenAI Responses requires one). */
  readonly namespaceDescription?: string;
}

const NO_HINTS: ProviderHints = Object.freeze({});

/** The hints of a tool. */
export function hintsOf(tool: Tool): ProviderHints {
  const hints = tool.meta?.["provider"];
  return typeof hints === "object" && hints !== null && !Array.isArray(hints)
    ? hints as ProviderHints
    : NO_HINTS;
}

/** The definition of a tool for {@linkcode providerTool}. */
export interface ProviderToolDefinition {
  readonly name: string;
  readonly namespace?: string;
  readonly title?: string;
  /** For people: no provider is sent it. */
  readonly description: string;
  readonly tags?: readonly string[];
  readonly roles?: readonly string[];
  readonly scopes?: readonly string[];
  readonly risk?: Tool["risk"];
  /**
   * The entry in the list of tools of each target, by the target's id, as the provider documents it.
   * A strict mode uses the entry of the target without it.
   */
  readonly definitions: { readonly [target: string]: { readonly [field: string]: unknown } };
}

/**
 * Makes a tool that a provider runs by itself, such as its web search or its code execution. It is
 * selected like other tools, and exported as its definition for each target. A target without a
 * definition rejects it. The provider handles its calls and results: plue does not read them.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { exportTools, providerTool } from "@plue/tools/formats";
 *
 * const search = providerTool({
 *   name: "web_search",
 *   description: "Searches the web.",
 *   definitions: { "openai.responses": { type: "web_search" } },
 * });
 * const { tools } = exportTools([search], "openai.responses");
 * assert.deepEqual<unknown>(tools, [{ type: "web_search" }]);
 * ```
 *
 * @returns The tool, without `execute`.
 * @throws {TypeError} If there is no definition, or one is not an object.
 */
export function providerTool({ definitions, ...fields }: ProviderToolDefinition): Tool {
  const action = `make the provider's tool "${fields.name}"`;
  if (!isObject(definitions) || Object.keys(definitions).length === 0) {
    fail(action, '"/definitions" must have a definition for at least one target');
  }
  for (const [target, definition] of Object.entries(definitions)) {
    if (!isObject(definition)) {
      fail(action, `"/definitions/${target}" must be an object, as the provider documents it`);
    }
  }
  return makeTool({ ...fields, meta: { provider: { definitions } } });
}
