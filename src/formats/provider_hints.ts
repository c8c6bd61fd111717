/** The hints of a tool for providers, and tools that a provider runs by itself. */

import { fail, isObject, makeTool, type Tool } from "../tool/mod.ts";

/** The hints of a tool for providers, in `meta.provider`. The rest of `meta` is MCP's `_meta`. */
export interface ProviderHints {
  /** Sends the tool with (`true`) or without (`false`) strict mode, whatever the target's mode. */
  readonly strict?: boolean;
  /** Load the tool only when a tool search finds it (OpenAI Responses, Anthropic). */
  readonly deferLoading?: boolean;
  /**
   * True if the tool searches the deferred tools: a tool search of OpenAI Responses or Anthropic.
   * Its result has a list `tools` of ids, texts that begin with an id, or objects with a `name`.
   */
  readonly toolSearch?: boolean;
  /** The allowed callers: `direct`, `programmatic`, or a version of Anthropic's code execution. */
  readonly allowedCallers?: readonly string[];
  /** True if the model need not wait for a result (OpenAI Responses, Gemini Live). */
  readonly async?: boolean;
  /** Anthropic's `cache_control`; for Bedrock, a `cachePoint` after the tool. */
  readonly cacheControl?: { readonly type: "ephemeral"; readonly ttl?: "5m" | "1h" };
  /** Anthropic's `eager_input_streaming`. */
  readonly eagerInputStreaming?: boolean;
  /** MCP 2025-11-25's `execution.taskSupport`. */
  readonly taskSupport?: "forbidden" | "optional" | "required";
  /** The annotations of the source; `null` if the source had no annotations. */
  readonly annotations?: { readonly [hint: string]: unknown } | null;
  /** `null` if the source had no description, so that no generated description is sent back. */
  readonly description?: null;
  /** `null` if the source had no title, so that no generated title is sent back. */
  readonly title?: null;
  /** The source: `mcp`, `openapi`, `openai`, `anthropic`, `gemini`, `bedrock`. */
  readonly source?: string;
  /** The API of a source with several APIs: OpenAI's `chat`, `responses` or `realtime`. */
  readonly surface?: string;
  /** The name in the source, if the tool's own name differs. */
  readonly name?: string;
  /** True if optional properties were required but nullable in the source (OpenAI, strict mode). */
  readonly unstrict?: boolean;
  /** Fields of the source that a tool does not have. They are sent back to the source only. */
  readonly extra?: { readonly [field: string]: unknown };
  /** The conversion of a call to an HTTP request, for a tool that was imported from OpenAPI. */
  readonly operation?: { readonly [field: string]: unknown };
  /** The entries of a tool that providers run, by target id. `providerTool` sets this field. */
  readonly definitions?: { readonly [target: string]: object };
  /** A namespace's description, which OpenAI Responses requires. */
  readonly namespaceDescription?: string;
}

const NO_HINTS: ProviderHints = Object.freeze({});

/** Returns the hints of a tool. */
export function hintsOf(tool: Tool): ProviderHints {
  const hints = tool.meta?.["provider"];
  return typeof hints === "object" && hints !== null && !Array.isArray(hints)
    ? hints as ProviderHints
    : NO_HINTS;
}

/** The definition of a {@linkcode providerTool}. No provider receives the description. */
export interface ProviderToolDefinition
  extends
    Pick<Tool, "name" | "description">,
    Partial<Pick<Tool, "namespace" | "title" | "tags" | "roles" | "scopes" | "risk">> {
  /** The entries in a request, by target id. A strict mode can use the plain target's entry. */
  readonly definitions: { readonly [target: string]: { readonly [field: string]: unknown } };
}

/**
 * Makes a tool that a provider runs, such as its web search. The tool is selected like other tools.
 * An export sends the definition for the target, or rejects the tool if there is no definition.
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
 * @throws {TypeError} If there is no definition, or a definition is not an object.
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
