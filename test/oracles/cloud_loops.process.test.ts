/** Whole loops through the clients of Gemini, Bedrock and Mistral, streamed or not. */

import { BedrockRuntime, BedrockRuntimeClient } from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import { Mistral } from "@mistralai/mistralai";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { crc32 } from "node:zlib";
import { memoryCallStore, storedTickets } from "../../src/adapters/calls/mod.ts";
import { runTools, streamTools, type ToolRun } from "../../src/adapters/frameworks/mod.ts";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { defineTool } from "../../src/tool/mod.ts";
import { add, playProvider } from "./provider.ts";

type Json = Readonly<Record<string, unknown>>;

const launch = defineTool({
  name: "launch",
  description: "Launches.",
  requiresApproval: true,
  execute: () => "launched",
});
const tools = buildToolset([add, launch]);
const dispatcher = new ToolDispatcher(tools, {
  engine: typeboxEngine(),
  approve: "ask",
  tickets: storedTickets(memoryCallStore()),
});

/** The server's responses, in order: a body, or the events of a stream. */
let answers: (Json | readonly Json[])[] = [];
let bodies: Json[] = [];

const provider = playProvider((sent) => {
  bodies.push(sent as Json);
  const answer = answers.shift();
  if (answer === undefined) return { status: 400, body: '{"message":"no answer is left"}' };
  if (!Array.isArray(answer)) return { body: JSON.stringify(answer) };
  const events = answer as readonly Json[];
  if ("name" in (events[0] ?? {})) {
    return { type: "application/vnd.amazon.eventstream", body: events.map(awsEvent) };
  }
  return {
    type: "text/event-stream",
    body: events.map((event) => `data: ${JSON.stringify(event)}\n\n`),
  };
});

/** Sets the model's responses in the next loop. */
function script(...list: (Json | readonly Json[])[]): void {
  answers = list;
  bodies = [];
}

/** Encodes an event of Bedrock's streams, with the two headers that its client reads. */
function awsEvent({ name, ...payload }: Json): Uint8Array {
  const headers = [[":message-type", "event"], [":event-type", String(name)]].map(([key, text]) => {
    const value = Buffer.from(text ?? "");
    const head = Buffer.from([(key ?? "").length, ...Buffer.from(key ?? ""), 7, 0, value.length]);
    return Buffer.concat([head, value]);
  });
  const parts = [...headers, Buffer.from(JSON.stringify(payload))];
  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  const lengths = [number(16 + Buffer.concat(parts).length), number(Buffer.concat(headers).length)];
  const all = Buffer.concat([...lengths, number(crc32(Buffer.concat(lengths))), ...parts]);
  return Buffer.concat([all, number(crc32(all))]);
}

/** The received JSON, without the text of the failure and the fields that Mistral's client adds. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value),
    (key, value) =>
      key === "index" || key === "prefix" || value === null
        ? undefined
        : typeof value === "string" && value.includes('Cannot call "math')
        ? "wrong"
        : value,
  );
}

const ARGUMENTS = [["c1", { a: 1, b: 2 }], ["c2", { a: 1 }]] as const;

interface Cloud {
  run(signal?: AbortSignal, more?: object): Promise<ToolRun>;
  stream(): AsyncIterable<
    { readonly type: string; readonly event?: unknown; readonly run?: ToolRun }
  >;
  /** The model's response with two calls of `add`, of which the second is invalid. */
  readonly asking: Json;
  readonly askingStream: readonly Json[];
  /** The response with a call of `launch`. */
  readonly launching: Json;
  readonly done: Json;
  readonly doneStream: readonly Json[];
  /** The conversation of the second request: the question, the calls and their results. */
  readonly conversation: readonly unknown[];
  /** Returns the conversation and the tools of a request. */
  readonly sent: (body: Json) => { readonly messages: unknown; readonly tools: unknown };
  /** The last message, with the client's names. */
  readonly last: unknown;
}

const options = { tools, dispatcher } as const;

function gemini(): Cloud {
  const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: provider.url } });
  const request = { model: "m", contents: "1 + 2?", config: { temperature: 0 } };
  const calls = ARGUMENTS.map(([id, args]) => ({ functionCall: { id, name: "math.add", args } }));
  const signed = { ...calls[0], thoughtSignature: "c2ln" };
  const parts = [{ text: "I add.", thought: true }, signed, calls[1]];
  const answer = (list: readonly unknown[], finishReason?: string): Json => ({
    candidates: [{ content: { role: "model", parts: list }, finishReason, index: 0 }],
  });
  return {
    run: (signal, more) =>
      runTools(client, request, { ...options, target: "gemini", ...signal && { signal }, ...more }),
    stream: () => streamTools(client, request, { ...options, target: "gemini" }),
    asking: answer(parts, "STOP"),
    askingStream: [answer([parts[0]]), answer(parts.slice(1)), answer([], "STOP")],
    launching: answer([{ functionCall: { id: "c1", name: "launch", args: {} } }], "STOP"),
    done: answer([{ text: "3" }], "STOP"),
    doneStream: [answer([{ text: "3" }], "STOP")],
    conversation: [
      { role: "user", parts: [{ text: "1 + 2?" }] },
      { role: "model", parts },
      {
        role: "user",
        parts: [["c1", { output: { sum: 3 } }], ["c2", { error: "wrong" }]].map((
          [id, response],
        ) => ({ functionResponse: { id, name: "math.add", response } })),
      },
    ],
    last: { role: "model", parts: [{ text: "3" }] },
    sent: ({ contents, tools }) => ({
      messages: contents,
      tools: (tools as readonly Json[])[0]?.["functionDeclarations"],
    }),
  };
}

