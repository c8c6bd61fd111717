/** The tools of an MCP server, with a connection for each caller. */

import { createMcpHandler, fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { type CredentialRequest, credentials, fromContext } from "@plue/tools/credentials";
import { importMcpServer, type ImportMcpServerOptions } from "@plue/tools/mcp";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { serve } from "../runtime/serve.ts";
import { contentOf } from "./world.ts";

/** The token of a request; it begins with its owner: `ann-1`. */
function tokenIn(request: Request | undefined): string {
  return request?.headers.get("authorization")?.replace("Bearer ", "") ?? "";
}

/** A server that records the token of each call. It lists the tool `secret` for ann only. */
async function startServer() {
  const calls: { readonly id: string; readonly token: string }[] = [];
  const requests: string[] = [];
  let rejected = "";
  let waiting: Promise<void> | undefined;
  let more = {};
  const handler = createMcpHandler(({ requestInfo }) => {
    const token = tokenIn(requestInfo);
    const server = new McpServer({ name: "hub", version: "1.0.0" });
    const inputSchema = fromJsonSchema<{ id: string }>({
      type: "object",
      properties: { id: { type: "string" }, ...more },
      required: ["id"],
    });
    const answer = async ({ id }: { id: string }) => {
      calls.push({ id, token });
      await waiting;
      if (id === "echo") throw new Error(`Nothing for ${token}`);
      return { content: [{ type: "text" as const, text: token.split("-")[0] ?? "" }] };
    };
    server.registerTool("me", { description: "Returns the caller.", inputSchema }, answer);
    if (/^(operator|ann)/.test(token)) {
      server.registerTool("secret", { description: "Is for ann.", inputSchema }, answer);
    }
    return server;
  });
  const served = await serve((request) => {
    requests.push(tokenIn(request));
    return tokenIn(request) === rejected
      ? new Response(null, { status: 401 })
      : handler.fetch(request);
  });
  return {
    ...{ calls, requests, url: `${served.url}/mcp` },
    reject: (token: string) => void (rejected = token),
    change: () => void (more = { now: { type: "string" } }),
    waitFor: (promise: Promise<void> | undefined) => void (waiting = promise),
    async [Symbol.asyncDispose]() {
      await handler.close();
      await served.stop();
    },
  };
}

async function importFrom(
  url: string,
  token: (request: CredentialRequest) => string | undefined,
  options: Partial<ImportMcpServerOptions> = {},
) {
  const registry = new ToolRegistry();
  let rejections = 0;
  const imported = await importMcpServer(url, {
    namespace: "hub",
    registry,
    http: { requestInit: { headers: { authorization: "Bearer operator" } } },
    credentials: { hub: {} },
    authorize: (call) => call.credential("hub"),
    ...options,
  });
  const source = fromContext((_, request) => {
    const value = token(request);
    return value === undefined ? undefined : { token: value, reject: () => void rejections++ };
  });
  const dispatcher = new ToolDispatcher(registry, {
    credentials: credentials(source),
    // A system queues about 500 new connections to a server, and resets further ones.
    limits: { maxConcurrent: 64, maxQueued: 1_000 },
  });
  return {
    async fail(principal: string, id: string) {
      const call = { name: "hub:me", arguments: { id } };
      const result = await dispatcher.dispatch(call, { principal });
      assert(!result.ok);
      return result;
    },
    call: async (principal: string, name = "hub:me", id = principal) =>
      contentOf(await dispatcher.dispatch({ name, arguments: { id } }, { principal })),
    rejections: () => rejections,
    refresh: () => imported.refresh(),
    [Symbol.asyncDispose]: () => imported.close(),
  };
}

describe("importMcpServer() with authorize", () => {
  it("sends none of a thousand concurrent calls with another caller's token", async () => {
    await using server = await startServer();
    await using hub = await importFrom(server.url, ({ principal }) => `${principal}-token`);
    const owners = Array.from({ length: 1_000 }, (_, index) => index % 2 === 0 ? "ann" : "bob");
    const results = await Promise.all(
      owners.map((owner, index) => hub.call(owner, "hub:me", `${owner}.${index}`)),
    );
    assertEquals(results, owners);
    const crossed = server.calls.filter(({ id, token }) =>
      id.split(".")[0] !== token.split("-")[0]
    );
    assertEquals([server.calls.length, crossed], [1_000, []]);
  });

  it("calls only tools that the server lists for the caller's own token, unless callers share the list", async () => {
    await using server = await startServer();
    const token = ({ principal }: CredentialRequest) => `${principal}-token`;
    await using own = await importFrom(server.url, token);
    assertEquals(await own.call("ann", "hub:secret"), "ann");
    assertEquals(await own.call("bob", "hub:secret"), "unavailable");
    assert(server.calls.every(({ token }) => token !== "bob-token"));
    await using shared = await importFrom(server.url, token, { sharesList: true });
    // The server itself rejects the call.
    assertEquals(await shared.call("bob", "hub:secret"), "threw");
    assertEquals(await shared.call("bob"), "bob");
  });

  it("uses a new token at the next call, and reports a rejected one to its source", async () => {
    await using server = await startServer();
    let current = "ann-1";
    await using hub = await importFrom(server.url, () => current);
    assertEquals(await hub.call("ann"), "ann");
    server.reject("ann-1");
    assert(await hub.call("ann") !== "ann");
    assert(hub.rejections() > 0);
    current = "ann-2";
    assertEquals(await hub.call("ann"), "ann");
    assertEquals(server.calls.map(({ token }) => token), ["ann-1", "ann-2"]);
  });

  it("does not report that a call has run if the connection of its caller cannot be opened", async () => {
    await using server = await startServer();
    server.reject("ann-1");
    await using hub = await importFrom(server.url, () => "ann-1");
    const { error } = await hub.fail("ann", "1");
    assertEquals([error.code, error.ran, server.calls], ["unavailable", "no", []]);
    assertStringIncludes(error.message, "the server sent HTTP status 401");
  });

  it("sends no caller with the credential of the import's own connection", async () => {
    await using server = await startServer();
    const authProvider = { token: () => Promise.resolve("operator") };
    await using hub = await importFrom(server.url, () => "ann-1", { http: { authProvider } });
    assertEquals(await hub.call("ann"), "ann");
    assertEquals(server.calls.map(({ token }) => token), ["ann-1"]);
  });

  it("reads a caller's list again when the server has changed a tool", async () => {
    await using server = await startServer();
    await using hub = await importFrom(server.url, () => "ann-1");
    assertEquals(await hub.call("ann"), "ann");
    server.change();
    await hub.refresh();
    const calls = Array.from({ length: 20 }, () => hub.call("ann"));
    assertEquals([...new Set(await Promise.all(calls))], ["ann"]);
  });

  it("bounds the connections of all callers and of one caller, and closes unused ones", async () => {
    await using server = await startServer();
    let count = 0;
    let end = (): void => {};
    const token = ({ principal }: CredentialRequest) => `${principal}-${++count}`;
    // One connection for each principal.
    await using hub = await importFrom(server.url, token, { maxConnections: 8 });
    server.waitFor(new Promise((resolve) => end = resolve));
    const arrived = async (wanted: number): Promise<void> => {
      while (server.calls.length < wanted) await new Promise((next) => setTimeout(next, 1));
    };
    const running = hub.call("ann");
    await arrived(1);
    assertEquals(await hub.call("ann"), "overloaded");
    const others = Array.from({ length: 7 }, (_, index) => hub.call(`p${index}`));
    await arrived(8);
    assertEquals(await hub.call("bob"), "overloaded");
    server.waitFor(undefined);
    end();
    assertEquals(await running, "ann");
    assertEquals((await Promise.all(others)).length, 7);
    // An unused connection makes room.
    assertEquals(await hub.call("bob"), "bob");
  });

  it("uses a connection again, and closes it when it is idle", async () => {
    await using server = await startServer();
    await using hub = await importFrom(server.url, () => "ann-1");
    const requestsOf = async (one: typeof hub): Promise<number> => {
      const before = server.requests.length;
      assertEquals(await one.call("ann"), "ann");
      return server.requests.length - before;
    };
    assert(await requestsOf(hub) > 1);
    assertEquals(await requestsOf(hub), 1);
    await using brief = await importFrom(server.url, () => "ann-1", { idleMs: 0 });
    await requestsOf(brief);
    // A later timer fires after the one that closes the connection.
    await new Promise((resolve) => setTimeout(resolve, 1));
    assert(await requestsOf(brief) > 1);
  });

  it("removes a token that the server repeats, even if plue did not add the token", async () => {
    await using server = await startServer();
    for (const options of [{}, { authorize: () => "ann-token" }]) {
      await using hub = await importFrom(server.url, () => "ann-token", options);
      const { error } = await hub.fail("ann", "echo");
      assertStringIncludes(error.message, "Nothing for [credential]");
    }
  });

  it("rejects options without effect, and a caller without a credential", async () => {
    await using server = await startServer();
    await using hub = await importFrom(server.url, () => undefined);
    assertEquals(await hub.call("ann"), "denied");
    for (const none of [undefined, "", {}]) {
      await using other = await importFrom(server.url, () => "t", {
        authorize: () => none as string,
      });
      assertEquals(await other.call("ann"), "denied");
    }
    const wrong: readonly [Parameters<typeof importMcpServer>[0], object, string][] = [
      [server.url, { idleMs: 1 }, "without authorize"],
      [{ command: "node" }, { authorize: () => "token" }, "the source must be a URL"],
      [server.url, { authorize: "token" }, "authorize must be a function"],
      [server.url, { authorize: () => "token", maxConnections: 0 }, "maxConnections"],
    ];
    for (const [source, options, message] of wrong) {
      const importing = importMcpServer(source, { namespace: "hub", ...options } as never);
      await assertRejects(() => importing, Error, message);
    }
  });
});
