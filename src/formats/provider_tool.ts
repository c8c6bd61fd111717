/**
 * Tools that a provider runs by itself, such as its web search.
 *
 * @module
 */

import { isObject, makeTool, refuse, type Tool } from "../tool/mod.ts";

/** What {@linkcode providerTool} is told. */
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
   * A strict mode takes that of the target without it.
   */
  readonly definitions: { readonly [target: string]: { readonly [field: string]: unknown } };
}

/**
 * Makes a tool that a provider runs by itself, such as its web search or its code execution. It is
 * selected as other tools are, and exported as its definition for each target; a target that it has
 * none for rejects it. Its calls and results are the provider's: they are neither read nor answered.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { exportTools, providerTool } from "@plue/tools/formats";
 *
 * const search = providerTool({
 *   name: "web_search",
 *   description: "Searches the web.",
 *   definitions: {
 *     "anthropic": { type: "web_search_20250305", name: "web_search", max_uses: 3 },
 *     "openai.responses": { type: "web_search" },
 *     "gemini": { googleSearch: {} },
 *   },
 * });
 * assert.deepEqual<unknown>(exportTools([search], "openai.responses").tools, [{ type: "web_search" }]);
 * assert.equal(exportTools([search], "mistral").rejected[0]?.tool, "web_search");
 * ```
 *
 * @param definition What it is called, and its definitions.
 * @returns The tool, which has no `execute`.
 * @throws {TypeError} If a definition is no object, or there is none.
 */
export function providerTool({ definitions, ...fields }: ProviderToolDefinition): Tool {
  const action = `make the provider's tool "${fields.name}"`;
  if (!isObject(definitions) || Object.keys(definitions).length === 0) {
    refuse(action, '"/definitions" must have a definition for at least one target');
  }
  for (const [target, definition] of Object.entries(definitions)) {
    if (!isObject(definition)) {
      refuse(action, `"/definitions/${target}" must be an object, as the provider documents it`);
    }
  }
  return makeTool({ ...fields, meta: { provider: { definitions } } });
}
