/** Whole turns through the AI SDK, LangChain's messages and both MCP SDKs. */

import {
  AIMessage,
  AIMessageChunk,
  coerceMessageLikeToMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { isSpecType } from "@modelcontextprotocol/server";
import { assert, assertEquals } from "@std/assert";
import { generateText, jsonSchema, type ModelMessage, streamText, tool } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { aiAnswers } from "./ai_models.ts";
import { add } from "./provider.ts";

const toolset = buildToolset([add]);
const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
const turnOf = (target: formats.TargetName): formats.TurnOptions => ({
  dispatcher,
  names: formats.exportTools(toolset, target).names,
});
const TEXT = '{"a":1,"b":2}';

describe("a turn with the AI SDK", () => {
  const { whole, streamed: [chunks = []] } = aiAnswers([["c1", "math__add", TEXT]]);
  const tools = {
    math__add: tool({
      inputSchema: jsonSchema({ type: "object" }),
      outputSchema: jsonSchema({ type: "object" }),
    }),
  };
  const expected = [{
    role: "tool",
    content: [{
      type: "tool-result",
      toolCallId: "c1",
      toolName: "math__add",
      output: { type: "json", value: { sum: 3 } },
    }],
  }];

  it("reads generateText's result, and its answer reaches the model", async () => {
    const model = new MockLanguageModelV4({ doGenerate: whole });
    const prompt: ModelMessage[] = [{ role: "user", content: "1 + 2?" }];
    const first = await generateText({ model, tools, messages: prompt });
    const { messages } = await formats.dispatchResponse("ai-sdk", first, turnOf("ai-sdk"));
    assertEquals(messages as unknown, expected);
    await generateText({
      model,
      tools,
      messages: [...prompt, ...first.response.messages, ...messages],
    });
    const [last] = (model.doGenerateCalls.at(-1)?.prompt ?? []).slice(-1);
    assertEquals(JSON.stringify(last?.content), JSON.stringify(expected[0]?.content));
  });

  it("reads streamText's parts", async () => {
    const model = new MockLanguageModelV4({
      doStream: {
        stream: simulateReadableStream({
          chunks: [
            { type: "stream-start", warnings: [] },
            { type: "tool-input-start", id: "c1", toolName: "math__add" },
            { type: "tool-input-delta", id: "c1", delta: TEXT },
            { type: "tool-input-end", id: "c1" },
            ...chunks,
          ],
        }),
      },
    });
    const options = turnOf("ai-sdk");
    const stream = formats.accumulateCalls("ai-sdk", options.names);
    const { fullStream } = streamText({ model, tools, prompt: "1 + 2?" });
    for await (const part of fullStream) stream.push(part);
    const { messages } = await formats.dispatchCalls("ai-sdk", stream.end(), options);
    assertEquals(messages as unknown, expected);
  });
});

describe("a turn with LangChain", () => {
  const options = turnOf("langchain");
  const expected = {
    type: "tool",
    tool_call_id: "c1",
    name: "math__add",
    content: '{"sum":3}',
    status: "success",
  };

  it("reads an AIMessage, as an object and as JSON, and LangChain reads its answer", async () => {
    const message = new AIMessage({
      content: "",
      tool_calls: [{ type: "tool_call", id: "c1", name: "math__add", args: { a: 1, b: 2 } }],
    });
    for (const response of [message, JSON.parse(JSON.stringify(message))]) {
      const { messages } = await formats.dispatchResponse("langchain", response, options);
      assertEquals(messages as unknown, [expected]);
      const [answer] = messages;
      assert(answer !== undefined);
      const read = coerceMessageLikeToMessage(answer);
      assert(ToolMessage.isInstance(read));
      const { tool_call_id, name, content, status } = read;
      assertEquals<unknown>({ type: "tool", tool_call_id, name, content, status }, expected);
    }
  });

  it("concatenates AIMessageChunks", async () => {
    const stream = formats.accumulateCalls("langchain", options.names);
    const chunk = (args: string, more: object = {}): AIMessageChunk =>
      new AIMessageChunk({
        content: "",
        tool_call_chunks: [{ type: "tool_call_chunk", index: 0, args, ...more }],
      });
    stream.push(chunk("", { id: "c1", name: "math__add" }));
    stream.push(chunk(TEXT.slice(0, 6)));
    stream.push(chunk(TEXT.slice(6)));
    const response_metadata = { finish_reason: "tool_calls" };
    stream.push(new AIMessageChunk({ content: "", response_metadata }));
    const { messages } = await formats.dispatchCalls("langchain", stream.end(), options);
    assertEquals(messages as unknown, [expected]);
  });
});

describe("a turn with MCP", () => {
  const request = (name: string, args: unknown): unknown => ({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: args },
  });

  for (const target of ["mcp@2025-06-18", "mcp@2025-11-25", "mcp@2026-07-28"] as const) {
    it(`returns results that both generations of the SDK accept for ${target}`, async () => {
      for (const args of [{ a: 1, b: 2 }, { a: "one" }]) {
        const call = request("math.add", args);
        const { messages: [message] } = await formats.dispatchResponse(
          target,
          call,
          turnOf(target),
        );
        assert(message !== undefined && "jsonrpc" in message);
        const parsed = CallToolResultSchema.safeParse(message.result);
        // The older SDK supports only objects as structured content.
        if (target !== "mcp@2026-07-28" || message.result.isError) assert(parsed.success);
        assert(isSpecType.CallToolResult(message.result));
      }
    });
  }
});
