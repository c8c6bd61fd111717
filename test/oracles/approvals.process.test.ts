/** Approvals of the AI SDK, the OpenAI Agents SDK and LangGraph, for calls that need them. */

import { assertEquals, assertFalse, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteCallStore } from "../../src/adapters/sqlite/mod.ts";
import { memoryCallStore } from "../../src/execute/durable/mod.ts";
import { ran, RUNS } from "./approvals.ts";

for (const [framework, run] of Object.entries(RUNS)) {
  describe(`the approvals of ${framework}`, () => {
    it("are requested for a tool and for arguments that need one, and for no other call", async () => {
      ran.length = 0;
      const stopped = async (name: string, amount: number) =>
        (await run.start(memoryCallStore(), name, amount)).requests;
      assertEquals(await stopped("refund", 5), [{ amount: 5 }]);
      assertEquals(await stopped("pay", 100), [{ amount: 100 }]);
      assertEquals([await stopped("pay", 99), ran], [[], [99]]);
    });

    it("allow the call once", async () => {
      ran.length = 0;
      const store = memoryCallStore();
      const { state } = await run.start(store, "refund", 5);
      assertStringIncludes(await run.resume(store, state, "approve"), "paid 5");
      assertStringIncludes(await run.resume(store, state, "approve"), "it needs approval");
      assertEquals(ran, [5]);
    });

    it("reject the call", async () => {
      ran.length = 0;
      const store = memoryCallStore();
      const { state } = await run.start(store, "pay", 500);
      assertFalse((await run.resume(store, state, "reject")).includes("paid"));
      assertEquals(ran, []);
    });

    it("are not valid for other arguments", async () => {
      ran.length = 0;
      const store = memoryCallStore();
      const { state } = await run.start(store, "pay", 500);
      // The OpenAI Agents SDK notices the change itself, and rejects.
      await run.resume(store, run.edit(state, "500", "900"), "approve").catch(() => undefined);
      assertEquals(ran, []);
    });
  });
}

describe("the approvals of all frameworks", () => {
  it("resume the call in another process", async () => {
    const folder = mkdtempSync(join(tmpdir(), "plue-approvals-"));
    try {
      const states: Record<string, string> = {};
      for (const [framework, run] of Object.entries(RUNS)) {
        using store = await sqliteCallStore(`${folder}/${framework}.db`);
        states[framework] = (await run.start(store, "refund", 7)).state;
      }
      const program = join(import.meta.dirname, "approvals.ts");
      const { stdout, stderr } = spawnSync(
        process.execPath,
        [program, folder, JSON.stringify(states)],
        { encoding: "utf8" },
      );
      const outcomes = [...stdout.matchAll(/^(\w+) .*paid 7/gm)].map(([, framework]) => framework);
      assertEquals(outcomes, Object.keys(RUNS), stderr);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
