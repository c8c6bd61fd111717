/**
 * Results of blocks that a host wrote: what is no block is found here, and not by a provider.
 *
 * @module
 */

import {
  clip,
  type ContentBlock,
  type ContentOptions,
  isObject,
  isToolResult,
  ToolResult,
} from "../../tool/mod.ts";

/** The members of each type of block that must be there. They are texts. */
const TEXTS: { readonly [type: string]: readonly string[] } = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource: [],
  resource_link: ["uri", "name"],
};

/** The result of a tool whose results are blocks: a failure if this is none. */
export function readBlocks(value: unknown): ToolResult {
  if (isToolResult(value)) return value;
  const problem = problemOf(value);
  if (problem !== undefined) {
    return ToolResult.error("invalid_result", `The tool's blocks are wrong: ${problem}`);
  }
  const { content, ...options } = value as { readonly content: ContentBlock[] } & ContentOptions;
  return ToolResult.blocks(content, options);
}

function problemOf(value: unknown): string | undefined {
  const { content, structuredContent: _any, metadata = {}, ...rest } = isObject(value) ? value : {};
  if (!Array.isArray(content)) return '"/content" must be a list of blocks';
  if (!isObject(metadata)) return '"/metadata" must be an object';
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) {
    const place = JSON.stringify(clip(`/${unknown}`));
    return `there is no ${place} beside "content", "structuredContent" and "metadata"`;
  }
  for (const [index, block] of content.entries()) {
    const problem = problemOfBlock(block, `/content/${index}`);
    if (problem !== undefined) return problem;
  }
}

function problemOfBlock(block: unknown, path: string): string | undefined {
  const { type, resource, ...members } = isObject(block) ? block : {};
  if (typeof type !== "string" || !Object.hasOwn(TEXTS, type)) {
    return `"${path}/type" must be ${Object.keys(TEXTS).join(" or ")}`;
  }
  const missing = TEXTS[type]?.find((name) => typeof members[name] !== "string");
  if (missing !== undefined) return `"${path}/${missing}" must be a text`;
  if (type !== "resource") return undefined;
  const { uri, text, blob } = isObject(resource) ? resource : {};
  const isWhole = typeof uri === "string" && typeof (text ?? blob) === "string";
  return isWhole ? undefined : `"${path}/resource" must have "uri", and "text" or "blob"`;
}
