import { assertLessOrEqual } from "@std/assert";
import { describe, it } from "bun:test";
import { filesBelow, textOf } from "./source_tree.ts";

/** The extensions of written code. Data, lock files and generated files do not count. */
const CODE = /\.(ts|tsx|mjs|css|c|h|cpp|hpp|py|rs|swift|zig)$/;
const GENERATED = /built_page|\.generated\./;

/** The limits of each folder. They fall when the code shrinks, and never rise. */
const LIMITS = [
  { folder: "src", lines: 77_638, files: 364, aim: 60_000 },
  { folder: "test", lines: 78_983, files: 490, aim: 60_000 },
  { folder: "ffi", lines: 17_720, files: 94, aim: 15_000 },
  { folder: "examples", lines: 4_187, files: 41, aim: 6_000 },
  { folder: "scripts", lines: 2_651, files: 27, aim: 2_000 },
];

describe("the budgets of lines and files", () => {
  for (const { folder, lines, files, aim } of LIMITS) {
    const found = filesBelow(folder, (path) => CODE.test(path) && !GENERATED.test(path));
    const count = found.reduce((sum, file) => sum + textOf(file).split("\n").length - 1, 0);

    it(`hold for ${folder}: ${count} lines (aim: ${aim}) in ${found.length} files`, () => {
      assertLessOrEqual(count, lines);
      assertLessOrEqual(found.length, files);
    });
  }
});
