import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { sealedTickets } from "../../../src/adapters/calls/mod.ts";
import * as plue from "../../../src/adapters/frameworks/mod.ts";
import { runTools } from "../../../src/adapters/frameworks/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import type { ClientTarget } from "../../../src/adapters/frameworks/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { type Answers, defineTool, isSuspended, ToolResult } from "../../../src/tool/mod.ts";

interface Body {
  readonly model: string;
  readonly messages: readonly unknown[];
  readonly tools?: readonly unknown[];
}

/** A client that returns prepared responses and records requests. */
function clientOf(...replies: readonly object[]) {
  const bodies: Body[] = [];
  const left = [...replies];
  const create = (body: Body): Promise<object> => {
    bodies.push(body);
    const next = left.shift();
    return next === undefined ? Promise.reject(new Error("no reply")) : Promise.resolve(next);
  };
  return { bodies, messages: { create } };
}

const uses = (...names: readonly string[]): object => ({
  content: names.map((name, index) => ({ type: "tool_use", id: `t${index}`, name, input: {} })),
});
const done = { content: [{ type: "text", text: "Done." }] };
const request = { model: "m", messages: [{ role: "user", content: "Go." }] };
const runs: string[] = [];
const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
const launch = defineTool({
  namespace: "rocket",
  name: "launch",
  description: "Launches.",
  requiresApproval: true,
  execute: () => {
    runs.push("launch");
    return "launched";
  },
});
const tools = buildToolset([ping, launch]);
const tickets = sealedTickets({ keys: [new Uint8Array(32).fill(7)] });
/** The options of a loop. Each call represents another process, with its own dispatcher. */
const optionsFor = (toolset = tools) => {
  const engine = typeboxEngine();
  const dispatcher = new ToolDispatcher(toolset, { engine, approve: "ask", tickets });
  return { target: "anthropic", tools: toolset, dispatcher } as const;
};
const CHAT = { target: "openai.chat" } as const;

describe("runTools()", () => {
  it("stops at a suspended call, and resumes from JSON in another process", async () => {
    runs.length = 0;
    const context = { principal: "ann" };
    const client = clientOf(uses("ping", "rocket__launch"));
    const first = await runTools(client, request, { ...optionsFor(), context });
    assertEquals([first.stop, runs.length, first.messages.length], ["suspended", 0, 2]);
    assert(first.suspended !== undefined);
    const kept = JSON.parse(JSON.stringify(first)) as plue.ToolRun<never> & {
      readonly suspended: plue.SuspendedTurn;
    };
    const [, waiting] = kept.suspended.results;
    assert(waiting !== undefined && isSuspended(waiting));
    const again = { ...optionsFor(), context, suspended: kept.suspended };
    const following = { ...request, messages: kept.messages };
    const goOn = (more: object, ...replies: readonly object[]) =>
      runTools(clientOf(...replies), following, { ...again, ...more });

    // Without an answer the call stays suspended, and no request is sent.
    const still = await goOn({});
    assertEquals([still.stop, still.response, runs.length], ["suspended", undefined, 0]);

    const [question] = waiting.questions;
    const answers: Answers = { [question?.key ?? ""]: { action: "accept" } };
    const last = await goOn({ answers: { t1: answers } }, done);
    assertEquals([last.stop, runs], ["answer", ["launch"]]);
    assertEquals<readonly unknown[]>(last.messages.slice(2), [
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t0", content: "pong" },
          { type: "tool_result", tool_use_id: "t1", content: "launched" },
        ],
      },
      { role: "assistant", content: done.content },
    ]);
  });

  it("sends the settings, and has the model call a tool in the first request only", async () => {
    const client = clientOf(uses("ping"), done);
    const options = { toolChoice: { tool: "ping" }, parallel: false } as const;
    await runTools(client, request, { ...optionsFor(), options });
    assertEquals<unknown>(client.bodies.map((body) => Object(body).tool_choice), [
      { type: "tool", name: "ping", disable_parallel_tool_use: true },
      { type: "auto", disable_parallel_tool_use: true },
    ]);
  });

  it("reports files in results that the target does not support", async () => {
    const block = { type: "audio", data: "UklGRiQ=", mimeType: "audio/wav" } as const;
    const execute = () => ToolResult.blocks([block]);
    const speaks = buildToolset([defineTool({ name: "speak", description: "Speaks.", execute })]);
    const run = await runTools(clientOf(uses("speak"), done), request, optionsFor(speaks));
    assertEquals(run.losses?.map(({ path, mimeType }) => [path, mimeType]), [
      ["/content/0", "audio/wav"],
    ]);
  });

  it("lists the tools before each request", async () => {
    let up = true;
    const changing = buildToolset([
      ping,
      defineTool({ name: "once", description: "Once.", isAvailable: () => up }),
    ]);
    const client = clientOf(uses("ping"), done);
    const create = client.messages.create;
    client.messages.create = (body) => {
      up = client.bodies.length > 0 ? up : false;
      return create(body);
    };
    await runTools(client, request, optionsFor(changing));
    assertEquals(client.bodies.map((body) => body.tools?.length), [2, 1]);
  });

  it("changes neither the request nor its messages", async () => {
    const messages = Object.freeze([Object.freeze({ role: "user", content: "Go." })]);
    const client = clientOf(uses("ping"), done);
    await runTools(client, Object.freeze({ model: "m", messages }), optionsFor());
    assertEquals(client.bodies.map((body) => body.messages.length), [1, 3]);
  });

  it("aborts the calls with its signal", async () => {
    const controller = new AbortController();
    let aborted = false;
    const slow = buildToolset([
      defineTool({
        name: "slow",
        description: "Waits.",
        execute: async (_params, { signal }) => {
          controller.abort(new Error("enough"));
          aborted = signal.aborted;
          await Promise.resolve();
        },
      }),
    ]);
    const { signal } = controller;
    const run = runTools(clientOf(uses("slow")), request, { ...optionsFor(slow), signal });
    await assertRejects(() => run, Error, "enough");
    assertEquals(aborted, true);
  });

  it("rejects invalid options, clients and requests with a reason", async () => {
    const right = optionsFor();
    const rows: readonly (readonly [unknown, unknown, unknown, string])[] = [
      [clientOf(), request, { ...right, dispatcher: undefined }, "dispatcher must be a"],
      [clientOf(), request, { ...right, maxTurn: 1 }, 'did you mean "maxTurns"?'],
      [clientOf(), request, { ...right, maxTurns: 0 }, "maxTurns"],
      [clientOf(), request, { ...right, target: "cohere" }, 'target must be one of "anthropic", '],
      [clientOf(), request, { ...right, target: "toString" }, "the option target must be one of"],
      [clientOf(), request, { ...right, target: "openai" }, "chat.completions.create"],
      [{}, request, right, "the client must have the function messages.create"],
      [clientOf(), { model: "m" }, right, "the request's messages must be a list"],
      [clientOf(), { ...request, conversation: "c" }, right, 'must not have "conversation"'],
      [clientOf(), undefined, right, "the request's messages must be a list"],
      [clientOf(), request, undefined, "target"],
    ];
    for (const [client, body, settings, words] of rows) {
      const error = await runTools(
        client as ReturnType<typeof clientOf>,
        body as typeof request,
        settings as plue.RunToolsOptions<"anthropic">,
      ).then(() => undefined, (error: unknown) => error);
      assert(error instanceof TypeError || error instanceof RangeError, words);
      assertStringIncludes(error.message, words);
    }
  });

  it("rejects a chat response without a choice", async () => {
    const create = (_body: Body) => Promise.resolve({ choices: [] });
    const run = runTools({ chat: { completions: { create } } }, request, {
      ...optionsFor(),
      ...CHAT,
    });
    const message = 'Cannot read the response: "/choices" must have a choice';
    await assertRejects(() => run, TypeError, message);
  });

  it("throws for a tool that cannot be sent", async () => {
    const create = (_body: Body) => Promise.resolve({ choices: [] });
    const many = Array.from(
      { length: 129 },
      (_, at) => defineTool({ name: `t${at}`, description: "One." }),
    );
    const settings = { ...optionsFor(), ...CHAT, tools: many };
    const run = runTools({ chat: { completions: { create } } }, request, settings);
    await assertRejects(() => run, TypeError, 'Cannot export "t');
  });
});

