import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createToolHandler, serveFormats, type ToolHandlerOptions } from "@plue/tools/hono";
import { countTokens, fitBudget } from "@plue/tools/finding";
import * as formats from "@plue/tools/formats";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import { defineTool, ToolRegistry } from "@plue/tools";
import { BASE, execution, problemOf, sampleRegistry } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

const serve = (options: ToolHandlerOptions = {}, registry = sampleRegistry()) =>
  createToolHandler(registry, { formats: serveFormats(formats), openExecution: true, ...options });

interface Export {
  readonly target: string;
  readonly tools: readonly { readonly function: { readonly name: string } }[];
  readonly names: readonly { readonly id: string; readonly name: string }[];
  readonly losses?: readonly unknown[];
  readonly rejected: readonly unknown[];
}

describe("GET /tools?format=…&tokens=", () => {
  const fitting = createToolHandler(sampleRegistry(), {
    formats: serveFormats(formats, { fitBudget }),
  });
  const get = async (query: string): Promise<Response> =>
    await fitting.request(`${BASE}/tools?format=anthropic&${query}`);

  it("exports tools within the budget, and names the omitted ones", async () => {
    const body = await (await get("tokens=70")).json();
    assert(body.tokens <= 70 && body.tokens > 0);
    assertEquals(body.tokens, countTokens(JSON.stringify(body.tools)));
    assertEquals(body.shown.length, body.tools.length);
    assertEquals(
      body.shown.map(({ id }: { id: string }) => id),
      body.names.map(({ id }: { id: string }) => id),
    );
    assert(body.leftOut.every(({ reason }: { reason: string }) => reason === "budget"));
  });

  it("prefers what is searched for", async () => {
    const body = await (await get("tokens=4000&q=write+a+file")).json();
    assertEquals(body.shown[0].id, "file-write");
    assert(body.leftOut.some(({ reason }: { reason: string }) => reason === "query"));
  });

  it("chooses among the tools that the query selects", async () => {
    const query = "tokens=4000&q=write+a+file&toolChoice=";
    assertEquals((await (await get(`${query}file-write`)).json()).request, {
      tool_choice: { type: "tool", name: "file-write" },
    });
    const { detail } = await problemOf(await get(`${query}rm`));
    assertStringIncludes(detail, 'toolChoice names "rm"');
  });

  for (
    const [query, detail] of [
      ["tokens=1", "the smallest tool,"],
      ["tokens=0", 'Query parameter "tokens" is "0"'],
      ["tokens=10&limit=3&q=x", '"limit" does not go with "tokens"'],
    ] as const
  ) {
    it(`rejects ${query}`, async () => {
      const response = await get(query);
      assertEquals(response.status, 400);
      assertStringIncludes((await problemOf(response)).detail, detail);
    });
  }

  it("is rejected without a format, and without the option fitBudget", async () => {
    const detailOf = async (app: ReturnType<typeof serve>, query: string): Promise<string> =>
      (await problemOf(await app.request(`${BASE}/tools?${query}`))).detail;
    assertStringIncludes(await detailOf(fitting, "tokens=70"), '"tokens" goes with "format"');
    assertStringIncludes(
      await detailOf(serve(), "format=anthropic&tokens=70"),
      "the option fitBudget of serveFormats is not set",
    );
  });
});

