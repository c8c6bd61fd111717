/**
 * OpenAI Realtime: the `tools` of a session.
 *
 * @module
 */

import { OPENAI_NAME_RULE } from "../names.ts";
import type { Profile } from "../profile.ts";
import { OPENAI_KEYWORDS } from "./openai_tables.ts";
import { descriptionOf, features } from "./tables.ts";

/** A function in the `tools` of a session. */
export interface OpenAiRealtimeTool {
  type: "function";
  name: string;
  description?: string;
  parameters: { [keyword: string]: unknown };
}

/** The `tools` of a `session.update`. There is no strict mode. */
export const OPENAI_REALTIME: Profile<OpenAiRealtimeTool, OpenAiRealtimeTool[]> = {
  id: "openai.realtime",
  title: "OpenAI Realtime",
  source: "openai 7.55.0; 2026-11-20",
  names: OPENAI_NAME_RULE,
  features: features(),
  extra: { source: "openai", surface: "realtime" },
  input: OPENAI_KEYWORDS,
  limits: [{ name: "maxTools", value: 128, uncertain: true }],
  wire: (view) => ({
    ...view.extra,
    type: "function",
    name: view.name,
    ...descriptionOf(view),
    parameters: view.parameters as { [keyword: string]: unknown },
  }),
  assemble: (tools) => tools.map((tool) => tool.wire),
};
