/** The workspace, while another program repeatedly exchanges a folder and a link to the outside. */

import { spawnSync } from "node:child_process";
import { lstat, mkdir, readdir, readFile, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { describe } from "bun:test";
import { maybe } from "../../support/skip.ts";
import { ToolDispatcher } from "../../../mod.ts";
import { startProgram } from "../../support/program.ts";
import { createWorkspaceRegistry } from "../../../examples/workspace/mod.ts";
import { type TemporaryFolder, temporaryFolder } from "./testing.ts";

/** Exchanges two names until it is killed, with pauses that fit between a tool's steps. */
const SWAPPER = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
int main(int count, char **names) {
  if (count != 3 || renameat2(AT_FDCWD, names[1], AT_FDCWD, names[2], RENAME_EXCHANGE) != 0) {
    perror("renameat2");
    return 1;
  }
  puts("swapping");
  fflush(stdout);
  for (unsigned random = 1;; random = random * 1103515245 + 12345) {
    renameat2(AT_FDCWD, names[1], AT_FDCWD, names[2], RENAME_EXCHANGE);
    for (volatile unsigned wait = (random >> 8) % 131072 >> (random >> 29); wait > 0; wait--);
  }
}
`;

const canSwap = process.platform === "linux" && spawnSync("cc", ["--version"]).status === 0 &&
  spawnSync("cc", ["-x", "c", "-fsyntax-only", "-"], { input: SWAPPER }).status === 0;
const withSwapper = maybe(canSwap, "there is no C compiler with renameat2");

/** A workspace `ws` with the folder `dir` and the link `link` to `outside`, a folder next to it. */
async function start() {
  const folder = await temporaryFolder({
    "ws/dir/a.txt": "inside",
    "outside/a.txt": "SECRET",
    "outside/hidden": "SECRET",
    "swap.c": SWAPPER,
  });
  const root = join(folder.path, "ws");
  await symlink("../outside", join(root, "link"));
  const compiled = spawnSync("cc", ["-O2", "-o", "swap", "swap.c"], { cwd: folder.path });
  if (compiled.status !== 0) throw new Error(String(compiled.stderr));
  const dispatcher = new ToolDispatcher(createWorkspaceRegistry({ root }));
  return {
    folder,
    root,
    call: (name: string, args: unknown) => dispatcher.dispatch({ name, arguments: args }),
    /** Starts the second writer, and waits until it swaps. */
    async swap(cwd: string = root, names: readonly string[] = ["dir", "link"]) {
      const swapper = startProgram(join(folder.path, "swap"), names, {}, cwd);
      await swapper.printed(/swapping/);
      return swapper;
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

type Test = Awaited<ReturnType<typeof start>>;

/** Stops the second writer, and gives the folder its name again. */
async function calm(test: Test, swapper: AsyncDisposable): Promise<void> {
  await swapper[Symbol.asyncDispose]();
  const link = join(test.root, "link");
  if ((await lstat(join(test.root, "dir"))).isSymbolicLink()) {
    await rename(join(test.root, "dir"), join(test.root, "other"));
    await rename(link, join(test.root, "dir"));
    await rename(join(test.root, "other"), link);
  }
}

async function outside(folder: TemporaryFolder): Promise<unknown> {
  const names = (await folder.list()).filter((name) => name.startsWith("outside"));
  return [names, await folder.read("outside/a.txt"), await folder.read("outside/hidden")];
}

const UNTOUCHED = [["outside/", "outside/a.txt", "outside/hidden"], "SECRET", "SECRET"];

/** Calls a tool many times, until some calls succeed, and returns their results. */
async function many(test: Test, times: number, name: string, args: (index: number) => unknown) {
  const answers: unknown[] = [];
  for (let index = 0; index < times || answers.length === 0; index++) {
    const result = await test.call(name, args(index));
    if (result.ok) answers.push(result.content);
  }
  return answers;
}

describe("a workspace with a second writer", () => {
  withSwapper("reads both files of the same path without the tools", async () => {
    await using test = await start();
    await using _ = await test.swap();
    const seen = new Set<string>();
    while (seen.size < 2) seen.add(await readFile(join(test.root, "dir/a.txt"), "utf8"));
    assertEquals([...seen].sort(), ["SECRET", "inside"]);
  });

  withSwapper("does not return the content of files outside", async () => {
    await using test = await start();
    await using _ = await test.swap();
    const reads = await many(test, 1_000, "file-read", () => ({ path: "dir/a.txt" }));
    const found = await many(test, 200, "search-grep", () => ({ pattern: "SECRET" }));
    for (const answers of [reads, found]) {
      assertEquals(answers.filter((one) => /SECRET|hidden/.test(JSON.stringify(one))), []);
    }
  });

  withSwapper("does not change files outside, and leaves no temporary files", async () => {
    await using test = await start();
    for (let index = 0; index < 150; index++) await mkdir(join(test.root, `dir/d${index}`));
    const swapper = await test.swap();
    const write = (overwrite: boolean, name: (index: number) => string) => (index: number) => ({
      path: `dir/${name(index)}`,
      content: "new",
      overwrite,
    });
    await many(test, 150, "file-write", write(false, (index) => `n${index}`));
    await many(test, 50, "file-write", write(false, (index) => `f${index}/x`));
    await many(test, 150, "file-write", write(true, () => "a.txt"));
    await many(test, 50, "file-write", write(true, () => "hidden"));
    await many(test, 150, "file-delete", (index) => ({ path: `dir/d${index % 150}` }));
    await many(test, 150, "file-delete", () => ({ path: "dir/hidden" }));
    await calm(test, swapper);
    assertEquals(await outside(test.folder), UNTOUCHED);
    assertEquals((await readdir(test.root)).sort(), ["dir", "link"]);
    assertEquals((await test.folder.list()).filter((name) => name.includes(".plue")), []);
  });
});
