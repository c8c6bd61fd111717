import { beforeAll, describe } from "bun:test";
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { type ToolDefinition, ToolRegistry } from "@plue/tools";
import { remoteTools, serveTools } from "@plue/tools/nats";
import { Directory } from "../../src/adapters/nats/directory.ts";
import { Offers } from "../../src/adapters/nats/offers.ts";
import { MARKER_MS } from "../../src/adapters/nats/streams.ts";
import { missing, SECRET, TestServer, withServer } from "./server.ts";
import { assertContent, became, linkOf, spyOn, useWorlds, withOwnServer } from "./world.ts";
import { followChanges } from "../support/changes.ts";
import { poll } from "../support/waiting.ts";

const ping: ToolDefinition = { name: "ping", description: "Answers.", execute: () => "pong" };

describe("The directory of tools in NATS", () => {
  const { server, withWorld } = useWorlds();
  let watcher: Awaited<ReturnType<TestServer["connect"]>>;
  beforeAll(async () => {
    if (missing === undefined) watcher = await server.connect();
  });

  /** The directory of a worker, with a manual clock. */
  async function offer(name: string, worker: string, tools: readonly ToolDefinition[]) {
    const clock = { ms: 0, now: () => clock.ms, timestamp: () => Date.now() + clock.ms };
    const registry = new ToolRegistry({ tools });
    const link = linkOf(await server.connect(), name);
    const offers = new Offers({ link, registry, worker }, clock);
    await offers.open("test");
    return { offers, registry, clock, log: link.errors };
  }

  async function keysOf(name: string): Promise<readonly string[]> {
    const directory = await Directory.open("test", linkOf(watcher, name));
    directory.stop();
    return [...directory.entries.keys()].sort();
  }

  withWorld("is swept by its first worker only, after a marker's lifetime", async ({ name }) => {
    const swept: string[] = [];
    const workers = [await offer(name, "a", [ping]), await offer(name, "b", [ping])];
    const tidy = async (): Promise<void> => {
      for (const { offers } of workers) {
        for (const worker of ["a", "b"]) offers.touch(worker);
        await offers.removeDead();
      }
    };
    for (const [at, { offers }] of workers.entries()) {
      if (offers.directory === undefined) throw new Error("There is no directory");
      offers.directory.bucket.sweep = () => Promise.resolve(void swept.push("ab".charAt(at)));
    }
    await tidy();
    await tidy();
    assertEquals(swept, ["a"]);
    for (const { clock } of workers) clock.ms += MARKER_MS;
    await tidy();
    assertEquals(swept, ["a", "a"]);
    await Promise.all(workers.map(({ offers }) => offers.close(true)));
  });

  withWorld("follows many changes of a registry together", async (world) => {
    const { registry } = await world.serve([ping]);
    const { remote, connection } = await world.call();
    const select = registry.select.bind(registry);
    let selections = 0;
    registry.select = (selection) => {
      selections++;
      return select(selection);
    };
    const ids = Array.from({ length: 200 }, (_, at) => `more_${at}`);
    for (const id of ids) registry.registerTool({ ...ping, name: id });
    assertEquals(selections, 0);
    while (remote.tools.length < 201) await connection.flush();
    assertEquals(selections, 1);
  });

  withWorld("compiles no schema and runs the inits before it offers its tools", async (world) => {
    const registry = new ToolRegistry({ tools: [ping, { ...ping, name: "open", init: () => 1 }] });
    const acquire = registry.acquire.bind(registry);
    const acquired: string[] = [];
    registry.acquire = (tool) => {
      acquired.push(tool.id);
      return acquire(tool);
    };
    const options = { secret: SECRET, name: world.name };
    await using _served = await serveTools(registry, await server.connect(), options);
    assertEquals(acquired, ["open"]);
    const failing = new ToolRegistry({
      tools: [{ ...ping, init: () => Promise.reject(new Error("no disk")) }],
    });
    await assertRejects(
      async () => await serveTools(failing, await server.connect(), options),
      Error,
      'Tool "ping" is not ready: its init failed',
    );
  });

  withWorld("lists an older definition again if no worker serves the newer one", async (world) => {
    const tags = ["old"];
    await world.serve([{ ...ping, tags, idempotent: true, execute: () => "old" }]);
    const { registry, dispatcher } = await world.call();
    const changes = followChanges(registry);
    const newer = await world.serve([{ ...ping, execute: () => "new" }]);
    assertEquals((await changes.next()).tool.tags, []);
    await newer.close();
    const { tool } = await changes.next();
    assertEquals([tool.tags, tool.idempotent], [tags, true]);
    const result = await dispatcher.dispatch({ name: "ping" });
    assertContent(result, "old");
  });

  withOwnServer("has a worker with more tools than one message can list", async (world, own) => {
    const tools = Array.from({ length: 1_000 }, (_, index) => ({
      ...{ ...ping, namespace: "n".repeat(64), name: `${"t".repeat(60)}_${index}` },
      execute: () => index,
    }));
    const worker = await world.serve(tools);
    const { dispatcher, registry } = await world.call();
    assertEquals(registry.count, tools.length);
    const { namespace, name } = tools[999] ?? ping;
    assertContent(await dispatcher.dispatch({ name: `${namespace}:${name}` }), 999);
    // If one tool changes, the worker writes only the part of its list that contains the tool.
    let lists = 0;
    await spyOn(own, `$KV.plue_tools.*.worker.>`, { callback: () => void lists++ });
    const changes = followChanges(registry);
    worker.registry.registerTool(ping);
    assertEquals((await changes.next()).tool.id, "ping");
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
    assertEquals(lists, 1);
  }, { lines: "max_payload: 65536" });

  withOwnServer("serves all tools but one whose definition is too large", async (world) => {
    const worker = await world.serve([ping, {
      ...ping,
      name: "big",
      description: "x".repeat(70_000),
    }]);
    const { registry } = await world.call();
    assertEquals(registry.ids, ["ping"]);
    worker.registry.registerTool({ ...ping, name: "pang" });
    const { tool } = await followChanges(registry).next();
    assertEquals(tool.id, "pang");
    const [error, ...others] = world.errors;
    assertEquals(others, []);
    assertStringIncludes(String(error), 'Cannot serve "big": its definition has 70');
    assertStringIncludes(String(error), "the server allows 65536");
  }, { lines: "max_payload: 65536" });

  withWorld("reports unavailable tools of workers, until they are available", async (world) => {
    const isUp = { ping: true, pang: false };
    await world.serve([
      { ...ping, isAvailable: () => isUp.ping },
      { ...ping, name: "pang", isAvailable: () => isUp.pang },
    ]);
    const { registry, connection } = await world.call();
    const available = (): string => registry.getAvailableTools().map(({ id }) => id).join();
    assertEquals(available(), "ping");
    isUp.ping = false;
    while (available() !== "") await connection.flush();
    isUp.pang = true;
    while (available() !== "pang") await connection.flush();
    assertEquals(world.errors, []);
  });

  withWorld("writes entries again that others have removed", async (world) => {
    await world.serve([ping]);
    const before = await keysOf(world.name);
    assertEquals(before.length, 2);
    const kv = await new Kvm(await server.connect()).open("plue_tools");
    for (const key of before) await kv.delete(key);
    await poll(async () => (await keysOf(world.name)).length >= before.length);
    assertEquals(await keysOf(world.name), before);
    const { dispatcher } = await world.call();
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
  });

  withServer("removes dead workers, and the tools that only they have served", async () => {
    const name = "dead";
    const live = await offer(name, "live", [ping]);
    await offer(name, "silent", [ping, { ...ping, name: "pang" }]);
    await offer(name, "heard", [{ ...ping, name: "pong" }]);
    const before = await keysOf(name);
    assertEquals(before.length, 6);
    while (!live.offers.has("heard")) {
      await watcher.flush();
      await live.offers.removeDead();
    }
    live.clock.ms = 59_000;
    live.offers.touch("heard");
    await live.offers.removeDead();
    assertEquals(await keysOf(name), before);
    live.clock.ms = 61_000;
    await live.offers.removeDead();
    const left = (await keysOf(name)).map((key) => key.split(".").slice(1, 4).join("."));
    assertEquals(left, ["tool./.ping", "tool./.pong", "worker.heard.0", "worker.live.0"]);
    assertEquals(live.log, []);
  });

  withServer("purges entries that were deleted an hour ago", async () => {
    const name = "purged";
    const { offers, clock, log } = await offer(name, "live", [ping]);
    const gone = await Directory.open("test", linkOf(watcher, name));
    gone.stop();
    for (const key of [`${name}.worker.gone.0`, `${name}.tool./.gone.x`]) {
      await gone.put(key, {});
      await gone.bucket.remove(key);
    }
    const { streams } = await jetstreamManager(watcher);
    const stored = async (): Promise<number> => {
      const { state } = await streams.info("KV_plue_tools", {
        subjects_filter: `$KV.plue_tools.${name}.>`,
      });
      return Object.keys(state.subjects ?? {}).length;
    };
    await poll(async () => await stored() >= 4);
    await offers.removeDead();
    assertEquals(await stored(), 4);
    clock.ms = 3_600_000;
    await offers.removeDead();
    assertEquals([await stored(), log], [2, []]);
    await offers.close(true);
  });

  withWorld("writes a definition once, so that an old worker does not seem new", async (world) => {
    const old = { ...ping, description: "Old." };
    await world.serve([old]);
    await world.serve([{ ...ping, description: "New." }]);
    await world.serve([old]);
    const { registry } = await world.call();
    assertEquals(registry.getTool("ping")?.description, "New.");
  });

  withServer("has one watch, even if it is restarted while it reads", async () => {
    const connection = await server.connect();
    const name = "watched";
    const kv = await new Kvm(connection).open("plue_tools");
    const [one, other] = [linkOf(connection, name), linkOf(connection, name)];
    const directory = await Directory.open("test", one);
    const witness = await Directory.open("test", other);
    directory.restart();
    directory.restart();
    await witness.put(`${name}.tool.a`, { n: 1 });
    while (!directory.entries.has(`${name}.tool.a`)) await connection.flush();
    // Each watch reports unsigned entries once.
    await kv.put(`${name}.tool.b`, "not signed");
    while (one.errors.length === 0 || other.errors.length === 0) await connection.flush();
    await connection.flush();
    assertEquals([one.errors.length, other.errors.length], [1, 1]);
    directory.stop();
    await kv.put(`${name}.tool.c`, "not signed");
    while (other.errors.length < 2) await connection.flush();
    await connection.flush();
    assertEquals(one.errors.length, 1);
    witness.stop();
  });

  withServer("logs many forged entries a few times", async () => {
    const name = "forged";
    const link = linkOf(await server.connect(), name);
    const directory = await Directory.open("test", link);
    const witness = await Directory.open("test", linkOf(watcher, name));
    for (let sent = 0; sent < 1_000; sent++) {
      watcher.publish(`$KV.plue_tools.${name}.tool./.t${sent}.x`, "forged");
    }
    await witness.put(`${name}.tool.last`, {});
    while (!directory.entries.has(`${name}.tool.last`)) await watcher.flush();
    assertEquals(link.errors.length, 21);
    assertStringIncludes(`${link.errors.at(-1)}`, '"forged.tool./.t511.x" (512 of them');
    directory.stop();
    witness.stop();
  });

  withOwnServer("is read again if the server has lost a caller's watch", async (world, own) => {
    const { registry } = await world.serve([ping]);
    const { registry: mine } = await world.call();
    const { consumers } = await jetstreamManager(await own.connect());
    for await (const { name } of consumers.list("KV_plue_tools")) {
      await consumers.delete("KV_plue_tools", name);
    }
    const changes = followChanges(mine);
    registry.registerTool({ ...ping, name: "pong" });
    const { type, tool } = await changes.next();
    assertEquals([type, tool.id], ["added", "pong"]);
    assertStringIncludes(`${world.errors[0]}`, "The server does not deliver changes");
  });

  withServer("leaves no consumer on the server", async () => {
    // A separate server, because other tests' consumers may still exist on the common one.
    await using own = await TestServer.start();
    const connection = await own.connect();
    const manager = await jetstreamManager(connection);
    const count = async (): Promise<number> =>
      (await manager.streams.info("KV_plue_tools")).state.consumer_count;
    const kept = await serveTools(new ToolRegistry({ tools: [ping] }), connection, {
      ...{ secret: SECRET, name: "kept" },
    });
    const before = await count();
    for (let time = 0; time < 3; time++) {
      const served = await serveTools(new ToolRegistry({ tools: [ping] }), connection, {
        ...{ secret: SECRET, name: "left" },
      });
      const remote = await remoteTools(connection, {
        ...{ registry: new ToolRegistry(), secret: SECRET, name: "left" },
      });
      assertEquals(await count(), before + 2);
      await remote.close();
      await served.close();
      await connection.flush();
    }
    await poll(async () => await count() <= before);
    await kept.close();
  });

  withServer("closes without a server, and does not wait for its response", async () => {
    await using own = await TestServer.start();
    const connection = await own.connect();
    const log: unknown[] = [];
    const served = await serveTools(new ToolRegistry({ tools: [ping] }), connection, {
      ...{ secret: SECRET, drainTimeoutMs: 0 },
      onError: (error) => void log.push(error),
    });
    // This listener is registered after the worker's own, so the worker is notified first.
    const lost = became(connection, "disconnect");
    await own.kill();
    await lost;
    await served.close();
    // Nothing was sent to callers.
    assertEquals(log.map(String).filter((error) => !error.includes("disconnected")), []);
  });
});
