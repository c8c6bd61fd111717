import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  type AccessEntry,
  createToolHandler,
  serveFormats,
  type ToolHandlerOptions,
} from "@plue/tools/hono";
import { createToolBridge } from "@plue/tools/finding";
import * as formats from "@plue/tools/formats";
import { BASE, execute, execution, handler, idsOf, problemOf, sampleRegistry } from "./support.ts";
import { allEvents } from "./sse.ts";

const OWN = ["call_tool", "describe_tools", "search_tools"];

function bridged(options: ToolHandlerOptions = {}) {
  return handler({
    openExecution: true,
    bridge: createToolBridge,
    formats: serveFormats(formats),
    ...options,
  });
}

type App = ReturnType<typeof bridged>;

function call(
  app: App,
  name: string,
  args: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response | Promise<Response> {
  const path = `${BASE}/tools/${name}/execute?bridge=1`;
  return app.request(path, execution({ arguments: args }, headers));
}

describe("GET /tools?bridge=1", () => {
  it("lists the bridge's tools, whatever tools the query selects", async () => {
    const app = bridged();
    for (const query of ["", "&maxRisk=safe", "&tagsAny=nothing", "&role=control"]) {
      assertEquals(await idsOf(await app.request(`${BASE}/tools?bridge=1${query}`)), OWN);
    }
    assertEquals((await idsOf(await app.request(`${BASE}/tools?bridge=0`))).length, 4);
  });

  it("lists pinned tools that the caller sees next to the bridge's tools", async () => {
    const app = bridged({
      bridge: (toolset) => createToolBridge(toolset, { pinned: ["echo", "secrets"] }),
    });
    assertEquals(await idsOf(await app.request(`${BASE}/tools?bridge=1`)), [
      "call_tool",
      "describe_tools",
      "echo",
      "search_tools",
    ]);
  });

  it("exports the bridge, with what each provider loads", async () => {
    const app = bridged();
    const names = async (query: string): Promise<readonly unknown[]> => {
      const response = await app.request(`${BASE}/tools?bridge=1&format=${query}`);
      assertEquals(response.status, 200);
      const { names } = await response.json() as { names: readonly { readonly id: string }[] };
      return names.map(({ id }) => id);
    };
    assertEquals(await names("openai.chat"), OWN);
    const loaded = ["echo", "file-write", "plan", "rm", "search_tools"];
    assertEquals(await names("anthropic"), loaded);
    assertEquals(await names("openai.responses&maxRisk=safe"), ["echo", "plan", "search_tools"]);
  });

  it("has the same ETag while tools come and go", async () => {
    const registry = sampleRegistry();
    const app = createToolHandler(registry, { bridge: createToolBridge });
    const tag = async (): Promise<string | null> =>
      (await app.request(`${BASE}/tools?bridge=1`)).headers.get("etag");
    const before = await tag();
    registry.registerTool({ name: "new", description: "Is new." });
    assertEquals(await tag(), before);
    assert(before !== null);
  });

  for (
    const [query, detail] of [
      ["bridge=1&q=file", '"q" does not go with "bridge"'],
      ["bridge=1&format=anthropic&tokens=100", '"tokens" does not go with "bridge"'],
      ["bridge=yes", '"bridge" is "yes", and must be 1 or 0'],
      ["bridge=1&bridge=1", '"bridge" is given twice'],
    ] as const
  ) {
    it(`rejects ${query}`, async () => {
      const problem = await problemOf(await bridged().request(`${BASE}/tools?${query}`));
      assertEquals(problem.status, 400);
      assertStringIncludes(problem.detail, detail);
    });
  }

  it("fails if the option bridge is not set", async () => {
    const app = handler({ openExecution: true, formats: serveFormats(formats) });
    for (
      const response of [
        app.request(`${BASE}/tools?bridge=1`),
        app.request(`${BASE}/tools/echo/execute?bridge=1`, execution({})),
        app.request(`${BASE}/dispatch/anthropic?bridge=1`, execution([])),
      ]
    ) {
      const { status, detail } = await problemOf(await response);
      assertEquals(status, 400);
      assertEquals(detail, "This server has no bridge: the option bridge is not set");
    }
  });
});

describe("an owner's function that makes the bridge", () => {
  it("is called once for callers who see the same", async () => {
    let made = 0;
    const app = bridged({
      authorize: () => ({ role: "control" }),
      bridge: (toolset) => {
        made++;
        return createToolBridge(toolset);
      },
    });
    for (let n = 0; n < 3; n++) await app.request(`${BASE}/tools?bridge=1&limit=${n + 1}`);
    assertEquals(made, 1);
  });

  it("must give the bridge to the caller's tools, and to no others", async () => {
    const errors: string[] = [];
    const everything = createToolBridge(sampleRegistry().select());
    for (const made of [everything, sampleRegistry().select()]) {
      const app = bridged({
        bridge: () => made,
        onError: (error) => errors.push((error as Error).message),
      });
      assertEquals((await call(app, "search_tools", { query: "secrets" })).status, 500);
    }
    const message = "the function must return the bridge to its toolset";
    assertEquals(errors, Array(2).fill(`Cannot make a bridge: ${message}`));
  });
});

describe("POST /tools/:id/execute?bridge=1", () => {
  it("finds, describes and calls what the caller sees", async () => {
    const app = bridged();
    const content = async (name: string, args: unknown): Promise<unknown> =>
      (await (await call(app, name, args)).json() as { content: unknown }).content;
    assertEquals(await content("search_tools", { query: "answer what is given" }), {
      tools: ["echo({ text: string }): Answers what it is given."],
    });
    assertEquals(
      (await content("describe_tools", { names: ["echo"] }) as { tools: unknown[] }).tools.length,
      1,
    );
    const args = { name: "echo", arguments: { text: "hi" } };
    assertEquals(await content("call_tool", args), { text: "hi" });
    assertEquals(await content("echo", { text: "hi" }), { text: "hi" });
  });

  it("returns the same failure for hidden and for unknown tools", async () => {
    const app = bridged();
    for (const name of ["secrets", "task:approve", "nothing"]) {
      const { status, code, detail } = await problemOf(await call(app, "call_tool", { name }));
      assertEquals([status, code], [404, "unknown_tool"]);
      assertEquals(detail, `Cannot call "${name}": there is no such tool`);
      const described = await (await call(app, "describe_tools", { names: [name] })).json();
      assertEquals(described.content.missing, [`There is no tool "${name}"`]);
    }
    const near = await problemOf(await call(app, "call_tool", { name: "ehco" }));
    assertStringIncludes(near.detail, 'Did you mean "echo"?');
  });

  it("shows each caller what is the caller's", async () => {
    const app = bridged({
      authorize: (request) => ({ role: request.headers.get("x-role") ?? undefined }),
    });
    const found = async (role: string): Promise<string> => {
      const response = await call(app, "search_tools", { query: "approve a task" }, {
        "x-role": role,
      });
      return JSON.stringify((await response.json()).content.tools);
    };
    assertStringIncludes(await found("control"), "task:approve");
    assertEquals(await found("other"), "[]");
    const args = { name: "task:approve" };
    assertEquals((await call(app, "call_tool", args, { "x-role": "control" })).status, 200);
    assertEquals((await call(app, "call_tool", args, { "x-role": "other" })).status, 404);
  });

  it("keeps to the query's one parameter", async () => {
    const app = bridged();
    for (
      const [query, detail] of [
        ["maxRisk=low", '"maxRisk" is unknown: known are bridge'],
        ["bridge=1&bridge=1", '"bridge" is given twice'],
        ["bridge=2", '"bridge" is "2"'],
      ] as const
    ) {
      const problem = await problemOf(
        await app.request(`${BASE}/tools/echo/execute?${query}`, execution({})),
      );
      assertEquals(problem.status, 400);
      assertStringIncludes(problem.detail, detail);
    }
  });

  it("approves, deduplicates, counts and logs calls under the tool's name", async () => {
    const registry = sampleRegistry();
    let runs = 0;
    registry.registerTool({
      name: "deploy",
      description: "Deploys.",
      requiresApproval: true,
      execute: () => ++runs,
    });
    const asked: string[] = [];
    const entries: AccessEntry[] = [];
    const app = createToolHandler(registry, {
      openExecution: true,
      bridge: createToolBridge,
      dispatch: {
        approve: ({ tool }) => {
          asked.push(tool.id);
          return true;
        },
      },
      observe: { access: (entry) => void entries.push(entry) },
    });
    const key = { "idempotency-key": "k1" };
    const through = await (await call(app, "call_tool", { name: "deploy" }, key)).json();
    const direct = await (await execute(app, "deploy", { arguments: {} }, key)).json();
    assertEquals([through.content, direct.content, direct.replayed], [1, 1, true]);
    assertEquals(asked, ["deploy"]);
    const { tools } = await (await app.request(`${BASE}/metrics`)).json();
    assertEquals(tools.map(({ id, calls }: { id: string; calls: number }) => [id, calls]), [
      ["deploy", 2],
    ]);
    const calls = entries.flatMap(({ calls = [] }) => calls.map(({ toolId }) => toolId));
    assertEquals(calls, ["deploy", "deploy"]);
  });

  it("applies the host's policies and limits", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => release = resolve);
    const registry = sampleRegistry();
    registry.registerTool({ name: "hold", description: "Holds.", execute: () => held });
    const app = createToolHandler(registry, {
      openExecution: true,
      bridge: createToolBridge,
      selection: { policies: [{ name: "no rm", allow: (tool) => tool?.id !== "rm" }] },
      dispatch: { limits: { maxConcurrentPerTool: 1, maxQueued: 0 } },
    });
    assertEquals((await call(app, "call_tool", { name: "rm" })).status, 404);
    const [first, second] = [1, 2].map(() => call(app, "call_tool", { name: "hold" }));
    const { status, detail } = await problemOf(await second as Response);
    assertEquals(status, 503);
    assertStringIncludes(detail, 'Cannot call "hold"');
    release();
    assertEquals((await first)?.status, 200);
  });

  it("streams the events of the tool", async () => {
    const app = bridged();
    const args = { name: "echo", arguments: { text: "hi" } };
    const response = await call(app, "call_tool", args, { accept: "text/event-stream" });
    const events = await allEvents(response);
    assertEquals(events.map(({ event }) => event), ["result"]);
    // An unknown tool is a status, not a stream.
    const unknown = await call(app, "call_tool", { name: "none" }, { accept: "text/event-stream" });
    assertEquals(unknown.status, 404);
    await unknown.body?.cancel();
  });
});