function bedrock(): Cloud {
  const client = new BedrockRuntime({
    region: "us-east-1",
    endpoint: provider.url,
    maxAttempts: 1,
    credentials: { accessKeyId: "k", secretAccessKey: "s" },
    requestHandler: new NodeHttpHandler(),
  });
  const messages = [{ role: "user" as const, content: [{ text: "1 + 2?" }] }];
  const request = { modelId: "m", messages };
  const thought = { reasoningContent: { reasoningText: { text: "Add them.", signature: "sig" } } };
  const uses = ARGUMENTS.map(([toolUseId, input]) => ({
    toolUse: { toolUseId, name: "math__add", input },
  }));
  const answer = (stopReason: string, ...content: readonly unknown[]): Json => ({
    output: { message: { role: "assistant", content } },
    stopReason,
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
    metrics: { latencyMs: 1 },
  });
  const delta = (contentBlockIndex: number, part: Json): Json => ({
    name: "contentBlockDelta",
    contentBlockIndex,
    delta: part,
  });
  const end = (stopReason: string): readonly Json[] => [
    { name: "messageStop", stopReason },
    { name: "metadata", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } },
  ];
  const block = (
    index: number,
    toolUseId: string,
    ...texts: readonly string[]
  ): readonly Json[] => [
    {
      name: "contentBlockStart",
      contentBlockIndex: index,
      start: { toolUse: { toolUseId, name: "math__add" } },
    },
    ...texts.map((input) => delta(index, { toolUse: { input } })),
    { name: "contentBlockStop", contentBlockIndex: index },
  ];
  return {
    run: (signal, more) =>
      runTools(client, request, {
        ...options,
        target: "bedrock",
        ...signal && { signal },
        ...more,
      }),
    stream: () => streamTools(client, request, { ...options, target: "bedrock" }),
    asking: answer("tool_use", thought, { text: "" }, ...uses),
    askingStream: [
      { name: "messageStart", role: "assistant" },
      delta(0, { reasoningContent: { text: "Add " } }),
      delta(0, { reasoningContent: { text: "them." } }),
      delta(0, { reasoningContent: { signature: "sig" } }),
      ...block(1, "c1", '{"a":1,', '"b":2}'),
      ...block(2, "c2", '{"a":1}'),
      ...end("tool_use"),
    ],
    launching: answer("tool_use", { toolUse: { toolUseId: "c1", name: "launch", input: {} } }),
    done: answer("end_turn", { text: "3" }),
    doneStream: [delta(0, { text: "3" }), ...end("end_turn")],
    conversation: [
      ...messages,
      { role: "assistant", content: [thought, ...uses] },
      {
        role: "user",
        content: [
          { toolResult: { toolUseId: "c1", content: [{ json: { sum: 3 } }], status: "success" } },
          { toolResult: { toolUseId: "c2", content: [{ text: "wrong" }], status: "error" } },
        ],
      },
    ],
    last: { role: "assistant", content: [{ text: "3" }] },
    sent: ({ messages, toolConfig }) => ({
      messages,
      tools: (toolConfig as Json | undefined)?.["tools"],
    }),
  };
}

