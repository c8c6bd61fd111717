/** Tools that were written for the AI SDK, LangChain and the MCP SDK, as tools of plue. */

import { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool, tool as langChainTool } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { McpServer as McpServer1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer } from "@modelcontextprotocol/server";
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { dynamicTool, jsonSchema, tool, zodSchema } from "ai";
import { tool as tool6 } from "ai6";
import { describe, it } from "bun:test";
import { z } from "zod";
import { z as z3 } from "zod/v3";
import {
  fromAiSdkTools,
  fromLangChainTools,
  toAiSdkTools,
} from "../../src/adapters/frameworks/mod.ts";
import { fromMcpServer } from "../../src/adapters/mcp/mod.ts";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { type DispatchContext, ToolDispatcher } from "../../src/execute/mod.ts";
import { exportTools } from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import type { Tool, ToolResult } from "../../src/tool/mod.ts";

/** The schema of all these tools: a default, and a conversion that runs once. */
const PARAMETERS = z.object({
  city: z.string().describe("The name of the city").transform((name) => `<${name}>`),
  unit: z.enum(["C", "F"]).default("C"),
});
type Weather = z.output<typeof PARAMETERS>;

/** The values that the functions of the tools received. */
let seen: unknown[] = [];
/** Resolves when the tool `wait` has begun. */
let begun = Promise.withResolvers<void>();
const forecast = ({ city, unit }: Weather): object => ({ city, degrees: 20, unit });

function failing(): string {
  throw new Error("the station is closed");
}

function waiting(signal: AbortSignal | undefined): Promise<string> {
  begun.resolve();
  return new Promise((_, reject) =>
    signal?.addEventListener("abort", () => {
      seen.push("aborted");
      reject(signal.reason);
    })
  );
}

const weather = { description: "Tells the weather.", inputSchema: PARAMETERS };
const bare = (description: string) => ({ description, inputSchema: z.object({}) });

/** The same tools for each framework: `weather`, `broken` and `wait`. */
const SOURCES: Readonly<Record<string, () => Promise<readonly Tool[]> | readonly Tool[]>> = {
  "fromAiSdkTools()": () =>
    fromAiSdkTools({
      weather: tool({
        ...weather,
        execute: (input, { toolCallId, context }) => {
          seen.push(toolCallId, context);
          return forecast(input);
        },
      }),
      broken: tool({ ...bare("Fails."), execute: failing }),
      wait: tool({ ...bare("Waits."), execute: (_, { abortSignal }) => waiting(abortSignal) }),
    }),
  "fromAiSdkTools() with ai 6": () =>
    fromAiSdkTools({
      weather: tool6({
        ...weather,
        execute: (input, { toolCallId, experimental_context }) => {
          seen.push(toolCallId, experimental_context);
          return forecast(input);
        },
      }),
      broken: tool6({ ...bare("Fails."), execute: failing }),
      wait: tool6({ ...bare("Waits."), execute: (_, { abortSignal }) => waiting(abortSignal) }),
    }),
  "fromLangChainTools()": () =>
    fromLangChainTools([
      langChainTool((input, config) => {
        seen.push(config.toolCall?.id, config.context);
        return forecast(input);
      }, { name: "weather", description: "Tells the weather.", schema: PARAMETERS }),
      langChainTool(failing, { name: "broken", description: "Fails.", schema: z.object({}) }),
      langChainTool(
        (_, config) => waiting(config.signal),
        { name: "wait", description: "Waits.", schema: z.object({}) },
      ),
    ]),
  "fromMcpServer()": () => {
    const server = new McpServer({ name: "weather", version: "1.0.0" });
    register(server as never, (ctx) => ctx.mcpReq?.signal);
    return fromMcpServer(server);
  },
  "fromMcpServer() with version 1 of the SDK": () => {
    const server = new McpServer1({ name: "weather", version: "1.0.0" });
    register(server as never, (ctx) => ctx.signal);
    return fromMcpServer(server);
  },
};

interface Context {
  readonly signal?: AbortSignal;
  readonly mcpReq?: { readonly signal: AbortSignal };
}

