import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { type ChainOptions, createChainRegistry } from "../../../examples/chain/mod.ts";
import { ToolDispatcher, ToolRegistry, type ToolResult } from "../../../mod.ts";
import { temporaryFolder } from "../workspace/testing.ts";
import data from "./chain.json" with { type: "json" };

const TASKS = [
  { id: "01", title: "One", status: "todo" },
  { id: "02", title: "Two", status: "started", assignee: "s2" },
  { id: "03", title: "Three", status: "in_review", assignee: "s3" },
  { id: "04", title: "Four", status: "done" },
  { id: "05", title: "Five", type: "control", status: "todo" },
];
const FILE = JSON.stringify(TASKS);

/** A chain in a folder of its own, and calls to it. */
async function fakeChain(options: Partial<ChainOptions> = {}) {
  const folder = await temporaryFolder({ "CHAIN-037.json": FILE });
  const registry = createChainRegistry({ file: join(folder.path, "CHAIN-037.json"), ...options });
  const call = (
    role: string | null,
    name: string,
    args: unknown = {},
    sessionId = "s2",
  ): Promise<ToolResult> =>
    new ToolDispatcher(registry.select({ role })).dispatch({ name, arguments: args }, {
      sessionId,
    });
  const task = async (id: string): Promise<Record<string, unknown>> =>
    JSON.parse(await folder.read("CHAIN-037.json")).find((one: { id: string }) => one.id === id);
  return { folder, registry, call, task, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

const outcome = (result: ToolResult) =>
  result.ok ? "ok" : `${result.error.code}: ${result.error.message}`;

/** The tool matrix of the specification, cell by cell. */
const MATRIX = `
| Tool | Control | Impl | Description |
|------|---------|------|-------------|
| chain:status | ✓ | ✓ | View chain status |
| task:status | ✗ | ✓ | View current task details |
| task:list | ✓ | ✗ | List tasks in chain |
| task:start | ✓ | ✗ | Start a task |
| task:complete | ✗ | ✓ | Mark task complete |
| task:approve | ✓ | ✗ | Approve completed task |
| spawn_impl_session | ✓ | ✗ | Spawn nested impl agent |
`.trim().split("\n").slice(2).map((row) => {
  const [name = "", control, impl] = row.split("|").slice(1, 4).map((cell) => cell.trim());
  return { name, may: { control: control === "✓", impl: impl === "✓" } };
});

/** Arguments that each tool accepts in a fresh chain. */
const ARGUMENTS: Readonly<Record<string, object>> = {
  "chain:status": { chainId: "CHAIN-037" },
  "task:status": { id: "01" },
  "task:list": {},
  "task:start": { id: "01", assignee: "s2" },
  "task:complete": { id: "02", summary: "Did it." },
  "task:approve": { id: "03" },
  "spawn_impl_session": { task: "01" },
};

describe("the role matrix of the chain", () => {
  for (const role of ["control", "impl", "other", "constructor", null]) {
    it(`shows ${role ?? "no role"} its tools, and reports all others as unknown`, async () => {
      for (const { name, may } of MATRIX) {
        await using chain = await fakeChain();
        const allowed = (role === "control" || role === "impl") && may[role];
        const toolset = chain.registry.select({ role });
        assertEquals(toolset.available().some((tool) => tool.id === name), allowed);
        assertEquals(toolset.explain(name).removedBy, allowed ? undefined : "role");
        const result = await chain.call(role, name, ARGUMENTS[name]);
        assertEquals(result.ok ? "ok" : result.error.code, allowed ? "ok" : "unknown_tool");
        if (allowed) continue;
        const others = chain.registry.tools.filter((tool) => tool.id !== name);
        const without = new ToolRegistry({ tools: others }).select({ role });
        const absent = await new ToolDispatcher(without).dispatch({ name, arguments: {} });
        assertEquals(outcome(result), outcome(absent));
        assertEquals(await chain.folder.read("CHAIN-037.json"), FILE);
      }
    });
  }

  it("names no tool to a role that does not have it", async () => {
    await using chain = await fakeChain();
    for (const role of ["control", "impl"] as const) {
      const text = JSON.stringify(chain.registry.getToolsForRole(role));
      const hidden = MATRIX.filter(({ may }) => !may[role]).map(({ name }) => name);
      assertEquals(hidden.filter((name) => text.includes(name)), []);
    }
  });

  it("is the table of the README", async () => {
    const readme = await readFile("examples/chain/README.md", "utf8");
    const rows = [...readme.matchAll(/^\| `([^`]+)` +\|.*\| (yes|no) +\| (yes|no) +\|$/gm)]
      .map(([, name, control, impl]) => [name, control === "yes", impl === "yes"]);
    assertEquals(rows.sort(), MATRIX.map(({ name, may }) => [name, may.control, may.impl]).sort());
  });
});

describe("the tools of the chain", () => {
  it("take a task from todo to done, with a history, as in the README", async () => {
    await using chain = await fakeChain();
    const { call, task } = chain;
    const spawned = await call("control", "spawn_impl_session", { task: "01" });
    assertEquals(spawned.ok && spawned.content, { session: "impl-01", launched: false });
    await call("control", "task:start", { id: "01", assignee: "impl-01" });
    await call("impl", "task:complete", { id: "01", summary: "First\ntry" }, "impl-01");
    await call("control", "task:approve", { id: "01", approved: false, note: "No tests" });
    await call("impl", "task:complete", { id: "01", summary: "Tests" }, "impl-01");
    await call("control", "task:approve", { id: "01" });
    assertEquals(await task("01"), data.done);
    assertEquals(await chain.folder.list(), ["CHAIN-037.json"]);
  });

  it("assign a task of type control to the control agent, from todo to done", async () => {
    await using chain = await fakeChain();
    assertEquals(outcome(await chain.call("control", "task:start", { id: "05" }, "c1")), "ok");
    assertEquals(
      outcome(await chain.call("impl", "task:complete", { id: "05", summary: "Done" }, "c1")),
      'denied: Cannot complete task "05": its type is control, so the control agent executes it',
    );
    assertEquals(outcome(await chain.call("control", "task:approve", { id: "05" })), "ok");
    assertEquals((await chain.task("05"))["history"], ["started for c1", "approved"]);
  });

  it("show the chain to both roles, and a task or a list to one", async () => {
    await using chain = await fakeChain();
    for (const role of ["control", "impl"]) {
      const result = await chain.call(role, "chain:status", { chainId: "CHAIN-037" });
      assertEquals(result.ok && result.content, {
        total: 5,
        counts: { todo: 2, started: 1, in_review: 1, done: 1 },
        next: "01",
      });
    }
    const shown = await chain.call("impl", "task:status", { id: "02" });
    assertEquals(shown.ok && shown.content, TASKS[1]);
    const all = await chain.call("control", "task:list");
    assertEquals(all.ok && all.content, TASKS);
    const inReview = await chain.call("control", "task:list", { status: "in_review" });
    assertEquals(inReview.ok && inReview.content, [TASKS[2]]);
  });

  for (const [role, name, args, message] of data.rejected as [string, string, object, string][]) {
    it(`reject ${name} ${JSON.stringify(args)}, and change nothing`, async () => {
      await using chain = await fakeChain();
      assertStringIncludes(outcome(await chain.call(role, name, args)), message);
      assertEquals(await chain.folder.read("CHAIN-037.json"), FILE);
    });
  }

  it("allow only the assignee to complete a task", async () => {
    await using chain = await fakeChain();
    assertEquals(
      outcome(await chain.call("impl", "task:complete", { id: "02", summary: "Mine" }, "thief")),
      'denied: Cannot complete task "02": it is assigned to "s2"',
    );
  });

  it("assign a task, and its session, to one of many concurrent calls", async () => {
    await using chain = await fakeChain();
    const succeeded = async (name: string, args: (index: number) => object) => {
      const calls = Array.from(
        { length: 20 },
        (_, index) => chain.call("control", name, args(index)),
      );
      return (await Promise.all(calls)).filter((result) => result.ok).length;
    };
    assertEquals(await succeeded("spawn_impl_session", () => ({ task: "01" })), 1);
    assertEquals(await succeeded("task:start", (n) => ({ id: "01", assignee: `agent-${n}` })), 1);
  });

  it("start an agent if the host supports it, and drop the session if that fails", async () => {
    const launched: unknown[] = [];
    let isBroken = false;
    await using chain = await fakeChain({
      launch(...args) {
        if (isBroken) throw new Error("no machine is free");
        launched.push(args.map((arg) => typeof arg === "string" ? arg : arg.id));
      },
    });
    const spawn = { task: "01", instructions: "Be brief." };
    isBroken = true;
    assertEquals(
      outcome(await chain.call("control", "spawn_impl_session", spawn)),
      "unavailable: Cannot start an agent: no machine is free",
    );
    isBroken = false;
    const result = await chain.call("control", "spawn_impl_session", spawn);
    assertEquals(result.ok && result.content, { session: "impl-01", launched: true });
    assertEquals(launched, [["impl-01", "01", "Be brief."]]);
  });
});
