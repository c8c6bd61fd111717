// The permissions that docs/nats-security.md lists are enough.

import { describe } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { readFile } from "node:fs/promises";
import { AckPolicy, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers } from "@nats-io/nats-core";
import { type ToolDefinition, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { natsCallStore, remoteTools, serveTools } from "@plue/tools/nats";
import type { CreatedStream } from "../../src/cli/nats_admin.ts";
import { plue } from "../cli/support.ts";
import { SECRET, TestServer, withServer } from "./server.ts";
import { endlessTool } from "./world.ts";
import { poll } from "../support/waiting.ts";

/** The lines of the guide that give the permissions of a user, as the server's configuration has them. */
async function permissions(): Promise<string> {
  const text = await readFile(new URL("../../docs/nats-security.md", import.meta.url), "utf8");
  const [, block] = /```text\n(ADMIN = [^`]+)```/.exec(text) ?? [];
  assert(block !== undefined);
  return block;
}

const users = `authorization {
  users: [
    { user: admin, password: admin, permissions: $ADMIN }
    { user: worker, password: worker, permissions: $WORKER }
    { user: caller, password: caller, permissions: $CALLER }
  ]
}`;

describe("Users of NATS with narrow permissions", () => {
  withServer("call and serve tools once an administrator has created the streams", async () => {
    await using server = await TestServer.start({ lines: `${await permissions()}\n${users}` });
    const connect = (user: string) => server.connect({ user, pass: user });
    const work: ToolDefinition = {
      ...{ name: "work", description: "Works.", execution: "task" },
      execute: () => "worked",
    };
    const ping: ToolDefinition = {
      ...{ name: "ping", description: "Answers.", idempotent: true },
      execute: () => "pong",
    };
    const errors: unknown[] = [];
    const options = { secret: SECRET, onError: (error: unknown) => void errors.push(error) };
    const registry = new ToolRegistry({ tools: [work, ping, { ...ping, name: "stop" }] });
    await assertRejects(
      async () => await serveTools(registry, await connect("worker"), options),
      Error,
      'is missing, and the user of the connection may not create it; run "plue nats init"',
    );
    const init = async (...flags: readonly string[]) => {
      const url = server.url.replace("//", "//admin:admin@");
      const ran = await plue(["nats", "init", "--json", "--nats", url, ...flags]);
      assertEquals([ran.code, ran.stderr], [0, ""]);
      return (JSON.parse(ran.stdout) as readonly CreatedStream[])
        .map(({ name, state, replicas, maxBytes }) => [name, state, replicas, maxBytes]);
    };
    const names = ["plue_tools", "plue_calls", "plue_results", "PLUE_CALLS"];
    for (
      const [flags, state, bytes] of [
        [["--max-bytes", "4194304"], "created", 4_194_304],
        [[], "unchanged", 4_194_304],
        [["--max-bytes", "8388608", "--replicas", "1"], "changed", 8_388_608],
      ] as const
    ) assertEquals(await init(...flags), names.map((name) => [name, state, 1, bytes]));
    const admin = (await jetstreamManager(await connect("admin"))).streams;
    const rolled = { ...(await admin.info("KV_plue_calls")).config, allow_rollup_hdrs: true };
    await admin.update("KV_plue_calls", rolled);
    const env = { PLUE_NATS: server.url.replace("//", "//worker:worker@") };
    assertStringIncludes(
      (await plue(["doctor", "--json"], { env })).stdout,
      String.raw`\"plue_calls\" accepts rollup headers`,
    );
    const { config } = await admin.info("PLUE_CALLS");
    assertEquals([config.deny_purge, config.deny_delete], [true, true]);
    assertEquals((await init()).map(([, state]) => state), [
      ...["unchanged", "changed", "unchanged", "unchanged"],
    ]);

    const [worker, caller] = [await connect("worker"), await connect("caller")];
    await using _served = await serveTools(registry, worker, options);
    const mine = new ToolRegistry();
    await using _remote = await remoteTools(caller, { registry: mine, ...options });
    const dispatcher = new ToolDispatcher(mine);
    for (const [name, content] of [["ping", "pong"], ["work", "worked"]] as const) {
      const result = await dispatcher.dispatch({ name });
      assertEquals(result.ok ? result.content : result.error, content);
    }
    const { began, tool } = endlessTool(work);
    registry.updateTool(tool);
    const abort = new AbortController();
    const running = dispatcher.dispatch({ name: "work" }, { signal: abort.signal });
    await began.came;
    abort.abort();
    const aborted = await running;
    assertEquals(!aborted.ok && aborted.error.code, "aborted");
    const store = await natsCallStore(worker, { secret: SECRET });
    const revision = await store.create("ticket.ann.1", new Uint8Array(600_000)) ?? 0;
    assertEquals(await store.delete("ticket.ann.1", revision), true);
    assertEquals(errors, []);

    // Subjects that neither may use.
    for (const connection of [worker, caller]) {
      const { streams } = await jetstreamManager(connection);
      const republish = { src: ">", dest: "$KV.plue_calls.>" };
      const forged = { name: "X", subjects: ["x"], republish };
      await assertRejects(() => streams.add(forged));
      await assertRejects(() => streams.delete("PLUE_CALLS"));
      await assertRejects(() => streams.purge("PLUE_CALLS"));
    }
    const { streams } = await jetstreamManager(caller);
    await assertRejects(() => streams.purge("KV_plue_tools"));
    await assertRejects(() => streams.getMessage("PLUE_CALLS", { seq: 1 }));
    await assertRejects(() => natsCallStore(caller, { secret: SECRET }), Error, "no permission");
    const other = await new Kvm(caller).open("plue_calls");
    await assertRejects(() => other.get("ticket.ann.1"));
    await assertRejects(() => other.put("ticket.ann.2", "x"));

    // A user who creates a consumer can make the server send to any subject, but a message with
    // this header cannot delete the values of others.
    await store.create("key.ann.1", new Uint8Array(3));
    const about = headers();
    about.set("Nats-Rollup", "all");
    worker.publish("$KV.plue_results.x", "", { headers: about });
    worker.publish("$KV.plue_results.y", "");
    const { consumers } = await jetstreamManager(worker);
    await consumers.add("KV_plue_results", {
      ...{ name: "x", ack_policy: AckPolicy.None, filter_subject: "$KV.plue_results.*" },
    });
    const fetch = "$JS.API.CONSUMER.MSG.NEXT.KV_plue_results.x";
    worker.publish(fetch, "1", { reply: "$KV.plue_calls.x" });
    const delivered = async (): Promise<number> =>
      (await consumers.info("KV_plue_results", "x")).delivered.consumer_seq;
    await poll(async () => await delivered() > 0);
    await assertRejects(() => caller.request(fetch, "1"), Error, "Permissions Violation");
    const { value } = await store.get("key.ann.1") ?? {};
    assertEquals(value, new Uint8Array(3));
  });
});
