/**
 * Whole turns through the providers' own clients, against a simulated provider: plue reads the
 * client's response, and the client sends plue's results.
 *
 * @module
 */

import Anthropic from "@anthropic-ai/sdk";
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import { Mistral } from "@mistralai/mistralai";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { CohereClientV2 } from "cohere-ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import { createToolBridge } from "../../src/finding/mod.ts";
import {
  accumulateCalls,
  dispatchCalls,
  dispatchResponse,
  type ExportNames,
  exportTools,
  type StreamTarget,
  type TargetName,
} from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { defineTool } from "../../src/tool/mod.ts";
import { playProvider } from "./provider.ts";

const add = defineTool({
  namespace: "math",
  name: "add",
  description: "Adds two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  execute: ({ a, b }) => ({ sum: a + b }),
});
const toolset = buildToolset([add]);
const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
const namesFor = (target: TargetName): ExportNames => exportTools(toolset, target).names;

/** The arguments of the one call, as the model writes them. */
const ARGS = { a: 1, b: 2 };
const TEXT = JSON.stringify(ARGS);

/** The server's next response and its last request. */
let answer: { readonly type: string; readonly body: string } = {
  type: "",
  body: "",
};
let received: unknown;

const json = (body: unknown): void => {
  answer = { type: "application/json", body: JSON.stringify(body) };
};
const events = (list: readonly unknown[], named = false): void => {
  const lines = list.map((event) => {
    const name = named ? `event: ${(event as { type: string }).type}\n` : "";
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  answer = { type: "text/event-stream", body: lines.join("") };
};
const lines = (list: readonly unknown[]): void => {
  answer = {
    type: "application/x-ndjson",
    body: list.map((event) => `${JSON.stringify(event)}\n`).join(""),
  };
};

const provider = playProvider((sent) => {
  received = sent;
  return answer;
});

/** The messages that answer a response. */
async function turn(target: TargetName, response: unknown): Promise<unknown[]> {
  const { results, messages } = await dispatchResponse(target, response, {
    dispatcher,
    names: namesFor(target),
  });
  assertEquals(results.map((result) => result.ok && result.content), [{
    sum: 3,
  }]);
  // Each SDK's types are checked in `sdk_messages.ts`.
  return JSON.parse(JSON.stringify(messages));
}

/** The messages that answer a streamed response. */
async function streamed(target: StreamTarget, stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const calls = accumulateCalls(target, namesFor(target));
  for await (const event of stream) calls.push(event);
  const { results, messages } = await dispatchCalls(target, calls.end(), {
    dispatcher,
    names: namesFor(target),
  });
  assertEquals(results.map((result) => result.ok && result.content), [{
    sum: 3,
  }]);
  return JSON.parse(JSON.stringify(messages));
}

describe("a turn with OpenAI Chat", () => {
  const toolCall = {
    id: "call_1",
    type: "function",
    function: { name: "math__add", arguments: TEXT },
  };
  const completion = {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: [toolCall],
      },
      finish_reason: "tool_calls",
      logprobs: null,
    }],
  };
  const expected = [{
    role: "tool",
    tool_call_id: "call_1",
    content: '{"sum":3}',
  }];
  const client = (): OpenAI => new OpenAI({ apiKey: "k", baseURL: provider.url });

  it("reads the client's completion, and its answer arrives", async () => {
    json(completion);
    const messages: OpenAI.ChatCompletionMessageParam[] = [{
      role: "user",
      content: "1 + 2?",
    }];
    const response = await client().chat.completions.create({
      model: "m",
      messages,
    });
    const more = await turn("openai.chat", response);
    assertEquals(more, expected);
    await client().chat.completions.create({
      model: "m",
      messages: [...messages, ...more as OpenAI.ChatCompletionMessageParam[]],
    });
    assertEquals((received as { messages: unknown[] }).messages.slice(1), expected);
  });

  it("puts the client's chunks together", async () => {
    const chunk = (delta: object, finish_reason: string | null = null): object => ({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta, finish_reason }],
    });
    const part = (args: string): object => ({
      tool_calls: [{ index: 0, function: { arguments: args } }],
    });
    events([
      chunk({
        role: "assistant",
        content: null,
        tool_calls: [{
          ...toolCall,
          index: 0,
          function: { name: "math__add", arguments: "" },
        }],
      }),
      chunk(part(TEXT.slice(0, 3))),
      chunk(part(TEXT.slice(3))),
      chunk({}, "tool_calls"),
    ]);
    const stream = await client().chat.completions.create({
      model: "m",
      messages: [],
      stream: true,
    });
    assertEquals(await streamed("openai.chat", stream), expected);
  });
});

