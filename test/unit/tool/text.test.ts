import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { describe as group, it } from "bun:test";
import * as kernel from "../../../src/tool/mod.ts";
import { argumentsText, fnv1a, nearIds } from "../../../src/tool/mod.ts";
import data from "./text.json" with { type: "json" };

group("clip()", () => {
  it("does not change a short text", () => assertEquals(kernel.clip("abc", 3), "abc"));

  it("truncates a longer text with a mark", () => assertEquals(kernel.clip("abcd", 3), "ab…"));

  it("does not cut a code point in two", () => {
    for (let length = 2; length < 9; length++) {
      assert(kernel.clip("a😀😀😀😀", length).isWellFormed());
      assert(kernel.clip("a😀😀😀😀", length).length <= length);
    }
  });
});

group("cutMarks()", () => {
  it("keeps the first 30 of the combining marks in a row", () => {
    assertEquals(kernel.cutMarks("e\u0301 a\u0315\u0316"), "e\u0301 a\u0315\u0316");
    const run = "\u0315\u0316\uff9e\u{1d16e}".repeat(5_000);
    assertEquals(kernel.cutMarks(`a${run}b${run}`).length, 62);
  });
});

group("cleanText()", () => {
  const halves = ["halves of characters", "a\ud800b\udc00c", "abc"];
  for (const [what, text, clean] of [...data.hidden, halves] as [string, string, string][]) {
    it(`removes ${what}`, () => assertEquals(kernel.cleanText(text, 100), clean));
  }

  const kept = [
    "tabs\tand\nlines",
    "می\u200cخواهم",
    "क्\u200dष",
    "👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 👍🏽",
    "Ελληνικά, 日本語, Ünïcödé, \u{1d6fc}",
  ];
  for (const text of kept) {
    it(`keeps ${JSON.stringify(text)}`, () => assertEquals(kernel.cleanText(text, 100), text));
  }

  it("truncates a long text, even if nearly all of it is hidden", () => {
    assertEquals(kernel.cleanText("abcdef", 5), "abcd…");
    assertEquals(kernel.cleanText("\u200b".repeat(1_000_000) + "end", 5), "…");
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
    it(`returns ${words}`, () => assertEquals(kernel.describe(value), words));
  }

  it("repeats at most 100 characters of a text", () => {
    assertEquals(kernel.describe("x".repeat(1_000)), `"${"x".repeat(99)}…"`);
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
    it(`returns ${words}`, () => assertEquals(kernel.describeThrown(thrown), words));
  }

  it("does not throw for an object whose members throw", () => {
    const hostile = {
      get message(): never {
        throw new Error("again");
      },
    };
    assertEquals(kernel.describeThrown(hostile), "something that cannot be read");
  });

  it("stays within its limit", () => {
    assertEquals(kernel.describeThrown(new Error("x".repeat(1_000))).length, 500);
    assertEquals(kernel.describeThrown("x".repeat(1_000), 200).length, 200);
  });
});

group("isWithinEdits()", () => {
  for (const [a, b, errors] of data.edits as [string, string, number][]) {
    it(`finds ${errors} errors between "${a}" and "${b}", and not fewer`, () => {
      for (const [one, other] of [[a, b], [b, a]] as const) {
        assertEquals(kernel.isWithinEdits(one, other, errors), true);
        assertEquals(kernel.isWithinEdits(one, other, errors - 1), false);
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

group("argumentsText()", () => {
  it("is the JSON, with escapes for invisible characters", () => {
    assertEquals(argumentsText({ a: "b\u202ec", n: [1] }, 100), '{"a":"b\\u{202e}c","n":[1]}');
    const hidden = "\u{e0041}x\u200by\u00ad";
    assertEquals(argumentsText([hidden], 100), '["\\u{e0041}x\\u{200b}y\\u{ad}"]');
    assertEquals(argumentsText({ a: 1 }, 100, 2), '{\n  "a": 1\n}');
    assertEquals(argumentsText({ emoji: "👩\u200d💻" }, 100), '{"emoji":"👩\u200d💻"}');
    assertEquals(argumentsText(undefined, 100), "");
  });

  it("is undefined if it cannot be shown completely", () => {
    assertEquals(argumentsText({ ["k".repeat(101)]: 1 }, 100), undefined);
    assertEquals(argumentsText(Array(101).fill(0), 100), undefined);
    assertEquals(argumentsText({ command: "x".repeat(90) }, 100), undefined);
  });
});

const ids = ["chain:status", "echo", "file-list", "file-read", "file-write", "task:list", "rm"];

group("nearIds()", () => {
  const rows: [wanted: string, near: string[]][] = [
    ["fileRead", ["file-read"]],
    ["FILE.READ", ["file-read"]],
    ["fiel-read", ["file-read"]],
    ["file-raed", ["file-read"]],
    ["status", ["chain:status"]],
    ["tasks:status", ["chain:status"]],
    ["fs:file-write", ["file-write"]],
    ["file-lst", ["file-list"]],
    ["list", ["task:list"]],
    ["ecko", ["echo"]],
    ["xx", []],
    // A word of four letters may have one changed letter, and a word of two letters none.
    ["ecco", ["echo"]],
    ["ache", []],
    ["rn", []],
    ["fs:rm", ["rm"]],
    ["completely-else", []],
    ["", []],
    ["::--", []],
    ["x".repeat(258), []],
  ];
  for (const [wanted, near] of rows) {
    it(`returns [${near}] for "${wanted.slice(0, 20)}"`, () => {
      assertEquals(nearIds(wanted, ids), near);
    });
  }

  it("returns the nearest first, up to the limit", () => {
    const many = ["reads", "read", "re-ad", "rea", "bread"];
    assertEquals(nearIds("read", many, 10), ["re-ad", "read", "bread", "rea", "reads"]);
    assertEquals(nearIds("read", many), ["re-ad", "read", "bread"]);
  });

  it("finds a short name in another namespace", () => {
    assertEquals(nearIds("rm", ["fs:rm", "fs:mv"]), ["fs:rm"]);
  });

  it("compares the first thousand ids", () => {
    const many = Array.from({ length: 999 }, (_, index) => `tool-number-${index}`);
    assertEquals(nearIds("eco", [...many, "echo", "ecko"]), ["echo"]);
  });

  it("returns nothing for an empty list", () => assertEquals(nearIds("read", []), []));
});
