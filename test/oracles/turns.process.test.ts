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
  exportTools,
  type TargetName,
} from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { add, playProvider } from "./provider.ts";
import data from "./turns.json" with { type: "json" };

const toolset = buildToolset([add]);
const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });

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

type Message = Record<string, unknown>;

/** A provider's client. */
interface Provider {
  readonly name: string;
  readonly target: TargetName;
  /** How the provider streams. */
  readonly streams: "events" | "named events" | "lines" | "nothing";
  /** The field of a request with the messages. */
  readonly field: string;
  send(messages: Message[]): Promise<unknown>;
  stream(): Promise<AsyncIterable<unknown>>;
}

const openai = (): OpenAI => new OpenAI({ apiKey: "k", baseURL: provider.url });
const anthropic = (): Anthropic => new Anthropic({ apiKey: "k", baseURL: provider.url });
const gemini = (): GoogleGenAI =>
  new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: provider.url } });
const mistral = (): Mistral => new Mistral({ apiKey: "k", serverURL: provider.url });
const cohere = (): CohereClientV2 => new CohereClientV2({ token: "k", environment: provider.url });
const ollama = (): Ollama => new Ollama({ host: provider.url });

/** Two SDKs write camel case where their API does not. */
const inCamelCase = (messages: Message[]): never[] =>
  messages.map(({ tool_call_id: toolCallId, ...rest }) => ({ ...rest, toolCallId })) as never[];

// The types of messages are checked in `sdk_messages.ts`.
const PROVIDERS: readonly Provider[] = [
  {
    name: "OpenAI Chat",
    target: "openai.chat",
    streams: "events",
    field: "messages",
    send: (messages) =>
      openai().chat.completions.create({ model: "m", messages: messages as never[] }),
    stream: () => openai().chat.completions.create({ model: "m", messages: [], stream: true }),
  },
  {
    name: "OpenAI Responses",
    target: "openai.responses",
    streams: "named events",
    field: "input",
    send: (messages) => openai().responses.create({ model: "m", input: messages as never[] }),
    stream: () => openai().responses.create({ model: "m", input: "", stream: true }),
  },
  {
    name: "Anthropic",
    target: "anthropic",
    streams: "named events",
    field: "messages",
    send: (messages) =>
      anthropic().messages.create({ model: "m", max_tokens: 9, messages: messages as never[] }),
    stream: () =>
      anthropic().messages.create({ model: "m", max_tokens: 9, messages: [], stream: true }),
  },
  {
    name: "Gemini",
    target: "gemini",
    streams: "events",
    field: "contents",
    send: (messages) =>
      gemini().models.generateContent({
        model: "m",
        contents: messages.length === 0 ? "1 + 2?" : messages,
      }),
    stream: () => gemini().models.generateContentStream({ model: "m", contents: "" }),
  },
  {
    name: "Bedrock",
    target: "bedrock",
    streams: "nothing",
    field: "messages",
    async send(messages) {
      const client = new BedrockRuntimeClient({
        region: "us-east-1",
        endpoint: provider.url,
        credentials: { accessKeyId: "k", secretAccessKey: "s" },
        requestHandler: new NodeHttpHandler(),
      });
      const request = { modelId: "m", messages: messages as never[] };
      const response = await client.send(new ConverseCommand(request));
      client.destroy();
      return response;
    },
    stream: () => Promise.reject(new Error("Bedrock streams no events")),
  },
  {
    name: "Mistral",
    target: "mistral",
    streams: "events",
    field: "messages",
    send: (messages) => mistral().chat.complete({ model: "m", messages: inCamelCase(messages) }),
    stream: () => mistral().chat.stream({ model: "m", messages: [] }),
  },
  {
    name: "Cohere",
    target: "cohere",
    streams: "events",
    field: "messages",
    send: (messages) => cohere().chat({ model: "m", messages: inCamelCase(messages) }),
    stream: () => cohere().chatStream({ model: "m", messages: [] }),
  },
  {
    name: "Ollama",
    target: "ollama",
    streams: "lines",
    field: "messages",
    send: (messages) => ollama().chat({ model: "m", messages: messages as never[] }),
    stream: () => ollama().chat({ model: "m", messages: [], stream: true }),
  },
];

/** The response, the events and the messages that answer them, by target. */
const TURNS: Readonly<
  Record<string, { response: unknown; stream?: readonly unknown[]; expected: readonly Message[] }>
> = data;

const options = (target: TargetName) => ({ dispatcher, names: exportTools(toolset, target).names });

/** Returns the messages of a turn whose call has succeeded. */
function messagesOf({ results, messages }: TurnOutcome): Message[] {
  assertEquals(results.map((result) => result.ok && result.content), [{ sum: 3 }]);
  return JSON.parse(JSON.stringify(messages));
}

type TurnOutcome = Pick<
  Awaited<ReturnType<typeof dispatchResponse<TargetName>>>,
  "results" | "messages"
>;

for (const { name, target, streams, field, send, stream } of PROVIDERS) {
  const { response, stream: parts = [], expected } = TURNS[target] as (typeof TURNS)[string];

  describe(`a turn with ${name}`, () => {
    it("decodes the client's response and sends the results", async () => {
      json(response);
      const first = await send([]);
      const messages = messagesOf(await dispatchResponse(target, first, options(target)));
      assertEquals(messages, expected);
      await send(messages);
      assertEquals((received as Message)[field], expected);
      if (target !== "gemini") return;
      const { functionCalls } = first as { readonly functionCalls: unknown };
      const again = await dispatchResponse(target, functionCalls, options(target));
      assertEquals(messagesOf(again), expected);
    });

    if (streams === "nothing") return;

    it("accumulates the client's events", async () => {
      if (streams === "lines") lines(parts);
      else events(parts, streams === "named events");
      const calls = accumulateCalls(target, options(target).names);
      for await (const event of await stream()) calls.push(event);
      const outcome = await dispatchCalls(target, calls.end(), options(target));
      assertEquals(messagesOf(outcome), expected);
    });
  });
}

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
