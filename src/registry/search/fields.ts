/**
 * What a tool says of itself: the texts that are searched, and what each is worth.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";

/** Where in a tool a word was found. */
export type ToolField =
  | "name"
  | "title"
  | "namespace"
  | "tags"
  | "category"
  | "description"
  | "parameters";

/** A text, how much its words weigh, how many words such a text usually has, and its field. */
export type SearchField = readonly [
  text: string,
  weight: number,
  usualWords: number,
  field: ToolField,
];

/** Characters that are read of one field. */
const MAX_TEXT = 8_192;
/** Subschemas that are read of one tool, and entries of each of them. */
const MAX_SCHEMAS = 256;

/** The fields of a tool, from its name to the texts of its parameters. */
export function searchFields(tool: Tool): SearchField[] {
  const names: string[] = [];
  const texts: string[] = [];
  readSchema(tool.parameters, names, texts);
  // Weights were tuned on several catalogues at once: see `bench/search_quality.ts`.
  return [
    [tool.name, 3, 4, "name"],
    [tool.title ?? "", 3, 4, "title"],
    [tool.namespace ?? "", 3, 2, "namespace"],
    [join(tool.tags), 2, 3, "tags"],
    [tool.category ?? "", 2, 1, "category"],
    [join([tool.description]), 1, 20, "description"],
    [join(names), 0.75, 10, "parameters"],
    [join(texts), 0.15, 40, "parameters"],
  ];
}

function join(texts: readonly string[]): string {
  return texts.join(" ").slice(0, MAX_TEXT);
}

/**
 * Collects names of parameters and the values they list (a tool with a `method` parameter does what
 * its values say), and descriptions. Breadth first, so that a large schema is read from its root.
 */
function readSchema(root: unknown, names: string[], texts: string[]): void {
  const queue = [root];
  for (let index = 0; index < queue.length; index++) {
    for (const [key, value] of entries(queue[index])) {
      if (key === "properties") {
        for (const [name, schema] of entries(value)) {
          names.push(name);
          queue.push(schema);
        }
      } else if (key === "enum" || key === "const") {
        names.push(...[value].flat().slice(0, MAX_SCHEMAS).filter(isText));
      } else if (isText(value)) {
        if (key === "description" || key === "title") texts.push(value);
      } else {
        queue.push(value);
      }
    }
    queue.length = Math.min(queue.length, MAX_SCHEMAS);
  }
}

function entries(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null
    ? Object.entries(value).slice(0, MAX_SCHEMAS)
    : [];
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
