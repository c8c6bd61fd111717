import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  type ExportResult,
  exportTools,
  isTargetName,
  KEYWORD_FORMS,
  listTargets,
  type TargetName,
  targetOf,
} from "../../../src/formats/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";

const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const description = "Tells the weather.";
const returns = {
  type: "array",
  items: { $ref: "#/$defs/day" },
  $defs: { day: { type: "number" } },
};

const weather = makeTool({
  name: "get",
  namespace: "weather",
  title: "Weather",
  description,
  parameters,
  returns,
  examples: [{ input: { city: "Rome" }, description: "In Rome" }],
  icons: [{ src: "https://example.com/i.png" }],
  annotations: {
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: true,
  },
  meta: {
    "example.com/x": 1,
    provider: {
      deferLoading: true,
      allowedCallers: ["direct", "programmatic"],
      async: false,
      cacheControl: { type: "ephemeral" },
      eagerInputStreaming: true,
      taskSupport: "optional",
      namespaceDescription: "About weather.",
    },
  },
});

const annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
};
const mcp = {
  name: "weather.get",
  title: "Weather",
  description,
  inputSchema: parameters,
  annotations,
  _meta: { "example.com/x": 1 },
};
const wrapped = {
  type: "object",
  properties: {
    result: {
      type: "array",
      items: { $ref: "#/properties/result/$defs/day" },
      $defs: { day: { type: "number" } },
    },
  },
  required: ["result"],
};
const icons = [{ src: "https://example.com/i.png" }];
const responses = (strict: boolean) => ({
  type: "function",
  name: "get",
  description,
  parameters,
  strict,
  output_schema: returns,
  defer_loading: true,
  allowed_callers: ["direct", "programmatic"],
  async: false,
});
const anthropic = {
  name: "weather__get",
  description,
  input_schema: parameters,
  input_examples: [{ city: "Rome" }],
  defer_loading: true,
  allowed_callers: ["direct", "code_execution_20260120"],
  cache_control: { type: "ephemeral" },
  eager_input_streaming: true,
};
const chat = { type: "function", function: { name: "weather__get", description, parameters } };

/** A schema of the AI SDK, without the function that its types require. */
const aiSdkSchema = (jsonSchema: unknown) => ({
  [Symbol.for("vercel.ai.schema")]: true,
  _type: undefined,
  validate: undefined,
  jsonSchema,
});

