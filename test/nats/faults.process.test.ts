import { describe } from "bun:test";
import {
  assert,
  assertEquals,
  assertLess,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import * as plue from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import type { Layer } from "@plue/tools/core";
import {
  natsCallStore,
  remoteTools,
  remoteToolsPerCall,
  serveTools,
  type ServeToolsOptions,
} from "@plue/tools/nats";
import { deny, rules } from "@plue/tools/rules";
import { z } from "zod";
import { Sender } from "../../src/adapters/nats/protocol.ts";
import { Seal } from "../../src/adapters/nats/seal.ts";
import { FakeClock } from "../support/waiting.ts";
import { SECRET, TestServer, withServer } from "./server.ts";
import {
  assertContent,
  assertFailed,
  became,
  endlessTool,
  event,
  slowTool,
  spyOn,
  useWorlds,
  withOwnServer,
} from "./world.ts";
import { followChanges } from "../support/changes.ts";

const ping: plue.ToolDefinition = { name: "ping", description: "Answers.", execute: () => "pong" };

describe("Workers and callers over NATS", () => {
  const { server, withWorld } = useWorlds();

  withWorld("distributes calls over the workers", async (world) => {
    const ran = new Set<number>();
    for (const number of [1, 2, 3]) {
      await world.serve([{ ...ping, execute: () => void ran.add(number) }]);
    }
    const { dispatcher, remote } = await world.call();
    assertEquals(remote.workers, 3);
    await Promise.all(Array.from({ length: 100 }, () => dispatcher.dispatch({ name: "ping" })));
    assertEquals(ran.size, 3);
  });

  withWorld("fails immediately if there is no worker", async (world) => {
    const worker = await world.serve([ping]);
    const { dispatcher } = await world.call();
    await worker.kill();
    const result = await dispatcher.dispatch({ name: "ping" });
    assertFailed(result, "unavailable", "nothing has run", "no");
    assertEquals(result.error.retryable, true);
  });

  withWorld("connects again when the server does not deliver its messages", async (world) => {
    const { connection, worker } = await world.serve([ping]);
    const beat = event();
    const publish = connection.publish.bind(connection);
    const presence = `plue.v1.here.${world.name}.${worker}`;
    const own = connection.subscribe(presence, { callback: () => beat.come() });
    await beat.came;
    own.unsubscribe();
    connection.publish = (subject, ...rest) => {
      if (subject !== presence) publish(subject, ...rest);
    };
    await became(connection, "reconnect");
    connection.publish = publish;
    assertStringIncludes(`${world.errors[0]}`, "does not deliver this worker's own messages");
    const { dispatcher } = await world.call();
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
  });

  withOwnServer("reports the required size of a bucket", async (world) => {
    const task: plue.ToolDefinition = { ...ping, execution: "task" };
    const error = await assertRejects(() => world.serve([task]), Error);
    assertStringIncludes(
      error.message,
      'the server has no storage for "plue_calls", which reserves 1073741824 bytes on one server; ' +
        'add storage to the server, or create less with "plue nats init --max-bytes"',
    );
  }, { jetstream: "max_file_store: 64MB" });

  withWorld("uses another worker when one disconnects, and loses no call", async (world) => {
    const [one] = [await world.serve([ping]), await world.serve([ping])];
    const { dispatcher } = await world.call();
    await one.kill();
    const results = await Promise.all(
      Array.from({ length: 50 }, () => dispatcher.dispatch({ name: "ping" })),
    );
    assertEquals(results.filter((result) => !result.ok), []);
  });

  withWorld("repeats a call whose worker died if its tool is idempotent", async (world) => {
    const began = [event(), event()];
    let runs = 0;
    const tools = (isFirst: boolean): plue.ToolDefinition[] =>
      ["once", "again"].map((name, index) => ({
        name,
        description: "Waits on the first worker.",
        idempotent: name === "again",
        execute() {
          runs++;
          began[index]?.come();
          return isFirst ? new Promise(() => {}) : "done";
        },
      }));
    const first = await world.serve(tools(true));
    const { dispatcher } = await world.call();
    const calls = ["once", "again"].map((name) => dispatcher.dispatch({ name }));
    await Promise.all(began.map(({ came }) => came));
    await world.serve(tools(false));
    await first.kill();
    const [once, again] = await Promise.all(calls);
    assert(once !== undefined && again !== undefined);
    assertFailed(once, "unavailable", "may have run", "unknown");
    assertContent(again, "done");
    assertEquals(runs, 3);
  });

  withWorld("ends its calls before it stops, and accepts no others", async (world) => {
    const slow = { ...ping, name: "slow", idempotent: false };
    const { goOn, ...held } = slowTool(slow, "done");
    const { running, dispatcher, remote, connection, worker } = await world.begin(held);
    await world.serve([{ ...slow, execute: () => "other" }]);
    while (remote.workers < 2) await connection.flush();
    const closed = worker.close();
    assertContent(await dispatcher.dispatch({ name: "slow" }), "other");
    goOn.come();
    assertContent(await running, "done");
    await closed;
  });

  withWorld("aborts the calls that do not end in time when it stops", async (world) => {
    const slow = endlessTool(ping);
    const { running, worker } = await world.begin(slow, {}, { drainTimeoutMs: 0 });
    await worker.close();
    assertFailed(await running, "aborted");
  });

  withWorld("follows new, changed and removed definitions", async (world) => {
    const old = await world.serve([ping]);
    const { registry, dispatcher } = await world.call();
    const changes = followChanges(registry);
    const changed = async (): Promise<string> => {
      const { type, tool } = await changes.next();
      return `${type} ${tool.id} ${tool.description}`;
    };
    const added = changed();
    const worker = await world.serve([{ ...ping, description: "Answers better." }]);
    assertEquals(await added, "updated ping Answers better.");
    old.registry.registerTool({ ...ping, name: "pang" });
    assertEquals(await changed(), "added pang Answers.");
    assertContent(await dispatcher.dispatch({ name: "ping" }), "pong");
    // The old definition, which another worker still serves, becomes available again.
    await worker.kill();
    assertEquals((await dispatcher.dispatch({ name: "pang" })).ok, true);
  });

  withWorld("stops a call whose caller does not respond", async (world) => {
    const { aborted, ...slow } = endlessTool(ping);
    const { running, connection } = await world.begin(slow);
    await connection.close();
    assertFailed(await running, "unavailable");
    assertStringIncludes(String(await aborted.came), "The caller does not respond");
  });

  withOwnServer("fails calls if the server is lost, and then continues", async (world, own) => {
    const { began, tool: hang } = endlessTool({ ...ping, name: "hang" });
    await world.serve([ping, hang]);
    const { dispatcher, connection } = await world.call();
    const running = dispatcher.dispatch({ name: "hang" });
    await began.came;
    await own.kill();
    const lost = await running;
    // The tool may have run, and is not idempotent.
    assertFailed(lost, "unavailable", "", "unknown");
    assertEquals(lost.error.retryable, false);
    // Nothing is sent now, and nothing is stored to be sent later.
    assertFailed(await dispatcher.dispatch({ name: "ping" }), "unavailable");
    const back = became(connection, "reconnect");
    await own.start();
    await back;
    for (let isBack = false; !isBack;) {
      await connection.flush();
      isBack = (await dispatcher.dispatch({ name: "ping" })).ok;
    }
  });

  withOwnServer("stops a worker soon while the server does not respond", async (world, own) => {
    const { tool, began, aborted } = endlessTool(ping);
    const { worker, running } = await world.begin({ tool, began }, {}, { drainTimeoutMs: 100 });
    own.pause();
    const start = performance.now();
    await worker.close();
    assertLess(performance.now() - start, 20_000);
    await aborted.came;
    own.resume();
    await running;
  });

  withWorld("runs no messages that are unsigned, signed by others, or repeated", async (world) => {
    let runs = 0;
    const worker = await world.serve([{ ...ping, execute: () => ++runs }]);
    const seen: { subject: string; reply: string; data: Uint8Array }[] = [];
    const heard = event();
    const spy = await spyOn(server, `plue.v1.call.${worker.worker}.>`, {
      callback(_, { subject, reply = "", data }) {
        seen.push({ subject, reply, data: Uint8Array.from(data) });
        heard.come();
      },
    });
    const { dispatcher } = await world.call();
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
    await heard.came;
    const [call] = seen;
    assert(call !== undefined);
    const { subject, reply, data } = call;
    const wrong = new Seal("test", "another-secret-of-theirs");
    // The call again: unchanged, unsigned, with another body, to another caller, by another sender.
    spy.publish(subject, data, { reply });
    spy.publish(subject, new Uint8Array(data.length).map((_, at) => at < 32 ? 0 : data[at] ?? 0), {
      reply,
    });
    const other = Uint8Array.from(data);
    other[other.length - 3] = (other[other.length - 3] ?? 0) ^ 1;
    spy.publish(subject, other, { reply });
    spy.publish(subject, data, { reply: `${reply}x` });
    spy.publish(subject, "{}");
    new Sender(spy, wrong, subject, reply).send({ id: "x", time: Date.now(), arguments: {} });
    // A late message with a valid signature.
    new Sender(spy, new Seal("test", SECRET), subject, reply.replace(/\w[^.]*$/, "late"))
      .send({ id: "late", time: Date.now() - 60_000, arguments: {} });
    await spy.flush();
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
    assertEquals(runs, 2);
    assertEquals(
      world.errors.filter((error) => String(error).includes("wrong signature")).length,
      5,
    );
  });

  withWorld("ignores answers of others", async (world) => {
    const { began, goOn, tool } = slowTool(ping, "right");
    const worker = await world.serve([tool]);
    const inbox = event<string>();
    const spy = await spyOn(server, `plue.v1.call.${worker.worker}.>`, {
      callback: (_, { reply = "" }) => inbox.come(reply),
    });
    const { dispatcher } = await world.call();
    const running = dispatcher.dispatch({ name: "ping" });
    await began.came;
    new Sender(spy, new Seal("test", "another-secret-of-theirs"), await inbox.came)
      .send({ type: "result", result: plue.ToolResult.ok("wrong") });
    await spy.flush();
    goOn.come();
    assertContent(await running, "right");
  });

  withWorld("lists no definition with another signature", async (world) => {
    await world.serve([ping]);
    await world.serve([{ ...ping, name: "evil" }], { secret: "another-secret-of-theirs" });
    const { registry } = await world.call();
    assertEquals(registry.ids, ["ping"]);
  });

  withWorld("supports the replacement of a secret", async (world) => {
    const next = "the-next-secret-of-the-tests";
    await world.serve([ping], { secret: [SECRET, next] });
    const { dispatcher } = await world.call({ secret: [next, SECRET] });
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
  });

  withWorld("logs many forged messages a few times, with their count", async (world) => {
    const worker = await world.serve([ping]);
    const { dispatcher } = await world.call();
    const spy = await server.connect();
    for (let sent = 0; sent < 1_000; sent++) {
      spy.publish(`plue.v1.call.${worker.worker}.x`, "forged", { reply: "nobody" });
    }
    await spy.flush();
    await worker.connection.flush();
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
    assertEquals(world.errors.length, 21);
    assertStringIncludes(`${world.errors.at(-1)}`, "wrong signature, and was not run (512 of them");
  });

  withWorld("continues whatever its hooks do", async (world) => {
    let count = 0;
    const hooks = [
      () => {
        count++;
        throw new Error("The hook throws");
      },
      () => {
        count++;
        return Promise.reject(new Error("The hook rejects"));
      },
    ];
    for (const onError of hooks) {
      const worker = await world.serve([ping], { onError });
      const spy = await server.connect();
      spy.publish(`plue.v1.call.${worker.worker}.x`, "forged", { reply: "nobody" });
      await spy.flush();
      const { dispatcher } = await world.call({ onError });
      assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
      await worker.close();
    }
    assert(count >= 2);
  });

  withServer("describes invalid options in one sentence", async () => {
    const connection = await server.connect();
    const registry = new plue.ToolRegistry();
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ secret: "short" }, "secret must be a string of at least 16 characters"],
      [{ secret: "a secret with spaces" }, "16 characters without spaces, or a list of them"],
      [{}, "secret must be"],
      [{ secret: SECRET, name: "a.b" }, '1 to 64 letters, digits, "_" or "-"'],
      [{ secret: SECRET, drainMs: 1 }, '"/drainMs" is not one of its fields'],
      [{ secret: SECRET, dispatcher: { approve: () => true } }, "callers approve calls"],
      [{ secret: SECRET, countedBy: { metrics() {} } }, '"/countedBy" must be a dispatcher'],
      [{ secret: SECRET, concurrency: 0 }, "concurrency"],
      [{ secret: SECRET, concurrency: 1.5 }, "a whole number from 1 to 4096"],
      [{ secret: SECRET, keys: null }, "keys must have a seed, callers and workers"],
      [
        { secret: SECRET, toolConcurrency: { build: 0.5 } },
        "numbers from 1 to 4096, by the ids of tools",
      ],
    ];
    for (const [options, message] of wrong) {
      const start = () => serveTools(registry, connection, options as ServeToolsOptions);
      await assertRejects(start, Error, message);
    }
    for (
      const [options, message] of [
        [{ secret: SECRET }, "Cannot use remote tools: the option registry is required"],
        [{ registry, secret: SECRET, maxAgeMs: -1 }, "maxAgeMs must be a number from 0"],
        ...["$KV", "plue", "a b", "a.*"].map((inboxPrefix) =>
          [
            { registry, secret: SECRET, inboxPrefix },
            'a subject that does not begin with "$" or "plue"',
          ] as const
        ),
        [{ registry, secret: SECRET, maxAge: 1 }, '"/maxAge" is not one of its fields'],
      ] as const
    ) {
      const start = () => remoteToolsPerCall(() => server.connect(), options as never);
      assertThrows(start, Error, message);
    }
  });

  withServer("describes a missing feature of a server in one sentence", async () => {
    await using bare = await TestServer.start({ config: "" });
    await using narrow = await TestServer.start({ lines: "max_payload: 1024" });
    const closed = await server.connect();
    await closed.close();
    for (
      const [connection, message] of [
        [await bare.connect(), "the server has no JetStream: start it with"],
        [await narrow.connect(), "is 1024 bytes, but at least 65536 are required"],
        [closed, "the connection to NATS is closed"],
      ] as const
    ) {
      const registry = new plue.ToolRegistry();
      for (
        const start of [
          () => serveTools(registry, connection, { secret: SECRET }),
          () => remoteTools(connection, { registry, secret: SECRET }),
          () => natsCallStore(connection),
        ]
      ) await assertRejects(start, Error, message);
    }
  });

  withWorld("passes a tool its declared context, and checks it on both sides", async (world) => {
    const schema = {
      type: "object",
      properties: { tenant: { type: "string" } },
      required: ["tenant"],
    } as const;
    const tools = (["sync", "task"] as const).flatMap((execution) =>
      [schema, z.object({ tenant: z.string() })].map((context, index) =>
        plue.defineTool({
          ...{ name: `${execution}_${index}`, description: "Lists the bills." },
          ...{ context, execution },
          execute: (_, { context }) => context.tenant,
        })
      )
    );
    await world.serve(tools);
    const { dispatcher } = await world.call();
    for (const { id } of tools) {
      const result = await dispatcher.dispatch({ name: id }, { context: { tenant: "acme" } });
      assertEquals([id, result.ok && result.content], [id, "acme"]);
      for (const context of [undefined, { tenant: 7 }]) {
        const wrong = await dispatcher.dispatch({ name: id }, { context });
        assertEquals([id, !wrong.ok && wrong.error.code], [id, "unavailable"]);
      }
    }
  });

  withWorld("passes the tenant of the caller to the worker's rules", async (world) => {
    const notB = rules([{
      name: "not-b",
      decide: ({ tenant }) => tenant === "b" ? deny("no") : "allow",
    }]);
    const names = ["sync", "task"] as const;
    const tools = names.map((execution) => ({
      ...{ name: execution, description: "Lists the bills.", execution },
      execute: () => "bills",
    }));
    await world.serve(tools, { dispatcher: { rules: notB } });
    const { dispatcher } = await world.call();
    for (const name of names) {
      const call = async (tenant: string) => {
        const context = { tenant, close() {} };
        const result = await dispatcher.dispatch({ name }, { context });
        return result.ok ? result.content : result.error.code;
      };
      assertEquals([name, await call("a"), await call("b")], [name, "bills", "denied"]);
    }
  });

  withWorld("does not count the time in which the worker waits for a person", async (world) => {
    const [began, permitted] = [event(), event()];
    const url = "https://hub.example/authorize";
    const permission: Layer = {
      name: "permission",
      stage: "run",
      for: () => async (call, next) => {
        const question = {
          kind: "authorization",
          message: "Allow it",
          url,
          resumes: true,
        } as const;
        await call.context.ask("permission", question);
        began.come();
        await call.wait("waiting for a person", permitted.came, 60_000);
        return await next(call);
      },
    };
    const tool = { name: "bills", description: "Lists the bills.", execute: () => "bills" };
    const tickets = storedTickets(memoryCallStore());
    await world.serve([tool], { dispatcher: { layers: [permission], tickets } });
    const { registry } = await world.call();
    const clock = new FakeClock();
    const dispatcher = new plue.ToolDispatcher(registry, { clock });
    const result = dispatcher.dispatch({ name: "bills" }, {
      onQuestion: () => ({ action: "accept" }),
    });
    await began.came;
    clock.advance(60_000);
    permitted.come();
    assertContent(await result, "bills");
  });
});
