import * as plue from "@plue/tools";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { sealedTickets } from "@plue/tools/calls";
import { createMcpEndpoint, importMcpServer, type McpEndpoint } from "@plue/tools/mcp";
import { retryCalls } from "@plue/tools/resilience";
import { afterEach, describe, it } from "bun:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { connect, fetchFrom, importFar, URL_OF_MCP } from "./support.ts";
import { followChanges } from "../../support/changes.ts";
import { toolOf } from "../../support/tool_of.ts";

/** A server with a tool for each kind of answer. */
function farRegistry(): ToolRegistry {
  return new ToolRegistry({
    tools: [
      plue.defineTool({
        name: "add",
        description: "Adds.",
        risk: "safe",
        tags: ["read-only"],
        parameters: {
          type: "object",
          properties: { a: { type: "number" }, b: { type: "number" } },
          required: ["a", "b"],
        },
        returns: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] },
        execute: ({ a, b }) => ({ sum: a + b }),
      }),
      toolOf("draw", () => {
        const image = { type: "image", data: "R0lGODlh", mimeType: "image/gif" } as const;
        return plue.ToolResult.blocks([image], { structuredContent: { dots: 1 } });
      }),
      toolOf("fail", () => plue.ToolResult.error("denied", "Cannot do that: it is Sunday")),
      toolOf(
        "lines",
        () =>
          plue.ToolResult.blocks([{ type: "text", text: "one" }, { type: "text", text: "two" }]),
      ),
      toolOf("steps", async (_, { progress }) => {
        progress(1, 2, "half");
        await Promise.resolve();
        progress(2, 2, "all");
        return "done";
      }),
    ],
  });
}

/** Delays progress until the result arrives, which can happen in a network. */
async function atOnce(answer: Promise<Response>, init?: RequestInit): Promise<Response> {
  const response = await answer;
  return String(init?.body).includes('"tools/call"')
    ? new Response(await response.text(), response)
    : response;
}

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => void await Promise.all(opened.splice(0).map((one) => one.close())));

/** The imported server, and the registry that has its tools. */
async function imported(far: ToolRegistry = farRegistry()) {
  const mcp = createMcpEndpoint(far, { openExecution: true, ttlMs: 60_000 });
  const registry = new ToolRegistry();
  let down: Error | undefined;
  const failed = Promise.withResolvers<void>();
  const errors: unknown[] = [];
  const server = await importFar(mcp, {
    registry,
    reconnect: { firstDelayMs: 1, maxDelayMs: 5 },
    onError: (error) => void errors.push(error),
    http: {
      fetch(url, init) {
        if (down === undefined) return atOnce(fetchFrom(mcp)(url, init), init);
        failed.resolve();
        return Promise.reject(down);
      },
    },
  });
  opened.push(server);
  const dispatcher = new ToolDispatcher(registry);
  return {
    far,
    registry,
    server,
    dispatcher,
    errors,
    /** Resolves when a request has failed. */
    failed: failed.promise,
    set isDown(value: boolean | Error) {
      down = value === true ? new TypeError("There is no network") : value || undefined;
    },
    call: (name: string, args = {}) =>
      dispatcher.dispatch({ name: `far:${name}`, arguments: args }),
  };
}

async function nextChange(registry: ToolRegistry) {
  return await followChanges(registry).next();
}

