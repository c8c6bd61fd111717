/**
 * Anthropic Messages, and its strict mode.
 *
 * @module
 */

import type { NameRule } from "../names.ts";
import type { CombinationRule, Feature, KeywordTable, Profile, ToolView } from "../profile.ts";
import type { ProviderHints } from "../types.ts";
import {
  ADVISORY,
  descriptionOf,
  DROPPED,
  ENFORCED,
  every,
  features,
  into,
  READ_BY_THE_MODEL,
  REJECTED,
  table,
  unsure,
} from "./tables.ts";

/** Who may call a tool: the model, or a version of the code execution tool. */
export type AnthropicCaller =
  | "direct"
  | "code_execution_20250825"
  | "code_execution_20260120"
  | "code_execution_20260521";

/** A tool in the `tools` of a Messages request. */
export interface AnthropicTool {
  name: string;
  description?: string;
  input_schema: { type: "object"; [keyword: string]: unknown };
  strict?: boolean;
  input_examples?: { [key: string]: unknown }[];
  defer_loading?: boolean;
  allowed_callers?: AnthropicCaller[];
  cache_control?: { type: "ephemeral"; ttl?: "5m" | "1h" };
  eager_input_streaming?: boolean;
}

const NAMES: NameRule = { also: "-", max: 128, separator: "__" };

/** Property keys outside of this are refused, and the whole request with them. */
export const ANTHROPIC_KEYS: NameRule = { also: ".-", max: 64, separator: "_" };

const FEATURES: readonly Feature[] = [
  "examples",
  "strict",
  "deferLoading",
  "allowedCallers",
  "cacheControl",
  "eagerInputStreaming",
];

/** The schema is text for the model, but it must be valid 2020-12 with a plain object at the root. */
export const ANTHROPIC_KEYWORDS: KeywordTable = table(
  READ_BY_THE_MODEL,
  [into("one object"), ["root composition"]],
  [into("another key"), ["odd property key"]],
  [REJECTED, ["$ref external"]],
);

/** Structured outputs. Bedrock's strict mode is the same. */
export const ANTHROPIC_STRICT_KEYWORDS: KeywordTable = table(
  every(ENFORCED),
  [into("one object"), ["root composition"]],
  [into("another key"), ["odd property key"]],
  [into("additionalProperties: false"), ["open object"]],
  [into("anyOf"), ["oneOf"]],
  [into("one schema"), ["allOf"]],
  [into("branches"), ["anyOf with siblings"]],
  [into("a list"), ["tuple"]],
  [into("$defs"), ["$ref elsewhere"]],
  [into("{} or { not: {} }"), ["boolean schema"]],
  [DROPPED, [
    "enum complex",
    "propertyNames",
    "unevaluated",
    "property count",
    "dependent",
    "conditional",
    "not",
    "contains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "length",
    "pattern complex",
    "range",
    "exclusive range",
    "multipleOf",
    "dynamic reference",
    "$id",
    "$schema",
    "$comment",
    "examples",
    "example",
    "usage notes",
    "content",
    "propertyOrdering",
    "unknown",
  ]],
  [REJECTED, [
    "map",
    "undeclared required",
    "patternProperties",
    "no type",
    "$ref recursive",
    "$ref external",
  ]],
  [ADVISORY, ["title", "description", "default"]],
  [unsure(ENFORCED), ["items missing", "$ref with siblings"]],
);

/** The values of `format` that strict mode takes. */
export const ANTHROPIC_FORMATS: readonly string[] = [
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
];

const COMBINATIONS: readonly CombinationRule[] = [
  {
    name: "deferLoading",
    message: "deferred tools need a tool search tool in the request, which is not deferred",
    effect: "warn",
    applies: (hints) => hints.deferLoading === true,
  },
  {
    name: "examples",
    message: "older pages say that tool search and examples do not go together",
    effect: "warn",
    applies: (hints, tool) => hints.deferLoading === true && tool.examples.length > 0,
  },
  {
    name: "cacheControl",
    message: "one page says that a deferred tool cannot have cache_control, another that it can",
    effect: "warn",
    applies: (hints) => hints.deferLoading === true && hints.cacheControl !== undefined,
  },
  {
    name: "allowedCallers",
    message: "strict mode and calls from code do not go together",
    effect: "not strict",
    applies: (hints) => hints.allowedCallers?.some((caller) => caller !== "direct") === true,
  },
];

function wire(view: ToolView, strict: boolean | undefined): AnthropicTool {
  const { hints } = view;
  return {
    ...view.extra,
    name: view.name,
    ...descriptionOf(view),
    // `defineTool` sees to it that the root is an object.
    input_schema: view.parameters as AnthropicTool["input_schema"],
    ...(strict === undefined ? {} : { strict }),
    ...(view.examples.length === 0
      ? {}
      : { input_examples: view.examples.map(({ input }) => input) }),
    ...(hints.deferLoading === undefined ? {} : { defer_loading: hints.deferLoading }),
    ...(hints.allowedCallers === undefined ? {} : { allowed_callers: callers(hints) }),
    ...(hints.cacheControl === undefined ? {} : { cache_control: { ...hints.cacheControl } }),
    ...(hints.eagerInputStreaming === undefined
      ? {}
      : { eager_input_streaming: hints.eagerInputStreaming }),
  };
}

/** Calls from code name the version of the code tool here. */
function callers(hints: ProviderHints): AnthropicCaller[] {
  return (hints.allowedCallers ?? []).map((name) =>
    // Importers pass on the names of this API; every other name is OpenAI's.
    (name === "programmatic" ? "code_execution_20260120" : name) as AnthropicCaller
  );
}

/** The `tools` of a Messages request. */
export const ANTHROPIC: Profile<AnthropicTool, AnthropicTool[]> = {
  id: "anthropic",
  title: "Anthropic Messages",
  source: "@anthropic-ai/sdk 1.11.0, define-tools page of 2026-09-26, API errors; 2026-11-20",
  names: NAMES,
  keys: ANTHROPIC_KEYS,
  features: features(FEATURES),
  extra: { source: "anthropic" },
  input: ANTHROPIC_KEYWORDS,
  limits: [
    { name: "maxDeferredTools", value: 10_000 },
    { name: "minLoadedTools", value: 1 },
    // 4 MB of text as the API renders it, which is about what it was sent.
    { name: "maxToolText", value: 4_194_304, uncertain: true },
  ],
  combinations: COMBINATIONS,
  wire: (view) => wire(view, view.strict ? true : undefined),
  assemble: (tools) => tools.map((tool) => tool.wire),
};

/** The same with `strict: true`: the model is held to the schema. */
export const ANTHROPIC_STRICT: Profile<AnthropicTool, AnthropicTool[]> = {
  id: "anthropic.strict",
  title: "Anthropic Messages, strict",
  source: "structured-outputs page, @anthropic-ai/sdk 1.11.0; 2026-11-20",
  names: NAMES,
  keys: ANTHROPIC_KEYS,
  features: features(FEATURES),
  extra: { source: "anthropic" },
  input: ANTHROPIC_STRICT_KEYWORDS,
  formats: ANTHROPIC_FORMATS,
  limits: [
    ...ANTHROPIC.limits,
    { name: "maxStrictTools", value: 20 },
    { name: "maxOptional", value: 24 },
    { name: "maxUnions", value: 16 },
  ],
  combinations: COMBINATIONS,
  fallback: "anthropic",
  wire: (view) => wire(view, view.strict),
  assemble: (tools) => tools.map((tool) => tool.wire),
};
