/** `importMcpServer` on real servers: packages of npm, a server that crashes, and plue's own endpoint. */

import { importMcpServer } from "@plue/tools/mcp";
import { afterEach, beforeEach, describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { freePort } from "../../support/free_port.ts";
import { type RunningServer, serverOn } from "../servers.ts";
import { poll } from "../../support/waiting.ts";
import { changed, imported, textOf } from "./imported.ts";

const packageFile = (name: string): string =>
  join(import.meta.dirname, "../node_modules/@modelcontextprotocol", name, "dist/index.js");

const node = (...args: readonly string[]) => ({
  command: "node",
  args,
  env: { PATH: process.env["PATH"] ?? "" },
  stderr: "ignore" as const,
});

const grow = (url: URL, name: string): Promise<Response> =>
  fetch(new URL("/grow", url), { method: "POST", body: JSON.stringify({ name }) });

let folder: string;
beforeEach(() => {
  // The path of the folder must not contain links, because a server resolves them.
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plue-mcp-")));
  writeFileSync(join(folder, "log"), "");
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("importMcpServer() with servers from npm", () => {
  it("reads and writes files with server-filesystem", async () => {
    writeFileSync(join(folder, "hello.txt"), "hello");
    await using far = await imported(node(packageFile("server-filesystem"), folder));
    assertEquals(far.server.rejected, []);
    const risks = ["read_text_file", "write_file"].map((name) =>
      far.registry.getTool(`x:${name}`)?.risk
    );
    assertEquals(risks, ["low", "high"]);
    const read = await far.call("read_text_file", { path: join(folder, "hello.txt") });
    assertEquals(textOf(read), { content: "hello" });
    await far.call("write_file", { path: join(folder, "new.txt"), content: "written" });
    assertEquals(readFileSync(join(folder, "new.txt"), "utf8"), "written");
    const outside = await far.call("read_text_file", { path: "/etc/hostname" });
    assertMatch(String(textOf(outside)), /^threw: .*Access denied/);
  });

  it("calls server-memory, and removes its tools at the end", async () => {
    const command = node(packageFile("server-memory"));
    const env = { ...command.env, MEMORY_FILE_PATH: join(folder, "memory.json") };
    const far = await imported({ ...command, env });
    const entities = [{ name: "plue", entityType: "library", observations: ["has tools"] }];
    const created = await far.call("create_entities", { entities });
    assertEquals(created.ok, true, JSON.stringify(created));
    assertStringIncludes(JSON.stringify(await far.call("read_graph")), "has tools");
    await far.server.close();
    assertEquals(far.registry.count, 0);
  });

  it("imports server-system-monitor without its page, and without the tool of the page", async () => {
    await using far = await imported(node(packageFile("server-system-monitor"), "--stdio"));
    assertEquals(
      far.server.tools.map(({ id, meta }) => [id, meta?.["ui"]]),
      [["x:get-system-info", undefined]],
    );
    assertEquals(far.server.rejected.map(({ message }) => message), [
      'Cannot import "poll-system-stats": only pages of MCP Apps may call it',
    ]);
    assertEquals((await far.call("get-system-info")).ok, true);
  });

  it("calls server-everything: values, images, progress, failures", async () => {
    await using far = await imported(node(packageFile("server-everything"), "stdio"));
    assert(far.server.tools.length > 5);
    assertEquals(far.server.rejected.map(({ message }) => message), [
      'Cannot import "simulate-research-query": it must run as a task of its server, which plue does ' +
      "not support",
    ]);
    assertEquals(textOf(await far.call("echo", { message: "hi" })), "Echo: hi");
    const image = await far.call("get-tiny-image");
    assert(image.ok && image.blocks);
    const seen: number[] = [];
    const long = await far.call("trigger-long-running-operation", { duration: 0.2, steps: 2 }, {
      progress: ({ done }) => void seen.push(done),
    });
    assertEquals([long.ok, seen], [true, [1, 2]], JSON.stringify(long));
    assertMatch(String(textOf(await far.call("echo"))), /^invalid_arguments: /);
  });
});

describe("importMcpServer() with a program that ends", () => {
  const program = () =>
    node(
      "--disable-warning=ExperimentalWarning",
      join(import.meta.dirname, "crashing_server.ts"),
      join(folder, "log"),
    );

  it("restarts it, and its tools continue to work", async () => {
    const errors: unknown[] = [];
    await using far = await imported(program(), {
      reconnect: { firstDelayMs: 1 },
      onError: (error) => void errors.push(error),
    });
    const first = await far.call("pid");
    const crash = await far.call("crash");
    // The call may have run, and its tool is not idempotent.
    assertEquals(
      !crash.ok && [crash.error.code, crash.error.ran, crash.error.retryable],
      ["unavailable", "unknown", false],
    );
    // This call waits for the new process.
    const second = await far.call("pid");
    assert(first.ok && second.ok && first.content !== second.content);
    // A child of the program still holds its output open.
    const leave = await far.call("leave");
    assertEquals(!leave.ok && leave.error.code, "unavailable");
    assert((await far.call("pid")).ok);
    assertEquals(errors, []);
  });

  it("forwards progress, cancels calls and follows the list", async () => {
    await using far = await imported(program());
    // Many concurrent calls, so that one read contains many messages: progress with its result.
    const COUNT = 50;
    let seen = 0;
    const progress = (): void => void seen++;
    await Promise.all(Array.from({ length: COUNT }, () => far.call("step", {}, { progress })));
    assertEquals(seen, COUNT);

    const caller = new AbortController();
    const call = far.call("wait", {}, { signal: caller.signal });
    const logged = (line: string): Promise<void> =>
      poll(() => readFileSync(join(folder, "log"), "utf8").includes(line));
    await logged("waiting");
    caller.abort();
    assertMatch(String(textOf(await call)), /^aborted: /);
    await logged("cancelled");

    const before = far.registry.getTool("x:pid");
    const added = changed(far.registry, "added");
    await far.call("grow");
    assertEquals(await added, "x:grown");
    assertEquals(far.server.tools.some(({ name }) => name === "grown"), true);
    // An unchanged tool is not replaced: its calls continue.
    assertEquals(far.registry.getTool("x:pid") === before, true);
  });
});

describe("importMcpServer() with a restarted server", () => {
  it("delays an unsent call, and begins a new session with a server that has lost the old one", async () => {
    const first = await startEverything("0");
    await using far = await imported(first.url, {
      reconnect: { firstDelayMs: 10, maxDelayMs: 50 },
    });
    const echo = async (): Promise<void> =>
      assertEquals(textOf(await far.call("echo", { message: "hi" })), "Echo: hi");
    await first.stop();
    // No server runs now.
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
  const child = spawn("node", [packageFile("server-everything"), "streamableHttp"], {
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
  const server = serverOn("workerd", join(import.meta.dirname, "../app.ts"));
  const http = { requestInit: { headers: { authorization: "Bearer guest" } } };

  it("follows its changes", async () => {
    await using far = await imported(server.url.href, { http });
    for (const type of ["added", "removed"] as const) {
      const change = changed(far.registry, type);
      await grow(server.url, "later");
      assertEquals(await change, "x:later");
    }
  });

  it("cancels a call there", async () => {
    await using far = await imported(server.url, { http });
    const watch = async () => await (await fetch(new URL("/watch", server.url))).json();
    const before = await watch();
    const caller = new AbortController();
    const call = far.call("wait", {}, { signal: caller.signal });
    await poll(async () => (await watch()).started > before.started);
    caller.abort();
    assertEquals((await call).ok, false);
    await poll(async () => {
      const { aborted, inFlight } = await watch();
      return aborted > before.aborted && inFlight === 0;
    });
  });

  it("rejects a client without a token", async () => {
    await assertRejects(() => importMcpServer(server.url, { namespace: "far" }));
  });
});
