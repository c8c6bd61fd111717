import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { callTasks } from "../../src/adapters/calls/mod.ts";
import { sqliteCallStore } from "../../src/adapters/sqlite/mod.ts";
import { systemClock } from "../../src/tool/mod.ts";
import { missing, useServer } from "../adapters/postgres/server.ts";
import { RUN, startProgram } from "../support/program.ts";
import { maybe } from "../support/skip.ts";
import { plue } from "./support.ts";

const YES = { sure: { action: "accept" } };

/** A folder with the state of a server, and the servers that use it, one after the other. */
async function folder() {
  const path = await mkdtemp(join(tmpdir(), "plue-state-"));
  const ran = join(path, "ran");
  await writeFile(ran, "");
  return {
    path,
    ran: async () => (await readFile(ran, "utf8")).trim().split("\n"),
    async serve(env: Readonly<Record<string, string>> = {}, ...flags: readonly string[]) {
      const program = startProgram(process.execPath, [
        ...RUN,
        ...["src/cli/main.ts", "serve", "test/cli/state_tools.mjs", "--no-watch"],
        ...["--port", "0", ...flags],
        ...(flags.includes("--store") ? [] : ["--state", join(path, "state")]),
      ], { RAN: ran, ...env });
      const [, url = ""] = await program.printed(/ on (http:\S+)\n/);
      return {
        program,
        async ask(method: string, place: string, body?: unknown, headers = {}) {
          const response = await fetch(url + place, {
            method,
            headers: { "content-type": "application/json", ...headers },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          });
          return { status: response.status, body: await response.json() };
        },
        async kill() {
          program.child.kill("SIGKILL");
          await program.ended;
        },
        [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}

describe("plue serve --store", () => {
  const server = useServer();

  maybe(missing === undefined, missing ?? "")("shares calls between processes", async () => {
    await using state = await folder();
    const { url } = server();
    assertEquals((await plue(["store", "init", "--store", url])).code, 0);
    await using first = await state.serve({ PLUE_STORE: "sqlite:unused" }, "--store", url);
    await using second = await state.serve({}, "--store", url);
    const key = { "idempotency-key": "order-7" };
    await first.ask("POST", "/tools/pay/execute", {}, key);
    const again = await second.ask("POST", "/tools/pay/execute", {}, key);
    assertEquals([again.body.content, again.body.replayed], ["paid", true]);
    const { body: { ticket, callId } } = await first.ask("POST", "/tools/erase/execute", {});
    await first.kill();
    const answered = await second.ask("POST", `/calls/${callId}`, { ticket, answers: YES });
    assertEquals(answered.body.content, "erased");
    assertEquals(await state.ran(), ["pay", "look", "erase"]);
  });

  it("rejects --state together with it", async () => {
    const both = ["--state", "a", "--store", "sqlite:b"];
    const words = ["serve", "test/cli/state_tools.mjs", "--no-watch", ...both];
    const { code, stderr } = await plue(words);
    const message = "Cannot serve: --state has no effect with --store; omit one of them\n";
    assertEquals([code, stderr], [2, message]);
  });
});

describe("plue serve --state", () => {
  it("continues with tickets, tasks and idempotency keys after it was killed", async () => {
    await using state = await folder();
    const key = { "idempotency-key": "order-7" };
    const erase = "/tools/erase/execute";
    await using first = await state.serve();
    const paid = await first.ask("POST", "/tools/pay/execute", {}, key);
    assertEquals(paid.body.content, "paid");
    const waiting = await first.ask("POST", erase, {});
    assertEquals(waiting.status, 202);
    const { body: { id } } = await first.ask("POST", erase, {}, { prefer: "respond-async" });
    let task = (await first.ask("GET", `/calls/${id}`)).body;
    while (task.status === "working") task = (await first.ask("GET", `/calls/${id}`)).body;
    assertEquals(task.status, "input_required");
    await first.kill();

    await using second = await state.serve();
    const again = await second.ask("POST", "/tools/pay/execute", {}, key);
    assertEquals([again.body.content, again.body.replayed], ["paid", true]);
    const { ticket, callId } = waiting.body;
    const resumed = await second.ask("POST", `/calls/${callId}`, { ticket, answers: YES });
    assertEquals(resumed.body.content, "erased");
    await second.kill();

    await using third = await state.serve();
    const used = await third.ask("POST", `/calls/${callId}`, { ticket, answers: YES });
    assertEquals([used.status, used.body.code], [410, "ticket_refused"]);
    await third.ask("POST", `/calls/${id}`, { answers: YES });
    do task = (await third.ask("GET", `/calls/${id}`)).body; while (task.status === "working");
    assertEquals(task.result.content, "erased");
    // Each action ran once: the steps and the approved actions were not repeated.
    assertEquals(await state.ran(), ["pay", "look", "look", "erase", "erase"]);
  }, 60_000);

  it("continues no task of a tool that it does not serve", async () => {
    await using state = await folder();
    await mkdir(join(state.path, "state"), { mode: 0o700 });
    using store = await sqliteCallStore(join(state.path, "state", "calls.db"));
    // An earlier process, whose lease has expired.
    const timestamp = () => Date.now() - 3_600_000;
    const clock = { ...systemClock, timestamp, setTimeout: () => () => {} };
    const execute = () => new Promise(() => {});
    const pay = { name: "pay", description: "Pays.", idempotent: true, execute };
    const registry = new ToolRegistry({ tools: [pay] });
    const started = await callTasks({ store, clock })
      .start(new ToolDispatcher(registry, { clock }), { name: "pay" });
    assert("id" in started);

    await using _served = await state.serve({}, "--only", "erase");
    for await (const { status, result } of callTasks({ store }).follow(started.id)) {
      if (status === "working") continue;
      assertEquals(result?.ok === false && result.error.code, "unknown_tool");
    }
    assertEquals(await state.ran(), [""]);
  }, 60_000);

  it("still counts invalid tokens after it was killed", async () => {
    await using state = await folder();
    const env = { PLUE_TOKEN: "the-right-token-of-the-test" };
    const wrong = { authorization: "Bearer wrong" };
    await using first = await state.serve(env);
    let status = 401;
    while (status === 401) ({ status } = await first.ask("GET", "/tools", undefined, wrong));
    assertEquals(status, 429);
    await first.kill();

    await using second = await state.serve(env);
    assertEquals((await second.ask("GET", "/tools", undefined, wrong)).status, 429);
  }, 60_000);
});