describe("POST /dispatch/:target?bridge=1", () => {
  it("runs a turn with the names of the bridge's export", async () => {
    const app = bridged();
    const turn = async (target: string, response: unknown): Promise<{
      readonly messages: readonly unknown[];
      readonly calls: readonly {
        readonly name: string;
        readonly result: { readonly ok: boolean };
      }[];
    }> => {
      const answer = await app.request(`${BASE}/dispatch/${target}?bridge=1`, execution(response));
      assertEquals(answer.status, 200);
      return await answer.json();
    };
    const chat = (name: string, args: unknown) => ({
      id: "c",
      type: "function",
      function: { name, arguments: JSON.stringify(args) },
    });
    const { calls } = await turn("openai.chat", [
      chat("search_tools", { query: "answer" }),
      chat("call_tool", { name: "echo", arguments: { text: "a" } }),
      chat("call_tool", { name: "secrets", arguments: {} }),
      chat("echo", { text: "a" }),
    ]);
    assertEquals(calls.map(({ name, result }) => [name, result.ok]), [
      ["search_tools", true],
      ["call_tool", true],
      ["call_tool", false],
      [null, false],
    ] as unknown[]);

    const use = (name: string, input: unknown) => ({ type: "tool_use", id: name, name, input });
    const { messages } = await turn("anthropic", [
      use("search_tools", { query: "answer what is given" }),
      use("echo", { text: "a" }),
    ]);
    assertEquals(messages, [{
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "search_tools",
          content: [{ type: "tool_reference", tool_name: "echo" }],
        },
        { type: "tool_result", tool_use_id: "echo", content: '{"text":"a"}' },
      ],
    }]);
  });

  it("applies the filters of the listing to the bridge's target tools", async () => {
    const app = bridged();
    const use = { type: "tool_use", id: "t", name: "rm", input: {} };
    const run = async (query: string): Promise<boolean> => {
      const response = await app.request(
        `${BASE}/dispatch/anthropic?bridge=1${query}`,
        execution([use]),
      );
      return (await response.json()).calls[0].result.ok;
    };
    assertEquals([await run(""), await run("&maxRisk=low")], [true, false]);
  });
});
