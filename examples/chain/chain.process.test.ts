import { readFile } from "node:fs/promises";
import { basename } from "node:path";
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
  "05.md": task("05", "todo", "type: control\n"),
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
  const id = basename(folder.path);
  return { id, folder, registry, call, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

const problem = (result: ToolResult) =>
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

/** Arguments that each tool accepts in a fresh folder. */
const argumentsOf = (name: string, chainId: string): object | undefined =>
  ({
    "chain:status": { chainId },
    "task:status": { id: "01" },
    "task:list": {},
    "task:start": { id: "01", assignee: "s2" },
    "task:complete": { id: "02", summary: "Did it." },
    "task:approve": { id: "03" },
    "spawn_impl_session": { task: "01" },
  })[name];

describe("the role matrix of the chain", () => {
  for (const role of ["control", "impl", "other", "constructor", null]) {
    for (const { name, may } of MATRIX) {
      const allowed = (role === "control" || role === "impl") && may[role];
      it(`${allowed ? "gives" : "does not give"} ${name} to ${role ?? "nobody"}`, async () => {
        await using chain = await fakeChain();
        const toolset = chain.registry.select({ role });
        assertEquals(toolset.available().some((tool) => tool.id === name), allowed);
        assertEquals(toolset.explain(name).removedBy, allowed ? undefined : "role");

        const before = await chain.folder.list();
        const args = argumentsOf(name, chain.id);
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
    assertEquals(chain.registry.select().ids, MATRIX.map(({ name }) => name).sort());
  });

  it("gives each role the tools that the specification lists for it", async () => {
    await using chain = await fakeChain();
    const toolsOf = (role: string) => chain.registry.getToolsForRole(role).map(({ id }) => id);
    assertEquals(
      toolsOf("control"),
      ["chain:status", "task:list", "task:start", "task:approve", "spawn_impl_session"].sort(),
    );
    assertEquals(toolsOf("impl"), ["chain:status", "task:complete", "task:status"]);
  });

  it("tells no role of a tool that it does not have", async () => {
    await using chain = await fakeChain();
    for (const role of ["control", "impl"] as const) {
      const text = JSON.stringify(chain.registry.getToolsForRole(role));
      const hidden = MATRIX.filter(({ may }) => !may[role]).map(({ name }) => name);
      assertEquals(hidden.filter((name) => text.includes(name)), []);
    }
    const missing = await chain.call("impl", "task:status", { id: "nothing-like-it" });
    assertEquals(problem(missing), 'invalid_arguments: There is no task "nothing-like-it"');
  });

  it("is what the README says", async () => {
    const readme = await readFile(new URL("README.md", import.meta.url), "utf8");
    const rows = [...readme.matchAll(/^\| `([^`]+)` +\|.*\| (yes|no) +\| (yes|no) +\|$/gm)]
      .map(([, name, control, impl]) => [name, control === "yes", impl === "yes"]);
    assertEquals(rows.sort(), MATRIX.map(({ name, may }) => [name, may.control, may.impl]).sort());
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

    const args = { id: "01", assignee: "impl-01" };
    const started = await call("control", "task:start", args, "control-1");
    assertEquals(started.ok && started.content, {
      id: "01",
      title: "Task 01",
      type: "impl",
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
        `${at} started by control-1 for impl-01`,
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
      "05.md",
      "sessions/",
      "sessions/impl-01.md",
    ]);
  });

  it("say how far the chain has come, to both roles", async () => {
    await using chain = await fakeChain();
    await chain.call("control", "spawn_impl_session", { task: "01" });
    await chain.folder.fill({ "06.md": "no front matter", "notes.txt": "x", "README.md": "# x" });
    for (const role of ["control", "impl"]) {
      const result = await chain.call(role, "chain:status", { chainId: chain.id });
      assertEquals(result.ok && result.content, {
        total: 5,
        counts: { todo: 2, started: 1, in_review: 1, done: 1 },
        next: "01",
        inReview: ["03"],
        sessions: ["impl-01"],
        problems: [
          {
            file: "06.md",
            message: 'Cannot read the task: line 1: the file must begin with "---"',
          },
        ],
      });
    }
  });

  it("want the id of the chain, which is the folder's name", async () => {
    await using chain = await fakeChain();
    const tool = chain.registry.getTool("chain:status");
    assertEquals(tool?.description, "Get the status of a task chain");
    assertEquals(tool?.parameters, {
      type: "object",
      properties: {
        chainId: { type: "string", maxLength: 255, description: `Chain ID (e.g., ${chain.id})` },
      },
      required: ["chainId"],
      additionalProperties: false,
    });
    const status = async (args: object) => problem(await chain.call("impl", "chain:status", args));
    assertStringIncludes(await status({}), "invalid_arguments: ");
    assertEquals(
      await status({ chainId: "../" + chain.id }),
      `invalid_arguments: There is no chain "../${chain.id}"; the one here is "${chain.id}"`,
    );
    assertEquals(
      createChainRegistry({ folder: "x/CHAIN-037/" }).getTool("chain:status")?.parameters,
      {
        ...tool?.parameters,
        properties: {
          chainId: { type: "string", maxLength: 255, description: "Chain ID (e.g., CHAIN-037)" },
        },
      },
    );
  });

  it("list tasks, all or of one status", async () => {
    await using chain = await fakeChain();
    const ids = async (args: object) => {
      const result = await chain.call("control", "task:list", args);
      assert(result.ok);
      return (result.content as { tasks: { id: string }[] }).tasks.map(({ id }) => id).join();
    };
    assertEquals([await ids({}), await ids({ status: "in_review" })], ["01,02,03,04,05", "03"]);
  });

  it("show a task with its text", async () => {
    await using chain = await fakeChain();
    const result = await chain.call("impl", "task:status", { id: "02" });
    assertEquals(result.ok && result.content, {
      id: "02",
      title: "Task 02",
      type: "impl",
      status: "started",
      assignee: "s2",
      body: "Do 02.",
    });
  });

  it("leave a task of the type control to the control agent, from todo to done", async () => {
    await using chain = await fakeChain();
    const call = (name: string, args: object) => chain.call("control", name, args, "control-1");
    const started = await call("task:start", { id: "05" });
    assertEquals(started.ok && started.content, {
      id: "05",
      title: "Task 05",
      type: "control",
      status: "started",
      assignee: "control-1",
    });
    assertEquals(
      problem(
        await chain.call("impl", "task:complete", { id: "05", summary: "Done" }, "control-1"),
      ),
      'denied: Cannot complete task "05": its type is control, so the control agent executes it',
    );
    assertEquals((await call("task:approve", { id: "05", note: "All green" })).ok, true);
    const at = "- 2026-11-20T12:00:00.000Z";
    assertStringIncludes(
      await chain.folder.read("05.md"),
      `${at} started by control-1\n${at} approved: All green\n`,
    );
  });

  it("let a task that is assigned to nobody who works be taken up again", async () => {
    await using chain = await fakeChain();
    const { call } = chain;
    const start = (assignee: string, from?: string) =>
      call("control", "task:start", { id: "01", assignee, from }, "control-1");
    // Mistyped; then right, and before the session was spawned.
    assertEquals((await start("imp-01")).ok, true);
    assertEquals(
      problem(await call("control", "spawn_impl_session", { task: "01" })),
      'denied: Cannot spawn a session for task "01": it is started, and must be todo',
    );
    assertStringIncludes(problem(await start("impl-01")), "it is started, and must be todo");
    assertEquals(
      problem(await start("impl-01", "other")),
      'denied: Cannot hand over task "01": it is assigned to "imp-01", not to "other"',
    );
    const handed = await start("impl-01", "imp-01");
    assertEquals(handed.ok && (handed.content as { assignee: string }).assignee, "impl-01");
    assertEquals((await call("control", "spawn_impl_session", { task: "01" })).ok, true);
    const complete = (who: string) =>
      call("impl", "task:complete", { id: "01", summary: "x" }, who);
    assertStringIncludes(problem(await complete("imp-01")), 'it is assigned to "impl-01"');
    assertEquals((await complete("impl-01")).ok, true);
    // In review, it is nobody's to hand over.
    assertStringIncludes(problem(await start("x", "impl-01")), "it is in_review, and must be st");
    // Sent back to a session that has ended.
    await call("control", "task:approve", { id: "01", approved: false, note: "No tests" });
    assertEquals((await start("impl-01-again", "impl-01")).ok, true);
    assertEquals((await complete("impl-01-again")).ok, true);
    assertEquals((await call("control", "task:approve", { id: "01" })).ok, true);
    const at = "- 2026-11-20T12:00:00.000Z";
    assertStringIncludes(
      await chain.folder.read("01.md"),
      `${at} started by control-1 for imp-01\n${at} handed over by control-1 to impl-01\n`,
    );
  });

  it("let no task of the type control be handed over", async () => {
    await using chain = await fakeChain();
    await chain.call("control", "task:start", { id: "05" }, "control-1");
    const args = { id: "05", assignee: "s2", from: "control-1" };
    assertEquals(
      problem(await chain.call("control", "task:start", args, "control-1")),
      'denied: Cannot hand over task "05": its type is control, so the control agent executes it',
    );
  });

  it("give a started task to one of many who take it over at once", async () => {
    await using chain = await fakeChain();
    const results = await Promise.all(
      Array.from(
        { length: 20 },
        (_, index) =>
          chain.call("control", "task:start", { id: "02", assignee: `agent-${index}`, from: "s2" }),
      ),
    );
    assertEquals(results.filter((result) => result.ok).length, 1);
  });

  it("name the agents by their roles where the host gave no session", async () => {
    await using chain = await fakeChain();
    const call = (role: string, name: string, args: object) =>
      new ToolDispatcher(chain.registry.select({ role })).dispatch({ name, arguments: args });
    assertEquals((await call("control", "task:start", { id: "05" })).ok, true);
    assertEquals((await call("control", "task:start", { id: "01", assignee: "impl" })).ok, true);
    assertEquals((await call("impl", "task:complete", { id: "01", summary: "Did it" })).ok, true);
    const at = "- 2026-11-20T12:00:00.000Z";
    assertStringIncludes(await chain.folder.read("05.md"), `${at} started by control\n`);
    assertStringIncludes(
      await chain.folder.read("01.md"),
      `${at} started by control for impl\n${at} completed by impl: Did it\n`,
    );
  });

  const refused: [role: string, tool: string, args: object, message: string][] = [
    [
      "control",
      "task:start",
      { id: "02", assignee: "s2" },
      'denied: Cannot start task "02": it is started, and must be',
    ],
    [
      "control",
      "task:start",
      { id: "01" },
      'invalid_arguments: Cannot start task "01": its type is impl, so name the session in assignee',
    ],
    [
      "control",
      "task:start",
      { id: "05", assignee: "impl-05" },
      'denied: Cannot hand over task "05": its type is control',
    ],
    [
      "control",
      "spawn_impl_session",
      { task: "05" },
      'denied: Cannot spawn a session for task "05": its type is control',
    ],
    ["control", "task:approve", { id: "05" }, 'denied: Cannot approve task "05": it is todo'],
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
      'invalid_arguments: There is no task "1"',
    ],
    ["impl", "task:status", { id: "../01" }, 'invalid_arguments: There is no task "../01"'],
    ["control", "task:start", { id: "0" }, 'invalid_arguments: There is no task "0"'],
    ["control", "task:start", { id: "x".repeat(65) }, "invalid_arguments: "],
    ["control", "task:start", {}, "invalid_arguments: "],
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

  it("give a task to one of many for whom it is started at once", async () => {
    await using chain = await fakeChain();
    const results = await Promise.all(
      Array.from(
        { length: 20 },
        (_, index) => chain.call("control", "task:start", { id: "01", assignee: `agent-${index}` }),
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
    assertEquals(problem(await spawn()), 'denied: Task "01" has the session "impl-01" already');
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
