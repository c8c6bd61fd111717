import { spawnSync } from "node:child_process";
import { mkdir, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe } from "bun:test";
import { maybe } from "../../../support/skip.ts";
import { ToolDispatcher } from "../../../../mod.ts";
import { createWorkspaceRegistry } from "../../../../examples/workspace/mod.ts";
import { Workspace } from "../../../../examples/workspace/workspace.ts";
import {
  git as runGit,
  makeRepository,
  temporaryFolder,
  type TestWorkspace,
  testWorkspace,
} from "../testing.ts";

/** Runs git directly in the workspace. */
function git(test: TestWorkspace, ...args: readonly string[]): string {
  return runGit(test.folder.path, ...args);
}

const it = maybe(spawnSync("git", ["--version"]).status === 0, "git is not installed");

async function repository(files: Readonly<Record<string, string>> = {}): Promise<TestWorkspace> {
  const test = await testWorkspace(files);
  if (Object.keys(files).length > 0) makeRepository(test.folder.path);
  else git(test, "init", "--quiet", "--initial-branch=main");
  return test;
}

interface Status {
  readonly branch: string | null;
  readonly commit: string | null;
  readonly clean: boolean;
  readonly files: readonly {
    readonly path: string;
    readonly staged: string;
    readonly unstaged: string;
  }[];
  readonly truncated: boolean;
}

describe("the git tools", () => {
  it("are available only in a repository", async () => {
    await using folder = await testWorkspace();
    const workspace = new Workspace({ root: folder.folder.path });
    assertEquals(workspace.isRepository, false);
    git(folder, "init", "--quiet");
    assertEquals(workspace.isRepository, true);
    await rm(join(folder.folder.path, ".git"), { recursive: true });
    assertEquals(workspace.isRepository, false);
    await using test = await testWorkspace();
    assertEquals((await test.fails("git-status")).code, "unavailable");
    assertEquals(
      test.registry.getAvailableTools().filter(({ category }) => category === "git"),
      [],
    );
  });
});

describe("the git tools, without the repository's configuration,", () => {
  it("still support SHA-256, a packed index and packed refs", async () => {
    await using test = await testWorkspace({ "a": "a", "b": "b" });
    git(test, "init", "--quiet", "--initial-branch=main", "--object-format=sha256");
    git(test, "config", "user.name", 'Ada "the first" \\ Lovelace');
    git(test, "config", "user.email", "ada@example.org");
    const first = await test.ok("git-commit", { message: "First", paths: ["a", "b"] });
    assertEquals(String(first["commit"]).length, 64);
    git(test, "update-index", "--index-version=4");
    git(test, "pack-refs", "--all");
    git(test, "gc", "--quiet");
    await test.folder.fill({ "a": "A" });
    const status = await test.ok<Status>("git-status");
    assertEquals(status.files.map(({ path }) => path), ["a"]);
    await test.ok("git-commit", { message: "Second", paths: ["."] });
    assertEquals(
      git(test, "log", "--format=%s %an"),
      ['Second Ada "the first" \\ Lovelace', 'First Ada "the first" \\ Lovelace'].join("\n"),
    );
    git(test, "fsck", "--strict");
  });

  it("do not commit the absence of files outside a sparse checkout", async () => {
    await using test = await repository({ "in/a": "a", "out/b": "b", "top": "t" });
    git(test, "sparse-checkout", "set", "in");
    await test.folder.fill({ "in/a": "A" });
    assertEquals((await test.ok<Status>("git-status")).files.length, 1);
    const commit = await test.ok("git-commit", { message: "m", paths: ["."] });
    assertEquals(commit["files"], ["in/a"]);
    assertEquals(git(test, "ls-tree", "-r", "--name-only", "HEAD"), "in/a\nout/b\ntop");
  });

  it("use the user's ignore file, and no ignore file that the repository names", async () => {
    await using test = await repository({ "a": "a" });
    await test.folder.fill({ "mine": "", "theirs": "", "list": "theirs\n" });
    await using home = await temporaryFolder({ "ignored": "mine\nlist\n" });
    await home.fill({ ".gitconfig": "[core]\n\texcludesFile = ~/ignored\n" });
    git(test, "config", "core.excludesFile", join(test.folder.path, "list"));
    const before = process.env["HOME"];
    process.env["HOME"] = home.path;
    const status = await test.ok<Status>("git-status");
    if (before === undefined) delete process.env["HOME"];
    else process.env["HOME"] = before;
    assertEquals(status.files.map(({ path }) => path), ["theirs"]);
  });
});

