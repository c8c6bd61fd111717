import type { McpServer } from "@modelcontextprotocol/server";
import { buildToolset, ToolRegistry } from "@plue/tools";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import * as support from "./support.ts";
import { askModern, beginSession } from "./support.ts";
import { sseEvents } from "../hono/sse.ts";
import { runTranscripts } from "../hono/transcript.ts";
import data from "./transcripts/extension.json" with { type: "json" };
import { toolOf } from "../../support/tool_of.ts";

const ping = toolOf("ping", () => "pong");

function addNotes(server: McpServer): void {
  server.registerPrompt("greet", { description: "Greets." }, () => ({
    messages: [{ role: "user", content: { type: "text", text: "Hello!" } }],
  }));
  server.server.registerCapabilities({ resources: { subscribe: true } });
  server.registerResource("note", "note://1", { mimeType: "text/plain" }, ({ href: uri }) => ({
    contents: [{ uri, text: "Buy milk." }],
  }));
}

const extended = (options: McpEndpointOptions = {}): McpEndpoint =>
  createMcpEndpoint(new ToolRegistry({ tools: [ping] }), {
    openExecution: true,
    extend: addNotes,
    ...options,
  });

async function* messagesOf(response: Response): AsyncGenerator<Message, undefined> {
  for await (const { data } of sseEvents(response)) yield data as Message;
}

interface Message {
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
}

