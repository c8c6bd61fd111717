/**
 * Mistral chat completions.
 *
 * @module
 */

import { OPENAI_NAME_RULE } from "../names.ts";
import type { KeywordTable, Profile } from "../profile.ts";
import {
  ADVISORY,
  descriptionOf,
  features,
  into,
  READ_BY_THE_MODEL,
  table,
  unsure,
} from "./tables.ts";

/** A function in the `tools` of a chat request. */
export interface MistralTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters: { [keyword: string]: unknown };
  };
}

/** The schema is text for the model. */
const KEYWORDS: KeywordTable = table(
  READ_BY_THE_MODEL,
  [unsure(ADVISORY), ["root composition"]],
  [into("{} or { not: {} }"), ["boolean schema"]],
);

/** The `tools` of a chat request. The subset of its strict mode is not documented: it is not used. */
export const MISTRAL: Profile<MistralTool, MistralTool[]> = {
  id: "mistral",
  title: "Mistral chat",
  source: "@mistralai/mistralai 2.7.0, API errors; 2026-11-20",
  names: OPENAI_NAME_RULE,
  features: features(),
  input: KEYWORDS,
  limits: [],
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