describe("a turn with OpenAI Responses", () => {
  const item = {
    type: "function_call",
    id: "fc_1",
    call_id: "call_1",
    namespace: "math",
    name: "add",
    arguments: TEXT,
    caller: { type: "program", caller_id: "p1" },
    status: "completed",
  };
  const response = {
    id: "resp_1",
    object: "response",
    created_at: 1,
    model: "m",
    status: "completed",
    output: [{ type: "reasoning", id: "rs_1", summary: [] }, item],
  };
  const expected = [{
    type: "function_call_output",
    call_id: "call_1",
    output: '{"sum":3}',
    caller: { type: "program", caller_id: "p1" },
  }];
  const client = (): OpenAI => new OpenAI({ apiKey: "k", baseURL: provider.url });

  it("reads the client's response, and its answer arrives", async () => {
    json(response);
    const first = await client().responses.create({
      model: "m",
      input: "1 + 2?",
    });
    const more = await turn("openai.responses", first);
    assertEquals(more, expected);
    await client().responses.create({
      model: "m",
      input: more as OpenAI.Responses.ResponseInputItem[],
    });
    assertEquals((received as { input: unknown }).input, expected);
  });

  it("puts the client's events together", async () => {
    const at = { output_index: 1, item_id: "fc_1" };
    events([
      { type: "response.created", response: { ...response, output: [] } },
      {
        type: "response.output_item.added",
        ...at,
        item: { ...item, arguments: "" },
      },
      {
        type: "response.function_call_arguments.delta",
        ...at,
        delta: TEXT.slice(0, 4),
      },
      {
        type: "response.function_call_arguments.delta",
        ...at,
        delta: TEXT.slice(4),
      },
      { type: "response.function_call_arguments.done", ...at, arguments: TEXT },
      { type: "response.output_item.done", ...at, item },
      { type: "response.completed", response },
    ], true);
    const stream = await client().responses.create({
      model: "m",
      input: "",
      stream: true,
    });
    assertEquals(await streamed("openai.responses", stream), expected);
  });
});

describe("a turn with Anthropic", () => {
  const use = {
    type: "tool_use",
    id: "toolu_1",
    name: "math__add",
    input: ARGS,
  };
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "I add." }, use],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  const expected = [{
    role: "user",
    content: [{
      type: "tool_result",
      tool_use_id: "toolu_1",
      content: '{"sum":3}',
    }],
  }];
  const client = (): Anthropic => new Anthropic({ apiKey: "k", baseURL: provider.url });

  it("reads the client's message, and its answer arrives", async () => {
    json(message);
    const request = { model: "m", max_tokens: 9 };
    const messages: Anthropic.MessageParam[] = [{
      role: "user",
      content: "1 + 2?",
    }];
    const more = await turn("anthropic", await client().messages.create({ ...request, messages }));
    assertEquals(more, expected);
    await client().messages.create({
      ...request,
      messages: [...messages, ...more as Anthropic.MessageParam[]],
    });
    assertEquals((received as { messages: unknown[] }).messages.slice(1), expected);
  });

  it("puts the client's events together", async () => {
    const delta = (partial_json: string): object => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json },
    });
    events([
      {
        type: "message_start",
        message: { ...message, content: [], stop_reason: null },
      },
      {
        type: "content_block_start",
        index: 0,
        content_block: { ...use, input: {} },
      },
      delta(""),
      delta(TEXT.slice(0, 5)),
      { type: "ping" },
      delta(TEXT.slice(5)),
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: "tool_use" },
        usage: { output_tokens: 9 },
      },
      { type: "message_stop" },
    ], true);
    const stream = await client().messages.create({
      model: "m",
      max_tokens: 9,
      messages: [],
      stream: true,
    });
    assertEquals(await streamed("anthropic", stream), expected);
  });
});

describe("a turn with Gemini", () => {
  const response = {
    candidates: [{
      content: {
        role: "model",
        parts: [{
          functionCall: { id: "f1", name: "math.add", args: ARGS },
          thoughtSignature: "c2ln",
        }],
      },
      finishReason: "STOP",
    }],
  };
  const expected = [{
    role: "user",
    parts: [{
      functionResponse: {
        id: "f1",
        name: "math.add",
        response: { output: { sum: 3 } },
      },
    }],
  }];
  const client = (): GoogleGenAI =>
    new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: provider.url } });

  it("reads the client's response, and its answer arrives", async () => {
    json(response);
    const first = await client().models.generateContent({
      model: "m",
      contents: "1 + 2?",
    });
    const more = await turn("gemini", first);
    assertEquals(more, expected);
    assertEquals(await turn("gemini", first.functionCalls), expected);
    await client().models.generateContent({
      model: "m",
      contents: more as object[],
    });
    assertEquals((received as { contents: unknown }).contents, expected);
  });

  it("puts the client's chunks together", async () => {
    events([{
      candidates: [{ content: { role: "model", parts: [{ text: "I add." }] } }],
    }, response]);
    const stream = await client().models.generateContentStream({
      model: "m",
      contents: "",
    });
    assertEquals(await streamed("gemini", stream), expected);
  });
});