describe("GET /tools?format=", () => {
  it("returns the caller's tools in a provider's shape, and their names there", async () => {
    const app = serve({ authorize: () => ({ role: "control" }) });
    const response = await app.request(`${BASE}/tools?format=openai.chat`);
    assertEquals(response.status, 200);
    const body = await response.json() as Export;
    assertEquals(body.target, "openai.chat");
    assertEquals(body.tools.map((tool) => tool.function.name), [
      "echo",
      "file-write",
      "plan",
      "rm",
      "task__approve",
    ]);
    assertEquals(body.names.at(-1), { id: "task:approve", name: "task__approve" });
    assertEquals([body.losses, body.rejected], [undefined, []]);
  });

  it("exports what is left by filters and by a search", async () => {
    const app = serve();
    for (const query of ["maxRisk=low&categories=system", "q=answers what it is given&limit=1"]) {
      const body = await (await app.request(`${BASE}/tools?format=openai.chat&${query}`))
        .json() as Export;
      assertEquals(body.names.map(({ id }) => id), ["echo"]);
    }
  });

  it("lists the losses on request", async () => {
    const registry = new ToolRegistry({
      tools: [
        defineTool({
          name: "pick",
          description: "Picks.",
          parameters: {
            type: "object",
            properties: { s: { type: "string", minLength: 2 } },
          },
        }),
      ],
    });
    const app = serve({}, registry);
    const ask = async (losses: string): Promise<Export> =>
      await (await app.request(`${BASE}/tools?format=openai.strict${losses}`)).json();
    const { losses = [] } = await ask("&losses=1");
    assert(losses.length > 0);
    assertEquals((await ask("&losses=0")).losses, undefined);
  });

  it("returns the fields of a request for the settings", async () => {
    const ask = async (query: string) =>
      await (await serve().request(`${BASE}/tools?format=${query}`)).json();
    assertEquals((await ask("openai.chat&toolChoice=required&parallel=false")).request, {
      tool_choice: "required",
      parallel_tool_calls: false,
    });
    assertEquals((await ask("anthropic&toolChoice=file-write")).request, {
      tool_choice: { type: "tool", name: "file-write" },
    });
    assertEquals("request" in await ask("openai.chat"), false);
    const { request, warnings } = await ask("gemini&toolChoice=auto&parallel=false");
    assertEquals(request, { toolConfig: { functionCallingConfig: { mode: "AUTO" } } });
    assert(warnings.some(({ rule }: { rule: string }) => rule === "parallel"));
  });

  it("answers from its memory, with an ETag", async () => {
    const app = serve();
    const url = `${BASE}/tools?format=anthropic`;
    const etag = (await app.request(url)).headers.get("etag") ?? "";
    const again = await app.request(url, { headers: { "if-none-match": etag } });
    assertEquals(again.status, 304);
  });

  for (
    const [query, words] of [
      ["format=openai.chats", 'Cannot find the target "openai.chats"'],
      ["format=constructor", "Cannot find the target"],
      ["format=openai.chat&cursor=x", '"cursor" does not go with'],
      ["format=openai.chat&limit=1", '"limit" does not go with'],
      ["format=openai.chat&losses=yes", "1 or 0"],
      ["losses=1", 'goes with "format"'],
      ["toolChoice=auto", 'goes with "format"'],
      ["format=openai.chat&toolChoice=a%20b", "auto, none, required or the id of a tool"],
      ["format=openai.chat&toolChoice=zzz", 'toolChoice names "zzz", which is not sent'],
      ["format=openai.chat&parallel=0", "true or false"],
    ] as const
  ) {
    it(`rejects ${query}`, async () => {
      const response = await serve().request(`${BASE}/tools?${query}`);
      assertEquals(response.status, 400);
      assertStringIncludes((await problemOf(response)).detail, words);
    });
  }

  it("fails without the option formats", async () => {
    const response = await createToolHandler(sampleRegistry())
      .request(`${BASE}/tools?format=openai.chat`);
    assertEquals(response.status, 400);
    assertStringIncludes((await problemOf(response)).detail, "option formats");
  });
});

interface TurnBody {
  readonly target: string;
  readonly messages: readonly unknown[];
  readonly calls: readonly {
    readonly callId: string;
    readonly name: string | null;
    readonly result: { readonly ok: boolean; readonly error?: { readonly code: string } };
  }[];
}

const chat = (...calls: readonly (readonly [id: string, name: string, args: unknown])[]) => ({
  role: "assistant",
  tool_calls: calls.map(([id, name, args]) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  })),
});

