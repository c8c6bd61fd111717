/**
 * Ollama chat.
 *
 * @module
 */

import { OPENAI_NAME_RULE } from "../names.ts";
import type { KeywordTable, Profile } from "../profile.ts";
import {
  ADVISORY,
  descriptionOf,
  DROPPED,
  every,
  features,
  into,
  REJECTED,
  table,
} from "./tables.ts";

/** A function in the `tools` of a chat request. */
export interface OllamaTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters: { type: "object"; [keyword: string]: unknown };
  };
}

/** The server reads the schema into a structure with these fields, and throws away the rest. */
const KEYWORDS: KeywordTable = table(
  every(DROPPED),
  [ADVISORY, [
    "type",
    "type list",
    "type null",
    "enum",
    "enum empty text",
    "enum scalar",
    "enum complex",
    "properties",
    "odd property key",
    "required",
    "optional property",
    "optional nullable property",
    "undeclared required",
    "open object",
    "items",
    "items missing",
    "anyOf",
    "anyOf with siblings",
    "description",
    "no type",
  ]],
  [into("one object"), ["root composition"]],
  [into("enum"), ["const"]],
  [into("a list"), ["tuple"]],
  [into("anyOf"), ["oneOf"]],
  [into("one schema"), ["allOf"]],
  [into("what it leads to"), ["$ref", "$ref with siblings", "$ref elsewhere"]],
  [into("its type"), ["$ref recursive"]],
  [into("{} or { not: {} }"), ["boolean schema"]],
  [REJECTED, ["$ref external"]],
);

/** The `tools` of a chat request. */
export const OLLAMA: Profile<OllamaTool, OllamaTool[]> = {
  id: "ollama",
  title: "Ollama chat",
  source: "ollama 0.6.4, api/types.go; 2026-11-20",
  names: OPENAI_NAME_RULE,
  features: features(),
  input: KEYWORDS,
  limits: [],
  wire: (view) => ({
    type: "function",
    function: {
      name: view.name,
      ...descriptionOf(view),
      // `defineTool` sees to it that the root is an object.
      parameters: view.parameters as OllamaTool["function"]["parameters"],
    },
  }),
  assemble: (tools) => tools.map((tool) => tool.wire),
};
