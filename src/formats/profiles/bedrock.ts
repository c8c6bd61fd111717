/**
 * AWS Bedrock Converse, and its strict mode.
 *
 * @module
 */

import { OPENAI_NAME_RULE } from "../names.ts";
import type { CombinationRule, KeywordTable, Profile, ToolView } from "../profile.ts";
import type { WireValue } from "../wire_value.ts";
import {
  ANTHROPIC_FORMATS,
  ANTHROPIC_KEYS,
  ANTHROPIC_KEYWORDS,
  ANTHROPIC_STRICT_KEYWORDS,
} from "./anthropic.ts";
import { descriptionOf, features, table, unsure } from "./tables.ts";

/** A tool in `toolConfig.tools`. */
export interface BedrockTool {
  toolSpec: {
    name: string;
    description?: string;
    inputSchema: { json: { [keyword: string]: WireValue } };
    strict?: boolean;
  };
  cachePoint?: never;
}

/** An entry of `toolConfig.tools`: what stands before it is cached. */
export interface BedrockCachePoint {
  cachePoint: { type: "default"; ttl?: "5m" | "1h" };
  toolSpec?: never;
}

/** It depends on the model. Claude's rules are the narrowest that are known, so they are kept. */
const KEYWORDS: KeywordTable = table(
  ANTHROPIC_KEYWORDS,
  [unsure(ANTHROPIC_KEYWORDS["root composition"]), ["root composition"]],
  [unsure(ANTHROPIC_KEYWORDS["odd property key"]), ["odd property key"]],
);

function wire(view: ToolView, strict: boolean | undefined): BedrockTool {
  return {
    toolSpec: {
      ...view.extra,
      name: view.name,
      ...descriptionOf(view),
      inputSchema: {
        json: view.parameters as { [keyword: string]: WireValue },
      },
      ...(strict === undefined ? {} : { strict }),
    },
  };
}

/** Tools, and a cache point behind each that asks for one. */
function assemble(
  tools: readonly { readonly view: ToolView; readonly wire: BedrockTool }[],
): (BedrockTool | BedrockCachePoint)[] {
  return tools.flatMap(({ view, wire }) => {
    const { cacheControl } = view.hints;
    if (cacheControl === undefined) return [wire];
    const { ttl } = cacheControl;
    return [wire, { cachePoint: { type: "default", ...(ttl === undefined ? {} : { ttl }) } }];
  });
}

const COMBINATIONS: readonly CombinationRule[] = [{
  name: "cacheControl",
  message: "only some models take a cache point among the tools",
  effect: "warn",
  applies: (hints) => hints.cacheControl !== undefined,
}];

/** `toolConfig.tools`. Without a tool, leave `toolConfig` out: an empty list is refused. */
export const BEDROCK: Profile<BedrockTool, (BedrockTool | BedrockCachePoint)[]> = {
  id: "bedrock",
  title: "AWS Bedrock Converse",
  source: "@aws-sdk/client-bedrock-runtime 3.1162.0, API_runtime_ToolSpecification; 2026-11-20",
  names: OPENAI_NAME_RULE,
  keys: ANTHROPIC_KEYS,
  features: features(["strict", "cacheControl"]),
  extra: { source: "bedrock" },
  input: KEYWORDS,
  limits: [],
  combinations: COMBINATIONS,
  wire: (view) => wire(view, view.strict ? true : undefined),
  assemble,
};

/** The same with `strict: true`, for the models that have it. */
export const BEDROCK_STRICT: Profile<BedrockTool, (BedrockTool | BedrockCachePoint)[]> = {
  id: "bedrock.strict",
  title: "AWS Bedrock Converse, strict",
  source: "structured-output page of the Bedrock guide; 2026-11-20",
  names: OPENAI_NAME_RULE,
  keys: ANTHROPIC_KEYS,
  features: features(["strict", "cacheControl"]),
  extra: { source: "bedrock" },
  input: ANTHROPIC_STRICT_KEYWORDS,
  formats: ANTHROPIC_FORMATS,
  limits: [],
  combinations: COMBINATIONS,
  fallback: "bedrock",
  wire: (view) => wire(view, view.strict),
  assemble,
};
