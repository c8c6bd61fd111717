import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { isWithin } from "../../../src/tool/mod.ts";

describe("isWithin()", () => {
  const rows: readonly (readonly [a: string, b: string, errors: number])[] = [
    ["", "", 0],
    ["list", "list", 0],
    ["list", "lists", 1],
    ["list", "lst", 1],
    ["list", "lost", 1],
    ["list", "lsit", 1],
    ["list", "", 4],
    ["repository", "repositroy", 1],
    ["repository", "reposytroy", 2],
    ["rest", "list", 2],
  ];
  for (const [a, b, errors] of rows) {
    it(`finds ${errors} errors between "${a}" and "${b}", and not fewer`, () => {
      for (const [one, other] of [[a, b], [b, a]] as const) {
        assertEquals(isWithin(one, other, errors), true);
        assertEquals(isWithin(one, other, errors - 1), false);
      }
    });
  }
});
