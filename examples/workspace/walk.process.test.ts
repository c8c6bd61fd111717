import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { temporaryFolder } from "./testing.ts";
import { walk, type WalkOptions } from "./walk.ts";

const { signal } = new AbortController();
const FILES = { "a/1": "", "a/2": "", "a/3": "", "b/1": "", "c": "" };

/** The paths that a walk visits, and whether it was cut. */
async function visited(options: Partial<WalkOptions>): Promise<readonly [string[], boolean]> {
  await using folder = await temporaryFolder(FILES);
  const bounds = { maxDepth: 9, maxVisited: 99 };
  const found = walk({ absolute: folder.path, relative: ".", ...bounds, signal, ...options });
  const paths: string[] = [];
  for await (const { path } of found) paths.push(path);
  return [paths, found.isCut];
}

describe("walk()", () => {
  it("visits a folder before what is in it, in the order of names", async () => {
    assertEquals(await visited({}), [["a", "a/1", "a/2", "a/3", "b", "b/1", "c"], false]);
  });

  it("says that it has left entries out, of the whole or of one folder", async () => {
    const [all, isCut] = await visited({ maxVisited: 4 });
    assertEquals([all.length, isCut], [4, true]);
    // Which two of the folder's entries is up to the file system.
    const [some, isCutToo] = await visited({ maxInFolder: 2, maxDepth: 1 });
    assertEquals([some.length, isCutToo], [2, true]);
  });
});
