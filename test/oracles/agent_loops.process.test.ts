/** Whole loops through the providers' clients: the same conversation, streamed or not. */

import Anthropic from "@anthropic-ai/sdk";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import OpenAI from "openai";
import {
  runTools,
  streamTools,
  type ToolRun,
  type ToolRunEvent,
} from "../../src/adapters/frameworks/mod.ts";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { add, playProvider } from "./provider.ts";

const tools = buildToolset([add]);
const dispatcher = new ToolDispatcher(tools, { engine: typeboxEngine() });

type Json = Readonly<Record<string, unknown>>;

/** The server's responses, in order: a body, or the events of a stream. */
let answers: (Json | readonly Json[])[] = [];
let bodies: Json[] = [];

const provider = playProvider((sent) => {
  bodies.push(sent as Json);
  const answer = answers.shift();
  if (answer === undefined) {
    return { status: 400, body: '{"error":{"message":"no answer is left"}}' };
  }
  if (!Array.isArray(answer)) return { body: JSON.stringify(answer) };
  const events = answer as readonly Json[];
  return {
    type: "text/event-stream",
    body: events.map((event) => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`),
  };
});

/** Sets the model's responses in the next loop. */
function script(...list: (Json | readonly Json[])[]): void {
  answers = list;
  bodies = [];
}

/** Reads a stream to its end. Returns its run and its events. */
async function drain<Message, Response, Event>(
  events: AsyncIterable<ToolRunEvent<Message, Response, Event>>,
): Promise<{ run: ToolRun<Message, Response>; types: string[]; events: Event[] }> {
  const types: string[] = [];
  const seen: Event[] = [];
  let run: ToolRun<Message, Response> | undefined;
  for await (const event of events) {
    types.push(event.type);
    if (event.type === "event") seen.push(event.event);
    if (event.type === "run") run = event.run;
  }
  assert(run !== undefined);
  return { run, types: types.filter((type) => type !== "event"), events: seen };
}

/** The received JSON. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

describe("a loop over OpenAI Chat", () => {
  const client = (): OpenAI => new OpenAI({ apiKey: "k", baseURL: provider.url, maxRetries: 0 });
  const calls = [["c1", '{"a":1,"b":2}'], ["c2", '{"a":1}']].map(([id, text]) => ({
    id,
    type: "function",
    function: { name: "math__add", arguments: text },
  }));
  const completion = (message: Json, finish_reason: string): Json => ({
    id: "x",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }],
  });
  const chunk = (delta: Json, finish_reason: string | null = null): Json => ({
    id: "x",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
  });
  const calling = { content: "I add.", tool_calls: calls };
  const asking = [
    chunk({ role: "assistant", content: "I " }),
    chunk({ content: "add." }),
    ...calls.flatMap((call, index) => [
      chunk({ tool_calls: [{ index, ...call, function: { name: "math__add", arguments: "" } }] }),
      ...[call.function.arguments?.slice(0, 4), call.function.arguments?.slice(4)].map((text) =>
        chunk({ tool_calls: [{ index, function: { arguments: text } }] })
      ),
    ]),
    chunk({}, "tool_calls"),
    { ...chunk({}), choices: [], usage: { total_tokens: 9 } },
  ];
  const request = { model: "m", messages: [{ role: "user" as const, content: "1 + 2?" }] };
  const options = { target: "openai.chat", tools, dispatcher } as const;

  function check(run: ToolRun<OpenAI.ChatCompletionMessageParam>): void {
    assertEquals(run.stop, "answer");
    const [question, reply, first, second, last] = run.messages;
    assertEquals(question, request.messages[0]);
    assertEquals(plain(reply), { role: "assistant", ...calling });
    assertEquals<unknown>(first, { role: "tool", tool_call_id: "c1", content: '{"sum":3}' });
    assertStringIncludes(
      String(second?.content),
      'Error (invalid_arguments): Cannot call "math__add": ',
    );
    assertEquals(last?.content, "3");
    // The next request contained the appended messages.
    assertEquals(bodies[1]?.["messages"], plain(run.messages.slice(0, 4)));
    assertEquals((bodies[1]?.["tools"] as unknown[]).length, 1);
  }

  it("runs the calls until the model answers", async () => {
    script(completion(calling, "tool_calls"), completion({ content: "3" }, "stop"));
    const run = await runTools(client(), request, options);
    check(run);
    // The response has the client's own type.
    assertEquals(run.response?.choices[0]?.finish_reason, "stop");
    assertEquals(bodies[0]?.["stream"], undefined);
  });

  it("does the same while it streams", async () => {
    script(asking, [chunk({ role: "assistant", content: "3", refusal: null }), chunk({}, "stop")]);
    const { run, types, events } = await drain(streamTools(client(), request, options));
    check(run);
    assertEquals(types, ["message", "result", "result", "message", "message", "message", "run"]);
    assertEquals(events[1]?.choices[0]?.delta.content, "add.");
    assertEquals(bodies[0]?.["stream"], true);
    assertEquals(run.response?.choices[0]?.finish_reason, "stop");
  });

  it("retains additional parts of a stream", async () => {
    script([
      chunk({ role: "assistant", reasoning_content: "One " }),
      chunk({ reasoning_content: "and two.", thoughts: [1] }),
      chunk({ content: "3", thoughts: [2] }, "stop"),
    ]);
    const { run } = await drain(streamTools(client(), request, options));
    assertEquals<unknown>(run.messages[1], {
      role: "assistant",
      content: "3",
      reasoning_content: "One and two.",
      thoughts: [1, 2],
    });
  });

  it("stops at the maximum number of requests", async () => {
    const turn = completion(calling, "tool_calls");
    script(turn, turn, turn);
    const run = await runTools(client(), request, { ...options, maxTurns: 2 });
    assertEquals([run.stop, run.messages.length, bodies.length], ["turns", 7, 2]);
  });

  it("sends the tools of the request, too, and no empty list", async () => {
    const done = completion({ content: "3" }, "stop");
    script(done, done);
    const own = { type: "function" as const, function: { name: "own", parameters: {} } };
    await runTools(client(), { ...request, tools: [own] }, options);
    assertEquals((bodies[0]?.["tools"] as unknown[]).length, 2);
    await runTools(client(), request, { ...options, tools: [] });
    assertEquals(Object.hasOwn(bodies[1] ?? {}, "tools"), false);
  });

  it("rejects with the client's error, and when it is aborted", async () => {
    script();
    await assertRejects(
      () => runTools(client(), request, options),
      OpenAI.BadRequestError,
      "no answer is left",
    );
    const signal = AbortSignal.abort(new Error("enough"));
    await assertRejects(() => runTools(client(), request, { ...options, signal }), Error, "enough");
  });
});

describe("a loop over OpenAI Responses", () => {
  const client = (): OpenAI => new OpenAI({ apiKey: "k", baseURL: provider.url, maxRetries: 0 });
  const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" };
  const call = {
    type: "function_call",
    id: "fc_1",
    call_id: "c1",
    namespace: "math",
    name: "add",
    arguments: '{"a":1,"b":2}',
    status: "completed",
  };
  const text = {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "3", annotations: [] }],
  };
  const response = (...output: Json[]): Json => ({
    id: "r",
    object: "response",
    created_at: 1,
    model: "m",
    status: "completed",
    output,
  });
  const streamOf = (last: Json, ...output: Json[]): readonly Json[] => [
    { type: "response.created", response: response() },
    ...output.map((item, output_index) => ({
      type: "response.output_item.done",
      output_index,
      item,
    })),
    { type: "response.completed", response: last },
  ];
  const request = { model: "m", input: "1 + 2?", store: false };
  const options = { target: "openai.responses", tools, dispatcher } as const;
  const conversation = [
    { role: "user", content: "1 + 2?" },
    reasoning,
    call,
    { type: "function_call_output", call_id: "c1", output: '{"sum":3}' },
  ];

  it("runs the calls until the model answers", async () => {
    script(response(reasoning, call), response(text));
    const run = await runTools(client(), request, options);
    assertEquals([run.stop, run.response?.status], ["answer", "completed"]);
    assertEquals(plain(run.messages), [...conversation, text]);
    assertEquals(bodies[1]?.["input"], conversation);
    assertEquals(bodies[1]?.["store"], false);
  });

  it("does the same while it streams", async () => {
    // Some servers omit the items in the last event.
    for (const last of [response(reasoning, call), response()]) {
      script(streamOf(last, reasoning, call), streamOf(response(text), text));
      const { run, types } = await drain(streamTools(client(), request, options));
      assertEquals(plain(run.messages), [...conversation, text]);
      assertEquals(bodies[1]?.["input"], conversation);
      assertEquals(types, ["message", "message", "result", "message", "message", "run"]);
    }
  });

  it("rejects if the stream breaks off", async () => {
    script([{ type: "response.created", response: response() }]);
    await assertRejects(
      () => drain(streamTools(client(), request, options)),
      TypeError,
      "Cannot read the stream: the stream ended before the response was complete",
    );
  });
});

describe("a loop over Anthropic", () => {
  const client = (): Anthropic =>
    new Anthropic({ apiKey: "k", baseURL: provider.url, maxRetries: 0 });
  const thinking = { type: "thinking", thinking: "Add them.", signature: "sig" };
  const use = { type: "tool_use", id: "toolu_1", name: "math__add", input: { a: 1, b: 2 } };
  const text = { type: "text", text: "3", citations: null };
  const message = (stop_reason: string, ...content: Json[]): Json => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    stop_reason,
    stop_sequence: null,
    container: { id: "container_1", expires_at: "2026-11-22T00:00:00Z" },
    usage: { input_tokens: 1, output_tokens: 1 },
    content,
  });
  const block = (index: number, content_block: Json, ...deltas: Json[]): Json[] => [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
  const streamOf = (stop_reason: string, ...blocks: Json[]): readonly Json[] => [
    { type: "message_start", message: { ...message(stop_reason), stop_reason: null } },
    ...blocks,
    { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ];
  const asking = streamOf(
    "tool_use",
    ...block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Add " },
      { type: "thinking_delta", thinking: "them." },
      { type: "signature_delta", signature: "sig" },
    ),
    ...block(1, { type: "text", text: "" }),
    ...block(
      2,
      { ...use, input: {} },
      { type: "input_json_delta", partial_json: '{"a":1,' },
      { type: "input_json_delta", partial_json: '"b":2}' },
    ),
  );
  const request = {
    model: "m",
    max_tokens: 99,
    messages: [{ role: "user" as const, content: "1 + 2?" }],
  };
  const options = { target: "anthropic", tools, dispatcher } as const;
  const conversation = [
    request.messages[0],
    { role: "assistant", content: [thinking, use] },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_1", content: '{"sum":3}' }],
    },
  ];
  const answered = [...conversation, { role: "assistant", content: [text] }];

  it("runs the calls until the model answers", async () => {
    script(
      message("tool_use", thinking, { type: "text", text: "" }, use),
      message("end_turn", text),
    );
    const run = await runTools(client(), request, options);
    assertEquals([run.stop, run.response?.stop_reason], ["answer", "end_turn"]);
    assertEquals(plain(run.messages), answered);
    assertEquals(bodies[1]?.["messages"], conversation);
    assertEquals([bodies[0]?.["container"], bodies[1]?.["container"]], [undefined, "container_1"]);
  });

  it("does the same while it streams", async () => {
    script(
      asking,
      streamOf("end_turn", ...block(0, { ...text, text: "" }, { type: "text_delta", text: "3" })),
    );
    const { run } = await drain(streamTools(client(), request, options));
    assertEquals(plain(run.messages), answered);
    assertEquals(bodies[1]?.["messages"], conversation);
    assertEquals(run.response?.usage.output_tokens, 5);
    assertEquals(run.response?.stop_reason, "end_turn");
  });

  it("resumes a turn that the provider has paused", async () => {
    const search = { type: "server_tool_use", id: "s1", name: "web_search", input: {} };
    script(message("pause_turn", search), message("end_turn", text));
    const run = await runTools(client(), request, options);
    assertEquals(plain(run.messages), [
      request.messages[0],
      { role: "assistant", content: [search] },
      { role: "assistant", content: [text] },
    ]);
  });

  it("sends a result for a truncated call", async () => {
    script(
      streamOf(
        "max_tokens",
        ...block(0, { ...use, input: {} }, { type: "input_json_delta", partial_json: '{"a":1,' }),
      ),
      streamOf("end_turn", ...block(0, text)),
    );
    const { run } = await drain(streamTools(client(), request, options));
    assertEquals<unknown>(run.messages[1]?.content, [{ ...use, input: {} }]);
    assertStringIncludes(JSON.stringify(run.messages[2]), "its arguments are not JSON");
  });
});