interface Registering {
  registerTool(name: string, config: object, run: (args: never, ctx: Context) => unknown): void;
}

/** Registers the tools with a server of either version. */
function register(server: Registering, signalOf: (ctx: Context) => AbortSignal | undefined): void {
  const outputSchema = z.object({ city: z.string(), degrees: z.number(), unit: z.string() });
  server.registerTool("weather", { ...weather, outputSchema }, (input: Weather) => {
    seen.push("c1", { user: "ann" });
    const structuredContent = forecast(input);
    const text = JSON.stringify(structuredContent);
    return { structuredContent, content: [{ type: "text", text }] };
  });
  server.registerTool("broken", bare("Fails."), failing);
  server.registerTool("wait", bare("Waits."), (_, ctx) => waiting(signalOf(ctx)));
}

function dispatcherOver(tools: readonly Tool[]): ToolDispatcher {
  return new ToolDispatcher(buildToolset(tools), { engine: typeboxEngine() });
}

for (const [name, make] of Object.entries(SOURCES)) {
  describe(name, async () => {
    const tools = await make();
    const dispatcher = dispatcherOver(tools);
    const call = (tool: string, args: unknown, context: DispatchContext = {}) =>
      dispatcher.dispatch({ name: tool, arguments: args, callId: "c1" }, context);

    it("keeps names, descriptions and schemas, for three targets", () => {
      assertEquals(tools.map(({ id, risk }) => [id, risk]), [
        ["weather", "medium"],
        ["broken", "medium"],
        ["wait", "medium"],
      ]);
      const [openai] = exportTools(tools, "openai.chat").tools;
      assertEquals(openai?.function.description, "Tells the weather.");
      const city = { type: "string", description: "The name of the city" };
      for (
        const schema of [
          openai?.function.parameters,
          exportTools(tools, "anthropic").tools.find((one) => one.name === "weather")?.input_schema,
          exportTools(tools, "gemini").tools[0]?.functionDeclarations[0]?.parametersJsonSchema,
        ]
      ) {
        const { properties, required } = schema as { properties: unknown; required: unknown };
        assertEquals(required, ["city"]);
        assertEquals((properties as Record<string, unknown>)["city"], city);
      }
    });

    it("runs a call with converted arguments, the call's id and the context", async () => {
      seen = [];
      const result = await call("weather", { city: "Rome" }, { context: { user: "ann" } });
      assertEquals(contentOf(result), { city: "<Rome>", degrees: 20, unit: "C" });
      assertEquals(seen, ["c1", { user: "ann" }]);
    });

    it("rejects invalid arguments before the tool runs", async () => {
      seen = [];
      const result = await call("weather", { city: 1 });
      assertEquals(result.ok ? "" : result.error.code, "invalid_arguments");
      assertEquals(seen, []);
    });

    it("fails with the message of the tool's error", async () => {
      const result = await call("broken", {});
      assertEquals(result.ok ? "" : result.error.code, "threw");
      assertStringIncludes(result.ok ? "" : result.error.message, "the station is closed");
    });

    it("aborts the tool with the call", async () => {
      seen = [];
      begun = Promise.withResolvers();
      const stop = new AbortController();
      const running = call("wait", {}, { signal: stop.signal });
      await begun.promise;
      stop.abort(new Error("enough"));
      const result = await running;
      assertEquals(result.ok ? "" : result.error.code, "aborted");
      assertEquals(seen, ["aborted"]);
    });
  });
}

function contentOf(result: ToolResult): unknown {
  return result.ok ? result.content : result.error;
}

