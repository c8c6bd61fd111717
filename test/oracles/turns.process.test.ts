/** Whole turns through the providers' own clients, against a simulated provider. */

import Anthropic from "@anthropic-ai/sdk";
import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
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
import { clientsOf, type Message } from "./clients.ts";
import { add, playProvider } from "./provider.ts";
import data from "./turns.json" with { type: "json" };

const toolset = buildToolset([add]);
const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });

/** The arguments of the one call, as the model writes them. */
const ARGS = { a: 1, b: 2 };
const TEXT = JSON.stringify(ARGS);

/** The server's next response and its last request. */
let answer: { readonly type: string; readonly body: string } = { type: "", body: "" };
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

const PROVIDERS = clientsOf(provider);

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
