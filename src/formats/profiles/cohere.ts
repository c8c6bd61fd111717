/**
 * Cohere chat, version 2.
 *
 * @module
 */

import type { NameRule } from "../names.ts";
import type { KeywordTable, Profile } from "../profile.ts";
import {
  ADVISORY,
  descriptionOf,
  ENFORCED,
  every,
  features,
  IGNORED,
  into,
  REJECTED,
  table,
  unsure,
} from "./tables.ts";

/** A function in the `tools` of a chat request. */
export interface CohereTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters: { [keyword: string]: unknown };
  };
}

/** Not documented: what every provider allows. */
const NAMES: NameRule = { also: "", max: 64, separator: "__", letterFirst: true };

/** The documented subset, and a simpler form for what it leaves open. */
const KEYWORDS: KeywordTable = table(
  every(unsure(ADVISORY)),
  [ENFORCED, [
    "type",
    "enum",
    "properties",
    "required",
    "optional property",
    "optional nullable property",
    "open object",
    "items",
    "items missing",
    "title",
    "description",
  ]],
  [ADVISORY, ["pattern", "format", "odd property key"]],
  [IGNORED, [
    "minItems 0 or 1",
    "minItems",
    "maxItems",
    "length",
    "range",
    "exclusive range",
  ]],
  [into("one object"), ["root composition"]],
  [into("enum"), ["const"]],
  [into("anyOf"), ["oneOf"]],
  [into("one schema"), ["allOf"]],
  [into("what it leads to"), ["$ref", "$ref with siblings", "$ref elsewhere"]],
  [into("its type"), ["$ref recursive"]],
  [into("{} or { not: {} }"), ["boolean schema"]],
  [REJECTED, ["$ref external"]],
);

/** The `tools` of a chat request. Strictness is `strict_tools`, for the request as a whole. */
export const COHERE: Profile<CohereTool, CohereTool[]> = {
  id: "cohere",
  title: "Cohere chat v2",
  source: "cohere-ai 8.1.0, structured outputs page (a copy); 2026-11-20",
  names: NAMES,
  features: features(),
  input: KEYWORDS,
  limits: [
    { name: "maxFields", value: 200, uncertain: true },
    { name: "minRequired", value: 1, uncertain: true },
  ],
  wire: (view) => ({
    type: "function",
    function: {
      name: view.name,
      ...descriptionOf(view),
      parameters: view.parameters as { [keyword: string]: unknown },
    },
  }),
  assemble: (tools) => tools.map((tool) => tool.wire),
};
