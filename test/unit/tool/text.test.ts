import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { describe as group, it } from "bun:test";
import { clip, describe, describeThrown, fnv1a, isWithinEdits } from "../../../src/tool/mod.ts";

group("clip()", () => {
  it("leaves a text that fits as it is", () => assertEquals(clip("abc", 3), "abc"));

  it("cuts a longer one, and says so", () => assertEquals(clip("abcd", 3), "ab…"));

  it("does not cut a code point in two", () => {
    for (let length = 2; length < 9; length++) {
      assert(clip("a😀😀😀😀", length).isWellFormed());
      assert(clip("a😀😀😀😀", length).length <= length);
    }
  });
});

group("describe()", () => {
  const rows: readonly (readonly [value: unknown, words: string])[] = [
    ["text", '"text"'],
    ['a "b"\n', '"a \\"b\\"\\n"'],
    ["", '""'],
    [7, "7"],
    [Number.NaN, "NaN"],
    [null, "null"],
    [undefined, "undefined"],
    [true, "true"],
    [1n, "1"],
    [Symbol("s"), "Symbol(s)"],
    [["a secret"], "a list"],
    [{ password: "a secret" }, "an object"],
    [() => "a secret", "a function"],
  ];
  for (const [value, words] of rows) {
    it(`says ${words}`, () => assertEquals(describe(value), words));
  }

  it("repeats at most 100 characters of a text", () => {
    assertEquals(describe("x".repeat(1_000)), `"${"x".repeat(99)}…"`);
  });
});

group("describeThrown()", () => {
  const rows: readonly (readonly [thrown: unknown, words: string])[] = [
    [new Error("no database"), "no database"],
    [{ message: "no class" }, "no class"],
    [new RangeError(""), "RangeError"],
    ["a sentence", "a sentence"],
    ["", "no message"],
    [7, "7"],
    [null, "null"],
    [undefined, "nothing"],
    [{}, "an object without a message"],
    [{ message: 7 }, "an object without a message"],
    [Object.create(null), "an object without a message"],
  ];
  for (const [thrown, words] of rows) {
    it(`says ${words}`, () => assertEquals(describeThrown(thrown), words));
  }

  it("survives an object that throws when it is looked at", () => {
    const hostile = {
      get message(): never {
        throw new Error("again");
      },
    };
    assertEquals(describeThrown(hostile), "something that cannot be read");
  });

  it("says no more than it may", () => {
    assertEquals(describeThrown(new Error("x".repeat(1_000))).length, 500);
    assertEquals(describeThrown("x".repeat(1_000), 200).length, 200);
  });
});

group("isWithinEdits()", () => {
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
        assertEquals(isWithinEdits(one, other, errors), true);
        assertEquals(isWithinEdits(one, other, errors - 1), false);
      }
    });
  }
});

group("fnv1a()", () => {
  it("is FNV-1a, for text of one byte to the character", () => {
    // From the reference of the algorithm's authors.
    assertEquals([fnv1a(""), fnv1a("a"), fnv1a("foobar")], [0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
  });

  it("is another hash with another seed and factor", () => {
    assertNotEquals(fnv1a("a", 0x9e3779b9, 0x85ebca6b), fnv1a("a"));
  });
});