describe("POST /dispatch/:target", () => {
  const turn = (
    app: ReturnType<typeof serve>,
    body: unknown,
    path = "openai.chat",
    headers: Record<string, string> = {},
  ): Promise<Response> =>
    Promise.resolve(app.request(`${BASE}/dispatch/${path}`, execution(body, headers)));

  it("runs a provider's calls and returns the messages to send back, in their order", async () => {
    const response = await turn(
      serve(),
      chat(["1", "echo", { text: "hi" }], ["2", "nope", {}], ["3", "echo", { text: 5 }]),
    );
    assertEquals(response.status, 200);
    const { target, messages, calls } = await response.json() as TurnBody;
    assertEquals(target, "openai.chat");
    assertEquals(messages.length, 3);
    assertEquals(messages[0], { role: "tool", tool_call_id: "1", content: '{"text":"hi"}' });
    assertEquals(
      calls.map(({ callId, name, result }) => [callId, name, result.error?.code ?? result.ok]),
      [["1", "echo", true], ["2", null, "unknown_tool"], ["3", "echo", "invalid_arguments"]],
    );
  });

  it("runs only what the caller sees", async () => {
    const call = chat(["1", "task__approve", {}]);
    const impl = serve({ authorize: () => ({ role: "impl" }) });
    const hidden = await (await turn(impl, call)).json() as TurnBody;
    assertEquals(hidden.calls[0]?.result.error?.code, "unknown_tool");
    const control = serve({ authorize: () => ({ role: "control" }) });
    assertEquals(
      ((await (await turn(control, call)).json()) as TurnBody).calls[0]?.result.ok,
      true,
    );
  });

  it("runs only what the filters of the query leave", async () => {
    const call = chat(["1", "rm", {}]);
    const body = await (await turn(serve(), call, "openai.chat?maxRisk=low")).json() as TurnBody;
    assertEquals(body.calls[0]?.result.error?.code, "unknown_tool");
  });

  it("returns no messages for a turn without calls", async () => {
    const body = await (await turn(serve(), { role: "assistant", content: "Hello" }))
      .json() as TurnBody;
    assertEquals([body.messages, body.calls], [[], []]);
  });

  it("can be aborted by the id that it is given", async () => {
    const started = Promise.withResolvers<void>();
    const registry = new ToolRegistry({
      tools: [
        toolOf("wait", (_, { signal }) => {
          started.resolve();
          return new Promise((_resolve, reject) =>
            signal.addEventListener("abort", () => reject(signal.reason))
          );
        }),
      ],
    });
    const app = serve({}, registry);
    const answer = turn(app, chat(["1", "wait", {}]), "openai.chat", { "x-call-id": "turn-1" });
    await started.promise;
    const abort = await app.request(`${BASE}/executions/turn-1/abort`, { method: "POST" });
    assertEquals(abort.status, 202);
    const response = await answer;
    assertEquals(response.headers.get("x-call-id"), "turn-1");
    assertEquals(((await response.json()) as TurnBody).calls[0]?.result.error?.code, "aborted");
  });

  for (
    const [what, path, body, status] of [
      ["a target that is none", "openai.chats", {}, 400],
      ["a body that is not JSON", "openai.chat", '{"secret": "sesame', 400],
      ["a body of another shape", "anthropic", { content: 5, sesame: "sesame" }, 400],
      ["a search", "openai.chat?q=echo", {}, 400],
    ] as const
  ) {
    it(`rejects ${what}, and echoes nothing of it`, async () => {
      const response = await turn(serve(), body, path);
      assertEquals(response.status, status);
      assertEquals(JSON.stringify(await problemOf(response)).includes("sesame"), false);
    });
  }

  it("is closed with execution, and missing without formats", async () => {
    const closed = await turn(serve({ openExecution: false }), {});
    assertEquals((await problemOf(closed)).code, "execution_closed");
    const bare = createToolHandler(sampleRegistry(), { openExecution: true });
    assertEquals((await turn(bare, {})).status, 404);
  });
});

describe("POST /dispatch/:target with a turn that waits", () => {
  const app = createToolHandler(
    new ToolRegistry({
      tools: ["rm", "mv"].map((name) =>
        toolOf(name, () => `${name} is done`, { requiresApproval: true })
      ),
    }),
    {
      formats: serveFormats(formats),
      openExecution: true,
      dispatch: { approve: "ask", tickets: storedTickets(memoryCallStore()) },
    },
  );
  const post = async (body: unknown): Promise<{ status: number; body: Turn }> => {
    const response = await app.request(`${BASE}/dispatch/anthropic`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  interface Turn {
    readonly messages: readonly unknown[];
    readonly suspended?: readonly { readonly callId: string }[];
    readonly calls: readonly unknown[];
    readonly detail?: string;
    readonly pointer?: string;
  }
  const content = ["rm", "mv"].map((name) => ({ type: "tool_use", id: name, name, input: {} }));
  const answer = (action: string) => ({ "plue:approval": { action } });

  it("gives the messages that were missing, once the questions are answered", async () => {
    const { body: turn } = await post({ content });
    assertEquals([turn.messages, turn.suspended?.length], [[], 2]);
    const { body: half } = await post({ calls: turn.calls, answers: { rm: answer("accept") } });
    assertEquals(half.suspended?.map(({ callId }) => callId), ["mv"]);
    const { body: whole } = await post({ calls: half.calls, answers: { mv: answer("decline") } });
    assertEquals(whole.suspended, undefined);
    const [message] = whole.messages as readonly { readonly content: readonly unknown[] }[];
    assertEquals(message?.content.length, 2);
    assertStringIncludes(JSON.stringify(message), "rm is done");
    assertStringIncludes(JSON.stringify(message), "it was not approved");
  });

  it("rejects an invalid turn or invalid answers, and runs nothing", async () => {
    const { body: { calls } } = await post({ content });
    const wrong: [unknown, unknown, string, string][] = [
      [[{}], {}, "its calls must be the calls of the earlier response", "/calls/0"],
      [calls, { ls: answer("accept") }, "the turn has no call with that id", "/answers"],
      [calls, { rm: { other: { action: "accept" } } }, 'it has no question "other"', "/answers"],
      [calls, 5, "Cannot resume the turn", "/answers"],
    ];
    for (const [sent, answers, words, pointer] of wrong) {
      const { status, body } = await post({ calls: sent, answers });
      assertEquals([status, body.pointer], [400, pointer], words);
      assertStringIncludes(body.detail ?? "", words);
    }
    const { body } = await post({ calls, answers: { rm: answer("accept") } });
    assertEquals(body.suspended?.length, 1);
  });
});
