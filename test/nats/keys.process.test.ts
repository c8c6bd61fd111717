// With keys, a process that has the secret can act in its own role only.

import { describe, it } from "bun:test";
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { nkeys } from "@nats-io/nats-core";
import { type ToolDefinition, ToolResult } from "@plue/tools";
import { natsCallStore, type NatsKeys } from "@plue/tools/nats";
import { Link } from "../../src/adapters/nats/link.ts";
import { Runs } from "../../src/adapters/nats/runs.ts";
import { type Role, Seal } from "../../src/adapters/nats/seal.ts";
import { SettledStore } from "../../src/execute/durable/mod.ts";
import { SECRET, withServer } from "./server.ts";
import { assertContent, assertFailed, endlessTool, useWorlds } from "./world.ts";

function createKey(): { readonly seed: string; readonly key: string } {
  const pair = nkeys.createUser();
  return { seed: new TextDecoder().decode(pair.getSeed()), key: pair.getPublicKey() };
}

const [caller, worker, other] = [createKey(), createKey(), createKey()];
const keys = (
  { seed }: { readonly seed: string },
  callers = [caller],
  workers = [worker],
): { readonly keys: NatsKeys } => ({
  keys: { seed, callers: callers.map(({ key }) => key), workers: workers.map(({ key }) => key) },
});

const ping: ToolDefinition = { name: "ping", description: "Answers.", execute: () => "pong" };
const again: ToolDefinition = { ...ping, name: "again", idempotent: true };
const task: ToolDefinition = { ...ping, name: "task", execution: "task" };