describe("importMcpServer()", () => {
  for (
    const [source, what] of [
      ["ftp://localhost/", "the URL must begin with"],
      ["nowhere", "the URL must begin with"],
      [null, "the source must be a URL, a command"],
      [{}, "the source must be a URL, a command"],
    ] as const
  ) {
    it(`rejects ${JSON.stringify(source)}`, async () => {
      // Values that the types exclude.
      const wrong = source as string;
      await assertRejects(() => importMcpServer(wrong, { namespace: "x" }), TypeError, what);
    });
  }

  it("rejects a header with two lines, and does not repeat it", async () => {
    const http = { requestInit: { headers: { authorization: "Bearer one\ntwo" } } };
    const error = await assertRejects(() => importMcpServer(URL_OF_MCP, { namespace: "x", http }));
    const why = "Cannot import an MCP server: http.requestInit has an invalid header";
    assertEquals((error as Error).message, why);
  });

  it("requires a namespace", async () => {
    const none = {} as { namespace: string };
    const why = "the option namespace is required";
    await assertRejects(() => importMcpServer(URL_OF_MCP, none), TypeError, why);
  });

  it("answers values, texts and content", async () => {
    const { server, call, registry } = await imported();
    assertEquals(registry.ids, ["far:add", "far:draw", "far:fail", "far:lines", "far:steps"]);
    assertEquals([server.warnings, server.rejected], [[], []]);
    const add = await call("add", { a: 2, b: 40 });
    assertEquals(add.ok && add.content, { sum: 42 });
    const lines = await call("lines");
    assertEquals(lines.ok && lines.content, "one\ntwo");
    const draw = await call("draw");
    assert(draw.ok && draw.blocks);
    const { content, structuredContent } = draw.content as plue.ToolContent;
    assertEquals(content, [{ type: "image", data: "R0lGODlh", mimeType: "image/gif" }]);
    assertEquals(structuredContent, { dots: 1 });
  });

  it("returns the server's message of a failure to the model", async () => {
    const { call } = await imported();
    const fail = await call("fail");
    assertEquals(
      fail.ok ? undefined : [fail.error.code, fail.error.message.includes("it is Sunday")],
      ["threw", true],
    );
  });

  it("forwards the progress of a call", async () => {
    const { dispatcher } = await imported();
    const seen: unknown[] = [];
    await dispatcher.dispatch({ name: "far:steps" }, {
      progress: (progress) => void seen.push(progress),
    });
    assertEquals(seen, [
      { done: 1, total: 2, message: "half" },
      { done: 2, total: 2, message: "all" },
    ]);
  });

  it("removes references to pages, and omits the tools that only pages may call", async () => {
    const ui = { resourceUri: "ui://x/page.html" };
    const far = new ToolRegistry({
      tools: [
        toolOf("chart", () => 1, { meta: { ui, "ui/resourceUri": "ui://x", mine: 1 } }),
        toolOf("both", () => 1, { meta: { ui: { ...ui, visibility: ["model", "app"] } } }),
        toolOf("poll", () => 1, { meta: { ui: { ...ui, visibility: ["app"] } } }),
      ],
    });
    const { registry, server } = await imported(far);
    const metas = registry.tools.map(({ name, meta = {} }) => {
      const { provider: _, ...rest } = meta;
      return [name, rest];
    });
    assertEquals(metas, [["both", {}], ["chart", { mine: 1 }]]);
    assertEquals(server.rejected.map(({ name, rule }) => [name, rule]), [
      ["poll", "_meta/ui/visibility"],
    ]);
  });

  it("follows the server, and does not replace unchanged tools", async () => {
    const { far, registry, server } = await imported();
    const add = registry.getTool("far:add");
    let change = nextChange(registry);
    far.updateTool({ name: "draw", description: "Draws better." });
    assertEquals((await change).type, "updated");
    assertEquals(registry.getTool("far:draw")?.description, "Draws better.");
    assert(registry.getTool("far:add") === add);
    change = nextChange(registry);
    far.unregisterTool("fail");
    assertEquals((await change).type, "removed");
    assertEquals(server.tools.map(({ name }) => name), ["add", "draw", "lines", "steps"]);
    await server.close();
    assertEquals(registry.count, 0);
  });

  it("reports a tool that the registry rejects, and continues", async () => {
    const { far, registry, server, errors } = await imported();
    registry.registerTool({ namespace: "far", name: "mine", description: "Is near." });
    const change = nextChange(registry);
    far.registerTools([
      { name: "mine", description: "Is far." },
      { name: "other", description: "Is far too." },
    ]);
    assertEquals((await change).tool.id, "far:other");
    assertEquals(registry.getTool("far:mine")?.description, "Is near.");
    assertEquals(errors.map((error) => error instanceof TypeError), [true]);
    await server.close();
    assertEquals(registry.ids, ["far:mine"]);
  });

  it("registers no tool at first if the registry rejects one of them", async () => {
    const mcp = createMcpEndpoint(farRegistry());
    const registry = new ToolRegistry({
      tools: [toolOf("lines", undefined, { namespace: "far" })],
    });
    await assertRejects(() => importFar(mcp, { registry }), TypeError, "far:lines");
    assertEquals(registry.ids, ["far:lines"]);
  });

  it("connects again when the connection is lost", async () => {
    const world = await imported();
    world.isDown = true;
    // The tool may have run, and it is not marked as idempotent.
    const lost = await world.call("lines");
    assertEquals(
      lost.ok ? undefined : [lost.error.code, lost.error.retryable, lost.error.ran],
      ["unavailable", false, "unknown"],
    );
    world.isDown = false;
    // This call waits until the connection is open again.
    const found = await world.call("lines");
    assertEquals(found.ok && found.content, "one\ntwo");
  });

  for (const status of [200, 429]) {
    it(`continues its running calls when a proxy ends the stream of changes, then sends ${status}`, async () => {
      const begun = Promise.withResolvers<void>();
      const answered = Promise.withResolvers<void>();
      const proxy = new AbortController();
      const far = new ToolRegistry({
        tools: [toolOf("waits", async () => {
          begun.resolve();
          await answered.promise;
          return "done";
        })],
      });
      const mcp = createMcpEndpoint(far, { openExecution: true });
      const registry = new ToolRegistry();
      /** The methods to which the proxy has not sent the status. */
      const remaining = new Set(status === 200 ? [] : ["subscriptions/listen", "tools/list"]);
      const again = Promise.withResolvers<void>();
      await using _server = await importFar(mcp, {
        registry,
        http: {
          async fetch(url, init) {
            const { method } = JSON.parse(String(init?.body ?? "{}"));
            if (proxy.signal.aborted && remaining.delete(method)) {
              return new Response("busy", { status });
            }
            const response = await fetchFrom(mcp)(url, init);
            if (method !== "subscriptions/listen") return response;
            if (proxy.signal.aborted) again.resolve();
            const { readable, writable } = new TransformStream();
            const { signal } = proxy.signal.aborted ? new AbortController() : proxy;
            void response.body?.pipeTo(writable, { signal, preventAbort: true })
              .catch(() => writable.close()).catch(() => {});
            return new Response(readable, response);
          },
        },
      });
      const call = new ToolDispatcher(registry).dispatch({ name: "far:waits" });
      await begun.promise;
      proxy.abort();
      far.registerTool(toolOf("missed"));
      await again.promise;
      for (const changes = followChanges(registry); registry.getTool("far:missed") === undefined;) {
        await changes.next();
      }
      assertEquals(remaining.size, 0);
      answered.resolve();
      const result = await call;
      assertEquals(result.ok && result.content, "done");
    });
  }

  it("repeats a rejected call of a server that may ask questions", async () => {
    const mcp = createMcpEndpoint(farRegistry(), { openExecution: true });
    const registry = new ToolRegistry();
    let calls = 0;
    await using _server = await importFar(mcp, {
      ...{ registry, mayAsk: true },
      http: {
        fetch: async (url, init) =>
          String(init?.body).includes("tools/call") && calls++ === 0
            ? new Response("busy", { status: 429 })
            : await fetchFrom(mcp)(url, init),
      },
    });
    const dispatcher = new ToolDispatcher(registry, {
      layers: [retryCalls({ initialDelayMs: 1 })],
    });
    const result = await dispatcher.dispatch({ name: "far:add", arguments: { a: 1, b: 1 } });
    assertEquals([result.ok && result.content, calls], [{ sum: 2 }, 2]);
  });

  it("sends the headers that a tool requires, including over the connection of a caller", async () => {
    const region = { type: "string", "x-mcp-header": "Region" };
    const where = toolOf("where", () => "there", {
      parameters: { type: "object", properties: { region } },
    });
    const mcp = createMcpEndpoint(new ToolRegistry({ tools: [where] }), { openExecution: true });
    for (const options of [{}, { authorize: () => "token" }]) {
      const headers: (string | null)[] = [];
      const registry = new ToolRegistry();
      await using _server = await importFar(mcp, {
        ...{ registry, ...options },
        http: {
          fetch: async (url, init) => {
            const isCall = String(init?.body).includes("tools/call");
            if (isCall) headers.push(new Headers(init?.headers).get("mcp-param-region"));
            return await fetchFrom(mcp)(url, init);
          },
        },
      });
      const call = { name: "far:where", arguments: { region: "eu" } };
      const result = await new ToolDispatcher(registry).dispatch(call, { principal: "ann" });
      assertEquals([result.ok && result.content, headers], ["there", ["eu"]]);
    }
  });

  it("repeats a repeatable call after the connection is reopened", async () => {
    const world = await imported();
    world.isDown = true;
    const call = world.call("add", { a: 1, b: 1 });
    await world.failed;
    world.isDown = false;
    const found = await call;
    assertEquals(found.ok && found.content, { sum: 2 });
  });

  for (
    const [runtime, error] of [
      ["Node", Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } })],
      ["Bun", Object.assign(new Error("Unable to connect"), { code: "ConnectionRefused" })],
      ["Deno", new TypeError("client error (Connect): tcp connect error: Connection refused")],
    ] as const
  ) {
    it(`sends an unsent call over the next connection, after the error of ${runtime}`, async () => {
      if (error.cause !== undefined) error.cause = Object.assign(new Error("connect"), error.cause);
      const world = await imported();
      world.isDown = error;
      const call = world.call("lines");
      await world.failed;
      world.isDown = false;
      const found = await call;
      assertEquals(found.ok && found.content, "one\ntwo");
    });
  }

  it("reports that an unsent call has not run, if the host must reconnect its client", async () => {
    const mcp = createMcpEndpoint(farRegistry(), { openExecution: true });
    let fetch = (request: Request): Promise<Response> => mcp.fetch(request);
    const client = await connect({ fetch: (request) => fetch(request) });
    const registry = new ToolRegistry();
    await using _server = await importMcpServer(client, { namespace: "far", registry });
    fetch = () => Promise.reject(Object.assign(new Error("down"), { code: "ECONNREFUSED" }));
    const unsent = await new ToolDispatcher(registry).dispatch({ name: "far:lines" });
    assertEquals(
      unsent.ok ? undefined : [unsent.error.code, unsent.error.retryable, unsent.error.ran],
      ["unavailable", true, "no"],
    );
    await client.close();
  });

  it("does not wait for a connection longer than its caller", async () => {
    const world = await imported();
    world.isDown = true;
    await world.call("lines");
    const caller = new AbortController();
    const call = world.dispatcher.dispatch(
      { name: "far:add", arguments: { a: 1, b: 1 } },
      { signal: caller.signal },
    );
    caller.abort();
    const result = await call;
    assertEquals(result.ok ? [] : [result.error.code, result.error.ran], ["aborted", "no"]);
  });

  it("reads the list again in refresh(), without the client's cache", async () => {
    const far = farRegistry();
    const client = await connect(createMcpEndpoint(far.select(), { ttlMs: 60_000 }), "legacy");
    const server = await importMcpServer(client, { namespace: "far" });
    assertEquals(server.tools.length, 5);
    await server.refresh();
    assertEquals(server.tools.length, 5);
    await server.close();
    await assertRejects(() => server.refresh());
    assertEquals((await client.listTools()).tools.length, 5);
    await client.close();
  });

  it("keeps the tools if the connection is closed before it reads the list", async () => {
    const client = await connect(createMcpEndpoint(farRegistry().select(), {}), "legacy");
    await using server = await importMcpServer(client, { namespace: "far" });
    await client.close();
    await assertRejects(() => server.refresh(), Error, "The connection is closed");
    assertEquals(server.tools.length, 5);
  });

  it("stops connecting when its signal aborts, but reads later lists after it has aborted", async () => {
    const signal = AbortSignal.abort(new Error("Enough"));
    await assertRejects(() => importMcpServer(URL_OF_MCP, { namespace: "far", signal }));
    const [far, controller] = [farRegistry(), new AbortController()];
    const mcp = createMcpEndpoint(far, { openExecution: true });
    await using server = await importFar(mcp, { signal: controller.signal });
    controller.abort();
    far.unregisterTool("draw");
    await server.refresh();
    assertEquals(server.tools.length, 4);
  });
});

