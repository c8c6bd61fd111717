/**
 * All targets: the profiles by id, their aliases, and their rules as data.
 *
 * @module
 */

import type { FeatureTable, KeywordTable, Limit, Profile } from "./profile.ts";
import type { NameRule } from "./names.ts";
import { AI_SDK, type AiSdkToolSet } from "./profiles/ai_sdk.ts";
import { ANTHROPIC, ANTHROPIC_STRICT, type AnthropicTool } from "./profiles/anthropic.ts";
import {
  BEDROCK,
  BEDROCK_STRICT,
  type BedrockCachePoint,
  type BedrockTool,
} from "./profiles/bedrock.ts";
import { COHERE, type CohereTool } from "./profiles/cohere.ts";
import {
  GEMINI,
  GEMINI_TYPED,
  type GeminiFunction,
  type GeminiTools,
  type GeminiTypedFunction,
  VERTEX,
} from "./profiles/gemini.ts";
import { LANGCHAIN, type LangChainTool } from "./profiles/langchain.ts";
import {
  type Mcp2025Tool,
  MCP_2025_06_18,
  MCP_2025_11_25,
  MCP_2026_07_28,
  type McpTool,
} from "./profiles/mcp.ts";
import { MISTRAL, type MistralTool } from "./profiles/mistral.ts";
import { OLLAMA, type OllamaTool } from "./profiles/ollama.ts";
import { OPENAI_CHAT, OPENAI_CHAT_STRICT, type OpenAiChatTool } from "./profiles/openai_chat.ts";
import { OPENAI_REALTIME, type OpenAiRealtimeTool } from "./profiles/openai_realtime.ts";
import {
  OPENAI_RESPONSES,
  OPENAI_RESPONSES_STRICT,
  type OpenAiResponsesTool,
} from "./profiles/openai_responses.ts";
import { OPENAPI_3_1, type OpenApiDocument } from "./profiles/openapi.ts";
import type { TargetAlias, TargetId, TargetName } from "./types.ts";

/** What each target's export is. */
export interface TargetTools {
  "openai.chat": OpenAiChatTool[];
  "openai.chat.strict": OpenAiChatTool[];
  "openai.responses": OpenAiResponsesTool[];
  "openai.responses.strict": OpenAiResponsesTool[];
  "openai.realtime": OpenAiRealtimeTool[];
  "anthropic": AnthropicTool[];
  "anthropic.strict": AnthropicTool[];
  "gemini": GeminiTools<GeminiFunction>[];
  "gemini.typed": GeminiTools<GeminiTypedFunction>[];
  "vertex": GeminiTools<GeminiFunction>[];
  "mcp@2025-06-18": Mcp2025Tool[];
  "mcp@2025-11-25": Mcp2025Tool[];
  "mcp@2026-07-28": McpTool[];
  "bedrock": (BedrockTool | BedrockCachePoint)[];
  "bedrock.strict": (BedrockTool | BedrockCachePoint)[];
  "mistral": MistralTool[];
  "cohere": CohereTool[];
  "ollama": OllamaTool[];
  "ai-sdk": AiSdkToolSet;
  "langchain": LangChainTool[];
  "openapi@3.1": OpenApiDocument;
}

/** A profile whose wire shape nobody needs to know. */
export type AnyProfile = Profile<unknown, unknown>;

/** Hides a profile's wire shape. What `wire` makes goes to `assemble` of the same profile only. */
function hide<Wire, Tools>(profile: Profile<Wire, Tools>): Profile<unknown, Tools> {
  return profile as Profile<unknown, Tools>;
}

/** Every target has a profile, and it makes what the target's type says. */
const PROFILES: { readonly [Id in TargetId]: Profile<unknown, TargetTools[Id]> } = {
  "openai.chat": hide(OPENAI_CHAT),
  "openai.chat.strict": hide(OPENAI_CHAT_STRICT),
  "openai.responses": hide(OPENAI_RESPONSES),
  "openai.responses.strict": hide(OPENAI_RESPONSES_STRICT),
  "openai.realtime": hide(OPENAI_REALTIME),
  "anthropic": hide(ANTHROPIC),
  "anthropic.strict": hide(ANTHROPIC_STRICT),
  "gemini": hide(GEMINI),
  "gemini.typed": hide(GEMINI_TYPED),
  "vertex": hide(VERTEX),
  "mcp@2025-06-18": hide(MCP_2025_06_18),
  "mcp@2025-11-25": hide(MCP_2025_11_25),
  "mcp@2026-07-28": hide(MCP_2026_07_28),
  "bedrock": hide(BEDROCK),
  "bedrock.strict": hide(BEDROCK_STRICT),
  "mistral": hide(MISTRAL),
  "cohere": hide(COHERE),
  "ollama": hide(OLLAMA),
  "ai-sdk": hide(AI_SDK),
  "langchain": hide(LANGCHAIN),
  "openapi@3.1": hide(OPENAPI_3_1),
};