describe("Keys of callers and workers", () => {
  const { server, withWorld } = useWorlds();

  withServer("exclude the values of workers from the tasks of callers", async () => {
    const connection = await server.connect();
    const open = (keys: { readonly keys: NatsKeys }) =>
      natsCallStore(connection, { bucket: "roles", secret: SECRET, ...keys });
    const [edge, forger] = [await open(keys(caller)), await open(keys(worker))];
    const replaced = await open(keys(other, [caller, other]));
    const value = new Uint8Array(3);
    await edge.create("task.ann.own", value);
    await forger.create("task.ann.forged", value);
    assertEquals((await replaced.get("task.ann.own"))?.value, value);
    assertEquals((await forger.get("task.ann.forged"))?.value, value);
    await assertRejects(() => edge.get("task.ann.forged"), Error, "wrong signature");
    const listed: string[] = [];
    for await (const { key } of edge.list("task.ann")) listed.push(key);
    assertEquals(listed, ["task.ann.own"]);
  });

  withWorld("allow callers to call and workers to serve while a key changes", async (world) => {
    const { began, tool: stop } = endlessTool({ ...task, name: "stop" });
    const ask: ToolDefinition = {
      ...{ ...ping, name: "ask" },
      execute: async (_, context) => (await context.ask("sure", { message: "Really?" })).action,
    };
    const large: ToolDefinition = { ...ping, name: "large", execute: () => "x".repeat(900_000) };
    await world.serve([ping, again, task, stop, ask, large], keys(worker));
    const { dispatcher } = await world.call(keys(other, [caller, other]));
    const { dispatcher: right } = await world.call(keys(caller));
    for (const name of ["ping", "again", "task"]) {
      const result = await right.dispatch({ name });
      assertContent(result, "pong");
    }
    const result = await right.dispatch({ name: "large" });
    assertEquals(result.ok && String(result.content).length, 900_000);
    assertContent(
      await right.dispatch({ name: "ask" }, {
        onQuestion: () => ({ action: "accept", content: "yes" }),
      }),
      "accept",
    );
    const abort = new AbortController();
    const running = right.dispatch({ name: "stop" }, { signal: abort.signal });
    await began.came;
    abort.abort();
    assertFailed(await running, "aborted");
    assertEquals(world.errors, []);
    // A worker that does not have the new key of the callers runs nothing for it.
    assertFailed(await dispatcher.dispatch({ name: "ping" }), "unavailable", "", "no");
  });

  withWorld("prevent a worker from calling as a caller", async (world) => {
    const ran: string[] = [];
    const note = (tool: ToolDefinition): ToolDefinition => ({
      ...tool,
      execute: () => void ran.push(tool.name),
    });
    await world.serve([ping, again, task].map(note), keys(worker));
    // A caller with the right secret uses a worker's key as its own.
    const errors: string[] = [];
    const { dispatcher, connection } = await world.call({
      ...keys(worker, [worker]),
      onError: (error) => errors.push(String(error)),
    });
    const abort = new AbortController();
    const calls = ["ping", "again", "task"].map((name) =>
      dispatcher.dispatch({ name }, { signal: abort.signal, principal: "the-admin" })
    );
    const isLogged = (what: string): boolean =>
      world.errors.some((error) => String(error).includes(what));
    while (
      !isLogged("A call has a wrong signature, and was not run") ||
      !isLogged("A durable call is damaged or has a wrong signature, and was not run")
    ) await connection.flush();
    abort.abort();
    for (const result of await Promise.all(calls)) assertEquals(result.ok, false);
    assertEquals(ran, []);
  });

  withWorld("prevent a caller from serving tools and writing results", async (world) => {
    await world.serve([ping], keys(worker));
    const forged: ToolDefinition = { ...ping, description: "Forged.", execute: () => "forged" };
    await world.serve([forged, { ...forged, name: "more" }], {
      ...keys(caller, [caller], [caller, worker]),
      onError() {},
    });
    const { registry, dispatcher } = await world.call(keys(caller));
    assertEquals(registry.ids, ["ping"]);
    const result = await dispatcher.dispatch({ name: "ping" });
    assertContent(result, "pong");
    assertStringIncludes(String(world.errors[0]), "directory has a wrong signature");

    const connection = await server.connect();
    const bucket = await natsCallStore(connection, { bucket: "plue_results" });
    const store = new SettledStore(bucket);
    const seal = (role: Role) =>
      new Seal("test", SECRET, role, keys({ caller, worker }[role]).keys);
    const write = async (key: string, role: Role, result: ToolResult): Promise<void> => {
      const record = { holder: "", heldUntil: 0, attempts: 1, refusals: 0, result };
      await store.create(key, seal(role).wrap(record, `plue_results.${key}`));
    };
    const aborted = ToolResult.error("aborted", "The call was aborted");
    await write("run.a.right", "worker", ToolResult.ok("right"));
    await write("run.a.forged", "caller", ToolResult.ok("forged"));
    await write("run.a.aborted", "caller", aborted);
    for (const role of ["caller", "worker"] as const) {
      const runs = await Runs.open(
        new Link(connection, { name: "test", seal: seal(role), log() {} }),
        {},
      );
      const read = async (key: string) => {
        const { result } = (await runs.records.read(key))?.record ?? {};
        return result?.ok ? result.content : result?.error.code;
      };
      assertEquals(await Promise.all(["run.a.right", "run.a.forged", "run.a.aborted"].map(read)), [
        ...["right", "unavailable", "aborted"],
      ]);
    }
  });

  it("are checked when a worker or a caller starts", () => {
    const rows: readonly (readonly [Partial<NatsKeys>, string])[] = [
      [{ seed: "SU" }, 'keys.seed must be the seed of a key: "SU" and 56 letters or digits'],
      [{ callers: [] }, "keys.callers must be a list of 1 to 64 public keys"],
      [{ workers: [worker.key, "U123"] }, "keys.workers[1] is not a public key"],
      [{ callers: [caller.seed] }, "keys.callers[0] is not a public key"],
      [{ workers: [other.key] }, `keys.workers must have the public key of keys.seed`],
    ];
    for (const [wrong, wanted] of rows) {
      const mixed = { ...keys(worker).keys, ...wrong };
      const { message } = assertThrows(() => new Seal("test", SECRET, "worker", mixed), TypeError);
      assertStringIncludes(message, `Cannot test: ${wanted}`);
      assertEquals(message.includes(caller.seed), false);
    }
  });
});
