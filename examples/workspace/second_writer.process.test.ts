/**
 * The workspace with a second writer in it, who swaps a folder for a link to the outside as fast as
 * the system can, while the tools work in that folder.
 */

import { spawnSync } from "node:child_process";
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { describe } from "bun:test";
import { maybe } from "../../test/support/skip.ts";
import { ToolDispatcher } from "../../mod.ts";
import { startProgram } from "../testing.ts";
import { createWorkspaceRegistry } from "./mod.ts";
import { resolveInside } from "./paths.ts";
import { type TemporaryFolder, temporaryFolder } from "./testing.ts";
import { FileTransactionManager } from "./transactions.ts";

/**
 * Exchanges the two names of its arguments until it is killed. Its pauses differ, so that some of
 * them fit between the steps of a tool.
 */
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

const canSwap = process.platform === "linux" &&
  spawnSync("cc", ["--version"]).status === 0 &&
  spawnSync("cc", ["-x", "c", "-fsyntax-only", "-"], { input: SWAPPER }).status === 0;
const withSwapper = maybe(canSwap, "there is no C compiler with renameat2");

/** A workspace `ws` with the folder `dir` and the link `link` to the folder `outside` beside it. */
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
  const { registry, transactions } = createWorkspaceRegistry({ root, journals: folder.journals });
  const dispatcher = new ToolDispatcher(registry, { transactions });
  return {
    folder,
    root,
    transactions,
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

/** Calls a tool many times, until some calls got through, and returns what those answered. */
async function many(test: Test, times: number, name: string, args: (index: number) => unknown) {
  const answers: unknown[] = [];
  for (let index = 0; index < times || answers.length === 0; index++) {
    const result = await test.call(name, args(index));
    if (result.ok) answers.push(result.content);
  }
  return answers;
}

describe("a workspace with a second writer", () => {
  withSwapper("has one that works: plain reads of the same path find both", async () => {
    await using test = await start();
    await using _ = await test.swap();
    const seen = new Set<string>();
    while (seen.size < 2) seen.add(await readFile(join(test.root, "dir/a.txt"), "utf8"));
    assertEquals([...seen].sort(), ["SECRET", "inside"]);
  });

  withSwapper("does not answer what lies outside", async () => {
    await using test = await start();
    await using _ = await test.swap();
    const reads = await many(test, 1_000, "file-read", () => ({ path: "dir/a.txt" }));
    const lists = await many(test, 300, "file-list", () => ({ path: "dir" }));
    const deep = await many(test, 200, "file-list", () => ({ recursive: true }));
    const found = await many(test, 200, "search-grep", () => ({ pattern: "SECRET" }));
    for (const answers of [reads, lists, deep, found]) {
      assertEquals(answers.filter((one) => /SECRET|hidden/.test(JSON.stringify(one))), []);
    }
  });

  withSwapper("is not told the size of what lies outside", async () => {
    await using test = await start();
    await writeFile(join(test.folder.path, "outside/a.txt"), "S".repeat(777));
    await using _ = await test.swap();
    const lists = await many(test, 500, "file-list", () => ({ path: "dir" }));
    assertEquals(lists.filter((one) => JSON.stringify(one).includes("777")), []);
  });

  withSwapper("does not change what lies outside, and leaves nothing behind", async () => {
    await using test = await start();
    for (let index = 0; index < 150; index++) await mkdir(join(test.root, `dir/d${index}`));
    const swapper = await test.swap();
    const write = (mode: string, name: (index: number) => string) => (index: number) => ({
      path: `dir/${name(index)}`,
      content: "new",
      mode,
      createFolders: true,
    });
    await many(test, 150, "file-write", write("create", (index) => `n${index}`));
    await many(test, 50, "file-write", write("create", (index) => `f${index}/x`));
    await many(test, 150, "file-write", write("overwrite", () => "a.txt"));
    await many(test, 50, "file-write", write("append", () => "hidden"));
    await many(test, 150, "file-delete", (index) => ({ path: `dir/d${index % 150}` }));
    await many(test, 150, "file-delete", () => ({ path: "dir/hidden" }));
    await calm(test, swapper);
    assertEquals(await outside(test.folder), UNTOUCHED);
    await test.transactions.recover();
    const left = [...await readdir(test.root), ...await readdir(test.folder.journals)];
    assertEquals(left.sort(), ["dir", "link"]);
  });

  withSwapper(
    "takes everything back where it was changed, wherever that lies by then",
    async () => {
      await using test = await start();
      const before = await readdir(join(test.root, "dir"));
      const swapper = await test.swap();
      const bytes = new TextEncoder().encode("half-done");
      let changed = 0;
      for (let index = 0; index < 150 || changed === 0; index++) {
        const tx = test.transactions.begin();
        const path = (name: string) => resolveInside(test.root, name, { followLast: false });
        try {
          await tx.write(await path("dir/a.txt"), bytes);
          await tx.write(await path(`dir/new${index}`), bytes);
          await tx.remove(await path("dir/a.txt"));
          changed++;
        } catch {
          // The folder was swapped: what was done until then is taken back.
        }
        await test.transactions.rollback(tx);
      }
      await calm(test, swapper);
      assertEquals(await readdir(join(test.root, "dir")), before);
      assertEquals(await test.folder.read("ws/dir/a.txt"), "inside");
      assertEquals(await outside(test.folder), UNTOUCHED);
      assertEquals([...await readdir(test.root)].sort(), ["dir", "link"]);
    },
  );

  withSwapper("recovers a dead process's transactions inside only", async () => {
    await using test = await start();
    const dead = spawnSync("true").pid;
    const bytes = new TextEncoder().encode("half-done");
    const swappers = [];
    for (let index = 0; index < 15; index++) {
      const tx = test.transactions.begin();
      await tx.write(await resolveInside(test.root, "dir/a.txt"), bytes);
      await tx.remove(await resolveInside(test.root, "dir/a.txt"));
      const [name = ""] = await readdir(test.folder.journals);
      const journal = join(test.folder.journals, name);
      const text = await readFile(journal, "utf8");
      await writeFile(journal, text.replace(/"pid":\d+/, `"pid":${dead}`));
      const swapper = await test.swap();
      swappers.push(swapper);
      const next = new FileTransactionManager({ root: test.root }, test.folder.journals);
      await next.recover().catch(() => undefined);
      await calm(test, swapper);
      // What could not be put back during the swaps is put back now.
      await next.recover();
      // Closes the folders that the transaction holds; there is nothing left to take back.
      await test.transactions.rollback(tx).catch(() => undefined);
      assertEquals(await test.folder.read("ws/dir/a.txt"), "inside");
      assertEquals(await outside(test.folder), UNTOUCHED);
    }
    assertEquals([...await readdir(test.root)].sort(), ["dir", "link"]);
  });

  withSwapper("deletes a folder without what a link in it leads to", async () => {
    await using test = await start();
    const big = join(test.root, "big");
    for (let index = 0; index < 8; index++) {
      await mkdir(join(big, "sub"), { recursive: true });
      for (let file = 0; file < 20; file++) await writeFile(join(big, "sub", String(file)), "");
      await symlink(join(test.folder.path, "outside"), join(big, "link"));
      // Its working directory moves with the folder, into the transaction's.
      await using _ = await test.swap(big, ["sub", "link"]);
      await test.call("file-delete", { path: "big", recursive: true });
      assertEquals(await outside(test.folder), UNTOUCHED);
      await _[Symbol.asyncDispose]();
      await test.transactions.recover();
      await rm(big, { recursive: true, force: true });
    }
    assertEquals([...await readdir(test.root)].sort(), ["dir", "link"]);
  });
});
