import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { globMatcher } from "./glob.ts";

describe("globMatcher()", () => {
  for (
    const [pattern, fits, fitsNot] of [
      ["*.ts", ["a.ts", "src/deep/a.ts"], ["a.tsx", "a.ts/b"]],
      ["src/*.ts", ["src/a.ts"], ["a.ts", "src/deep/a.ts"]],
      ["./src/*.ts", ["src/a.ts"], ["a.ts"]],
      ["src/**", ["src/a", "src/b/c"], ["lib/a"]],
      ["**/test/*.ts", ["test/a.ts", "a/b/test/c.ts"], ["a/b/c.ts"]],
      ["src/**/x", ["src/x", "src/a/b/x"], ["src/a/y", "x"]],
      ["**", ["a", "a/b"], []],
      ["?.md", ["a.md"], [".md", "ab.md"]],
      ["a*b*c", ["abc", "aXbYc", "abbc"], ["ab", "acb"]],
      ["[a].{ts}+$", ["[a].{ts}+$"], ["a.ts"]],
    ] as const
  ) {
    it(`matches ${pattern}`, () => {
      const matches = globMatcher(pattern);
      for (const path of fits) assertEquals([path, matches(path)], [path, true]);
      for (const path of fitsNot) assertEquals([path, matches(path)], [path, false]);
    });
  }

  it("is not slowed down by many stars", () => {
    assertEquals(globMatcher("*a".repeat(500) + "b")("a".repeat(5_000)), false);
  });
});
