import { describe, it } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { taskQueue } from "../../src/adapters/queue/mod.ts";
import { sqliteCallStore } from "../../src/adapters/sqlite/mod.ts";
import { ToolResult } from "../../src/tool/mod.ts";
import { plue, rejects } from "./support.ts";

describe("plue tasks", () => {
  it("shows the tasks of a store, and queues a dead task again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "plue-tasks-"));
    const path = join(folder, "calls.db");
    const env = { PLUE_STORE: `sqlite:${path}` };
    const store = await sqliteCallStore(path);
    const registry = new ToolRegistry({
      tools: [
        {
          name: "send",
          description: "Sends a mail.",
          execute: () => ToolResult.error("unavailable", "The mail server is away"),
        },
        { name: "hang", description: "Hangs.", execute: () => new Promise(() => {}) },
      ],
    });
    const dispatcher = new ToolDispatcher(registry);
    const queue = taskQueue({ store, retries: { send: { maxAttempts: 1 } }, name: "worker-1" });
    const mail = await queue.enqueue(dispatcher, { name: "send" }, { principal: "ann" });
    assert("id" in mail);
    assertMatch(
      (await plue(["tasks"], { env })).stdout,
      /^1 waiting, the oldest for \d+ s; 0 running/,
    );

    await queue.recover(dispatcher);
    await queue.idle();
    const hanging = await queue.start(dispatcher, { name: "hang" });
    assert("id" in hanging);
    const { stdout } = await plue(["tasks", "list"], { env });
    assertStringIncludes(stdout, "0 waiting; 1 running; 1 dead\n");
    assertMatch(stdout, new RegExp(`running +${hanging.id} +hang +1 +\\d+ s +worker-1\n`));
    assertMatch(stdout, new RegExp(`dead +${mail.id} +send +1 +\\d+ s +The mail server is away`));

    const again = await plue(["tasks", "run-again", mail.id], { env });
    assertEquals(again.stdout, `The task ${mail.id} waits for a process\n`);
    const state = JSON.parse((await plue(["tasks", "--json"], { env })).stdout);
    assertEquals([state.waiting, state.dead, state.hasMore], [1, [], false]);
    const twice = await plue(["tasks", "run-again", mail.id], { env });
    assertEquals(twice.code, 1);
    assertStringIncludes(twice.stderr, `no dead task has the id "${mail.id}"; "plue tasks" lists`);
    await queue.cancel(hanging.id);
    await queue.idle();
    store.close();
    rmSync(folder, { recursive: true });
  });

  it("explains what is missing", async () => {
    await rejects(["tasks"], "Cannot show the tasks: set --store or PLUE_STORE");
    const mistyped = join(tmpdir(), "no-such-plue-store.db");
    const absent = await plue(["tasks", "--store", `sqlite:${mistyped}`]);
    assertEquals([absent.code, existsSync(mistyped)], [1, false]);
    assertStringIncludes(absent.stderr, `the file ${mistyped} does not exist`);
    for (const words of [["run-again"], ["list", "0"]]) {
      const env = { PLUE_STORE: "sqlite:/none" };
      await rejects(["tasks", ...words], "only run-again needs the id of a task", { env });
    }
  });
});