const listen = (
  mcp: McpEndpoint,
  notifications: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Response> =>
  mcp.fetch(support.modernRequest("subscriptions/listen", { notifications }, headers));

const inSession = (session: string): Record<string, string> => ({
  "mcp-session-id": session,
  "mcp-protocol-version": "2025-11-25",
});

const streamOf = async (mcp: McpEndpoint, session: string, headers: object = {}) =>
  messagesOf(await support.openStream(mcp, { ...inSession(session), ...headers }));

const subscribe = async (
  mcp: McpEndpoint,
  session: string,
  uri: string,
  method = "resources/subscribe",
): Promise<Awaited<ReturnType<typeof support.messageIn>>> =>
  await support.messageIn(await support.fetchLegacy(mcp, method, { uri }, inSession(session)));

describe("createMcpEndpoint({ extend })", () => {
  runTranscripts(data, {
    isMcp: true,
    more: {
      async extend(server, { caller, request }) {
        await Promise.resolve();
        assertEquals(request.headers.get("authorization"), caller.principal ?? null);
        if (caller.principal !== "bob") addNotes(server);
      },
    },
  });

  it("is not run for tools, neither by the fast path nor by the SDK", async () => {
    let runs = 0;
    const mcp = extended({ extend: () => void runs++ });
    await askModern(mcp, "tools/list");
    await askModern(mcp, "tools/call", { name: "ping", arguments: {} });
    await askModern(mcp, "tools/call", {
      name: "ping",
      arguments: {},
      _meta: { progressToken: 1 },
    });
    await support.messageIn(await support.fetchLegacy(mcp, "tools/call", { name: "ping" }));
    assertEquals(runs, 0);
    await askModern(mcp, "server/discover");
    assertEquals(runs, 1);
  });

  for (
    const [name, extend] of [
      ["throws", () => {
        throw new Error("The notes are locked");
      }],
      ["rejects", () => Promise.reject(new Error("The notes are locked"))],
      [
        "adds a tool",
        (server: McpServer) => void server.registerTool("ping", {}, () => ({ content: [] })),
      ],
    ] as const
  ) {
    it(`logs an extension that ${name}, and still serves tools`, async () => {
      const logged: string[] = [];
      const mcp = extended({ extend, onError: (error) => void logged.push(String(error)) });
      for (
        const response of [
          await mcp.fetch(support.modernRequest("prompts/list")),
          await support.fetchLegacy(mcp, "prompts/list"),
          await support.openStream(mcp),
        ]
      ) {
        assertEquals(response.status, 500);
        const text = await response.text();
        assert(!text.includes("notes") && !text.includes("register"), text);
      }
      assertEquals(logged.length, 3);
      assert(!logged.some((text) => text.includes("undefined")), logged.join());
      const { result } = await askModern(mcp, "tools/call", { name: "ping", arguments: {} });
      assertEquals(result?.["isError"], undefined);
    });
  }
});

describe("McpEndpoint.notify", () => {
  it("notifies clients only of changes that they requested", async () => {
    const mcp = extended();
    const prompts = messagesOf(await listen(mcp, { promptsListChanged: true }));
    const notes = messagesOf(
      await listen(mcp, { resourcesListChanged: true, resourceSubscriptions: ["note://1"] }),
    );
    await prompts.next();
    await notes.next();
    mcp.notify.resourceUpdated("note://2");
    mcp.notify.resourceUpdated("note://1");
    mcp.notify.promptsChanged();
    mcp.notify.resourcesChanged();
    assertEquals((await prompts.next()).value?.method, "notifications/prompts/list_changed");
    const updated = (await notes.next()).value;
    assertEquals([updated?.method, updated?.params?.["uri"]], [
      "notifications/resources/updated",
      "note://1",
    ]);
    assertEquals((await notes.next()).value?.method, "notifications/resources/list_changed");
    await prompts.return(undefined);
    await notes.return(undefined);
  });

  it("buffers an event once for a client that does not read", async () => {
    const mcp = extended();
    const { session } = await beginSession(mcp);
    const stream = await streamOf(mcp, session);
    for (let count = 0; count < 1_000; count++) mcp.notify.promptsChanged();
    mcp.notify.resourcesChanged();
    assertEquals((await stream.next()).value?.method, "notifications/prompts/list_changed");
    assertEquals((await stream.next()).value?.method, "notifications/resources/list_changed");
    await stream.return(undefined);
  });

  it("merges too many updates for a slow client into one change of the lists", async () => {
    const mcp = extended();
    const { session } = await beginSession(mcp);
    const stream = await streamOf(mcp, session);
    for (let count = 0; count < 1_000; count++) mcp.notify.resourceUpdated(`note://${count}`);
    const methods = new Set<string | undefined>();
    while (!methods.has("notifications/resources/list_changed")) {
      methods.add((await stream.next()).value?.method);
    }
    assert(methods.has("notifications/tools/list_changed"));
    await stream.return(undefined);
  });

  it("notifies no client whose server does not announce it", async () => {
    const mcp = extended({
      authorize: support.byWho,
      extend(server, { caller }) {
        if (caller.principal === "ann") addNotes(server);
      },
    });
    // This caller's server cannot send notifications, so the stream ends after its first message.
    const stream = messagesOf(await listen(mcp, { promptsListChanged: true }, { "x-who": "bob" }));
    assertEquals((await stream.next()).value?.method, "notifications/subscriptions/acknowledged");
    assertEquals((await stream.next()).value?.result?.["resultType"], "complete");
    assertEquals((await stream.next()).done, true);
  });

  it("works for an endpoint of a toolset, whose tools do not change", async () => {
    const toolset = buildToolset(new ToolRegistry({ tools: [ping] }), {});
    const mcp = createMcpEndpoint(toolset, { openExecution: true, extend: addNotes });
    const stream = messagesOf(await listen(mcp, { promptsListChanged: true }));
    await stream.next();
    mcp.notify.promptsChanged();
    assertEquals((await stream.next()).value?.method, "notifications/prompts/list_changed");
    await stream.return(undefined);
    const without = createMcpEndpoint(toolset, { openExecution: true });
    assertEquals((await support.openStream(without)).status, 405);
  });

  it("releases the slot of a stream when its client disconnects", async () => {
    const mcp = extended({ maxStreams: 1 });
    for (let round = 0; round < 3; round++) {
      const stream = messagesOf(await listen(mcp, { promptsListChanged: true }));
      assertEquals((await stream.next()).value?.method, "notifications/subscriptions/acknowledged");
      await stream.return(undefined);
    }
  });
});

describe("subscriptions to resources before 2026-07-28", () => {
  if (IS_WORKERS) {
    it("are not offered on Workers", async () => {
      const mcp = extended();
      const { session, capabilities } = await beginSession(mcp);
      assertEquals(
        (capabilities as { readonly resources?: { readonly subscribe?: boolean } }).resources
          ?.subscribe,
        false,
      );
      assertEquals((await subscribe(mcp, session, "note://1")).error?.code, -32601);
    });
    return;
  }

  it("notify a session of its resources until it unsubscribes", async () => {
    const mcp = extended();
    const { session } = await beginSession(mcp);
    const { session: other } = await beginSession(mcp);
    assertEquals((await subscribe(mcp, session, "note://1")).result, {});
    assertEquals((await subscribe(mcp, session, "note://2")).result, {});
    assertEquals((await subscribe(mcp, other, "note://3")).result, {});
    const stream = await streamOf(mcp, session);
    for (const uri of ["note://3", "note://1"]) mcp.notify.resourceUpdated(uri);
    assertEquals((await stream.next()).value?.params?.["uri"], "note://1");
    assertEquals((await subscribe(mcp, session, "note://1", "resources/unsubscribe")).result, {});
    for (const uri of ["note://1", "note://2"]) mcp.notify.resourceUpdated(uri);
    assertEquals((await stream.next()).value?.params?.["uri"], "note://2");
    await stream.return(undefined);
  });

  it("are another caller's under another principal, even with the session's name", async () => {
    const mcp = extended({ authorize: support.byWho });
    const { session } = await beginSession(mcp, { "x-who": "ann" });
    const uri = "note://1";
    const bob = { ...inSession(session), "x-who": "bob" };
    await support.fetchLegacy(mcp, "resources/subscribe", { uri }, bob);
    const stream = await streamOf(mcp, session, { "x-who": "ann" });
    mcp.notify.resourceUpdated(uri);
    mcp.notify.promptsChanged();
    assertEquals((await stream.next()).value?.method, "notifications/prompts/list_changed");
    await stream.return(undefined);
  });

  it("are bounded per session, with an error", async () => {
    const mcp = extended();
    const { session } = await beginSession(mcp);
    const long = (name: string): string => `note://${name.padEnd(8_000, "x")}`;
    assertEquals((await subscribe(mcp, session, long("a"))).result, {});
    assertEquals((await subscribe(mcp, session, long("b"))).result, {});
    const { error } = await subscribe(mcp, session, long("c"));
    assertEquals(error?.code, -32602);
    assertStringIncludes(error?.message ?? "", "unsubscribe from others first");
    assertEquals((await subscribe(mcp, session, long("a"), "resources/unsubscribe")).result, {});
    assertEquals((await subscribe(mcp, session, long("c"))).result, {});
  });

  it("require a session", async () => {
    const params = { uri: "note://1" };
    const response = await support.fetchLegacy(extended(), "resources/subscribe", params);
    const { error } = await support.messageIn(response);
    assertStringIncludes(error?.message ?? "", "mcp-session-id");
  });

  it("are missing if the extension does not declare them", async () => {
    const client = await support.connect(
      extended({
        extend(server) {
          server.registerResource("note", "note://1", {}, ({ href: uri }) => ({
            contents: [{ uri, text: "Buy milk." }],
          }));
        },
      }),
      "legacy",
    );
    await assertRejects(() => client.subscribeResource({ uri: "note://1" }));
    await client.close();
  });
});
