/** `importMcpServer` on real servers: those of npm, one that crashes, and plue's own endpoint. */

import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { importMcpServer } from "@plue/tools/mcp";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { freePort } from "../../runtime/workerd.ts";
import { type RunningServer, startServer } from "../servers.ts";
import { followChanges } from "../../support/changes.ts";

const packageFile = (name: string): string =>
  join(import.meta.dirname, "../node_modules/@modelcontextprotocol", name, "dist/index.js");

const node = (...args: readonly string[]) => ({
  command: "node",
  args,
  env: { PATH: process.env["PATH"] ?? "" },
  stderr: "ignore" as const,
});

/** Waits until a registry has changed in this way. */
async function changed(
  registry: ToolRegistry,
  type: "added" | "removed" | "updated",
): Promise<string> {
  const changes = followChanges(registry);
  for (;;) {
    const change = await changes.next();
    if (change.type === type) return change.tool.id;
  }
}

describe("importMcpServer() with servers from npm", () => {
  let folder: string;
  beforeEach(() => {
    // The server follows links, and so the folder's own name must have none.
    folder = realpathSync(mkdtempSync(join(tmpdir(), "plue-mcp-")));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("reads and writes files with server-filesystem", async () => {
    writeFileSync(join(folder, "hello.txt"), "hello");
    const registry = new ToolRegistry();
    await using server = await importMcpServer(
      node(packageFile("server-filesystem"), folder),
      {
        namespace: "files",
        registry,
      },
    );
    assertEquals(server.rejected, []);
    assert(registry.hasTool("files:read_text_file"));
    assertEquals(registry.getTool("files:read_text_file")?.risk, "low");
    assertEquals(registry.getTool("files:write_file")?.risk, "high");

    const dispatcher = new ToolDispatcher(registry);
    const read = await dispatcher.dispatch({
      name: "files:read_text_file",
      arguments: { path: join(folder, "hello.txt") },
    });
    assertEquals(read.ok && read.content, { content: "hello" });
    await dispatcher.dispatch({
      name: "files:write_file",
      arguments: { path: join(folder, "new.txt"), content: "written" },
    });
    assertEquals(readFileSync(join(folder, "new.txt"), "utf8"), "written");
    const outside = await dispatcher.dispatch({
      name: "files:read_text_file",
      arguments: { path: "/etc/hostname" },
    });
    assertStringIncludes(outside.ok ? "" : outside.error.message, "Access denied");
  });

  it("remembers with server-memory, and takes its tools out in the end", async () => {
    const registry = new ToolRegistry();
    const command = node(packageFile("server-memory"));
    const server = await importMcpServer({
      ...command,
      env: { ...command.env, MEMORY_FILE_PATH: join(folder, "memory.json") },
    }, { namespace: "memory", registry });
    const dispatcher = new ToolDispatcher(registry);
    const entities = [{
      name: "plue",
      entityType: "library",
      observations: ["has tools"],
    }];
    const created = await dispatcher.dispatch({
      name: "memory:create_entities",
      arguments: { entities },
    });
    assertEquals(created.ok, true, JSON.stringify(created));
    const graph = await dispatcher.dispatch({ name: "memory:read_graph" });
    assertStringIncludes(JSON.stringify(graph), "has tools");
    await server.close();
    assertEquals(registry.count, 0);
  });

  it("calls server-everything: values, images, progress, failures", async () => {
    const registry = new ToolRegistry();
    await using server = await importMcpServer(
      node(packageFile("server-everything"), "stdio"),
      {
        namespace: "all",
        registry,
      },
    );
    assert(server.tools.length > 5);
    const dispatcher = new ToolDispatcher(registry);
    const echo = await dispatcher.dispatch({
      name: "all:echo",
      arguments: { message: "hi" },
    });
    assertEquals(echo.ok && echo.content, "Echo: hi");
    const image = await dispatcher.dispatch({ name: "all:get-tiny-image" });
    assert(image.ok && image.blocks);
    const seen: number[] = [];
    const long = await dispatcher.dispatch({
      name: "all:trigger-long-running-operation",
      arguments: { duration: 0.2, steps: 2 },
    }, { progress: ({ done }) => void seen.push(done) });
    assertEquals(long.ok, true, JSON.stringify(long));
    assertEquals(seen, [1, 2]);
    const wrong = await dispatcher.dispatch({
      name: "all:echo",
      arguments: {},
    });
    assertEquals(wrong.ok ? "" : wrong.error.code, "invalid_arguments");
  });
});

describe("importMcpServer() with a program that ends", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "plue-mcp-"));
    writeFileSync(join(folder, "log"), "");
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const program = () =>
    node(
      "--disable-warning=ExperimentalWarning",
      join(import.meta.dirname, "crashing_server.ts"),
      join(folder, "log"),
    );

  it("restarts it, and its tools continue to work", async () => {
    const registry = new ToolRegistry();
    const errors: unknown[] = [];
    await using _server = await importMcpServer(program(), {
      namespace: "app",
      registry,
      reconnect: { firstDelayMs: 1 },
      onError: (error) => void errors.push(error),
    });
    const dispatcher = new ToolDispatcher(registry);
    const first = await dispatcher.dispatch({ name: "app:pid" });
    const crash = await dispatcher.dispatch({ name: "app:crash" });
    assertEquals(crash.ok ? "" : crash.error.code, "unavailable");
    // The call may have run, and its tool is not idempotent.
    assertEquals(!crash.ok && [crash.error.ran, crash.error.retryable], ["unknown", false]);
    // This call waits for the new process.
    const second = await dispatcher.dispatch({ name: "app:pid" });
    assert(first.ok && second.ok && first.content !== second.content);
    assertEquals(errors, []);
  });

  it("passes on progress, cancels calls and follows the list", async () => {
    const registry = new ToolRegistry();
    await using server = await importMcpServer(program(), { namespace: "app", registry });
    const dispatcher = new ToolDispatcher(registry);

    // Many concurrent calls, so that one read contains many messages: progress with its result.
    const COUNT = 50;
    let seen = 0;
    const progress = (): void => void seen++;
    const steps = Array.from(
      { length: COUNT },
      () => dispatcher.dispatch({ name: "app:step" }, { progress }),
    );
    await Promise.all(steps);
    assertEquals(seen, COUNT);

    const caller = new AbortController();
    const call = dispatcher.dispatch({ name: "app:wait" }, { signal: caller.signal });
    const logged = async (line: string): Promise<void> => {
      while (!readFileSync(join(folder, "log"), "utf8").includes(line)) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    await logged("waiting");
    caller.abort();
    const result = await call;
    assertEquals(result.ok ? "" : result.error.code, "aborted");
    await logged("cancelled");

    const before = registry.getTool("app:pid");
    const added = changed(registry, "added");
    await dispatcher.dispatch({ name: "app:grow" });
    assertEquals(await added, "app:grown");
    assertEquals(server.tools.some(({ name }) => name === "grown"), true);
    // An unchanged tool is not replaced: its calls continue.
    assertEquals(registry.getTool("app:pid") === before, true);
  });
});