const EXPECTED: { readonly [target: string]: unknown } = {
  "openai.chat": [chat],
  "openai.chat.strict": [{ ...chat, function: { ...chat.function, strict: true } }],
  "openai.responses": [
    {
      type: "namespace",
      name: "weather",
      description: "About weather.",
      tools: [responses(false)],
    },
  ],
  "openai.responses.strict": [
    { type: "namespace", name: "weather", description: "About weather.", tools: [responses(true)] },
  ],
  "openai.realtime": [{ type: "function", name: "weather__get", description, parameters }],
  "anthropic": [anthropic],
  "anthropic.strict": [{ ...anthropic, strict: false }],
  "gemini": [{
    functionDeclarations: [{
      name: "weather.get",
      description,
      parametersJsonSchema: parameters,
      responseJsonSchema: returns,
    }],
  }],
  "gemini.typed": [{
    functionDeclarations: [{
      name: "weather.get",
      description,
      parameters: {
        type: "OBJECT",
        properties: { city: { type: "STRING" } },
        required: ["city"],
        description: "No other properties.",
      },
      response: { type: "ARRAY", items: { type: "NUMBER" } },
    }],
  }],
  "vertex": [{
    functionDeclarations: [{
      name: "weather.get",
      description,
      parametersJsonSchema: parameters,
      responseJsonSchema: returns,
    }],
  }],
  "mcp@2025-06-18": [{ ...mcp, outputSchema: wrapped }],
  "mcp@2025-11-25": [
    { ...mcp, outputSchema: wrapped, icons, execution: { taskSupport: "optional" } },
  ],
  "mcp@2026-07-28": [{ ...mcp, outputSchema: returns, icons }],
  "bedrock": [
    { toolSpec: { name: "weather__get", description, inputSchema: { json: parameters } } },
    { cachePoint: { type: "default" } },
  ],
  "bedrock.strict": [{
    toolSpec: {
      name: "weather__get",
      description,
      inputSchema: { json: parameters },
      strict: true,
    },
  }, { cachePoint: { type: "default" } }],
  "mistral": [chat],
  "cohere": [chat],
  "ollama": [{
    type: "function",
    function: {
      name: "weather__get",
      description,
      parameters: {
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
        description: "No other properties.",
      },
    },
  }],
  "ai-sdk": {
    weather__get: {
      description,
      inputSchema: aiSdkSchema(parameters),
      outputSchema: aiSdkSchema(returns),
      inputExamples: [{ input: { city: "Rome" } }],
      title: "Weather",
      metadata: { id: "weather:get", annotations, icons, meta: weather.meta },
      deferLoading: true,
      providerOptions: {
        openai: {
          allowedCallers: ["direct", "programmatic"],
          deferLoading: true,
          async: false,
        },
        anthropic: {
          allowedCallers: ["direct", "programmatic"],
          deferLoading: true,
          cacheControl: { type: "ephemeral" },
          eagerInputStreaming: true,
        },
      },
    },
  },
  "langchain": [{
    name: "weather__get",
    description,
    schema: parameters,
    extras: {
      defer_loading: true,
      allowed_callers: ["direct", "programmatic"],
      cache_control: { type: "ephemeral" },
      input_examples: [{ city: "Rome" }],
    },
  }],
  "openapi@3.1": {
    openapi: "3.1.1",
    info: { title: "Tools", version: "1.0.0" },
    paths: {
      "/tools/weather:get/execute": {
        post: {
          operationId: "weather.get",
          summary: "Weather",
          description,
          tags: ["weather"],
          requestBody: {
            required: true,
            content: {
              "application/json": {
                schema: { $ref: "#/components/schemas/weather.get.parameters" },
                examples: { example1: { summary: "In Rome", value: { city: "Rome" } } },
              },
            },
          },
          responses: {
            "200": {
              description: "The result.",
              content: {
                "application/json": {
                  schema: { $ref: "#/components/schemas/weather.get.returns" },
                },
              },
            },
            default: { description: "Why the call failed." },
          },
          "x-tool-annotations": annotations,
          "x-tool-hints": weather.meta?.["provider"],
          "x-tool-meta": { "example.com/x": 1 },
        },
      },
    },
    components: {
      schemas: {
        "weather.get.parameters": parameters,
        "weather.get.returns": {
          type: "array",
          items: { $ref: "#/components/schemas/weather.get.returns/$defs/day" },
          $defs: { day: { type: "number" } },
        },
      },
    },
  },
};

function withoutStandard(tools: unknown): unknown {
  const set = tools as Record<string, Record<string, { "~standard"?: unknown }>>;
  return Object.fromEntries(
    Object.entries(set).map(([name, { inputSchema, outputSchema, ...rest }]) => {
      const { "~standard": input, ...plainInput } = inputSchema ?? {};
      const { "~standard": output, ...plainOutput } = outputSchema ?? {};
      assertEquals([typeof input, typeof output], ["object", "object"]);
      return [name, { ...rest, inputSchema: plainInput, outputSchema: plainOutput }];
    }),
  );
}

describe("a tool that says much", () => {
  for (const { id } of listTargets()) {
    it(`is written for ${id}`, () => {
      const result: ExportResult = exportTools([weather], id);
      assertEquals(id === "ai-sdk" ? withoutStandard(result.tools) : result.tools, EXPECTED[id]);
      assertEquals(result.rejected, []);
      const wraps = id === "mcp@2025-06-18" || id === "mcp@2025-11-25";
      assertEquals(result.names.encodings[0]?.wrapsResult, wraps);
    });
  }

  it("is written without namespaces where that is wished", () => {
    const { tools, names } = exportTools([weather], "openai.responses", { namespaces: false });
    assertEquals(tools.map((tool) => "name" in tool && tool.name), ["weather__get"]);
    assertEquals(names.idOf("weather__get"), "weather:get");
    assertEquals(names.idOf("get", "weather"), undefined);
  });

  it("is called by namespace and name, never by one of them", () => {
    const { names } = exportTools([weather], "openai.responses");
    assertEquals(names.idOf("get", "weather"), "weather:get");
    assertEquals(names.idOf("get"), undefined);
    assertEquals(names.idOf("weather__get"), undefined);
  });
});

