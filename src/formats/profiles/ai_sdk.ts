/**
 * The Vercel AI SDK: a `ToolSet` for `generateText` and its kin.
 *
 * @module
 */

import { type JsonSchema, setOwn } from "../../tool/mod.ts";
import { OPENAI_NAME_RULE } from "../names.ts";
import type { KeywordTable, Profile, ToolView } from "../profile.ts";
import type { WireValue } from "../wire_value.ts";
import { ADVISORY, asObject, every, features, into, table } from "./tables.ts";

/** How the SDK knows its own schemas; `Symbol.for`, so that every copy of it agrees. */
const SCHEMA: unique symbol = Symbol.for("vercel.ai.schema") as never;

/**
 * A JSON Schema as the SDK's `jsonSchema()` makes it. Validation is the dispatcher's.
 *
 * The types of the SDK's schemas have a symbol that nobody else can name, so by its type this is
 * a Standard Schema that accepts everything. The SDK itself looks for the symbol first.
 */
export interface AiSdkSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    validate(value: unknown): { readonly value: unknown };
  };
  readonly [SCHEMA]: true;
  readonly _type: unknown;
  readonly validate: undefined;
  readonly jsonSchema: { [keyword: string]: unknown };
}

/** A tool of the SDK without `execute`: the calls come back, and are dispatched. */
export interface AiSdkTool {
  description: string;
  inputSchema: AiSdkSchema;
  outputSchema?: AiSdkSchema;
  inputExamples?: { input: { [key: string]: unknown } }[];
  title?: string;
  strict?: boolean;
  metadata?: { [key: string]: WireValue };
  deferLoading?: boolean;
  providerOptions?: { [provider: string]: { [option: string]: WireValue } };
}

/** The tools by name. */
export interface AiSdkToolSet {
  [name: string]: AiSdkTool;
}

/** The SDK passes the schema on; the provider behind it decides. */
const KEYWORDS: KeywordTable = table(
  every(ADVISORY),
  [into("{} or { not: {} }"), ["boolean schema"]],
);

const ACCEPTS_ALL: AiSdkSchema["~standard"] = Object.freeze({
  version: 1,
  vendor: "plue",
  validate: (value) => ({ value }),
});

function schemaOf(schema: JsonSchema): AiSdkSchema {
  return {
    "~standard": ACCEPTS_ALL,
    [SCHEMA]: true,
    _type: undefined,
    validate: undefined,
    jsonSchema: asObject(schema),
  };
}

/** The SDK's types want a result schema where there is no `execute`. */
const ANYTHING: AiSdkSchema = Object.freeze(schemaOf(true));

function wire(view: ToolView): AiSdkTool {
  const { tool, hints, returns } = view;
  const options = tool.meta === undefined ? undefined : providerOptions(view);
  return {
    description: view.description,
    inputSchema: schemaOf(view.parameters),
    outputSchema: returns === undefined ? ANYTHING : schemaOf(returns),
    ...(view.examples.length === 0 ? {} : {
      inputExamples: view.examples.map(({ input }) => ({ input })),
    }),
    ...(tool.title === undefined ? {} : { title: tool.title }),
    ...(hints.strict === undefined ? {} : { strict: hints.strict }),
    metadata: {
      id: tool.id,
      // All are JSON; their types say that they do not change, and the SDK's do not know that.
      annotations: tool.annotations as unknown as WireValue,
      ...(tool.icons.length === 0 ? {} : { icons: tool.icons as unknown as WireValue }),
      ...(tool.meta === undefined ? {} : { meta: tool.meta as unknown as WireValue }),
    },
    ...(hints.deferLoading === undefined ? {} : { deferLoading: hints.deferLoading }),
    ...(options === undefined ? {} : { providerOptions: options }),
  };
}

function providerOptions(view: ToolView): AiSdkTool["providerOptions"] | undefined {
  const { allowedCallers, async, cacheControl, eagerInputStreaming, deferLoading } = view.hints;
  const openai = {
    ...(allowedCallers === undefined ? {} : { allowedCallers: [...allowedCallers] }),
    ...(deferLoading === undefined ? {} : { deferLoading }),
    ...(async === undefined ? {} : { async }),
  };
  const anthropic = {
    ...(allowedCallers === undefined ? {} : { allowedCallers: [...allowedCallers] }),
    ...(deferLoading === undefined ? {} : { deferLoading }),
    ...(cacheControl === undefined ? {} : { cacheControl: { ...cacheControl } }),
    ...(eagerInputStreaming === undefined ? {} : { eagerInputStreaming }),
  };
  const result = {
    ...(Object.keys(openai).length === 0 ? {} : { openai }),
    ...(Object.keys(anthropic).length === 0 ? {} : { anthropic }),
  };
  return Object.keys(result).length === 0 ? undefined : result;
}

/** A `ToolSet`: an object with the tools by name. */
export const AI_SDK: Profile<AiSdkTool, AiSdkToolSet> = {
  id: "ai-sdk",
  title: "Vercel AI SDK 7",
  source: "ai 7.0.173, @ai-sdk/provider-utils 5.0.81; 2026-11-20",
  names: OPENAI_NAME_RULE,
  features: features([
    "title",
    "returns",
    "examples",
    "annotations",
    "icons",
    "meta",
    "strict",
    "deferLoading",
    "allowedCallers",
    "async",
    "cacheControl",
    "eagerInputStreaming",
  ]),
  extra: "all",
  input: KEYWORDS,
  output: { keywords: KEYWORDS, root: "any" },
  draft07: true,
  limits: [],
  wire,
  assemble: (tools) => {
    const set: AiSdkToolSet = {};
    for (const { view, wire } of tools) setOwn(set, view.name, wire);
    return set;
  },
};
