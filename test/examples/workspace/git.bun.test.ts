import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { appendFile, chmod, cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { afterAll, beforeAll, describe } from "bun:test";
import { maybe } from "../../support/skip.ts";
import { ToolDispatcher } from "../../../mod.ts";
import { createWorkspaceRegistry } from "../../../examples/workspace/mod.ts";
import { git, makeRepository, type TemporaryFolder, temporaryFolder } from "./testing.ts";
import data from "./git.json" with { type: "json" };

const hasGit = spawnSync("git", ["--version"]).status === 0;
const it = maybe(hasGit, "git is not installed");
const itOnUnix = maybe(hasGit && process.platform !== "win32", "it needs git and a shell");

type Answer = { readonly code: string; readonly text: string };

/** Calls one tool of the workspace. */
async function call(root: string, name: string, args: unknown = {}): Promise<Answer> {
  const dispatcher = new ToolDispatcher(createWorkspaceRegistry({ root }));
  const result = await dispatcher.dispatch({ name, arguments: args });
  return result.ok
    ? { code: "ok", text: JSON.stringify(result.content) }
    : { code: result.error.code, text: result.error.message };
}

/** Calls both git tools, with arguments that make git do the most work. */
async function callAll(root: string, paths: readonly string[] = ["a", "."]): Promise<Answer[]> {
  return [
    await call(root, "git-status"),
    await call(root, "git-commit", { message: "By the tool", paths }),
  ];
}

/** Runs git by hand, and returns its error, if there is one. */
function plainGit(folder: string, ...args: readonly string[]): string {
  const { status, stderr } = spawnSync("git", ["-C", folder, ...args], {
    encoding: "utf8",
    env: { ...process.env, TERM: "dumb", GIT_TERMINAL_PROMPT: "0" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 20_000,
  });
  return status === 0 ? "" : stderr.trim() || "it failed";
}

/** A folder with a changed repository in `ws`, and programs that log their names. */
interface Trap extends AsyncDisposable {
  readonly path: string;
  readonly folder: TemporaryFolder;
  /** Returns the path of a program. Its runs are logged under its name. */
  program(name: string): Promise<string>;
  /** Returns the programs that ran since the last call. */
  ran(): Promise<readonly string[]>;
}

/** A repository with two branches, which the tests copy: making one takes a dozen processes. */
let template: TemporaryFolder | undefined;
beforeAll(async () => {
  if (!hasGit) return;
  template = await temporaryFolder({
    "program": '#!/bin/sh\necho "${0##*/}" >> "${0%/*/*}/ran"\nexit 1\n',
    "programs/.keep": "",
    "ws/a": "a",
    "other/secret": "s",
  });
  await chmod(join(template.path, "program"), 0o755);
  const path = join(template.path, "ws");
  makeRepository(path);
  // Newer versions of git tidy up in the background, while the test copies and removes files.
  git(path, "config", "maintenance.auto", "false");
  git(path, "checkout", "--quiet", "-b", "side");
  for (const [branch, text] of [["side", "s"], ["main", "m"]] as const) {
    git(path, "checkout", "--quiet", branch);
    await template.fill({ "ws/a": text });
    git(path, "commit", "--quiet", "--all", `--message=${branch}`);
  }
  await template.fill({ "ws/a": "b", "ws/new": "n" });
  makeRepository(join(template.path, "other"), "Secret");
});
afterAll(() => template?.[Symbol.asyncDispose]());

async function trap(): Promise<Trap> {
  const folder = await temporaryFolder();
  await cp(template?.path ?? "", folder.path, { recursive: true });
  return {
    path: join(folder.path, "ws"),
    folder,
    async program(name) {
      const link = join(folder.path, "programs", name);
      if (!existsSync(link)) await symlink("../program", link);
      return link;
    },
    async ran() {
      const log = join(folder.path, "ran");
      const names = existsSync(log) ? (await readFile(log, "utf8")).trim().split("\n") : [];
      await rm(log, { force: true });
      return [...new Set(names)].sort();
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** A setting in the form of a configuration file. */
function setting(key: string, value: string): string {
  const [, section = "", name = "", field = ""] = /^([^.]+)\.(?:(.*)\.)?([^.]+)$/.exec(key) ?? [];
  return `[${section}${name === "" ? "" : ` "${name}"`}]\n\t${field} = ${JSON.stringify(value)}\n`;
}

/** Sets variables of this process until the end of the block. */
function variables(values: Readonly<Record<string, string>>): Disposable {
  const before = Object.keys(values).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, values);
  return {
    [Symbol.dispose]() {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    },
  };
}

/** Common git commands. Each of them runs programs that a configuration names. */
const COMMANDS: readonly (readonly string[])[] = data.commands;

/** Matches settings that obviously name a program. The rest is tested only with the tools. */
const NAMES_PROGRAM = new RegExp(
  "^alias|(?:program|command|cmd|helper|editor|pager|external|textconv|clean|smudge|process|" +
    "driver|fsmonitor|proxy|askpass|pack)$",
  "i",
);

/** Every setting that this git documents, with `x` for the names that a user chooses. */
function documentedKeys(): readonly string[] {
  return git(".", "help", "--config").split("\n").map((line) => line.replaceAll(/<[^>]*>|\*/g, "x"))
    .filter((key) => /^[a-z][a-z0-9-]*\.[a-z0-9.-]+$/i.test(key));
}

describe("the configuration of a repository", () => {
  itOnUnix("runs no program for the git tools, whatever key names one", async () => {
    await using test = await trap();
    await test.folder.fill({ "ws/.gitattributes": "* filter=x diff=x merge=x\n" });
    const config = join(test.path, ".git/config");
    await appendFile(config, '[remote "x"]\nurl = h:x\n');
    const base = await readFile(config, "utf8");
    const pristine = join(test.folder.path, "pristine");
    await cp(test.path, pristine, { recursive: true });
    const configure = async (keys: readonly string[]) => {
      const settings = keys.map((key) => {
        const path = join(test.folder.path, "programs", key);
        return setting(key, key.startsWith("alias.") ? `!${path}` : path);
      });
      await writeFile(config, base + settings.join(""));
    };
    const set = async (keys: readonly string[]) => {
      await rm(test.path, { recursive: true });
      await cp(pristine, test.path, { recursive: true });
      await configure(keys);
    };
    // With another worktree every command fails, so that key has a separate test.
    let keys = documentedKeys().filter((key) => key !== "core.worktree");
    for (const key of keys) await test.program(key);

    // Git stops at the first value of a wrong type, so the keys after it would not be tested. A key
    // that must be a number or a choice cannot name a program.
    await configure(keys);
    for (
      const command of ["rev-parse HEAD", "status", "log -1", "add -n .", "update-ref refs/x HEAD"]
    ) {
      const run = (): string => plainGit(test.path, ...command.split(" "));
      for (let problem = run(); problem !== ""; problem = run()) {
        const last = problem.slice(problem.lastIndexOf("\n") + 1);
        const line =
          (await readFile(config, "utf8")).split("\n")[Number(/line (\d+)/.exec(last)?.[1]) - 1];
        const wrong = keys.filter((key) =>
          new RegExp(`['/]${key}(?:['"]|$)`, "im").test(`${last}\n${line}`)
        );
        assert(wrong.length > 0, `the message names the setting: ${last}`);
        keys = keys.filter((key) => !wrong.includes(key));
        await configure(keys);
      }
    }
    assert(keys.length > 500, "nearly all settings take any value");
    await test.ran();

    const proven = new Set<string>();
    for (let size = -1; size < proven.size;) {
      size = proven.size;
      await set(keys);
      const codes = (await callAll(test.path)).map(({ code }) => code);
      assertEquals(await test.ran(), []);
      // If a filter is set, the commit fails; otherwise all tools succeed.
      if (!keys.some((key) => /^filter.*(clean|process)$/.test(key))) {
        assertEquals(new Set(codes), new Set(["ok"]));
      }
      // As a control, plain git runs on the same files.
      await set(keys.filter((key) => NAMES_PROGRAM.test(key)));
      for (const args of COMMANDS) plainGit(test.path, ...args);
      // One program can hide another, so the next round omits the programs that ran.
      for (const key of await test.ran()) proven.add(key);
      keys = keys.filter((key) => !proven.has(key));
    }
    for (
      const key of [
        ...["alias.x", "core.editor", "core.fsmonitor", "core.sshCommand", "core.gitProxy"],
        ...["diff.external", "diff.x.textconv", "filter.x.clean", "gpg.program", "merge.x.driver"],
      ]
    ) {
      assert(proven.has(key), `plain git runs ${key}`);
    }
  });

  /** Every hook of `githooks(5)` that a command in this repository can cause. */
  const HOOKS = [
    ...["applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout"],
    ...["post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-applypatch"],
    ...["pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase"],
    ...["prepare-commit-msg", "reference-transaction", "sendemail-validate"],
  ];

  /** Makes a partial clone whose missing commit a program would fetch. */
  const lacking = async ({ path }: Trap, ...settings: readonly (readonly [string, string])[]) => {
    const commit = git(path, "rev-parse", "HEAD~1");
    await rm(join(path, ".git/objects", commit.slice(0, 2), commit.slice(2)));
    git(path, "config", "core.repositoryFormatVersion", "1");
    git(path, "config", "extensions.partialClone", "x");
    git(path, "config", "remote.x.promisor", "true");
    for (const [key, value] of settings) git(path, "config", key, value);
    return commit;
  };

  for (
    const [what, arrange] of [
      ["a filter that is a process", async (test) => {
        await test.folder.fill({ "ws/.git/info/attributes": "* filter=x\n" });
        git(test.path, "config", "filter.x.process", await test.program("p"));
      }],
      ["a hook of every name", async (test) => {
        await mkdir(join(test.path, ".git/hooks"), { recursive: true });
        for (const hook of HOOKS) {
          const path = join(test.path, ".git/hooks", hook);
          await writeFile(path, `#!/bin/sh\nexec ${await test.program(hook)}\n`);
          await chmod(path, 0o755);
        }
      }],
      ["a folder of hooks", async (test) => {
        for (const hook of HOOKS) await test.program(hook);
        git(test.path, "config", "core.hooksPath", join(test.folder.path, "programs"));
      }],
      ["a configuration that is included", async (test) => {
        await test.folder.fill({ "more": setting("core.fsmonitor", await test.program("p")) });
        git(test.path, "config", "include.path", "../../more");
      }],
      ["a configuration of the worktree", async (test) => {
        git(test.path, "config", "core.repositoryFormatVersion", "1");
        git(test.path, "config", "extensions.worktreeConfig", "true");
        git(test.path, "config", "--worktree", "core.fsmonitor", await test.program("p"));
      }],
      ["a signing program for another format", async (test) => {
        git(test.path, "config", "commit.gpgSign", "true");
        git(test.path, "config", "gpg.format", "x509");
        git(test.path, "config", "gpg.x509.program", await test.program("p"));
      }],
      ["a missing commit, and a transport that is a program", async (test) => {
        const program = await test.program("p");
        await lacking(test, ["remote.x.url", `ext::${program}`], ["protocol.ext.allow", "always"]);
      }],
      ["a missing commit, and a program for ssh", async (test) => {
        const program = await test.program("p");
        await lacking(test, ["remote.x.url", "ssh://h/x"], ["core.sshCommand", program]);
      }],
      ["a submodule with a filter of its own", async (test) => {
        const sub = join(test.path, "sub");
        await test.folder.fill({ "ws/sub/a": "a" });
        makeRepository(sub);
        git(test.path, "-c", "advice.addEmbeddedRepo=false", "add", "sub");
        git(test.path, "commit", "--quiet", "--message=Sub");
        git(sub, "config", "filter.x.clean", await test.program("p"));
        await test.folder.fill({ "ws/sub/.git/info/attributes": "* filter=x\n", "ws/sub/a": "b" });
      }],
    ] as [string, (test: Trap) => Promise<void>][]
  ) {
    itOnUnix(`runs no program by ${what}`, async () => {
      await using test = await trap();
      await arrange(test);
      await cp(test.path, `${test.path}.control`, { recursive: true });
      await test.ran();
      await callAll(test.path);
      assertEquals(await test.ran(), []);
      for (
        const args of [
          ["status"],
          // Older versions of git fetch a missing commit for a log, too.
          ["show", "HEAD~1"],
          ["add", "--all"],
          ["commit", "--message=By hand"],
        ]
      ) {
        plainGit(`${test.path}.control`, ...args);
      }
      assert((await test.ran()).length > 0, "plain git runs it");
    });
  }

  itOnUnix("runs no program of this user's own filters, which the files could choose", async () => {
    await using test = await trap();
    await test.folder.fill({
      "ws/.gitattributes": "* filter=x\n",
      "home/.gitconfig": setting("filter.x.clean", await test.program("p")),
    });
    using _ = variables({ HOME: join(test.folder.path, "home") });
    await callAll(test.path);
    assertEquals(await test.ran(), []);
    plainGit(test.path, "status");
    assertEquals(await test.ran(), ["p"]);
  });

  itOnUnix("runs no program of the environment", async () => {
    await using test = await trap();
    const program = await test.program("p");
    const missing = await lacking(test, ["remote.x.url", "ssh://h/x"]);
    using _ = variables({
      GIT_SSH_COMMAND: program,
      GIT_SSH: program,
      GIT_EXTERNAL_DIFF: program,
      GIT_EDITOR: program,
      GIT_PAGER: program,
      GIT_ASKPASS: program,
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "core.fsmonitor",
      GIT_CONFIG_VALUE_0: program,
    });
    await callAll(test.path);
    assertEquals(await test.ran(), []);
    plainGit(test.path, "show", missing);
    assertEquals(await test.ran(), ["p"]);
  });
});

describe("the place of a repository", () => {
  /** A workspace `ws` next to another repository, whose only commit is "Secret". */
  async function neighbours(): Promise<Neighbours> {
    const test = await trap();
    return Object.assign(test, { other: join(test.folder.path, "other") });
  }

  type Neighbours = Trap & { readonly other: string };

  for (
    const [what, why, arrange] of [
      ["a .git that is a file", "is not a folder", async ({ path, other }) => {
        await rm(join(path, ".git"), { recursive: true });
        await writeFile(join(path, ".git"), `gitdir: ${other}/.git\n`);
      }],
      ["a .git that is a link", "is not a folder", async ({ path, other }) => {
        await rm(join(path, ".git"), { recursive: true });
        await symlink(join(other, ".git"), join(path, ".git"));
      }],
      ["a common folder elsewhere", "the file commondir", async ({ path, other }) => {
        await writeFile(join(path, ".git/commondir"), join(other, ".git"));
      }],
      ["objects of another store", "the file objects/info/alternates", async ({ path, other }) => {
        await writeFile(join(path, ".git/objects/info/alternates"), `${other}/.git/objects\n`);
        await writeFile(join(path, ".git/refs/heads/main"), git(other, "rev-parse", "HEAD"));
      }],
      ["objects and refs that are links", "symbolic link", async ({ path, other }) => {
        for (const name of ["objects", "refs"]) {
          await rm(join(path, ".git", name), { recursive: true });
          await symlink(join(other, ".git", name), join(path, ".git", name));
        }
      }],
      ["a pack that is a link", "symbolic link", async ({ path, other }) => {
        git(other, "repack", "-a", "-d", "--quiet");
        await rm(join(path, ".git/objects/pack"), { recursive: true });
        await symlink(join(other, ".git/objects/pack"), join(path, ".git/objects/pack"));
        await writeFile(join(path, ".git/refs/heads/main"), git(other, "rev-parse", "HEAD"));
      }],
    ] as [string, string, (test: Neighbours) => Promise<void>][]
  ) {
    it(`is the workspace's own: rejects ${what}`, async () => {
      await using test = await neighbours();
      await arrange(test);
      assertStringIncludes(git(test.path, "log"), "Secret");
      const before = git(test.other, "log", "--all", "--reflog");
      for (const { code, text } of await callAll(test.path)) {
        assertEquals([code, text.includes("Secret")], ["denied", false]);
        assertStringIncludes(text, why);
        assertEquals(text.includes(test.folder.path), false);
      }
      assertEquals(git(test.other, "log", "--all", "--reflog"), before);
    });
  }

  for (
    const [what, why, arrange] of [
      ["a list of stores that is a pipe", "the file objects/info/alternates", (test) => {
        spawnSync("mkfifo", [join(test.path, ".git/objects/info/alternates")]);
        return Promise.resolve();
      }],
      ["a log that is a link, to which a commit would append", "symbolic link", async (test) => {
        await rm(join(test.path, ".git/logs/HEAD"));
        await symlink(join(test.folder.path, "profile"), join(test.path, ".git/logs/HEAD"));
      }],
    ] as [string, string, (test: Trap) => Promise<void>][]
  ) {
    itOnUnix(`has no part that is a pipe or a link: rejects ${what}`, async () => {
      await using test = await trap();
      await arrange(test);
      for (const { code, text } of await callAll(test.path)) {
        assertEquals(code, "denied");
        assertStringIncludes(text, why);
      }
      assertEquals(existsSync(join(test.folder.path, "profile")), false);
    });
  }

  it("uses the workspace even if core.worktree names another folder", async () => {
    await using test = await neighbours();
    git(test.path, "config", "core.worktree", test.other);
    const [status, commit] = await callAll(test.path);
    assertStringIncludes(status?.text ?? "", '"path":"new"');
    assertEquals([status?.text.includes("secret"), commit?.code], [false, "ok"]);
    assertEquals(git(test.other, "log", "--format=%s"), "Secret");
  });

  it("is not a folder in the form of a bare repository, even below a repository", async () => {
    await using test = await trap();
    const bare = join(test.path, "bare");
    git(test.path, "init", "--quiet", "--bare", "bare");
    await appendFile(join(bare, "config"), setting("core.fsmonitor", await test.program("p")));
    git(bare, "config", "core.bare", "false");
    git(bare, "config", "core.worktree", ".");
    const answers = await callAll(bare, ["config"]);
    assertEquals(new Set(answers.map(({ code }) => code)), new Set(["ok"]));
    assertEquals(await test.ran(), []);
    plainGit(bare, "status");
    assertEquals(await test.ran(), ["p"]);
  });
});
