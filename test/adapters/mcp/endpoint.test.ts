import * as plue from "@plue/tools";
import { ToolRegistry } from "@plue/tools";
import { coerceArguments } from "@plue/tools/calls";
import { type AccessEntry, createToolHandler } from "@plue/tools/hono";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import * as support from "./support.ts";
import {
  connect,
  fetchLegacy,
  legacyRequest,
  messageIn,
  modernRequest,
  openStream,
} from "./support.ts";
import { toolOf, waitingTool } from "../../support/tool_of.ts";
import { type NamedTools, runTranscripts } from "../hono/transcript.ts";
import data from "./transcripts/endpoint.json" with { type: "json" };

const summing = {
  namespace: "math",
  name: "add",
  description: "Adds.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
} as const;
const sum = plue.defineTool({ ...summing, execute: ({ a, b }) => a + b });
/** The same, asynchronously. */
const slowSum = plue.defineTool({
  ...summing,
  execute: ({ a, b }) => new Promise<number>((resolve) => setTimeout(() => resolve(a + b))),
});
const named = (name: string): plue.Tool => toolOf(name);
const open = (...tools: readonly plue.Tool[]) =>
  createMcpEndpoint(new ToolRegistry({ tools }), { openExecution: true });

const DOT = { type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" } as const;

const NAMED: NamedTools = {
  context: () => [
    toolOf("who", (_, { principal }) => principal ?? null),
    toolOf("whose", (_, { context }) => (context as { readonly tenant: string }).tenant, {
      context: { type: "object", properties: { tenant: { type: "string" } } },
    }),
  ],
  dots: () => [
    toolOf(
      "made",
      () => plue.ToolResult.blocks([DOT], { structuredContent: { dots: 1 }, metadata: { x: 1 } }),
    ),
    toolOf("like", () => ({ content: [DOT] })),
  ],
  german: () => [
    toolOf("one", undefined, { description: ({ locale }) => locale === "de" ? "Eins." : "One." }),
    toolOf("for-control", undefined, { description: "One.", roles: ["control"] }),
  ],
  wipe: () => [
    toolOf("double", (params) => (params as { readonly n: number }).n * 2, {
      namespace: "math",
      description: "Doubles a number.",
      risk: "safe",
      parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    }),
    toolOf("triple", undefined, { namespace: "math" }),
    toolOf("wipe", () => "wiped", { risk: "critical", requiresApproval: true }),
    toolOf("audit", () => [], { roles: ["auditor"] }),
  ],
};

describe("createMcpEndpoint()", () => {
  runTranscripts(data, { named: NAMED, isMcp: true });

  it("responds in the era of the client", async () => {
    for (const [mode, era] of [["auto", "modern"], ["legacy", "legacy"]] as const) {
      const client = await connect(open(sum), mode);
      assertEquals(client.getProtocolEra(), era);
      const { content, structuredContent } = await client.callTool({
        name: "math.add",
        arguments: { a: 2, b: 40 },
      });
      assertEquals(content, [{ type: "text", text: "42" }]);
      // Only the newest revision allows structured content that is not an object.
      assertEquals(structuredContent, era === "modern" ? 42 : undefined);
      await client.close();
    }
  });

  it("reports an unavailable tool as unavailable, and keeps the names of the others", async () => {
    let isUp = false;
    // Both have the name "a.b.c" in MCP, so each gets a suffix.
    const c = toolOf("c", () => 1, { namespace: "a.b", isAvailable: () => isUp });
    const bc = toolOf("b.c", () => 2, { namespace: "a" });
    const other = toolOf("c", () => 3, { namespace: "x" });
    const mcp = open(c, bc, other);
    const namesOf = async (client: Awaited<ReturnType<typeof connect>>): Promise<string[]> =>
      (await client.listTools(undefined, { cacheMode: "refresh" })).tools.map(({ name }) => name);
    for (const mode of ["auto", "legacy"] as const) {
      isUp = true;
      const client = await connect(mcp, mode);
      const [own = "", ...names] = await namesOf(client);
      isUp = false;
      assertEquals(await namesOf(client), names);
      const { isError, content: [text] } = await client.callTool({ name: own });
      assert(isError === true);
      assertEquals(text, {
        type: "text",
        text: `Cannot call "${own}": the tool is not available now`,
      });
      await assertRejects(() => client.callTool({ name: "a.b.d" }), Error, "Unknown tool");
      await client.close();
    }
  });

  it("names the repairs of the arguments", async () => {
    const registry = new ToolRegistry({
      tools: [{
        name: "twice",
        description: "Doubles.",
        parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
        execute: ({ n }: { n: number }) => 2 * n,
      }],
    });
    const mcp = createMcpEndpoint(registry, {
      ...{ name: "tools", version: "1", openExecution: true },
      dispatcher: new plue.ToolDispatcher(registry, { repair: coerceArguments() }),
    });
    const response = await mcp.fetch(
      modernRequest("tools/call", { name: "twice", arguments: { n: "4" } }),
    );
    const { result } = await response.json();
    assertEquals([result.content[0].text, result._meta["plue/repaired"][0].path], ["8", "/n"]);
  });

  it("logs metadata and output of a tool, to clients that request it", async () => {
    const mcp = open(plue.defineTool({
      name: "talk",
      description: "Talks.",
      async *execute(_, { metadata }) {
        metadata({ step: 1 });
        yield "half";
        return "whole";
      },
    }));
    const lines = async (meta: Record<string, unknown>): Promise<readonly unknown[]> => {
      const response = await mcp.fetch(modernRequest("tools/call", { name: "talk", _meta: meta }));
      const text = await response.text();
      return text.split("\n").filter((line) => line.startsWith("data: "))
        .map((line) => JSON.parse(line.slice(6)))
        .filter(({ method }) => method === "notifications/message")
        .map(({ params: { logger, data } }) => [logger, data]);
    };
    assertEquals(await lines({ "io.modelcontextprotocol/logLevel": "info" }), [
      ["talk", { step: 1 }],
      ["talk/output", "half"],
    ]);
    assertEquals(await lines({}), []);
  });

  for (const era of ["modern", "legacy"] as const) {
    it(`pauses a tool at the pace of its reader: ${era}`, async () => {
      let yielded = 0;
      const cleaned = Promise.withResolvers<void>();
      const mcp = open(plue.defineTool({
        name: "pour",
        description: "Yields without end.",
        async *execute(_, { defer, metadata, progress }) {
          defer(() => cleaned.resolve());
          for (;;) {
            yielded++;
            metadata(yielded);
            progress(yielded);
            yield yielded;
          }
        },
      }));
      const _meta = { progressToken: 1, "io.modelcontextprotocol/logLevel": "info" };
      const response = era === "modern"
        ? await mcp.fetch(modernRequest("tools/call", { name: "pour", _meta }))
        : await fetchLegacy(mcp, "tools/call", { name: "pour", _meta: { progressToken: 1 } });
      const standsStill = async (): Promise<number> => {
        for (let seen = -1;;) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          if (yielded === seen) return seen;
          seen = yielded;
        }
      };
      const before = await standsStill();
      assert(before < 100, String(before));
      const reader = response.body?.getReader();
      for (let chunk = 0; chunk < 30; chunk++) await reader?.read();
      const after = await standsStill();
      assert(after > before && after < before + 100, String(after));
      await reader?.cancel();
      await cleaned.promise;
    });
  }

  it("buffers at most 256 messages before its stream begins", async () => {
    const flood = toolOf("flood", async (_, context) => {
      for (let count = 0; count < 5_000; count++) {
        context.progress(count);
        context.metadata(count);
      }
      await Promise.resolve();
    });
    const _meta = { progressToken: 1, "io.modelcontextprotocol/logLevel": "info" };
    const response = await open(flood).fetch(
      modernRequest("tools/call", { name: "flood", arguments: {}, _meta }),
    );
    const events = (await response.text()).split("\n\n").filter((event) => /data: /.test(event));
    assertEquals(events.length, 257);
  });

  for (const method of ["TRACE", "HEAD", "PUT", "BREW"]) {
    it(`answers 405 to ${method}`, async () => {
      const request = modernRequest("tools/list");
      // A server can receive such a request, but a program cannot construct it.
      Object.defineProperty(request, "method", { value: method });
      const response = await open(sum).fetch(request);
      assertEquals([response.status, response.headers.get("allow")], [405, "GET, POST"]);
    });
  }

  it("observes calls in the client's trace", async () => {
    const seen: unknown[] = [];
    const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const call = { name: "math.add", arguments: { a: 1, b: 2 }, _meta: { traceparent: parent } };
    const answerOf = async (telemetry: plue.CallTelemetry) => {
      const mcp = createMcpEndpoint(new ToolRegistry({ tools: [sum] }), {
        openExecution: true,
        dispatch: { telemetry },
      });
      return (await support.askModern(mcp, "tools/call", call)).result;
    };
    const fine = await answerOf({
      begin({ tool, headers }) {
        seen.push(tool.id, headers?.get("traceparent"));
        return {
          place: undefined,
          run: (work) => work(),
          end: (result) => void seen.push(result.ok),
        };
      },
    });
    assertEquals(fine?.["structuredContent"], 3);
    assertEquals(seen, ["math:add", parent, true]);
  });

  it("continues the client's trace in the response, even without telemetry", async () => {
    const entries: AccessEntry[] = [];
    const mcp = createMcpEndpoint(new ToolRegistry({ tools: [sum] }), {
      openExecution: true,
      observe: { access: (entry) => void entries.push(entry) },
    });
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const _meta = { traceparent: `00-${trace}-b7ad6b7169203331-01` };
    const call = { name: "math.add", arguments: { a: 1, b: 2 }, _meta };
    // A proxy may add a trace of its own.
    const headers = { traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` };
    for (
      const request of [
        modernRequest("tools/call", call, headers),
        modernRequest("tools/list", { _meta }, headers),
        legacyRequest({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call }, headers),
        modernRequest("tools/list", { cursor: 5, _meta }, headers),
      ]
    ) {
      const response = await mcp.fetch(request);
      const [, traceId, spanId] = response.headers.get("traceparent")?.split("-") ?? [];
      assertEquals(traceId, trace);
      assert(spanId !== "b7ad6b7169203331");
      await response.text();
    }
    const noTrace = { _meta: { traceparent: "none" } };
    await (await mcp.fetch(modernRequest("tools/list", noTrace, headers))).text();
    assertEquals(
      entries.map(({ traceId }) => traceId),
      [trace, trace, trace, trace, "1".repeat(32)],
    );
  });

  it("is one line of a Hono app, whatever the runtime passes", async () => {
    const seen: unknown[] = [];
    const errors: unknown[] = [];
    const work: Promise<unknown>[] = [];
    const registry = new ToolRegistry({ tools: [slowSum] });
    const mcp = createMcpEndpoint(registry, {
      authorize(_request, env) {
        seen.push(env);
        return {};
      },
      onError: (error) => void errors.push(error),
    });
    const app = createToolHandler(registry, { onError: (error) => void errors.push(error) });
    app.all("/mcp", mcp.handle);
    const params = { name: "math.add", arguments: { a: 1, b: 2 } };
    const context = {
      waitUntil: (one: Promise<unknown>) => void work.push(one),
      passThroughOnException() {},
      props: {},
    };
    for (
      const [env, input] of [
        // The platform arguments of Node's and Bun's servers, of Deno, and of Workers.
        [{ requestIP() {} }, undefined],
        [undefined, undefined],
        [{ TOKEN: "t" }, context],
      ] as const
    ) {
      for (
        const request of [
          modernRequest("tools/call", params),
          legacyRequest({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
        ]
      ) {
        const response = await app.fetch(request, env, input);
        assertEquals((await messageIn(response)).result?.["isError"], undefined);
      }
      assertEquals(seen.splice(0), [env, env]);
    }
    assertEquals([errors, work.length], [[], 2]);
    await Promise.all(work);
  });
});

describe("a call that is cancelled", () => {
  it("is aborted when its stream is closed", async () => {
    const { tool, begun, aborted } = waitingTool();
    const client = await connect(open(tool));
    const caller = new AbortController();
    const call = assertRejects(() => client.callTool({ name: "wait" }, { signal: caller.signal }));
    await begun;
    caller.abort();
    await call;
    await aborted;
    await client.close();
  });

  it("is aborted by the older clients' message, of the same session and caller only", async () => {
    const { tool, begun, aborted } = waitingTool();
    const registry = new ToolRegistry({ tools: [tool] });
    const mcp = createMcpEndpoint(registry, { authorize: support.byWho });
    const { session } = await support.beginSession(mcp, { "x-who": "a" });
    assert(session.length > 30);

    const call = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "wait" } };
    const answer = mcp.fetch(legacyRequest(call, { "x-who": "a", "mcp-session-id": session }))
      .then(messageIn);
    await begun;
    let isAborted = false;
    void aborted.then(() => isAborted = true);
    const cancel = async (who: string, from: string, requestId: unknown): Promise<void> => {
      const message = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
      const response = await mcp.fetch(
        legacyRequest(message, { "x-who": who, "mcp-session-id": from }),
      );
      assertEquals(response.status, 202);
      await response.text();
    };
    await cancel("b", session, 7);
    await cancel("a", crypto.randomUUID(), 7);
    await cancel("a", session, "7");
    await cancel("a", session, 8);
    await Promise.resolve();
    assertEquals(isAborted, false);
    await cancel("a", session, 7);
    await aborted;
    assertEquals((await answer).result?.["isError"], true);
  });
});

describe("clients that follow the list", () => {
  it("are notified of their own changes, until the registry ends", async () => {
    const registry = new ToolRegistry({ tools: [named("one")] });
    const mcp = createMcpEndpoint(registry, { authorize: () => ({}) });
    const client = await connect(mcp);
    let changes = 0;
    let notified = Promise.withResolvers<void>();
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      changes++;
      notified.resolve();
    });
    const { closed } = await client.listen({ toolsListChanged: true });
    registry.registerTool({ name: "hidden", description: "Is not seen.", roles: ["control"] });
    registry.registerTool(named("two"));
    await notified.promise;
    assertEquals(changes, 1);
    notified = Promise.withResolvers();
    registry.unregisterTool("two");
    await notified.promise;
    assertEquals(changes, 2);
    await registry.dispose();
    assertEquals(await closed, "graceful");
    await client.close();
  });

  it("end when their caller's token expires, in either era", async () => {
    const registry = new ToolRegistry();
    const mcp = createMcpEndpoint(registry, {
      heartbeatMs: 60_000,
      maxStreams: 1,
      authorize: () => ({ expiresAt: Date.now() + 200 }),
    });
    // The endpoint has one stream, so the second turn succeeds only if the first stream has ended.
    for (let turn = 0; turn < 2; turn++) {
      const listen = await mcp.fetch(
        modernRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }),
      );
      const last = await messageIn(listen);
      assertEquals(last.result?.["resultType"], "complete");
      assertEquals(await (await openStream(mcp)).text(), ":\n\n");
    }
  });

  it("use no slots of other callers", async () => {
    const mcp = createMcpEndpoint(new ToolRegistry(), {
      maxStreamsPerPrincipal: 1,
      authorize: support.byWho,
    });
    const listen = (who: string, notifications: unknown = { toolsListChanged: true }) =>
      mcp.fetch(modernRequest("subscriptions/listen", { notifications }, { "x-who": who }));
    const get = (who: string) => openStream(mcp, { "x-who": who });
    // An invalid request does not use a stream.
    assertEquals((await messageIn(await listen("a", 5))).error?.code, -32602);
    const first = await listen("a");
    assertEquals((await messageIn(await listen("a"))).error?.code, -32603);
    assertEquals((await get("a")).status, 405);
    const other = await get("b");
    assertEquals(other.status, 200);
    await other.body?.cancel();
    await first.body?.cancel();
    const again = await get("a");
    assertEquals(again.status, 200);
    await again.body?.cancel();
  });

  it("are notified when a tool becomes available, once the registry is refreshed", async () => {
    let isThere = false;
    const registry = new ToolRegistry({
      tools: [named("one"), { ...named("maybe"), isAvailable: () => isThere }],
    });
    const client = await connect(createMcpEndpoint(registry));
    const notified = Promise.withResolvers<void>();
    client.setNotificationHandler("notifications/tools/list_changed", () => notified.resolve());
    await client.listen({ toolsListChanged: true });
    isThere = true;
    registry.refresh();
    await notified.promise;
    const { tools } = await client.listTools();
    assertEquals(tools.map(({ name }) => name), ["maybe", "one"]);
    await client.close();
  });

  it("open a stream by GET before the newest revision", async () => {
    const registry = new ToolRegistry();
    const mcp = createMcpEndpoint(registry, { heartbeatMs: 60_000, maxStreams: 1 });
    const response = await openStream(mcp);
    assertEquals(response.status, 200);
    assertEquals((await openStream(mcp)).status, 405);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    assertEquals((await reader?.read())?.value, ":\n\n");
    registry.registerTool(named("new"));
    assert((await reader?.read())?.value?.includes("notifications/tools/list_changed"));
    await reader?.cancel();
    const next = await openStream(mcp);
    assertEquals(next.status, 200);
    await next.body?.cancel();
  });

  it("are notified that a fixed toolset does not change", async () => {
    const toolset = new ToolRegistry({ tools: [named("one")] }).select();
    const client = await connect(createMcpEndpoint(toolset));
    assertEquals(client.getServerCapabilities()?.tools?.listChanged, false);
    await client.close();
  });
});
