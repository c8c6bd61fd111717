/** The AI SDK's providers and LangChain convert a tool as plue does, with listed differences. */

import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createCohere } from "@ai-sdk/cohere";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMistral } from "@ai-sdk/mistral";
import { createOpenAI } from "@ai-sdk/openai";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { assertEquals, assertGreater, assertRejects } from "@std/assert";
import { generateText, jsonSchema, type LanguageModel, tool, type ToolSet } from "ai";
import { describe, it } from "bun:test";
import { exportTools, type TargetName } from "../../src/formats/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";
import { ALL, GITHUB, HARD, SIMPLE } from "./tools.ts";

type Json = Readonly<Record<string, unknown>>;

const captured: { body: Json | undefined } = { body: undefined };

/** Receives the request, and rejects it. Bun's types require `preconnect`. */
const fetch = Object.assign((_url: unknown, init?: RequestInit): Promise<Response> => {
  captured.body = JSON.parse(String(init?.body));
  return Promise.resolve(new Response("{}", { status: 400 }));
}, { preconnect: () => {} });

const settings = { apiKey: "k", fetch };
const MODELS = {
  "openai.chat": createOpenAI(settings).chat("gpt-5.4"),
  "openai.responses": createOpenAI(settings).responses("gpt-5.4"),
  "anthropic": createAnthropic(settings)("claude-sonnet-4-5"),
  "gemini": createGoogleGenerativeAI(settings)("gemini-3-pro"),
  "mistral": createMistral(settings)("mistral-large-latest"),
  "cohere": createCohere(settings)("command-a"),
  "bedrock": createAmazonBedrock({ ...settings, region: "us-east-1" })(
    "anthropic.claude-sonnet-4-5-20250929-v1:0",
  ),
} satisfies Partial<Record<TargetName, LanguageModel>>;

type Compared = keyof typeof MODELS;
const TARGETS = Object.keys(MODELS) as Compared[];

/** The tools that the AI SDK's provider sends. */
async function theirs(model: LanguageModel, tools: ToolSet): Promise<unknown> {
  captured.body = undefined;
  await assertRejects(() => generateText({ model, prompt: "Hello.", tools, maxRetries: 0 }));
  const { toolConfig, tools: list } = captured.body ?? {} as Json;
  return (toolConfig as Json | undefined)?.["tools"] ?? list;
}

/** The tools that plue sends, without the fields that the AI SDK does not have. */
function ours(tools: readonly Tool[], target: TargetName): unknown {
  const exported = exportTools(tools, target, { namespaces: false }).tools;
  return JSON.parse(JSON.stringify(exported), (key, value) => {
    // The AI SDK does not send result schemas.
    if (key === "output_schema" || key === "responseJsonSchema") return undefined;
    // The AI SDK uses the same name for all providers, so it has no dots for Gemini.
    const named = key === "name" && target === "gemini" && typeof value === "string";
    return named ? value.replace(".", "__") : value;
  });
}

/** Removes the schemas, because the AI SDK sends them unchanged. */
function withoutSchemas(tools: unknown): unknown {
  return JSON.parse(
    JSON.stringify(tools),
    (key, value) =>
      /^(parameters|input_schema|inputSchema|parametersJsonSchema)$/.test(key) ? "schema" : value,
  );
}

describe("the AI SDK", () => {
  for (const target of TARGETS) {
    it(`sends plain tools to ${target} as plue does`, async () => {
      const sent = await theirs(MODELS[target], exportTools(SIMPLE, "ai-sdk").tools);
      assertEquals(sent, ours(SIMPLE, target));
    });

    it(`sends everything but hard schemas to ${target} as plue does`, async () => {
      const tools = [...HARD, ...GITHUB];
      const sent = await theirs(MODELS[target], exportTools(tools, "ai-sdk").tools);
      assertEquals(withoutSchemas(sent), withoutSchemas(ours(tools, target)));
    });
  }

  const hinted = [makeTool({
    name: "orders",
    description: "Lists orders.",
    parameters: { type: "object", properties: { customer: { type: "string" } } },
    examples: [{ input: { customer: "c1" } }],
    meta: {
      provider: {
        allowedCallers: ["direct"],
        cacheControl: { type: "ephemeral", ttl: "1h" },
        eagerInputStreaming: true,
      },
    },
  })];
  for (const target of ["anthropic", "openai.responses"] as const) {
    it(`sends the provider hints of a tool to ${target} as plue does`, async () => {
      const sent = await theirs(MODELS[target], exportTools(hinted, "ai-sdk").tools);
      assertEquals(sent, ours(hinted, target));
    });
  }

  /** The strict tools of an export, in the AI SDK's form. */
  const strictSet = (
    list: readonly (readonly [name: string, description: string | undefined, schema: Json])[],
  ): ToolSet =>
    Object.fromEntries(list.map(([name, description = "", schema]) => [
      name,
      tool({ description, inputSchema: jsonSchema(schema), strict: true }),
    ]));

  it("changes nothing in a strict schema for OpenAI", async () => {
    const strict = exportTools(ALL, "openai.chat.strict").tools
      .filter((one) => one.function.strict === true);
    assertGreater(strict.length, 1);
    const set = strictSet(
      strict.map((one) => [one.function.name, one.function.description, one.function.parameters]),
    );
    assertEquals(await theirs(MODELS["openai.chat"], set), JSON.parse(JSON.stringify(strict)));
  });

  it("changes nothing in a strict schema for Anthropic", async () => {
    const strict = exportTools(ALL, "anthropic.strict").tools.filter((one) => one.strict === true);
    assertGreater(strict.length, 1);
    const set = strictSet(strict.map((one) => [one.name, one.description, one.input_schema]));
    assertEquals(withoutExamples(await theirs(MODELS["anthropic"], set)), withoutExamples(strict));
  });
});

/** Removes the examples, because the AI SDK's tools above have none. */
function withoutExamples(tools: unknown): unknown {
  return JSON.parse(
    JSON.stringify(tools),
    (key, value) => key === "input_examples" ? undefined : value,
  );
}

describe("LangChain's convertToOpenAITool()", () => {
  it("converts plain tools in the same way as plue for OpenAI", () => {
    const tools = exportTools(SIMPLE, "langchain").tools.map((one) => convertToOpenAITool(one));
    assertEquals<unknown>(tools, exportTools(SIMPLE, "openai.chat").tools);
  });

  it("converts all tools in the same way as plue for OpenAI, except for hard schemas", () => {
    // OpenAI accepts at most this number of tools.
    const list = ALL.slice(0, 128);
    const tools = exportTools(list, "langchain").tools.map((one) => convertToOpenAITool(one));
    const expected = exportTools(list, "openai.chat").tools;
    assertEquals(withoutSchemas(tools), withoutSchemas(expected));
  });

  it("converts strict tools in the same way as plue for OpenAI", () => {
    const expected = exportTools(ALL, "openai.chat.strict").tools
      .filter((one) => one.function.strict === true);
    assertGreater(expected.length, 1);
    const tools = expected.map(({ function: one }) =>
      convertToOpenAITool(
        { name: one.name, description: one.description ?? "", schema: one.parameters },
        { strict: true },
      )
    );
    assertEquals<unknown>(tools, expected);
  });
});