describe("importMcpServer({ mayAsk })", () => {
  /** A server whose tool asks two questions, and the number of runs of the code after them. */
  function farAsking(): { readonly mcp: McpEndpoint; readonly runs: () => number } {
    let runs = 0;
    const form = (message: string) => ({
      message,
      schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    } as const);
    const far = new ToolRegistry({
      tools: [plue.defineTool({
        name: "greet",
        description: "Asks who is there.",
        returns: { type: "string" },
        async execute(_, { ask }) {
          const answers = [await ask("first", form("First?")), await ask("last", form("Last?"))];
          runs++;
          return answers.map((answer) => JSON.stringify(answer)).join(" ");
        },
      })],
    });
    const dispatcher = new ToolDispatcher(far, {
      tickets: sealedTickets({ keys: [new Uint8Array(32)] }),
    });
    return { mcp: createMcpEndpoint(far, { openExecution: true, dispatcher }), runs: () => runs };
  }

  it("forwards the server's questions to the caller", async () => {
    const { mcp, runs } = farAsking();
    const registry = new ToolRegistry();
    await using _server = await importFar(mcp, { registry, mayAsk: true });
    const received: string[] = [];
    const result = await new ToolDispatcher(registry).dispatch({ name: "far:greet" }, {
      onQuestion({ message }) {
        received.push(message);
        return { action: "accept", content: { name: `${received.length}` } };
      },
    });
    assertEquals(received, [
      'The MCP server of "greet" asks: First?',
      'The MCP server of "greet" asks: Last?',
    ]);
    const texts = [1, 2].map((n) => `{"action":"accept","content":{"name":"${n}"}}`).join(" ");
    assertEquals(result.ok && result.content, texts);
    assertEquals(runs(), 1);
  });

  it("resumes the suspended call at the server", async () => {
    const { mcp, runs } = farAsking();
    const registry = new ToolRegistry();
    let requests = 0;
    await using _server = await importFar(mcp, {
      registry,
      mayAsk: true,
      http: {
        fetch(url, init) {
          if (String(init?.body).includes("tools/call")) requests++;
          return fetchFrom(mcp)(url, init);
        },
      },
    });
    const dispatcher = new ToolDispatcher(registry, {
      tickets: sealedTickets({ keys: [new Uint8Array(32)] }),
    });
    let result = await dispatcher.dispatch({ name: "far:greet" });
    for (let round = 1; plue.isSuspended(result); round++) {
      const [question] = result.questions;
      assert(question !== undefined);
      const answer = { action: "accept", content: { name: `${round}` } } as const;
      result = await dispatcher.resume(result.ticket, { [question.key]: answer });
    }
    assertEquals(result.ok, true);
    assertEquals([requests, runs()], [3, 1]);
  });

  it("does not report a call as not run, if the server rejects it after its question", async () => {
    for (const status of [401, 403, 429]) {
      const { mcp } = farAsking();
      const registry = new ToolRegistry();
      let requests = 0;
      await using _server = await importFar(mcp, {
        ...{ registry, mayAsk: true },
        http: {
          fetch: (url, init) =>
            String(init?.body).includes("tools/call") && ++requests === 2
              ? Promise.resolve(new Response("", { status }))
              : fetchFrom(mcp)(url, init),
        },
      });
      const onQuestion = () => ({ action: "accept", content: { name: "Ann" } } as const);
      const result = await new ToolDispatcher(registry).dispatch({ name: "far:greet" }, {
        onQuestion,
      });
      assert(!result.ok);
      assertEquals([result.error.code, result.error.ran, requests], ["threw", "yes", 2]);
    }
  });

  for (const principal of ["ann", undefined]) {
    const ends = principal === undefined ? "forwards" : "denies";
    const caller = principal === undefined ? "the only caller" : "one of several callers";
    it(`${ends} a request of a permission by ${caller}`, async () => {
      const far = new ToolRegistry({
        tools: [plue.defineTool({
          name: "pay",
          description: "Requests a permission.",
          execute: async (_, { ask }) => {
            const url = "https://bank.example/allow";
            return (await ask("bank", { kind: "authorization", message: "Allow", url })).action;
          },
        })],
      });
      const tickets = sealedTickets({ keys: [new Uint8Array(32)] });
      const mcp = createMcpEndpoint(far, { openExecution: true, dispatch: { tickets } });
      const registry = new ToolRegistry();
      await using _server = await importFar(mcp, { registry, mayAsk: true });
      const urls: unknown[] = [];
      const result = await new ToolDispatcher(registry).dispatch({ name: "far:pay" }, {
        principal,
        onQuestion({ url }) {
          urls.push(url);
          return { action: "accept" };
        },
      });
      assertEquals(urls, principal === undefined ? ["https://bank.example/allow"] : []);
      assertEquals(
        result.ok ? result.content : result.error.message,
        principal === undefined
          ? "accept"
          : 'Cannot call "pay": its MCP server requests a permission that all callers would use; ' +
            'use "authorize"',
      );
    });
  }

  it("forwards no question without the option", async () => {
    const registry = new ToolRegistry();
    await using _server = await importFar(farAsking().mcp, { registry });
    const result = await new ToolDispatcher(registry).dispatch({ name: "far:greet" }, {
      onQuestion: () => {
        throw new Error("Nobody is to be asked");
      },
    });
    assertEquals(result.ok ? "ok" : result.error.code, "threw");
  });
});