describe("streamTools()", () => {
  it("ends the request when its reader stops", async () => {
    let closed = false;
    async function* events() {
      try {
        yield { type: "message_start", message: {} };
        yield { type: "message_stop" };
      } finally {
        closed = true;
      }
    }
    const client = { messages: { create: (_body: Body) => Promise.resolve(events()) } };
    for await (const event of plue.streamTools(client, request, optionsFor())) {
      assertEquals(event.type, "event");
      break;
    }
    assertEquals(closed, true);
  });

  it("rejects a truncated stream", async () => {
    const hello = { choices: [{ index: 0, delta: { content: "hel" }, finish_reason: null }] };
    const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    const read = async (...chunks: readonly object[]): Promise<unknown> => {
      async function* events() {
        yield* chunks;
      }
      const create = (_body: Body) => Promise.resolve(events());
      const client = { chat: { completions: { create } } };
      for await (const event of plue.streamTools(client, request, { ...optionsFor(), ...CHAT })) {
        if (event.type === "run") return event.run.messages.at(-1);
      }
      return undefined;
    };
    assertEquals(await read(hello, end), { role: "assistant", content: "hel" });
    for (const chunks of [[hello], []]) {
      const message = "ended before the response was complete";
      await assertRejects(() => read(...chunks), TypeError, message);
    }
  });

  it("supports every target with a client", async () => {
    const targets: readonly ClientTarget[] = [
      "openai",
      "openai.chat",
      "openai.responses",
      "anthropic",
    ]
      .flatMap((name) => [name, `${name}.strict`] as ClientTarget[]);
    const choices = [{ message: { role: "assistant", content: "Hello." } }];
    const create = (body: Body) =>
      Promise.resolve({ choices, candidates: [], output: [], content: [], body });
    const client = {
      chat: { completions: { create }, complete: create },
      responses: { create },
      messages: { create },
      models: { generateContent: create },
      converse: () => Promise.resolve({ output: { message: { content: [] } } }),
    };
    const body = { model: "m", messages: [], input: [], contents: [] };
    const others = ["gemini", "gemini.typed", "vertex", "bedrock", "bedrock.strict", "mistral"];
    for (const target of [...targets, ...others as ClientTarget[]]) {
      const { stop } = await runTools(client, body, { ...optionsFor(), target });
      assertEquals(stop, "answer");
    }
  });
});