describe("git-status", () => {
  it("shows the branch and every kind of change, with unchanged paths", async () => {
    await using test = await repository({
      "kept": "k",
      "changed": "c",
      "gone": "g",
      "old name": "o".repeat(99),
    });
    await test.folder.fill({ "changed": "C", "new file\n": "n", "stäged": "s" });
    await rm(join(test.folder.path, "gone"));
    git(test, "add", "stäged");
    git(test, "mv", "old name", "new name");
    const status = await test.ok<Status>("git-status");
    assertEquals(status.branch, "main");
    assertEquals(status.commit, git(test, "rev-parse", "HEAD"));
    assertEquals(status.clean, false);
    assertEquals(
      new Map(status.files.map(({ path, ...rest }) => [path, rest])),
      new Map([
        ["changed", { staged: "unmodified", unstaged: "modified" }],
        ["gone", { staged: "unmodified", unstaged: "deleted" }],
        ["old name", { staged: "deleted", unstaged: "unmodified" }],
        ["new name", { staged: "added", unstaged: "unmodified" }],
        ["stäged", { staged: "added", unstaged: "unmodified" }],
        ["new file\n", { staged: "untracked", unstaged: "untracked" }],
      ] as [string, { staged: string; unstaged: string }][]),
    );
  });

  it("works before the first commit", async () => {
    await using test = await repository();
    await test.folder.fill({ "a": "a" });
    const status = await test.ok<Status>("git-status");
    assertEquals([status.branch, status.commit, status.files.length], ["main", null, 1]);
  });

  it("shows a branch whose name has brackets, and null when HEAD is detached", async () => {
    await using test = await repository({ "a": "a" });
    git(test, "checkout", "--quiet", "-b", "fix(ui)");
    assertEquals((await test.ok<Status>("git-status")).branch, "fix(ui)");
    git(test, "checkout", "--quiet", "--detach");
    assertEquals((await test.ok<Status>("git-status")).branch, null);
  });

  it("lists at most 500 files, with truncated: true", async () => {
    await using test = await repository({ "kept": "k" });
    await test.folder.fill(
      Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`f${i}`, ""])),
    );
    const status = await test.ok<Status>("git-status");
    assertEquals([status.files.length, status.truncated], [500, true]);
  });
});

describe("the git tools in a folder of a repository", () => {
  it("show and commit only that folder, with paths from it", async () => {
    await using whole = await repository({ "outside": "o", "app/inside": "i", "app/moved": "m" });
    await whole.folder.fill({ "outside": "O", "app/inside": "I", "app/new": "n" });
    git(whole, "mv", "app/moved", "app/renamed");
    const dispatcher = new ToolDispatcher(
      createWorkspaceRegistry({ root: join(whole.folder.path, "app") }),
    );
    const call = async <T>(name: string, args: unknown): Promise<T> => {
      const result = await dispatcher.dispatch({ name, arguments: args });
      if (!result.ok) throw new Error(result.error.message);
      return result.content as T;
    };
    const { files } = await call<Status>("git-status", {});
    assertEquals(files.map(({ path }) => path), ["inside", "moved", "renamed", "new"]);
    const commit = await call<{ files: string[] }>("git-commit", {
      message: "Inside",
      paths: ["inside", "new"],
    });
    assertEquals(commit.files, ["inside", "new"]);
    assertEquals(git(whole, "show", "--format=", "--name-only"), "app/inside\napp/new");
  });
});

