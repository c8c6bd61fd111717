import process from "node:process";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { createToolIndex, tagsAll, ToolAvailabilityContext, ToolDispatcher } from "../../mod.ts";
import { createWorkspaceRegistry, registry, transactions, workspaceTools } from "./mod.ts";
import { maybe } from "../../test/support/skip.ts";
import { temporaryFolder } from "./testing.ts";

describe("createWorkspaceRegistry()", () => {
  it("registers every tool, with the risk and the hints that it should have", async () => {
    await using folder = await temporaryFolder();
    const { registry } = createWorkspaceRegistry({ root: folder.path });
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
      "file-list | low | filesystem | reads",
      "file-read | low | filesystem | reads",
      "file-write | medium | filesystem | destroys",
      "git-commit | medium | git | ",
      "git-log | low | git | reads",
      "git-status | low | git | reads",
      "network-fetch | high | network | destroys open",
      "search-grep | low | search | reads",
      "terminal-execute | high | terminal | destroys",
    ]);
    assertEquals(registry.tools.filter((tool) => tool.requiresTransaction).map(({ id }) => id), [
      "file-delete",
      "file-write",
    ]);
  });

  it("tags as read-only the tools that only read, and no other", async () => {
    const reading = ["echo", "file-list", "file-read", "git-log", "git-status", "search-grep"];
    assertEquals(workspaceTools.filter(tagsAll("read-only")).map(({ id }) => id), reading);
    await using folder = await temporaryFolder();
    const { registry } = createWorkspaceRegistry({ root: folder.path });
    assertEquals(registry.select({ context: ToolAvailabilityContext.readOnly }).ids, reading);
  });

  it("finds each tool by what a person would call it", async () => {
    await using folder = await temporaryFolder();
    const { registry } = createWorkspaceRegistry({ root: folder.path });
    for (
      const [query, id] of [
        ["read a file", "file-read"],
        ["open a file", "file-read"],
        ["view file contents", "file-read"],
        ["write a file", "file-write"],
        ["save a file", "file-write"],
        ["list files", "file-list"],
        ["delete a file", "file-delete"],
        ["run a command", "terminal-execute"],
        ["find text in files", "search-grep"],
        ["fetch a url", "network-fetch"],
      ] as const
    ) {
      assertEquals([query, registry.searchTools(query)[0]?.id], [query, id]);
    }
  });

  it("has tools of git that a search tells apart", () => {
    // Not through a registry: only a repository has these tools.
    const index = createToolIndex();
    for (const tool of workspaceTools) index.add(tool);
    for (
      const [query, id] of [
        ["commit changes", "git-commit"],
        ["commit", "git-commit"],
        ["list commits", "git-log"],
        ["what changed", "git-status"],
        ["history", "git-log"],
      ] as const
    ) {
      assertEquals([query, index.search(query, 1)[0]?.id], [query, id]);
    }
  });

  maybe(process.platform === "linux", "only Linux has /proc")(
    "refuses a root that holds the environment of this process",
    () => {
      for (const root of ["/", "/proc", "/proc/self"]) {
        assertThrows(() => createWorkspaceRegistry({ root }), TypeError, "the system's own files");
      }
    },
  );

  it("refuses a root, and a folder of git, that is not a folder", async () => {
    await using folder = await temporaryFolder({ "file": "" });
    for (const root of [`${folder.path}/nope`, `${folder.path}/file`]) {
      assertThrows(
        () => createWorkspaceRegistry({ root }),
        TypeError,
        "must be a folder that exists",
      );
      assertThrows(
        () => createWorkspaceRegistry({ root: folder.path, gitFolders: [root] }),
        TypeError,
        "as a folder of git: it must be a folder that exists",
      );
    }
  });

  it("gives each registry a workspace of its own", async () => {
    await using one = await temporaryFolder();
    await using two = await temporaryFolder();
    const [a, b] = [one, two].map(({ path }) => createWorkspaceRegistry({ root: path }).registry);
    assertEquals(a?.tools.map(({ id }) => id), b?.tools.map(({ id }) => id));
    assertEquals(a === b, false);
  });
});

describe("the module's own registry", () => {
  it("is there for hosts that load the module by name", async () => {
    const loaded = await import("./mod.ts");
    assertEquals(loaded.default, registry);
    assertEquals(registry.count, workspaceTools.length);
    assertEquals(transactions.openCount, 0);
  });

  it("looks for its folder when a tool first needs it", async () => {
    await using folder = await temporaryFolder({ "here.txt": "" });
    const before = process.env["PLUE_WORKSPACE"];
    process.env["PLUE_WORKSPACE"] = folder.path;
    const result = await new ToolDispatcher(registry, { transactions }).dispatch({
      name: "file-list",
    });
    if (before === undefined) delete process.env["PLUE_WORKSPACE"];
    else process.env["PLUE_WORKSPACE"] = before;
    assert(result.ok);
    const { entries } = result.content as {
      readonly entries: readonly { readonly path: string }[];
    };
    assertEquals(entries.map(({ path }) => path), ["here.txt"]);
  });
});
