/** Tools that frameworks run: AI SDK 6 and 7, LangChain's agents, the OpenAI Agents SDK. */

import {
  Agent,
  type Model,
  type ModelResponse,
  Runner,
  setTracingDisabled,
  Usage,
} from "@openai/agents-core";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { generateText, stepCountIs, streamText } from "ai";
import {
  generateText as generateText6,
  stepCountIs as stepCountIs6,
  streamText as streamText6,
} from "ai6";
import { MockLanguageModelV3, simulateReadableStream as simulate6 } from "ai6/test";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { describe, it } from "bun:test";
import {
  AIMessage,
  createAgent,
  fakeModel,
  type StructuredTool,
  tool,
  ToolMessage,
} from "langchain";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { ToolMessage as ToolMessage14 } from "langchain-core-14/messages";
import { type StructuredTool as StructuredTool14, tool as tool14 } from "langchain-core-14/tools";
import { convertToOpenAITool as convertToOpenAITool14 } from "langchain-core-14/utils/function_calling";
import * as plue from "../../src/adapters/frameworks/mod.ts";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { type DispatchContext, ToolDispatcher } from "../../src/execute/mod.ts";
import { exportTools } from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { defineTool } from "../../src/tool/mod.ts";
import { aiAnswers } from "./ai_models.ts";

const seen: (string | undefined)[] = [];
const add = defineTool({
  namespace: "math",
  name: "add",
  description: "Adds two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" }, note: { type: "string" } },
    required: ["a", "b"],
  },
  execute: ({ a, b, note }, { callId }) => {
    seen.push(callId);
    return { sum: a + b, noted: note !== undefined };
  },
});
const divide = defineTool({
  namespace: "math",
  name: "divide",
  description: "Divides.",
  execute: () => {
    throw new Error("by zero");
  },
});
const toolset = buildToolset([add, divide]);
const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
const context: DispatchContext = { sessionId: "s1" };
const RIGHT = '{"a":1,"b":2}';
/** A valid call, a call with invalid arguments, and a failing call. */
const CALLS = [
  ["c1", "math__add", RIGHT],
  ["c2", "math__add", '{"a":1}'],
  ["c3", "math__divide", "{}"],
] as const;
const WRONG = 'Cannot call "math__add": ';
const THREW = 'Cannot call "math__divide": the tool threw: by zero';

describe("toAiSdkTools()", () => {
  const { whole, streamed } = aiAnswers(CALLS);

  /** The results that the model received. */
  function resultsIn(prompt: unknown): void {
    const [last] = (prompt as { content: { toolCallId: string; output: unknown }[] }[]).slice(-1);
    const outputs = last?.content.map(({ output }) => output as { type: string; value: unknown });
    assertEquals(outputs?.[0], { type: "json", value: { sum: 3, noted: false } });
    assertEquals(outputs?.map(({ type }) => type), ["json", "error-text", "error-text"]);
    assertStringIncludes(String(outputs?.[1]?.value), WRONG);
    assertStringIncludes(String(outputs?.[2]?.value), THREW);
  }

  const tools = plue.toAiSdkTools(toolset, { dispatcher, context });
  const tools6 = plue.toAiSdkTools(toolset, { dispatcher, version: 6 });

  it("makes tools that ai 7 and ai 6 run", async () => {
    const model = new MockLanguageModelV4({ doGenerate: whole });
    const run = await generateText({ model, tools, prompt: "?", stopWhen: stepCountIs(3) });
    const older = new MockLanguageModelV3({ doGenerate: whole });
    const again = { model: older, tools: tools6, prompt: "?", stopWhen: stepCountIs6(3) };
    assertEquals([run.text, (await generateText6(again)).text], ["3", "3"]);
    for (const { doGenerateCalls } of [model, older]) resultsIn(doGenerateCalls[1]?.prompt);
    assert(seen.includes("c1"));
  });

  it("makes tools that both versions run while they stream", async () => {
    const model = new MockLanguageModelV4({
      doStream: streamed.map((chunks) => ({ stream: simulateReadableStream({ chunks }) })),
    });
    const run = streamText({ model, tools, prompt: "?", stopWhen: stepCountIs(3) });
    const older = new MockLanguageModelV3({
      doStream: streamed.map((chunks) => ({ stream: simulate6({ chunks }) })),
    });
    const again = { model: older, tools: tools6, prompt: "?", stopWhen: stepCountIs6(3) };
    assertEquals([await run.text, await streamText6(again).text], ["3", "3"]);
    for (const { doStreamCalls } of [model, older]) resultsIn(doStreamCalls[1]?.prompt);
  });
});