describe("fromAiSdkTools()", () => {
  const input = { type: "object", properties: { n: { type: "integer" } } } as const;

  it("reads schemas of jsonSchema() with their validation, and of zodSchema() for Zod 3", async () => {
    const even = jsonSchema<{ n: number }>(input, {
      validate: (value) =>
        (value as { n: number }).n % 2 === 0
          ? { success: true, value: { n: (value as { n: number }).n / 2 } }
          : { success: false, error: new Error("n must be even") },
    });
    const old = z3.object({ n: z3.string().transform(Number) });
    const set = {
      half: tool({ description: "Halves.", inputSchema: even, execute: ({ n }) => n }),
      plain: dynamicTool({ inputSchema: jsonSchema(input), execute: (input) => input }),
      old: tool({ inputSchema: zodSchema<{ n: number }>(old as never), execute: ({ n }) => n }),
    };
    const dispatcher = dispatcherOver(fromAiSdkTools(set, { namespace: "math" }));
    const run = async (name: string, args: unknown) =>
      contentOf(await dispatcher.dispatch({ name: `math:${name}`, arguments: args }));
    assertEquals(await run("half", { n: 6 }), 3);
    assertStringIncludes(JSON.stringify(await run("half", { n: 5 })), "n must be even");
    assertEquals(await run("plain", { n: 1 }), { n: 1 });
    assertEquals(await run("old", { n: "7" }), 7);
    const bareSchema = { old: tool({ inputSchema: old as never, execute: () => 1 }) };
    const message = "zod cannot make a JSON Schema of its parameters";
    assertThrows(() => fromAiSdkTools(bareSchema), TypeError, message);
  });

  it("streams the outputs of a generator, and returns the last one", async () => {
    const tools = fromAiSdkTools({
      count: tool({
        ...bare("Counts."),
        async *execute() {
          yield "one";
          yield "two";
        },
      }),
    });
    const streamed: unknown[] = [];
    const result = await dispatcherOver(tools)
      .dispatch({ name: "count" }, { output: (value) => void streamed.push(value) });
    assertEquals([contentOf(result), streamed], ["two", ["one", "two"]]);
  });

  it("returns the result of toModelOutput, and the output as metadata", async () => {
    const tools = fromAiSdkTools({
      chart: tool({
        ...bare("Draws."),
        execute: () => ({ path: "/tmp/chart.png" }),
        toModelOutput: () => ({
          type: "content",
          value: [
            { type: "text", text: "A chart." },
            { type: "file", mediaType: "image/png", data: { type: "data", data: "AA==" } },
          ],
        }),
      }),
    });
    const dispatcher = dispatcherOver(tools);
    assertEquals(contentOf(await dispatcher.dispatch({ name: "chart" })), {
      content: [
        { type: "text", text: "A chart." },
        { type: "image", data: "AA==", mimeType: "image/png" },
      ],
      metadata: { output: { path: "/tmp/chart.png" } },
    });
    // The tool can go back to the SDK.
    const { chart } = toAiSdkTools(tools, { dispatcher });
    const output = await chart?.execute({}, { toolCallId: "c1" });
    assertEquals(chart?.toModelOutput({ toolCallId: "c1", output }), {
      type: "content",
      value: [
        { type: "text", text: "A chart." },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "AA==" } },
      ],
    });
  });

  it("requires approval for a tool that may need it", () => {
    const needs = (needsApproval: boolean | (() => boolean)) =>
      tool({ ...bare("Pays."), needsApproval, execute: () => "paid" });
    const set = { yes: needs(true), no: needs(false), maybe: needs(() => false) };
    assertEquals(
      fromAiSdkTools(set).map(({ name, requiresApproval }) => [name, requiresApproval]),
      [["yes", true], ["no", false], ["maybe", true]],
    );
  });

  it("rejects tools of providers, and descriptions that are functions", () => {
    const search = { type: "provider", id: "openai.web_search", args: {}, inputSchema: input };
    const described = { ...bare("x"), description: () => "x" };
    for (
      const [one, why] of [
        [search, "its provider runs it; keep it in the request"],
        [described, "its description must be a text"],
      ] as const
    ) {
      const message = `Cannot read the tool "one" of the AI SDK: ${why}`;
      assertThrows(() => fromAiSdkTools({ one }), TypeError, message);
    }
  });
});