describe("a turn with Bedrock", () => {
  it("reads the client's response, and its answer arrives", async () => {
    const client = new BedrockRuntimeClient({
      region: "us-east-1",
      endpoint: provider.url,
      credentials: { accessKeyId: "k", secretAccessKey: "s" },
      requestHandler: new NodeHttpHandler(),
    });
    const content = [{
      toolUse: { toolUseId: "t1", name: "math__add", input: ARGS },
    }];
    json({
      output: { message: { role: "assistant", content } },
      stopReason: "tool_use",
    });
    const request = { modelId: "m" };
    const first = await client.send(
      new ConverseCommand({
        ...request,
        messages: [{ role: "user", content: [{ text: "1 + 2?" }] }],
      }),
    );
    const more = await turn("bedrock", first);
    const expected = [{
      role: "user",
      content: [{
        toolResult: {
          toolUseId: "t1",
          content: [{ json: { sum: 3 } }],
          status: "success",
        },
      }],
    }];
    assertEquals(more, expected);
    await client.send(new ConverseCommand({ ...request, messages: more as [] }));
    assertEquals((received as { messages: unknown }).messages, expected);
    client.destroy();
  });
});

describe("a turn with Mistral", () => {
  const call = {
    id: "AbC123xYz",
    type: "function",
    function: { name: "math__add", arguments: TEXT },
  };
  const expected = [{
    role: "tool",
    tool_call_id: "AbC123xYz",
    name: "math__add",
    content: '{"sum":3}',
  }];
  const client = (): Mistral => new Mistral({ apiKey: "k", serverURL: provider.url });
  const choice = { index: 0, finish_reason: "tool_calls" };

  it("reads the client's response, and its answer arrives", async () => {
    json({
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "m",
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      choices: [{
        ...choice,
        message: { role: "assistant", content: "", tool_calls: [call] },
      }],
    });
    const ask = { role: "user" as const, content: "1 + 2?" };
    const more = await turn(
      "mistral",
      await client().chat.complete({ model: "m", messages: [ask] }),
    );
    assertEquals(more, expected);
    // Its SDK writes camel case.
    const [{ tool_call_id: toolCallId, ...rest }] = more as [(typeof expected)[0]];
    await client().chat.complete({
      model: "m",
      messages: [{ ...rest, role: "tool", toolCallId }],
    });
    assertEquals((received as { messages: unknown }).messages, expected);
  });

  it("puts the client's chunks together", async () => {
    const chunk = {
      id: "1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{
        ...choice,
        delta: { role: "assistant", content: "", tool_calls: [call] },
      }],
    };
    events([chunk]);
    const stream = await client().chat.stream({ model: "m", messages: [] });
    assertEquals(await streamed("mistral", stream), expected);
  });
});

describe("a turn with Cohere", () => {
  const call = {
    id: "c1",
    type: "function",
    function: { name: "math__add", arguments: TEXT },
  };
  const expected = [{
    role: "tool",
    tool_call_id: "c1",
    content: [{ type: "document", document: { data: { sum: 3 } } }],
  }];
  const client = (): CohereClientV2 =>
    new CohereClientV2({ token: "k", environment: provider.url });

  it("reads the client's response, and its answer arrives", async () => {
    json({
      id: "1",
      finish_reason: "TOOL_CALL",
      message: { role: "assistant", tool_plan: "I add.", tool_calls: [call] },
    });
    const more = await turn("cohere", await client().chat({ model: "m", messages: [] }));
    assertEquals(more, expected);
    // Its SDK writes camel case.
    const [{ tool_call_id: toolCallId, content }] = more as [{
      tool_call_id: string;
      content: [{ type: "document"; document: { data: Record<string, unknown> } }];
    }];
    await client().chat({
      model: "m",
      messages: [{ role: "tool", toolCallId, content }],
    });
    assertEquals((received as { messages: unknown }).messages, expected);
  });

  it("puts the client's events together", async () => {
    const step = (tool_calls: object): object => ({
      index: 0,
      delta: { message: { tool_calls } },
    });
    events([
      {
        type: "message-start",
        id: "1",
        delta: { message: { role: "assistant" } },
      },
      {
        type: "tool-call-start",
        ...step({ ...call, function: { name: "math__add", arguments: "" } }),
      },
      { type: "tool-call-delta", ...step({ function: { arguments: TEXT } }) },
      { type: "tool-call-end", index: 0 },
      { type: "message-end", delta: { finish_reason: "TOOL_CALL" } },
    ]);
    const stream = await client().chatStream({ model: "m", messages: [] });
    assertEquals(await streamed("cohere", stream), expected);
  });
});