describe("what a source did not have", () => {
  const imported = makeTool({
    name: "x",
    title: "X",
    description: "Made up.",
    meta: {
      provider: {
        source: "mcp",
        description: null,
        title: null,
        annotations: null,
        extra: { y: 1 },
      },
    },
  });

  it("is not sent back", () => {
    assertEquals<unknown>(exportTools([imported], "mcp").tools, [
      { y: 1, name: "x", inputSchema: imported.parameters },
    ]);
    assertEquals(exportTools([imported], "openai").tools[0]?.function.description, undefined);
    assertEquals(exportTools([imported], "openai").losses.map(({ path }) => path), [
      "/meta/provider/extra/y",
    ]);
  });
});

describe("draft-07 schemas that say so", () => {
  const $schema = "http://json-schema.org/draft-07/schema#";
  const old = makeTool({
    name: "old",
    description: "Is old.",
    parameters: { $schema, type: "object", properties: {}, definitions: { a: { type: "string" } } },
  });

  it("go to MCP word for word, and to others in 2020-12", () => {
    assertEquals(
      exportTools([old], "mcp").tools[0]?.inputSchema,
      old.parameters as { type: "object" },
    );
    assertEquals(exportTools([old], "anthropic").tools[0]?.input_schema, {
      type: "object",
      properties: {},
      $defs: { a: { type: "string" } },
    });
  });

  it("have objects for boolean schemas in the revisions of MCP whose clients want objects", () => {
    const loose = makeTool({
      name: "loose",
      description: "Takes anything.",
      parameters: {
        $schema,
        type: "object",
        properties: { any: true, none: false, list: { type: "array", items: false } },
        definitions: {},
      },
    });
    const sent = (target: "mcp@2025-11-25" | "mcp@2026-07-28"): unknown =>
      exportTools([loose], target).tools[0]?.inputSchema;
    assertEquals(sent("mcp@2025-11-25"), {
      $schema,
      type: "object",
      properties: { any: {}, none: { not: {} }, list: { type: "array", items: {}, maxItems: 0 } },
      definitions: {},
    });
    assertEquals(sent("mcp@2026-07-28"), loose.parameters);
  });
});

describe("listTargets()", () => {
  it("has a rule for every form, and a target for every fallback", () => {
    for (const { id, keywords, fallback, source, title } of listTargets()) {
      assertEquals(Object.keys(keywords).sort(), Object.keys(KEYWORD_FORMS).sort(), id);
      assert(title !== "" && source !== "", id);
      assert(fallback === undefined || isTargetName(fallback), id);
      for (const rule of Object.values(keywords)) {
        assertEquals(rule.action === "transform", rule.into !== undefined, id);
      }
    }
  });

  it("is data", () => {
    assertEquals(JSON.parse(JSON.stringify(listTargets())), listTargets());
  });

  it("resolves the aliases", () => {
    const aliases: readonly (readonly [TargetName, string])[] = [
      ["openai", "openai.chat"],
      ["openai.strict", "openai.chat.strict"],
      ["mcp", "mcp@2026-07-28"],
      ["openapi", "openapi@3.1"],
      ["cohere", "cohere"],
    ];
    for (const [alias, id] of aliases) assertEquals(targetOf(alias).id, id);
    assertEquals(isTargetName("openai.unknown"), false);
  });
});

describe("nullable: true in a tool's own schema", () => {
  // The tool rejects null, and a model that reads "nullable" would send it.
  const maybe = makeTool({
    name: "maybe",
    description,
    parameters: {
      type: "object",
      properties: { city: { type: "string", nullable: true } },
      required: ["city"],
      additionalProperties: false,
    },
  });
  for (const { id } of listTargets()) {
    it(`is not sent to ${id}, and reported`, () => {
      const { tools, losses, rejected } = exportTools([maybe], id);
      assertEquals(rejected, []);
      assertEquals(JSON.stringify(tools).includes("nullable"), false);
      const said = losses.filter(({ keyword }) => keyword === "nullable");
      assertEquals(
        said.map(({ path, action, widens, narrows }) => [path, action, widens, narrows]),
        [
          ["/properties/city/nullable", "dropped", false, false],
        ],
      );
    });
  }
});