describe("importMcpServer() with a server that is started anew", () => {
  it("follows plue's endpoint again, and sees what has changed", async () => {
    const app = join(import.meta.dirname, "../app.ts");
    const first = await startServer("bun", app);
    const registry = new ToolRegistry();
    await fetch(new URL("/grow", first.url), {
      method: "POST",
      body: '{"name":"gone"}',
    });
    await using _imported = await importMcpServer(first.url, {
      namespace: "far",
      registry,
      http: { requestInit: { headers: { authorization: "Bearer guest" } } },
      reconnect: { firstDelayMs: 10, maxDelayMs: 50 },
    });
    assert(registry.hasTool("far:gone"));
    const removed = changed(registry, "removed");
    await first.stop();
    const second = await startServer("bun", app, first.url.port);
    try {
      assertEquals(await removed, "far:gone");
      const dot = await new ToolDispatcher(registry).dispatch({
        name: "far:dot",
      });
      assertEquals(dot.ok, true, JSON.stringify(dot));
      const added = changed(registry, "added");
      await fetch(new URL("/grow", second.url), {
        method: "POST",
        body: '{"name":"new"}',
      });
      assertEquals(await added, "far:new");
    } finally {
      await second.stop();
    }
  });

  it("has a call wait that was not sent, and begins a new session with a server that has forgotten the old one", async () => {
    const first = await startEverything("0");
    const registry = new ToolRegistry();
    await using _imported = await importMcpServer(first.url, {
      namespace: "all",
      registry,
      reconnect: { firstDelayMs: 10, maxDelayMs: 50 },
    });
    const echo = async (): Promise<void> => {
      const call = { name: "all:echo", arguments: { message: "hi" } };
      const answer = await new ToolDispatcher(registry).dispatch(call);
      assertEquals(answer.ok && answer.content, "Echo: hi", JSON.stringify(answer));
    };
    await first.stop();
    // There is no server at all now.
    const waiting = echo();
    const second = await startEverything(first.url.port);
    await waiting;
    await second.stop();
    const third = await startEverything(first.url.port);
    try {
      await echo();
    } finally {
      await third.stop();
    }
  });
});

