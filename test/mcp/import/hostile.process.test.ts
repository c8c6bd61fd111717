/** `importMcpServer` on programs that are hostile or broken. */

import { toolPins } from "@plue/tools/pins";
import { afterEach, beforeEach, describe, it } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { loadClient } from "../../../src/adapters/mcp/client_library.ts";
import { poll } from "../../support/waiting.ts";
import { imported, textOf } from "./imported.ts";

let folder: string;
let log: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plue-hostile-"));
  log = join(folder, "log");
  writeFileSync(log, "");
});
afterEach(() => rmSync(folder, { recursive: true }));

const hostile = (what: string) => ({
  command: "node",
  args: [
    "--disable-warning=ExperimentalWarning",
    join(import.meta.dirname, "hostile_server.ts"),
    what,
    log,
  ],
  env: { PATH: process.env["PATH"] ?? "", API_KEY: "secret-of-env" },
  stderr: "ignore" as const,
});

const logged = (): readonly string[] => readFileSync(log, "utf8").split("\n");

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const errorOf = (work: Promise<unknown>): Promise<Error> =>
  work.then(() => new Error("It did not fail"), (error) => error);

describe("importMcpServer() with a program that is hostile", () => {
  it("ends a program that writes an endless line, and restarts it", async () => {
    const errors: Error[] = [];
    await using far = await imported(hostile("calm"), {
      maxMessageBytes: 1_048_576,
      reconnect: { firstDelayMs: 1 },
      onError: (error) => void errors.push(error as Error),
    });
    assertMatch(String(textOf(await far.call("endless"))), /^unavailable: /);
    assertStringIncludes(
      errors[0]?.message ?? "",
      "the server sent more than 4194304 bytes in one message",
    );
    const [first] = logged().filter((line) => line.startsWith("pid")).slice(-1);
    await poll(() => !isRunning(Number(first?.slice(4))));
    assertEquals(textOf(await far.call("call")), "done");
  });

  it("fails only the call whose answer is too large", async () => {
    await using far = await imported(hostile("calm"), { maxMessageBytes: 1_048_576 });
    const started = logged();
    assertMatch(String(textOf(await far.call("large"))), /^threw: .* more than 1048576 bytes/);
    assertEquals(textOf(await far.call("call")), "done");
    assertEquals(logged(), started);
  });

  it("continues to read after a flood of unsolicited messages", async () => {
    await using far = await imported(hostile("flood"));
    assertEquals(textOf(await far.call("call")), "done");
  });

  it("connects to other servers while a program writes lines without end before it is connected", async () => {
    const source = { command: "sh", args: ["-c", `echo "pid $$" >> '${log}'; exec yes`] };
    await using flooding = (await imported(source, { background: true })).server;
    await poll(() => logged().length > 1);
    await using far = await imported(hostile("calm"));
    assertEquals(textOf(await far.call("call")), "done");
    assertEquals(flooding.tools, []);
  });

  it("sends no calls while a program has too many unread bytes, even of aborted calls", async () => {
    await using far = await imported(hostile("deaf"), { maxMessageBytes: 1_048_576 });
    const caller = new AbortController();
    const send = () => far.call("call", { text: "a".repeat(900_000) }, { signal: caller.signal });
    const sent = [send(), send()];
    const refused = 'unavailable: Cannot call "call": the MCP server does not read its input';
    const third = await far.call("call");
    assertStringIncludes(String(textOf(third)), refused);
    assertEquals(third.ok || third.error.ran, "no");
    caller.abort();
    for (const one of await Promise.all(sent)) assertMatch(String(textOf(one)), /^aborted/);
    assertStringIncludes(String(textOf(await far.call("call"))), refused);

    const [pid] = logged().filter((line) => line.startsWith("pid")).slice(-1);
    process.kill(Number(pid?.slice(4)), "SIGUSR2");
    await poll(async () => textOf(await far.call("call")) === "done");
    assertEquals(logged().filter((line) => line.startsWith("pid")).slice(-1), [pid]);
  });

  it("stops immediately when it is aborted, and ends the program", async () => {
    const caller = new AbortController();
    const failed = errorOf(imported(hostile("silent"), { signal: caller.signal }));
    await poll(() => logged().includes("list"));
    const reason = new Error("Enough");
    caller.abort(reason);
    assertEquals(await failed, reason);
    for (const line of logged().filter((one) => one.startsWith("pid"))) {
      await poll(() => !isRunning(Number(line.slice(4))));
    }
  });

  it("ends a program that ignores SIGTERM before close() resolves, although it never connected", async () => {
    const script = `trap '' TERM; echo "pid $$" >> '${log}'; exec sleep 300`;
    const source = { command: "sh", args: ["-c", script] };
    const { server } = await imported(source, { background: true });
    await poll(() => logged().length > 1);
    await server.close();
    const pids = logged().slice(0, -1).map((line) => Number(line.slice(4)));
    assertEquals(pids.filter(isRunning), []);
  });

  it("gives a program more time after each timeout, because its first start may take minutes", async () => {
    const { Client } = await loadClient();
    const { connect } = Client.prototype;
    const limits: number[] = [];
    const now = performance.now.bind(performance);
    let passed = 0;
    performance.now = () => now() + passed;
    Client.prototype.connect = (_, { timeout = 0 } = {}) => {
      // The first attempt fails immediately.
      if (limits.push(timeout) > 1) passed += timeout;
      return Promise.reject(new Error("no"));
    };
    const options = { background: true, reconnect: { firstDelayMs: 1, maxDelayMs: 1 } };
    const { server } = await imported(hostile("calm"), options);
    await poll(() => limits.length > 5);
    await server.close();
    Client.prototype.connect = connect;
    performance.now = now;
    assertEquals(limits.slice(0, 6), [30_000, 30_000, 60_000, 120_000, 240_000, 240_000]);
  });

  for (
    const [what, why] of [
      ["exit", "the program ended with exit code 3"],
      ["kill", "the program was ended by SIGKILL"],
    ] as const
  ) {
    it(`reports that ${why}, without secrets`, async () => {
      const { message } = await errorOf(imported(hostile(what)));
      assertEquals(message, `Cannot import the MCP server "node": ${why}`);
    });
  }

  it("names the program that cannot be started", async () => {
    const command = join(folder, "nothing");
    const { message } = await errorOf(imported({ ...hostile(""), command }));
    assertStringIncludes(message, `the MCP server "${command}": `);
    assertStringIncludes(message, "ENOENT");
    assertEquals(message.includes("secret-of-env"), false);
  });

  it("recognises a real server's tools from a file of pins", async () => {
    const pins = () => toolPins(join(folder, "pins.json"));
    const first = await imported(hostile("calm"), { pins: pins() });
    assertEquals(first.server.tools.length, 3);
    await first.server.close();
    const text = readFileSync(join(folder, "pins.json"), "utf8");
    assertEquals(Object.keys(JSON.parse(text).imports), ["x"]);
    await using second = await imported(hostile("calm"), { pins: pins() });
    assertEquals([second.server.tools.length, second.server.held], [3, []]);
  });
});