describe("a turn with Ollama", () => {
  const message = {
    role: "assistant",
    content: "",
    tool_calls: [{ function: { name: "math__add", arguments: ARGS } }],
  };
  const expected = [{
    role: "tool",
    tool_name: "math__add",
    content: '{"sum":3}',
  }];
  const client = (): Ollama => new Ollama({ host: provider.url });

  it("reads the client's response, and its answer arrives", async () => {
    json({ model: "m", message, done: true, done_reason: "stop" });
    const more = await turn("ollama", await client().chat({ model: "m", messages: [] }));
    assertEquals(more, expected);
    await client().chat({ model: "m", messages: more as typeof expected });
    assertEquals((received as { messages: unknown }).messages, expected);
  });

  it("puts the client's chunks together", async () => {
    lines([
      { model: "m", message, done: false },
      {
        model: "m",
        message: { role: "assistant", content: "" },
        done: true,
        done_reason: "stop",
      },
    ]);
    const stream = await client().chat({
      model: "m",
      messages: [],
      stream: true,
    });
    assertEquals(await streamed("ollama", stream), expected);
  });
});

describe("a turn through the bridge", () => {
  const bridge = createToolBridge(toolset);
  const through = new ToolDispatcher(bridge, { engine: typeboxEngine() });
  const query = { query: "add two numbers" };

  it("is a tool_search of OpenAI's, whose output is the definitions", async () => {
    const { tools, names } = exportTools(bridge, "openai.responses");
    const client = new OpenAI({ apiKey: "k", baseURL: provider.url });
    const search: OpenAI.Responses.ResponseToolSearchCall = {
      type: "tool_search_call",
      id: "tsc_1",
      call_id: "call_1",
      execution: "client",
      status: "completed",
      arguments: query,
    };
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: "1 + 2?" }];
    json({ id: "resp_1", object: "response", status: "completed", output: [search] });
    const response = await client.responses.create({ model: "m", input, tools });
    assertEquals((received as { tools: unknown }).tools, JSON.parse(JSON.stringify(tools)));
    const { messages } = await dispatchResponse("openai.responses", response, {
      dispatcher: through,
      names,
    });
    const [message] = messages;
    if (message?.type !== "tool_search_output") throw new Error(JSON.stringify(messages));
    assertEquals(message.tools.map(({ type, name }) => [type, name]), [["namespace", "math"]]);
    const call: OpenAI.Responses.ResponseFunctionToolCall = {
      type: "function_call",
      call_id: "call_2",
      namespace: "math",
      name: "add",
      arguments: TEXT,
    };
    json({ id: "resp_2", object: "response", status: "completed", output: [call] });
    const next = await client.responses.create({
      model: "m",
      input: [...input, search, ...messages],
      tools,
    });
    assertEquals(
      (received as { input: unknown[] }).input.at(-1),
      JSON.parse(JSON.stringify(message)),
    );
    const { results } = await dispatchResponse("openai.responses", next, {
      dispatcher: through,
      names,
    });
    assertEquals(results.map((result) => result.ok && result.content), [{ sum: 3 }]);
  });

  it("is answered with tool_reference blocks of Anthropic's", async () => {
    const { tools, names } = exportTools(bridge, "anthropic");
    const client = new Anthropic({ apiKey: "k", baseURL: provider.url });
    const request = { model: "m", max_tokens: 9, tools };
    const question: Anthropic.MessageParam = { role: "user", content: "1 + 2?" };
    const answerWith = (name: string, input: unknown): void =>
      json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        content: [{ type: "tool_use", id: "toolu_1", name, input }],
        stop_reason: "tool_use",
      });
    answerWith("search_tools", query);
    const response = await client.messages.create({ ...request, messages: [question] });
    const turn = { dispatcher: through, names };
    const { messages } = await dispatchResponse("anthropic", response, turn);
    answerWith("math__add", ARGS);
    const next = await client.messages.create({
      ...request,
      messages: [question, { role: "assistant", content: response.content }, ...messages],
    });
    const sent = received as {
      readonly tools: readonly { readonly name: string; readonly defer_loading?: boolean }[];
      readonly messages: readonly { readonly content: unknown }[];
    };
    assertEquals(sent.messages.at(-1)?.content, [{
      type: "tool_result",
      tool_use_id: "toolu_1",
      content: [{ type: "tool_reference", tool_name: "math__add" }],
    }]);
    // Referenced tools must exist and be deferred; the search must not be.
    assertEquals(sent.tools.map(({ name, defer_loading }) => [name, defer_loading]), [
      ["math__add", true],
      ["search_tools", undefined],
    ]);
    const { results } = await dispatchResponse("anthropic", next, turn);
    assertEquals(results.map((result) => result.ok && result.content), [{ sum: 3 }]);
  });
});