/** Starts server-everything over HTTP: of the older era, with sessions. */
async function startEverything(port: string): Promise<RunningServer> {
  const free = port === "0" ? String(await freePort()) : port;
  const child = spawn("node", [
    packageFile("server-everything"),
    "streamableHttp",
  ], {
    env: { ...process.env, PORT: free },
    stdio: ["ignore", "ignore", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (text.includes("listening")) resolve();
    });
    child.once("exit", (code) => reject(new Error(`server-everything ended with ${code}`)));
  });
  return {
    url: new URL(`http://127.0.0.1:${free}/mcp`),
    async stop() {
      const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      child.kill("SIGKILL");
      await gone;
    },
  };
}

describe("importMcpServer() with plue's own endpoint on workerd", () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer("workerd", join(import.meta.dirname, "../app.ts"));
  });
  afterAll(() => server.stop());
  const http = {
    requestInit: { headers: { authorization: "Bearer guest" } },
  };
  const toggle = (name: string): Promise<Response> =>
    fetch(new URL("/grow", server.url), {
      method: "POST",
      body: JSON.stringify({ name }),
    });

  it("brings over what a tool is and answers", async () => {
    const registry = new ToolRegistry();
    await using imported = await importMcpServer(server.url, {
      namespace: "far",
      registry,
      http,
    });
    assertEquals(registry.ids, [
      "far:dot",
      "far:math.add",
      "far:steps",
      "far:wait",
    ]);
    assertEquals(imported.rejected, []);
    const sum = await new ToolDispatcher(registry).dispatch({
      name: "far:math.add",
      arguments: { a: 2, b: 40 },
    });
    assertEquals(sum.ok && sum.content, { sum: 42 });
  });

  it("follows its changes", async () => {
    const registry = new ToolRegistry();
    await using _imported = await importMcpServer(server.url.href, {
      namespace: "far",
      registry,
      http,
    });
    const added = changed(registry, "added");
    await toggle("later");
    assertEquals(await added, "far:later");
    const removed = changed(registry, "removed");
    await toggle("later");
    assertEquals(await removed, "far:later");
  });

  it("cancels a call there", async () => {
    const registry = new ToolRegistry();
    await using _imported = await importMcpServer(server.url, {
      namespace: "far",
      registry,
      http,
    });
    const watch = async () => await (await fetch(new URL("/watch", server.url))).json();
    const before = await watch();
    const caller = new AbortController();
    const call = new ToolDispatcher(registry).dispatch({ name: "far:wait" }, {
      signal: caller.signal,
    });
    const until = async (holds: (now: typeof before) => boolean): Promise<void> => {
      while (!holds(await watch())) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    await until(({ started }) => started > before.started);
    caller.abort();
    assertEquals((await call).ok, false);
    await until(({ aborted, inFlight }) => aborted > before.aborted && inFlight === 0);
  });

  it("takes a client that is connected, and leaves it so", async () => {
    const client = new Client({ name: "own", version: "1.0.0" });
    await client.connect(new StreamableHTTPClientTransport(server.url, http));
    const imported = await importMcpServer(client, { namespace: "mine" });
    assertEquals(imported.tools.length, 4);
    await imported.close();
    assertEquals((await client.listTools()).tools.length, 4);
    await client.close();
  });

  it("does not come in without a token", async () => {
    await assertRejects(() => importMcpServer(server.url, { namespace: "far" }));
  });
});
