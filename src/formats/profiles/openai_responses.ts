/**
 * OpenAI Responses, with namespaces, deferred loading and result schemas; and its strict mode.
 *
 * @module
 */

import { type NameRule, OPENAI_NAME_RULE } from "../names.ts";
import type { CombinationRule, Feature, OutputRule, Profile, ToolView } from "../profile.ts";
import {
  OPENAI_FORMATS,
  OPENAI_KEYWORDS,
  OPENAI_STRICT_KEYWORDS,
  OPENAI_STRICT_LIMITS,
} from "./openai_tables.ts";
import { asObject, descriptionOf, features, READ_BY_THE_MODEL } from "./tables.ts";

/** A function in the `tools` of a Responses request, or inside a namespace. */
export interface OpenAiResponsesFunction {
  type: "function";
  name: string;
  description?: string;
  parameters: { [keyword: string]: unknown };
  /** Left out, the API would try strict mode by itself: it is always said. */
  strict: boolean;
  output_schema?: { [keyword: string]: unknown };
  defer_loading?: boolean;
  allowed_callers?: ("direct" | "programmatic")[];
  async?: boolean;
}

/** Functions under one name. */
export interface OpenAiResponsesNamespace {
  type: "namespace";
  name: string;
  description: string;
  tools: OpenAiResponsesFunction[];
}

/** An entry of the `tools` of a Responses request. */
export type OpenAiResponsesTool = OpenAiResponsesFunction | OpenAiResponsesNamespace;

const INSIDE_NAMESPACE: NameRule = { ...OPENAI_NAME_RULE, max: 128 };

const FEATURES: readonly Feature[] = [
  "namespace",
  "returns",
  "strict",
  "deferLoading",
  "allowedCallers",
  "async",
];

/** `output_schema` tells the model what a text result holds. */
const OUTPUT: OutputRule = { keywords: READ_BY_THE_MODEL, root: "any" };

const COMBINATIONS: readonly CombinationRule[] = [
  {
    name: "deferLoading",
    message: 'deferred tools need { type: "tool_search" } among the tools, and gpt-5.4 or later',
    effect: "warn",
    applies: (hints) => hints.deferLoading === true,
  },
  {
    name: "allowedCallers",
    message: 'calls from code need { type: "programmatic_tool_calling" } among the tools',
    effect: "warn",
    applies: (hints) => hints.allowedCallers?.some((caller) => caller !== "direct") === true,
  },
  {
    name: "allowedCallers empty",
    message: "an empty list of callers is refused; it is left out, and the model may call the tool",
    effect: "warn",
    applies: (hints) => hints.allowedCallers?.length === 0,
  },
  {
    name: "async",
    message: "asynchronous tools need GPT-6 or later",
    effect: "warn",
    applies: (hints) => hints.async === true,
  },
];

function wire(view: ToolView): OpenAiResponsesFunction {
  const { hints } = view;
  return {
    ...view.extra,
    type: "function",
    name: view.name,
    ...descriptionOf(view),
    parameters: view.parameters as { [keyword: string]: unknown },
    strict: view.strict,
    ...(view.returns === undefined ? {} : { output_schema: asObject(view.returns) }),
    ...(hints.deferLoading === undefined ? {} : { defer_loading: hints.deferLoading }),
    ...(hints.allowedCallers === undefined || hints.allowedCallers.length === 0
      ? {}
      : { allowed_callers: callers(hints.allowedCallers) }),
    ...(hints.async === undefined ? {} : { async: hints.async }),
  };
}

/** Calls from code are `programmatic` here, whatever the name of the code tool is elsewhere. */
function callers(names: readonly string[]): ("direct" | "programmatic")[] {
  return [...new Set(names.map((name) => name === "direct" ? "direct" : "programmatic"))];
}

function assemble(
  tools: readonly { readonly view: ToolView; readonly wire: OpenAiResponsesFunction }[],
): OpenAiResponsesTool[] {
  const list: OpenAiResponsesTool[] = [];
  const namespaces = new Map<string, OpenAiResponsesNamespace>();
  for (const { view, wire } of tools) {
    if (view.namespace === undefined) {
      list.push(wire);
      continue;
    }
    let namespace = namespaces.get(view.namespace);
    if (namespace === undefined) {
      namespace = {
        type: "namespace",
        name: view.namespace,
        // Required. Tools of one namespace share it; the first that says one is heard.
        description: tools.find((tool) =>
          tool.view.namespace === view.namespace &&
          tool.view.hints.namespaceDescription !== undefined
        )?.view.hints.namespaceDescription ?? `Tools of "${view.tool.namespace}".`,
        tools: [],
      };
      namespaces.set(view.namespace, namespace);
      list.push(namespace);
    }
    namespace.tools.push(wire);
  }
  return list;
}

/** The `tools` of a Responses request. */
export const OPENAI_RESPONSES: Profile<OpenAiResponsesFunction, OpenAiResponsesTool[]> = {
  id: "openai.responses",
  title: "OpenAI Responses",
  source: "openai 7.55.0, openai-openapi 2.3.0, tool-search guide; 2026-11-20",
  names: OPENAI_NAME_RULE,
  namespaces: { names: OPENAI_NAME_RULE, tools: INSIDE_NAMESPACE },
  features: features(FEATURES),
  extra: { source: "openai", surface: "responses" },
  input: OPENAI_KEYWORDS,
  output: OUTPUT,
  limits: [{ name: "maxTools", value: 128, uncertain: true }],
  combinations: COMBINATIONS,
  wire,
  assemble,
};

/** The same with `strict: true`: the model is held to the schema. */
export const OPENAI_RESPONSES_STRICT: Profile<OpenAiResponsesFunction, OpenAiResponsesTool[]> = {
  id: "openai.responses.strict",
  title: "OpenAI Responses, strict",
  source: "structured-outputs guide, openai 7.55.0 lib/transform, API errors; 2026-11-20",
  names: OPENAI_NAME_RULE,
  namespaces: { names: OPENAI_NAME_RULE, tools: INSIDE_NAMESPACE },
  features: features(FEATURES),
  extra: { source: "openai", surface: "responses" },
  input: OPENAI_STRICT_KEYWORDS,
  output: OUTPUT,
  formats: OPENAI_FORMATS,
  limits: [...OPENAI_RESPONSES.limits, ...OPENAI_STRICT_LIMITS],
  combinations: COMBINATIONS,
  fallback: "openai.responses",
  wire,
  assemble,
};