/** The targets that an alias stands for. */
const ALIASES: { readonly [Alias in TargetAlias]: TargetId } = {
  "openai": "openai.chat",
  "openai.strict": "openai.chat.strict",
  "mcp": "mcp@2026-07-28",
  "openapi": "openapi@3.1",
};

const BY_NAME: ReadonlyMap<string, AnyProfile> = new Map<string, AnyProfile>([
  ...Object.entries(PROFILES),
  ...Object.entries(ALIASES).map(([alias, id]): [string, AnyProfile] => [alias, PROFILES[id]]),
]);

/** Whether `value` names a target, or is an alias of one. */
export function isTargetName(value: unknown): value is TargetName {
  return typeof value === "string" && BY_NAME.has(value);
}

/**
 * The profile of a target.
 *
 * @throws {RangeError} If there is no such target.
 */
export function profileOf(target: string): AnyProfile {
  const profile = BY_NAME.get(target);
  if (profile === undefined) {
    throw new RangeError(
      `Cannot find the target "${String(target).slice(0, 100)}": it must be one of ${
        [...BY_NAME.keys()].map((name) => `"${name}"`).join(", ")
      }`,
    );
  }
  return profile;
}

/** The strict modes, by the targets that their tools fall back to. */
const STRICT_MODES: ReadonlyMap<TargetId, AnyProfile> = new Map(
  Object.values(PROFILES).flatMap((profile: AnyProfile): [TargetId, AnyProfile][] =>
    profile.fallback === undefined ? [] : [[profile.fallback, profile]]
  ),
);

/** The strict mode of a target: itself, or the one that falls back to it; `undefined`: none. */
export function strictModeOf(profile: AnyProfile): AnyProfile | undefined {
  return profile.fallback === undefined ? STRICT_MODES.get(profile.id) : profile;
}

/** The target that a name stands for. */
export function resolveTarget(target: TargetName): TargetId {
  return profileOf(target).id;
}

/** A target's rules, as data for a page or a table. */
export interface TargetInfo {
  readonly id: TargetId;
  readonly title: string;
  /** Where the facts come from, and how old they are. */
  readonly source: string;
  readonly aliases: readonly TargetAlias[];
  /** The tool names that are allowed. */
  readonly names: NameRule;
  /** Whether it has namespaces of its own. */
  readonly namespaces: boolean;
  /** The property keys that are allowed; absent: all. */
  readonly keys?: NameRule;
  readonly features: FeatureTable;
  /** The rules for `parameters`. */
  readonly keywords: KeywordTable;
  /** The rules for `returns`; absent: it has no field for them. */
  readonly outputKeywords?: KeywordTable;
  /** The values of `format` that are allowed; absent: all. */
  readonly formats?: readonly string[];
  readonly limits: readonly Limit[];
  /** The target of the tools that this strict mode cannot hold. */
  readonly fallback?: TargetId;
}

/**
 * The targets, each with its rules as data.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { listTargets } from "@plue/tools/formats";
 *
 * const chat = listTargets().find((target) => target.id === "openai.chat");
 * assert.equal(chat?.names.max, 64);
 * assert.equal(chat?.keywords["root composition"].action, "transform");
 * ```
 */
export function listTargets(): readonly TargetInfo[] {
  return INFOS;
}

const INFOS: readonly TargetInfo[] = Object.freeze(
  Object.values(PROFILES).map((profile: AnyProfile): TargetInfo => {
    const { id, title, source, names, keys, features, input, output, formats, limits, fallback } =
      profile;
    return Object.freeze({
      id,
      title,
      source,
      aliases: (Object.keys(ALIASES) as TargetAlias[]).filter((alias) => ALIASES[alias] === id),
      names,
      namespaces: profile.namespaces !== undefined,
      ...(keys === undefined ? {} : { keys }),
      features,
      keywords: input,
      ...(output === undefined ? {} : { outputKeywords: output.keywords }),
      ...(formats === undefined ? {} : { formats }),
      limits,
      ...(fallback === undefined ? {} : { fallback }),
    });
  }),
);