describe("toLangChainTools()", () => {
  const kit = { tool, ToolMessage };
  const calls = CALLS.map(([id, name, text]) => ({ id, name, args: JSON.parse(text) }));

  it("makes tools that an agent runs, and answers failures", async () => {
    const model = fakeModel().respondWithTools([calls[0], calls[2]].map((call) => call as never))
      .respond(new AIMessage("3"));
    const tools = plue.toLangChainTools(toolset, { dispatcher, context, ...kit });
    const agent = createAgent({ model, tools });
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "?" }] });
    assertEquals(messages.at(-1)?.content, "3");
    const answers = messages.filter((message) => ToolMessage.isInstance(message));
    assertEquals(
      answers.map(({ tool_call_id, status, content }) => [tool_call_id, status, content]),
      [["c1", "success", '{"sum":3,"noted":false}'], ["c3", "error", THREW]],
    );
  });

  it("passes invalid arguments to LangChain, which rejects them, and the agent continues", async () => {
    const model = fakeModel().respondWithTools([calls[1] as never]).respond(new AIMessage("sorry"));
    const tools = plue.toLangChainTools(toolset, { dispatcher, ...kit });
    const { messages } = await createAgent({ model, tools })
      .invoke({ messages: [{ role: "user", content: "?" }] });
    const [answer] = messages.filter((message) => ToolMessage.isInstance(message));
    assertEquals(answer?.status, "error");
    assertStringIncludes(String(answer?.content), "math__add");
  });

  it("throws outside of an agent, which has no message", async () => {
    // By its type, `tool` makes two kinds of tools. From JSON schemas, it makes only one kind.
    const [one, other] = plue.toLangChainTools(toolset, { dispatcher, ...kit }) as StructuredTool[];
    assertEquals(await one?.invoke({ a: 1, b: 2 }), '{"sum":3,"noted":false}');
    await assertRejects(async () => void await other?.invoke({}), Error, THREW);
  });

  it("creates tools even for core 1.4, which writes to its input", async () => {
    const kit14 = { tool: tool14, ToolMessage: ToolMessage14 };
    const [one] = plue.toLangChainTools(toolset, { dispatcher, ...kit14 }) as StructuredTool14[];
    const answer: unknown = await one?.invoke(
      { type: "tool_call", id: "c1", name: "math__add", args: { a: 1, b: 2 } } as never,
    );
    assert(ToolMessage14.isInstance(answer));
    assertEquals([answer.status, answer.content], ["success", '{"sum":3,"noted":false}']);
    for (const convert of [convertToOpenAITool, convertToOpenAITool14]) {
      const plain = exportTools(toolset, "langchain").tools.map((one) => convert(one));
      assertEquals<unknown>(plain, exportTools(toolset, "openai.chat").tools);
    }
  });
});

describe("toOpenAiAgentsTools()", () => {
  setTracingDisabled(true);
  const reply = (output: ModelResponse["output"]): ModelResponse => ({
    usage: new Usage(),
    output,
  });

  it("makes tools that an agent runs, and answers failures", async () => {
    const replies = [
      reply(CALLS.map(([callId, name, text]) => ({
        type: "function_call",
        callId,
        name,
        status: "completed",
        // Strict mode turns an optional argument into a nullable one.
        arguments: text === RIGHT ? '{"a":1,"b":2,"note":null}' : text,
      }))),
      reply([{
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "3" }],
      }]),
    ];
    const inputs: unknown[] = [];
    const model: Model = {
      getResponse: (request) => {
        inputs.push(request.input);
        const next = replies.shift();
        return next === undefined ? Promise.reject(new Error("no reply")) : Promise.resolve(next);
      },
      getStreamedResponse: () => {
        throw new Error("not streamed");
      },
    };
    const tools = plue.toOpenAiAgentsTools(toolset, { dispatcher, context });
    assertEquals(tools.map(({ name, strict }) => [name, strict]), [
      ["math__add", true],
      ["math__divide", true],
    ]);
    const agent = new Agent({ name: "a", instructions: "i", model, tools });
    const { finalOutput } = await new Runner().run(agent, "1 + 2?");
    assertEquals(finalOutput, "3");
    const outputs = (inputs[1] as { type: string; output: { text: string } }[])
      .filter(({ type }) => type === "function_call_result").map(({ output }) => output.text);
    assertEquals(outputs[0], '{"sum":3,"noted":false}');
    assertStringIncludes(outputs[1] ?? "", `Error (invalid_arguments): ${WRONG}`);
    assertEquals(outputs[2], `Error (threw): ${THREW}`);
  });
});