describe("git-commit", () => {
  it("commits only the given new, changed and deleted paths", async () => {
    await using test = await repository({ "changed": "c", "gone": "g", "other": "o" });
    await test.folder.fill({ "changed": "C", "new/a": "a", "other": "O", "staged": "s" });
    await rm(join(test.folder.path, "gone"));
    git(test, "add", "staged");
    const commit = await test.ok("git-commit", {
      message: "Subject\n\nBody",
      paths: ["changed", "gone", "new"],
    });
    assertEquals(commit["files"], ["changed", "gone", "new/a"]);
    assertEquals(commit["commit"], git(test, "rev-parse", "HEAD"));
    assertEquals(git(test, "log", "-1", "--format=%B"), "Subject\n\nBody");
    assertEquals(git(test, "status", "--porcelain"), "M other\nA  staged");
    assertStringIncludes(git(test, "reflog", "-1"), "commit: Subject");
    git(test, "fsck", "--strict");
    assertEquals((await test.folder.list()).filter((name) => name.includes("plue")), []);
  });

  it("makes the first commit of a repository", async () => {
    await using test = await repository();
    git(test, "config", "user.name", "Ada");
    git(test, "config", "user.email", "ada@example.com");
    await test.folder.fill({ "a": "a" });
    await test.ok("git-commit", { message: "Begin", paths: ["a"] });
    assertEquals(git(test, "log", "--format=%s %P"), "Begin");
    assertEquals(git(test, "status", "--porcelain"), "");
  });

  it("commits another state of a submodule, and rejects paths inside it", async () => {
    await using test = await repository({ "a": "a" });
    const sub = join(test.folder.path, "sub");
    await mkdir(sub);
    makeRepository(sub);
    const added = await test.ok("git-commit", { message: "Add", paths: ["sub"] });
    assertEquals(added["files"], ["sub"]);
    await test.folder.fill({ "sub/file": "f", "a": "A" });
    const error = await test.fails("git-commit", { message: "In", paths: ["a", "sub/file"] });
    assertStringIncludes(error.message, "sub/file");
    runGit(sub, "add", "file");
    runGit(sub, "commit", "--quiet", "--message=File");
    assertEquals((await test.ok("git-commit", { message: "m", paths: ["."] }))["files"], [
      "a",
      "sub",
    ]);
    assertEquals(git(test, "rev-parse", "HEAD:sub"), runGit(sub, "rev-parse", "HEAD"));
    assertEquals(git(test, "status", "--porcelain"), "");
  });

  it("rejects a file that a filter must change first, and commits the others", async () => {
    await using test = await repository({ ".gitattributes": "*.bin filter=x\n", "old.bin": "o" });
    git(test, "config", "filter.x.clean", "cat");
    await test.folder.fill({ "new.bin": "n", "a": "a" });
    const error = await test.fails("git-commit", { message: "m", paths: ["a", "new.bin"] });
    assertStringIncludes(error.message, '"new.bin": the filter "x" must change it');
    await rm(join(test.folder.path, "new.bin"));
    assertEquals((await test.ok("git-commit", { message: "m", paths: ["."] }))["files"], ["a"]);
    await rm(join(test.folder.path, "old.bin"));
    const gone = await test.ok("git-commit", { message: "m", paths: ["old.bin"] });
    assertEquals(gone["files"], ["old.bin"]);
  });

  it("commits a change that was made in the moment of the index's writing", async () => {
    await using test = await repository({ "a": "1" });
    // The file has the size and the time that the index contains.
    const time = new Date();
    await utimes(join(test.folder.path, "a"), time, time);
    git(test, "update-index", "--refresh");
    await test.folder.fill({ "a": "2" });
    await utimes(join(test.folder.path, "a"), time, time);
    await utimes(join(test.folder.path, ".git/index"), time, time);
    await test.ok("git-commit", { message: "m", paths: ["a"] });
    assertEquals(git(test, "show", "HEAD:a"), "2");
  });

  it("rejects an ignored file and commits no other file", async () => {
    await using test = await repository({ ".gitignore": "secret\n" });
    await test.folder.fill({ "secret": "s", "a": "a" });
    const error = await test.fails("git-commit", { message: "m", paths: ["a", "secret"] });
    assertStringIncludes(error.message, "'secret' did not match");
    assertEquals(git(test, "status", "--porcelain"), "?? a");
  });

  it("treats a path literally: no pattern, no option, no magic word", async () => {
    await using test = await repository({ "x": "x" });
    await test.folder.fill({ "*": "star", "a": "a", "--all": "o", ":(top)b": "m", "b": "b" });
    const commit = await test.ok("git-commit", {
      message: "Odd",
      paths: ["*", "--all", ":(top)b"],
    });
    assertEquals(commit["files"], ["*", "--all", ":(top)b"]);
    assertEquals(git(test, "status", "--porcelain"), "?? a\n?? b");
  });

  it("changes nothing when it cannot commit", async () => {
    await using test = await repository({ "a": "a" });
    await test.folder.fill({ "a": "changed", "b": "b" });
    git(test, "config", "user.name", "");
    git(test, "config", "user.email", "");
    git(test, "config", "user.useConfigOnly", "true");
    const before = [git(test, "status", "--porcelain"), git(test, "rev-parse", "HEAD")];
    const error = await test.fails("git-commit", { message: "No one", paths: ["a", "b"] });
    assertStringIncludes(error.message, "git says");
    assertEquals([git(test, "status", "--porcelain"), git(test, "rev-parse", "HEAD")], before);
    assertEquals((await test.folder.list()).filter((name) => name.includes("plue")), []);
  });

  for (
    const [what, args, code, message] of [
      ["paths that have not changed", { paths: ["a"] }, "invalid_arguments", "nothing has changed"],
      ["a path that is not there", { paths: ["nope"] }, "invalid_arguments", "git says"],
      ["a path outside", { paths: ["../x"] }, "denied", 'it contains ".."'],
      ["git's own files", { paths: [".git/config"] }, "denied", "not for the file tools"],
      ["no path", { paths: [] }, "invalid_arguments", "paths"],
      ["an empty message", { paths: ["a"], message: " \n" }, "invalid_arguments", "message"],
    ] as const
  ) {
    it(`rejects ${what}`, async () => {
      await using test = await repository({ "a": "a" });
      const before = git(test, "rev-parse", "HEAD");
      const error = await test.fails("git-commit", { message: "m", ...args });
      assertEquals(error.code, code);
      assertStringIncludes(error.message, message);
      assertEquals(git(test, "rev-parse", "HEAD"), before);
    });
  }

  it("does not commit in the middle of a merge", async () => {
    await using test = await repository({ "a": "a" });
    git(test, "checkout", "--quiet", "-b", "side");
    await test.folder.fill({ "b": "b" });
    git(test, "add", "b");
    git(test, "commit", "--quiet", "--message=Side");
    git(test, "checkout", "--quiet", "main");
    git(test, "merge", "--quiet", "--no-ff", "--no-commit", "side");
    await test.folder.fill({ "a": "changed" });
    const error = await test.fails("git-commit", { message: "m", paths: ["a"] });
    assertStringIncludes(error.message, "a merge is in progress");
  });
});
