/**
 * What a tool says of itself, field by field, as the text that is searched.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";

/** A text, how much its words weigh, and how many words such a text usually has. */
export type SearchField = readonly [text: string, weight: number, usualWords: number];

/** Characters that are read of one field. */
const MAX_TEXT = 8_192;
/** Subschemas that are read of one tool, and entries of each of them. */
const MAX_SCHEMAS = 256;

/** The fields of a tool: name, title, namespace, tags, category, description, parameters, their text. */
export function searchFields(tool: Tool): SearchField[] {
  const names: string[] = [];
  const texts: string[] = [];
  readSchema(tool.parameters, names, texts);
  // Weights were tuned on half of the questions in `bench/search_questions.ts`.
  return [
    [tool.name, 5, 4],
    [tool.title ?? "", 3, 4],
    [tool.namespace ?? "", 2, 1],
    [join(tool.tags), 2, 3],
    [tool.category ?? "", 2, 1],
    [join([tool.description]), 1, 20],
    [join(names), 0.5, 10],
    [join(texts), 0.2, 40],
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