describe("fromLangChainTools()", () => {
  it("runs tools with one text argument, tools with JSON Schema, and tools of Zod 3", async () => {
    const old = z3.object({ n: z3.number() });
    const tools = [
      langChainTool((text: string) => text.toUpperCase(), {
        name: "shout",
        description: "Shouts.",
      }),
      langChainTool(({ n }: { n: number }) => [`${n}`, { n }], {
        name: "both",
        description: "Returns an artifact.",
        schema: { type: "object", properties: { n: { type: "integer" } } },
        responseFormat: "content_and_artifact",
      }),
      new DynamicStructuredTool({
        name: "old",
        description: "Has a schema of Zod 3.",
        schema: toJsonSchema(old as never),
        func: ({ n }: { n: number }) => Promise.resolve(`${n}`),
      }),
    ];
    const dispatcher = dispatcherOver(fromLangChainTools(tools));
    const run = async (name: string, args: unknown) =>
      contentOf(await dispatcher.dispatch({ name, arguments: args }));
    assertEquals(await run("shout", { input: "a" }), "A");
    assertEquals(await run("both", { n: 1 }), {
      content: [{ type: "text", text: "1" }],
      metadata: { artifact: { n: 1 } },
    });
    assertEquals(await run("old", { n: 2 }), "2");
    const [, , last] = tools;
    assertThrows(
      () => fromLangChainTools([{ name: "old", invoke: last?.invoke, schema: old }]),
      TypeError,
      'zod cannot make a JSON Schema of the schema of "old"; convert it with toJsonSchema',
    );
  });

  it("returns images and failed messages, and rejects entries without a function", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
    const tools = fromLangChainTools([
      langChainTool(() => [image], { name: "draw", description: "Draws.", schema: z.object({}) }),
      langChainTool(
        (_, { toolCall }) =>
          new ToolMessage({ status: "error", content: "no", tool_call_id: toolCall?.id ?? "" }),
        { name: "refuse", description: "Refuses.", schema: z.object({}) },
      ),
    ]);
    const dispatcher = dispatcherOver(tools);
    assertEquals(contentOf(await dispatcher.dispatch({ name: "draw" })), {
      content: [{ type: "image", data: "AA==", mimeType: "image/png" }],
    });
    const refused = await dispatcher.dispatch({ name: "refuse" });
    assertStringIncludes(refused.ok ? "" : refused.error.message, "no");
    assertThrows(
      () => fromLangChainTools([{ type: "web_search" }]),
      TypeError,
      "Cannot read tools of LangChain: the entry 0 is not a tool that LangChain runs",
    );
  });
});

describe("fromMcpServer()", () => {
  it("returns images, metadata, risks and progress", async () => {
    const server = new McpServer({ name: "s", version: "1.0.0" });
    const draw = { ...bare("Draws."), annotations: { destructiveHint: true } };
    server.registerTool("draw", draw, async (_, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken ?? 0;
      const params = { progressToken, progress: 1, total: 2 };
      await mcpReq.notify({ method: "notifications/progress", params });
      return {
        content: [{ type: "image", data: "AA==", mimeType: "image/png" }],
        _meta: { path: "/tmp/a.png" },
      };
    });
    const tools = await fromMcpServer(server, { namespace: "art" });
    assertEquals(tools.map(({ id, risk }) => [id, risk]), [["art:draw", "high"]]);
    const progress: unknown[] = [];
    const result = await dispatcherOver(tools)
      .dispatch({ name: "art:draw" }, { progress: (value) => void progress.push(value) });
    assertEquals(contentOf(result), {
      content: [{ type: "image", data: "AA==", mimeType: "image/png" }],
      metadata: { path: "/tmp/a.png" },
    });
    assertEquals(progress.length, 1);
    await assertRejects(() => fromMcpServer(server), Error, "already connected");
  });

  it("fails in a tool that calls elicitInput()", async () => {
    const server = new McpServer({ name: "s", version: "1.0.0" });
    server.registerTool("pay", bare("Pays."), async (_, { mcpReq }) => {
      const requestedSchema = { type: "object" as const, properties: {} };
      await mcpReq.elicitInput({ message: "Sure?", requestedSchema });
      return { content: [] };
    });
    const result = await dispatcherOver(await fromMcpServer(server)).dispatch({ name: "pay" });
    assertStringIncludes(result.ok ? "" : result.error.message, "does not support");
  });
});
