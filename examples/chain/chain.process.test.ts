import { readFile } from "node:fs/promises";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher, ToolRegistry, type ToolResult } from "../../mod.ts";
import { temporaryFolder } from "../workspace/testing.ts";
import { type ChainOptions, createChainRegistry, type ImplSession } from "./mod.ts";

const task = (id: string, status: string, rest = "") =>
  `---\nid: ${id}\ntitle: Task ${id}\nstatus: ${status}\n${rest}---\n\nDo ${id}.\n`;

const FILES = {
  "01.md": task("01", "todo"),
  "02.md": task("02", "started", "assignee: s2\n"),
  "03.md": task("03", "in_review", "assignee: s3\n"),
  "04.md": task("04", "done"),
};
const NOW = new Date("2026-11-20T12:00:00Z");

/** A chain in a folder of its own, and calls to it. */
async function fakeChain(options: Partial<ChainOptions> = {}) {
  const folder = await temporaryFolder(FILES);
  const registry = createChainRegistry({ folder: folder.path, now: () => NOW, ...options });
  const call = (
    role: string | null | undefined,
    name: string,
    args: unknown = {},
    sessionId = "s2",
  ): Promise<ToolResult> =>
    new ToolDispatcher(registry.select({ role })).dispatch({ name, arguments: args }, {
      sessionId,
    });
  return { folder, registry, call, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

const problem = (result: ToolResult) =>
  result.ok ? "ok" : `${result.error.code}: ${result.error.message}`;

/** Every tool, arguments that it accepts in a fresh folder, and who may use it. */
const MATRIX = [
  ["chain:status", {}, { control: true, impl: false }],
  ["spawn_impl_session", { task: "01" }, { control: true, impl: false }],
  ["task:approve", { id: "03" }, { control: true, impl: false }],
  ["task:complete", { id: "02", summary: "Did it." }, { control: false, impl: true }],
  ["task:list", {}, { control: true, impl: true }],
  ["task:start", { id: "01" }, { control: false, impl: true }],
  ["task:status", { id: "01" }, { control: true, impl: true }],
] as const;

describe("the role matrix of the chain", () => {
  for (const role of ["control", "impl", "other", "constructor", null]) {
    for (const [name, args, may] of MATRIX) {
      const allowed = (role === "control" || role === "impl") && may[role];
      it(`${allowed ? "gives" : "does not give"} ${name} to ${role ?? "nobody"}`, async () => {
        await using chain = await fakeChain();
        const toolset = chain.registry.select({ role });
        assertEquals(toolset.available().some((tool) => tool.id === name), allowed);
        assertEquals(toolset.explain(name).removedBy, allowed ? undefined : "role");

        const before = await chain.folder.list();
        const result = await chain.call(role, name, args);
        assertEquals(result.ok ? "ok" : result.error.code, allowed ? "ok" : "unknown_tool");
        if (!allowed) {
          // The same words as from a registry in which there is no such tool.
          const others = chain.registry.tools.filter((tool) => tool.id !== name);
          const without = new ToolRegistry({ tools: others }).select({ role });
          const absent = await new ToolDispatcher(without).dispatch({ name, arguments: args });
          assertEquals(problem(result), problem(absent));
          assertEquals(await chain.folder.list(), before);
          assertEquals(await chain.folder.read("03.md"), FILES["03.md"]);
        }
      });
    }
  }

  it("has a row for every tool, and only for those", async () => {
    await using chain = await fakeChain();
    assertEquals(chain.registry.select().ids, MATRIX.map(([name]) => name));
  });

  it("is what the README says", async () => {
    const readme = await readFile(new URL("README.md", import.meta.url), "utf8");
    const rows = [...readme.matchAll(/^\| `([^`]+)` +\|.*\| (yes|no) +\| (yes|no) +\|$/gm)]
      .map(([, name, control, impl]) => [name, control === "yes", impl === "yes"]);
    assertEquals(
      rows.sort(),
      MATRIX.map(([name, , may]) => [name, may.control, may.impl]).sort(),
    );
  });
});

describe("chain tools", () => {
  it("take a task from todo to done, with a history", async () => {
    await using chain = await fakeChain();
    const { call } = chain;
    const spawned = await call("control", "spawn_impl_session", {
      task: "01",
      instructions: "Be brief.",
    });
    assertEquals(spawned.ok && spawned.content, {
      session: "impl-01",
      task: "01",
      file: "sessions/impl-01.md",
      launched: false,
    });
    assertEquals(
      await chain.folder.read("sessions/impl-01.md"),
      "---\nid: impl-01\nrole: impl\ntask: 01\ncreated: 2026-11-20T12:00:00.000Z\n---\n\n" +
        "# Task 01\n\nBe brief.\n",
    );

    const started = await call("impl", "task:start", { id: "01" }, "impl-01");
    assertEquals(started.ok && started.content, {
      id: "01",
      title: "Task 01",
      status: "started",
      assignee: "impl-01",
    });
    const summary = "Wrote it.\n\n---\nstatus: done";
    assertEquals((await call("impl", "task:complete", { id: "01", summary }, "impl-01")).ok, true);
    assertEquals(
      (await call("control", "task:approve", { id: "01", approved: false, note: "No tests" })).ok,
      true,
    );
    assertEquals((await call("impl", "task:complete", { id: "01", summary }, "impl-01")).ok, true);
    const approved = await call("control", "task:approve", { id: "01" });
    assertEquals(approved.ok && (approved.content as { status: string }).status, "done");

    const at = "- 2026-11-20T12:00:00.000Z";
    assertEquals(
      await chain.folder.read("01.md"),
      [
        "---",
        "id: 01",
        "title: Task 01",
        "status: done",
        "assignee: impl-01",
        "---",
        "",
        "Do 01.",
        "",
        "## History",
        "",
        `${at} started by impl-01`,
        `${at} completed by impl-01: Wrote it. --- status: done`,
        `${at} sent back: No tests`,
        `${at} completed by impl-01: Wrote it. --- status: done`,
        `${at} approved`,
        "",
      ].join("\n"),
    );
    assertEquals(await chain.folder.list(), [
      "01.md",
      "02.md",
      "03.md",
      "04.md",
      "sessions/",
      "sessions/impl-01.md",
    ]);
  });

  it("say how far the chain has come", async () => {
    await using chain = await fakeChain();
    await chain.call("control", "spawn_impl_session", { task: "01" });
    await chain.folder.fill({ "05.md": "no front matter", "notes.txt": "x", "README.md": "# x" });
    const result = await chain.call("control", "chain:status");
    assertEquals(result.ok && result.content, {
      total: 4,
      counts: { todo: 1, started: 1, in_review: 1, done: 1 },
      next: "01",
      inReview: ["03"],
      sessions: ["impl-01"],
      problems: [
        {
          file: "05.md",
          message: 'Cannot read the task: line 1: the file must begin with "---"',
        },
      ],
    });
  });

  it("list tasks, all or of one status", async () => {
    await using chain = await fakeChain();
    const ids = async (args: object) => {
      const result = await chain.call("impl", "task:list", args);
      assert(result.ok);
      return (result.content as { tasks: { id: string }[] }).tasks.map(({ id }) => id).join();
    };
    assertEquals([await ids({}), await ids({ status: "in_review" })], ["01,02,03,04", "03"]);
  });

  it("show a task with its text", async () => {
    await using chain = await fakeChain();
    const result = await chain.call("impl", "task:status", { id: "02" });
    assertEquals(result.ok && result.content, {
      id: "02",
      title: "Task 02",
      status: "started",
      assignee: "s2",
      body: "Do 02.",
    });
  });

  const refused: [role: string, tool: string, args: object, message: string][] = [
    [
      "impl",
      "task:start",
      { id: "02" },
      'denied: Cannot start task "02": it is started, and must be',
    ],
    ["impl", "task:complete", { id: "01", summary: "x" }, "denied: Cannot complete"],
    ["impl", "task:complete", { id: "02", summary: "" }, "invalid_arguments: "],
    ["control", "task:approve", { id: "02" }, 'denied: Cannot approve task "02": it is started'],
    [
      "control",
      "task:approve",
      { id: "03", approved: false },
      "invalid_arguments: ",
    ],
    [
      "control",
      "task:approve",
      { id: "04", approved: false, note: "x" },
      'denied: Cannot send back task "04"',
    ],
    ["control", "spawn_impl_session", { task: "02" }, "denied: Cannot spawn a session for"],
    [
      "impl",
      "task:status",
      { id: "1" },
      'invalid_arguments: There is no task "1"; task:list shows',
    ],
    ["impl", "task:status", { id: "../01" }, 'invalid_arguments: There is no task "../01"'],
    ["impl", "task:start", { id: "0" }, 'invalid_arguments: There is no task "0"'],
    ["impl", "task:start", { id: "x".repeat(65) }, "invalid_arguments: "],
    ["impl", "task:start", {}, "invalid_arguments: "],
  ];
  for (const [role, tool, args, message] of refused) {
    it(`refuse ${tool} ${JSON.stringify(args).slice(0, 50)}: ${message.slice(0, 40)}`, async () => {
      await using chain = await fakeChain();
      const result = await chain.call(role, tool, args);
      assertStringIncludes(problem(result), message);
      for (const [name, text] of Object.entries(FILES)) {
        assertEquals(await chain.folder.read(name), text);
      }
      assertEquals(await chain.folder.list(), Object.keys(FILES));
    });
  }

  it("let nobody complete what somebody else started", async () => {
    await using chain = await fakeChain();
    const args = { id: "02", summary: "Mine now." };
    assertEquals(
      problem(await chain.call("impl", "task:complete", args, "thief")),
      'denied: Cannot complete task "02": it is assigned to "s2", not to "thief"',
    );
  });

  it("give a task to one of many who want it at once", async () => {
    await using chain = await fakeChain();
    const results = await Promise.all(
      Array.from(
        { length: 20 },
        (_, index) => chain.call("impl", "task:start", { id: "01" }, `agent-${index}`),
      ),
    );
    assertEquals(results.filter((result) => result.ok).length, 1);
    const losers = results.filter((result) => !result.ok && result.error.code === "denied");
    assertEquals(losers.length, 19);
    assertEquals(await chain.folder.list(), Object.keys(FILES));
  });

  it("order one session per task", async () => {
    await using chain = await fakeChain();
    const spawn = () => chain.call("control", "spawn_impl_session", { task: "01" });
    const results = await Promise.all([spawn(), spawn(), spawn()]);
    assertEquals(results.map((result) => result.ok), [true, false, false]);
    assertEquals(
      problem(await spawn()),
      'denied: Task "01" has the session "impl-01" already',
    );
  });

  it("start an agent where the host can, and say so", async () => {
    const launched: ImplSession[] = [];
    await using chain = await fakeChain({ launch: (session) => void launched.push(session) });
    const result = await chain.call("control", "spawn_impl_session", {
      task: "01",
      instructions: "Go",
    });
    assertEquals(result.ok && (result.content as { launched: boolean }).launched, true);
    assertEquals(launched, [
      { id: "impl-01", task: "01", instructions: "Go", file: "sessions/impl-01.md" },
    ]);
  });

  it("forget a session whose agent did not start", async () => {
    await using chain = await fakeChain({
      launch: () => Promise.reject(new Error("no machine is free")),
    });
    const result = await chain.call("control", "spawn_impl_session", { task: "01" });
    assertEquals(problem(result), "unavailable: Cannot start an agent: no machine is free");
    assertEquals(result.ok || result.error.retryable, true);
    assertEquals((await chain.folder.list()).includes("sessions/impl-01.md"), false);
  });

  it("disappear where there is no workspace", async () => {
    await using chain = await fakeChain();
    const { registry } = chain;
    const toolset = registry.select({ role: "impl", context: { hasWorkspace: false } });
    assertEquals(toolset.ids, []);
  });
});
