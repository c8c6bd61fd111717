import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { networkInterfaces } from "node:os";
import { PassThrough } from "node:stream";
import { runCommand } from "../../src/cli/program.ts";
import { serveStdio } from "../../src/cli/serve/stdio.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { freePort } from "../support/free_port.ts";
import { poll } from "../support/waiting.ts";
import { folder, plue } from "./support.ts";

const files = folder();
const META = {
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

const MODULE =
  'export const greet = { name: "greet", description: "Greets.", risk: "safe", execute: () => 1 };';

/** Sends messages of a revision, and returns the code of each error, by its id. */
async function errorsOf(
  messages: readonly {
    readonly method: string;
    readonly version?: string;
    readonly name?: string;
  }[],
): Promise<Readonly<Record<string, number | undefined>>> {
  const tools = await files.write("tools.mjs", MODULE);
  const lines = messages.map(({ method, version = "2026-07-28", name }, id) => {
    const _meta = { ...META, "io.modelcontextprotocol/protocolVersion": version };
    return JSON.stringify({ jsonrpc: "2.0", id, method, params: { _meta, name } });
  });
  const { stdout } = await plue(["serve", tools, "--stdio"], { stdin: lines.join("\n") });
  return Object.fromEntries(
    stdout.trim().split("\n").map((line) => JSON.parse(line))
      .map(({ id, error }) => [id, error?.code]),
  );
}

describe("plue serve --stdio", () => {
  it("rejects a method or a revision that a header cannot have", async () => {
    const errors = await errorsOf([
      { method: "tools/call", name: "greet" },
      { method: "a\r\nb: c" },
      { method: "tools/call", name: "greet", version: "x\ny" },
      { method: "tools/call", name: "greet", version: "2026→07" },
      { method: "" },
    ]);
    assertEquals(errors, { 0: undefined, 1: -32_600, 2: -32_600, 3: -32_600, 4: -32_600 });
  });

  it("does not respond to a response of the client", async () => {
    const response = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { action: "accept" } });
    const path = await files.write("plue.json", '{"sources": {}}');
    const { code, stdout } = await plue(["serve", "-c", path, "--stdio"], { stdin: response });
    assertEquals([code, stdout], [0, ""]);
  });

  it("disposes of the registry of a module at the end of its input", async () => {
    let disposed = 0;
    process.on("registryDisposed" as never, () => disposed++);
    const state = 'init: () => 1, dispose: () => process.emit("registryDisposed"), execute';
    await files.write(
      "registry.mjs",
      `import { ToolRegistry } from ${
        JSON.stringify(new URL("../../mod.ts", import.meta.url).href)
      };
${MODULE.replace("execute", state)}\nexport const registry = new ToolRegistry({ tools: [greet] });`,
    );
    const path = await files.write("own.json", { sources: { one: { from: "registry.mjs" } } });
    const _meta = { ...META, "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
    const call = { method: "tools/call", params: { _meta, name: "greet", arguments: {} } };
    const stdin = JSON.stringify({ jsonrpc: "2.0", id: 1, ...call });
    const { stdout } = await plue(["serve", "-c", path, "--stdio"], { stdin });
    assertEquals([JSON.parse(stdout).result.isError, disposed], [undefined, 1]);
  });

  it("answers a call of an unknown tool with a name of 800,000 bytes", async () => {
    const errors = await errorsOf([{ method: "tools/call", name: "é".repeat(400_000) }]);
    assertEquals(errors, { 0: -32_602 });
  });

  it("serves the callbacks of a module, and nothing else, over HTTP, unless their port is in use", async () => {
    const callback = `(request) => {
      if (request.url.endsWith("?fail")) throw new Error("a secret");
      return new Response("connected");
    }`;
    const exported = `["/", "/connected"].map((path) => Object.assign(${callback}, { path }))`;
    const module = `${MODULE}\nexport const callback = ${exported};`;
    const tools = await files.write("callback.mjs", module);
    const path = await files.write("callback.json", { sources: { one: { from: "callback.mjs" } } });
    const outer = Object.values(networkInterfaces()).flatMap((list = []) => list)
      .filter(({ internal, family }) => !internal && family === "IPv4");
    for (const words of [["serve", tools, "--stdio"], ["serve", "-c", path, "--stdio"]]) {
      const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
      // Clients over stdio have no token, and the address is one of this machine.
      const token = "a-token-of-the-test";
      const env = { PORT: String(await freePort()), HOST: "0.0.0.0", PLUE_TOKEN: token };
      const { signal } = new AbortController();
      const ended = runCommand(words, { env, stdin, stdout, stderr, signal, interrupt() {} });
      const read = (path: string, host = "127.0.0.1") => fetch(`http://${host}:${env.PORT}${path}`);
      await poll(() => read("/").then(() => true, () => false));
      assertEquals(await (await read("/connected")).text(), "connected");
      assertEquals((await read("/tools")).status, 404);
      const failed = await read("/connected?fail");
      assertEquals([failed.status, await failed.text()], [500, ""]);
      for (const { address } of outer) await assertRejects(() => read("/connected", address));
      const second = await plue(words, { env });
      assertEquals(second.code, 0);
      assertStringIncludes(second.stderr, "another process has port");
      stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
      assertEquals(await ended, 0);
      assertStringIncludes(String(stdout.read()), '"result":{}');
    }
  });

  it("ends if it was interrupted during the start, while its input stays open", async () => {
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const io = { env: {}, stdin, stdout, stderr, signal: AbortSignal.abort(), interrupt() {} };
    const fetch = () => Promise.resolve(new Response());
    const ended = serveStdio({ fetch }, () => buildToolset([]), io);
    const later = new Promise((resolve) => setTimeout(resolve, 0, "it waits"));
    assertEquals(await Promise.race([ended, later]), 0);
  });
});
