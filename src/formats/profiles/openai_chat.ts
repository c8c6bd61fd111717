/**
 * OpenAI Chat Completions, and its strict mode.
 *
 * @module
 */

import type { JsonSchemaObject } from "../../tool/mod.ts";
import { OPENAI_NAME_RULE } from "../names.ts";
import type { Profile, ToolView } from "../profile.ts";
import {
  OPENAI_FORMATS,
  OPENAI_KEYWORDS,
  OPENAI_STRICT_KEYWORDS,
  OPENAI_STRICT_LIMITS,
} from "./openai_tables.ts";
import { descriptionOf, features } from "./tables.ts";

/** A function in the `tools` of a chat request. */
export interface OpenAiChatTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters: { [keyword: string]: unknown };
    strict?: boolean;
  };
}

function wire(view: ToolView, strict: boolean | undefined): OpenAiChatTool {
  return {
    type: "function",
    function: {
      ...view.extra,
      name: view.name,
      ...descriptionOf(view),
      parameters: view.parameters as JsonSchemaObject & { [keyword: string]: unknown },
      ...(strict === undefined ? {} : { strict }),
    },
  };
}

/** The `tools` of a chat request. */
export const OPENAI_CHAT: Profile<OpenAiChatTool, OpenAiChatTool[]> = {
  id: "openai.chat",
  title: "OpenAI Chat Completions",
  source: "openai 7.55.0, openai-openapi 2.3.0, API errors; 2026-11-20",
  names: OPENAI_NAME_RULE,
  features: features(["strict"]),
  extra: { source: "openai", surface: "chat" },
  input: OPENAI_KEYWORDS,
  limits: [
    { name: "maxTools", value: 128 },
    { name: "maxDescription", value: 1_024, uncertain: true },
  ],
  wire: (view) => wire(view, view.strict ? true : undefined),
  assemble: (tools) => tools.map((tool) => tool.wire),
};

/** The same with `strict: true`: the model is held to the schema. */
export const OPENAI_CHAT_STRICT: Profile<OpenAiChatTool, OpenAiChatTool[]> = {
  id: "openai.chat.strict",
  title: "OpenAI Chat Completions, strict",
  source: "structured-outputs guide, openai 7.55.0 lib/transform, API errors; 2026-11-20",
  names: OPENAI_NAME_RULE,
  features: features(["strict"]),
  extra: { source: "openai", surface: "chat" },
  input: OPENAI_STRICT_KEYWORDS,
  formats: OPENAI_FORMATS,
  limits: [...OPENAI_CHAT.limits, ...OPENAI_STRICT_LIMITS],
  fallback: "openai.chat",
  wire: (view) => wire(view, view.strict),
  assemble: (tools) => tools.map((tool) => tool.wire),
};
