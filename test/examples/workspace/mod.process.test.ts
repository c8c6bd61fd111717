import { spawnSync } from "node:child_process";
import process from "node:process";
import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { createToolIndex, tagsAll, ToolAvailabilityContext, ToolDispatcher } from "../../../mod.ts";
import {
  createWorkspaceRegistry,
  registry,
  workspaceTools,
} from "../../../examples/workspace/mod.ts";
import { maybe } from "../../support/skip.ts";
import { git, makeRepository, temporaryFolder, testWorkspace } from "./testing.ts";

describe("createWorkspaceRegistry()", () => {
  it("registers every tool with its risk and hints", async () => {
    await using folder = await temporaryFolder();
    const registry = createWorkspaceRegistry({ root: folder.path });
    const rows = registry.tools.map((tool) => {
      const { readOnlyHint, destructiveHint, openWorldHint } = tool.annotations;
      const hints = [
        readOnlyHint && "reads",
        destructiveHint && "destroys",
        openWorldHint && "open",
      ];
      return [tool.id, tool.risk, tool.category, hints.filter(Boolean).join(" ")].join(" | ");
    });
    assertEquals(rows, [
      "echo | safe | system | reads",
      "file-delete | high | filesystem | destroys",
      "file-read | low | filesystem | reads",
      "file-write | medium | filesystem | destroys",
      "git-commit | medium | git | ",
      "git-status | low | git | reads",
      "network-fetch | high | network | destroys open",
      "search-grep | low | search | reads",
      "terminal-execute | high | terminal | destroys",
    ]);
  });

  it("tags only the reading tools as read-only", async () => {
    const reading = ["echo", "file-read", "git-status", "search-grep"];
    assertEquals(workspaceTools.filter(tagsAll("read-only")).map(({ id }) => id), reading);
    await using folder = await temporaryFolder();
    const registry = createWorkspaceRegistry({ root: folder.path });
    assertEquals(registry.select({ context: ToolAvailabilityContext.readOnly }).ids, reading);
  });

  it("finds each tool by the words of a person", () => {
    // Uses no registry, because the git tools are available only in a repository.
    const index = createToolIndex();
    for (const tool of workspaceTools) index.add(tool);
    for (
      const [query, id] of [
        ["open a file", "file-read"],
        ["save a file", "file-write"],
        ["delete a file", "file-delete"],
        ["run a command", "terminal-execute"],
        ["find text in files", "search-grep"],
        ["fetch a url", "network-fetch"],
        ["commit changes", "git-commit"],
        ["what changed", "git-status"],
      ] as const
    ) {
      assertEquals([query, index.search(query, 1)[0]?.id], [query, id]);
    }
  });

  maybe(process.platform === "linux", "only Linux has /proc")(
    "rejects a root that contains the environment of this process",
    () => {
      for (const root of ["/", "/proc", "/proc/self"]) {
        assertThrows(() => createWorkspaceRegistry({ root }), TypeError, "the system's own files");
      }
    },
  );

  it("rejects a root that is not a folder", async () => {
    await using folder = await temporaryFolder({ "file": "" });
    for (const root of [`${folder.path}/nope`, `${folder.path}/file`]) {
      assertThrows(
        () => createWorkspaceRegistry({ root }),
        TypeError,
        "must be a folder that exists",
      );
    }
  });
});

describe("the module's own registry", () => {
  it("is the default export, and serves the current folder", async () => {
    const loaded = await import("../../../examples/workspace/mod.ts");
    assertEquals(loaded.default, registry);
    const result = await new ToolDispatcher(registry).dispatch({
      name: "file-read",
      arguments: { path: "package.json", limit: 1 },
    });
    assertEquals(result.ok && (result.content as { content: string }).content, "{\n");
  });
});

describe("echo", () => {
  it("has the description of the specification, and returns its message", async () => {
    await using test = await testWorkspace();
    const echo = test.registry.getTool("echo");
    assertEquals(
      [echo?.description, echo?.requiresTransaction],
      ["Echoes back the input message (for testing)", false],
    );
    assertEquals(await test.ok("echo", { message: "häh\0😀" }), { message: "häh\0😀" });
  });
});

describe("the git tools", () => {
  maybe(spawnSync("git", ["--version"]).status === 0, "git is not installed")(
    "show what has changed and commit it, in a folder that is a repository",
    async () => {
      await using test = await testWorkspace({ "a": "a" });
      const before = await test.fails("git-status");
      assertEquals(before.code, "unavailable");
      makeRepository(test.folder.path);
      await test.folder.fill({ "a": "b" });
      const status = await test.ok("git-status");
      assertEquals(status["files"], [{ path: "a", staged: "unmodified", unstaged: "modified" }]);
      const commit = await test.ok("git-commit", { message: "Second", paths: ["a"] });
      assertEquals(commit, { commit: git(test.folder.path, "rev-parse", "HEAD"), files: ["a"] });
      assertEquals((await test.ok("git-status"))["clean"], true);
    },
  );
});
