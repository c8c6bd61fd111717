/**
 * What a tool says of itself, field by field, as the text that is searched.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";

/** The text of a tool. */
export interface ToolText {
  readonly name: string;
  readonly namespace: string;
  readonly title: string;
  readonly tags: string;
  readonly category: string;
  readonly description: string;
  /** Names of parameters, nested ones too, and the values that they list. */
  readonly parameters: string;
  /** What the parameters' descriptions say. */
  readonly parameterText: string;
}

/** A schema may be large: reading stops after so many subschemas. */
const MAX_SCHEMAS = 256;
/** Characters per field. */
const MAX_TEXT = 8_192;

/** The text of a tool, bounded. */
export function toolText(tool: Tool): ToolText {
  const names: string[] = [];
  const descriptions: string[] = [];
  readParameters(tool.parameters, names, descriptions);
  return {
    name: tool.name,
    namespace: tool.namespace ?? "",
    title: tool.title ?? "",
    tags: join(tool.tags),
    category: tool.category ?? "",
    description: tool.description.slice(0, MAX_TEXT),
    parameters: join(names),
    parameterText: join(descriptions),
  };
}

function join(texts: readonly string[]): string {
  return texts.join(" ").slice(0, MAX_TEXT);
}

/** Breadth first, so that what is near the root is read even of a schema that is too large. */
function readParameters(root: unknown, names: string[], descriptions: string[]): void {
  const queue: unknown[] = [root];
  for (let index = 0; index < queue.length && index < MAX_SCHEMAS; index++) {
    const schema = queue[index];
    if (typeof schema !== "object" || schema === null) continue;
    if (Array.isArray(schema)) {
      queue.push(...schema.slice(0, MAX_SCHEMAS));
      continue;
    }
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === "description" || keyword === "title") {
        if (index > 0 && typeof value === "string") descriptions.push(value.slice(0, MAX_TEXT));
      } else if (keyword === "enum" || keyword === "const") {
        for (const item of [value].flat().slice(0, MAX_SCHEMAS)) {
          if (typeof item === "string") names.push(item.slice(0, MAX_TEXT));
        }
      } else if (keyword === "properties" || keyword === "$defs" || keyword === "definitions") {
        if (typeof value !== "object" || value === null) continue;
        const entries = Object.entries(value).slice(0, MAX_SCHEMAS);
        if (keyword === "properties") names.push(...entries.map(([name]) => name));
        queue.push(...entries.map(([, schema]) => schema));
      } else if (SUBSCHEMAS.has(keyword)) {
        queue.push(value);
      }
    }
  }
}

const SUBSCHEMAS: ReadonlySet<string> = new Set(
  ["items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "then", "else"],
);