function mistral(): Cloud {
  const client = new Mistral({
    apiKey: "k",
    serverURL: provider.url,
    retryConfig: { strategy: "none" },
  });
  const messages = [{ role: "user" as const, content: "1 + 2?" }];
  const request = { model: "m", messages };
  const calls = ARGUMENTS.map(([id, input]) => ({
    id,
    type: "function",
    function: { name: "math__add", arguments: JSON.stringify(input) },
  }));
  const thought = { type: "thinking", thinking: [{ type: "text", text: "Add." }] };
  const envelope = { id: "x", object: "chat.completion", created: 1, model: "m" };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const answer = (message: Json, finish_reason = "stop"): Json => ({
    ...{ ...envelope, usage },
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }],
  });
  const chunk = (delta: Json, finish_reason: string | null = null): Json => ({
    ...envelope,
    choices: [{ index: 0, delta, finish_reason }],
  });
  const content = [thought, { type: "text", text: "I add." }];
  const tool_calls = calls.map((call, index) => ({ ...call, index }));
  return {
    run: (signal, more) =>
      runTools(client, request, {
        ...options,
        target: "mistral",
        ...signal && { signal },
        ...more,
      }),
    stream: () => streamTools(client, request, { ...options, target: "mistral" }),
    asking: answer({ content, tool_calls }, "tool_calls"),
    askingStream: [
      chunk({ role: "assistant", content: [thought] }),
      chunk({ content: "I add." }),
      chunk({ tool_calls }),
      chunk({ content: "" }, "tool_calls"),
    ],
    launching: answer({
      content: "",
      tool_calls: [{ id: "c1", function: { name: "launch", arguments: "{}" } }],
    }, "tool_calls"),
    done: answer({ content: "3" }),
    doneStream: [chunk({ role: "assistant", content: "3" }, "stop")],
    conversation: [
      ...messages,
      { role: "assistant", content, tool_calls: calls },
      { role: "tool", tool_call_id: "c1", name: "math__add", content: '{"sum":3}' },
      { role: "tool", tool_call_id: "c2", name: "math__add", content: "wrong" },
    ],
    last: { role: "assistant", content: "3" },
    sent: ({ messages, tools }) => ({ messages, tools }),
  };
}

for (const [name, make] of Object.entries({ Gemini: gemini, Bedrock: bedrock, Mistral: mistral })) {
  describe(`a loop over ${name}`, () => {
    const cloud = (): Cloud => make();

    function check(run: ToolRun | undefined, { conversation, last, sent }: Cloud): void {
      assertEquals(run?.stop, "answer");
      const { messages, tools } = sent(bodies[1] ?? {});
      assertEquals(plain(messages), conversation);
      assertEquals((tools as unknown[]).length, 2);
      assertEquals(plain(run?.messages.at(-1)), last);
      assertEquals(run?.messages.length, conversation.length + 1);
    }

    it("runs the calls of a response until the model answers", async () => {
      const one = cloud();
      script(one.asking, one.done);
      check(await one.run(), one);
    });

    it("does the same while it streams", async () => {
      const one = cloud();
      script(one.askingStream, one.doneStream);
      let run: ToolRun | undefined;
      let events = 0;
      for await (const event of one.stream()) {
        if (event.type === "event") events++;
        if (event.run !== undefined) run = event.run;
      }
      check(run, one);
      assert(events >= one.askingStream.length, `${events} events`);
    });

    it("stops at a call that needs approval, and resumes from JSON", async () => {
      const one = cloud();
      script(one.launching);
      const first = JSON.parse(JSON.stringify(await one.run())) as ToolRun;
      assertEquals(first.stop, "suspended");
      const [result] = first.suspended?.results ?? [];
      const [question] = result?.ok === false ? result.questions ?? [] : [];
      const answer = { [question?.key ?? ""]: { action: "accept" } };
      script(one.done);
      const more = { suspended: first.suspended, answers: { c1: answer } };
      const run = await one.run(undefined, more);
      assertEquals(run.stop, "answer");
      assertStringIncludes(JSON.stringify(one.sent(bodies[0] ?? {}).messages), "launched");
    });

    it("rejects with the client's error, with the signal's reason, and at a truncated stream", async () => {
      const one = cloud();
      script();
      await assertRejects(() => one.run(), Error, "no answer is left");
      const reason = new Error("enough");
      await assertRejects(() => one.run(AbortSignal.abort(reason)), Error, "enough");
      script(one.askingStream.slice(0, 2));
      await assertRejects(async () => {
        for await (const _ of one.stream());
      });
    });
  });
}

describe("a loop over Bedrock", () => {
  it("requires the client with a function for each operation", async () => {
    const client = new BedrockRuntimeClient({ region: "us-east-1" });
    await assertRejects(
      () => runTools(client, {} as never, { ...options, target: "bedrock" }),
      TypeError,
      "Cannot run the tools: the client must have the function converse",
    );
  });
});

/** The types follow from the clients. */
export function typesOf(
  clients: { gemini: GoogleGenAI; bedrock: BedrockRuntime; mistral: Mistral },
) {
  return {
    async gemini(): Promise<string | undefined> {
      const request = { model: "m", contents: "?" };
      const run = await runTools(clients.gemini, request, { ...options, target: "gemini" });
      await clients.gemini.models.generateContent({ model: "m", contents: run.messages });
      return run.response?.text;
    },
    async bedrock(): Promise<string | undefined> {
      const request = { modelId: "m", messages: [] };
      const run = await runTools(clients.bedrock, request, { ...options, target: "bedrock" });
      await clients.bedrock.converse({ modelId: "m", messages: run.messages });
      return run.response?.stopReason;
    },
    async mistral(): Promise<string | undefined> {
      const request = { model: "m", messages: [] };
      const run = await runTools(clients.mistral, request, { ...options, target: "mistral" });
      await clients.mistral.chat.complete({ model: "m", messages: run.messages });
      return run.response?.choices[0]?.finishReason;
    },
  };
}
