import { describe } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { remoteTools } from "@plue/tools/nats";
import { Cluster, SECRET } from "../../examples/cluster/cluster.ts";
import { withServer } from "./server.ts";
import { followChanges } from "../support/changes.ts";

const ROOT = join(import.meta.dirname, "../..");

describe("bench/nats/faults.ts", () => {
  withServer("loses no call and runs no call twice", () => {
    const args = ["bench/nats/faults.ts", "600", "16", "1"];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: ROOT,
      encoding: "utf8",
    });
    assertEquals(status, 0, stdout + stderr);
    assertStringIncludes(stdout, "\nproblems 0\n");
  });
});

describe("A worker whose process is stopped", () => {
  withServer("receives no calls until it resumes", async () => {
    await using cluster = await Cluster.start();
    const worker = await cluster.startWorker("bun");
    const connection = await connect({ servers: cluster.url });
    const registry = new ToolRegistry();
    const timer = setInterval(() => registry.refresh(), 1_000);
    const remote = await remoteTools(connection, { registry, secret: SECRET });
    const dispatcher = new ToolDispatcher(registry);
    const call = () => dispatcher.dispatch({ name: "count", arguments: { number: 1 } });
    assertEquals((await call()).ok, true);

    const changes = followChanges(registry);
    worker.pause();
    assertEquals((await changes.next()).type, "unavailable");
    assertEquals(remote.workers, 0);
    const refused = await call();
    assert(!refused.ok);
    assertEquals([refused.error.code, refused.error.retryable], ["unavailable", true]);

    worker.resume();
    while ((await changes.next()).type !== "available");
    assertEquals(remote.workers, 1);
    assertEquals((await call()).ok, true);
    clearInterval(timer);
    await remote.close();
    await connection.close();
  });
});
