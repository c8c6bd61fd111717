import { assertEquals, assertNotStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { canonicalJson, copyJson, jsonEqual, pointerStep, setOwn } from "../../../src/tool/mod.ts";
import data from "./json.json" with { type: "json" };

function nested(levels: number): unknown {
  let value: unknown = 0;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

describe("copyJson()", () => {
  for (const value of [null, true, false, 0, -1.5, "", "text", [], {}]) {
    it(`copies ${JSON.stringify(value)}`, () => assertEquals(copyJson(value, "it"), value));
  }

  it("copies deeply", () => {
    const original = { a: [{ b: 1 }] };
    const copy = copyJson(original, "it");
    assertEquals(copy, { a: [{ b: 1 }] });
    assertNotStrictEquals(copy.a[0], original.a[0]);
  });

  it("freezes deeply", () => {
    const copy = copyJson({ a: [{ b: 1 }] }, "it");
    assertEquals([copy, copy.a, copy.a[0]].map(Object.isFrozen), [true, true, true]);
  });

  it("does not freeze the original", () => {
    const original = { a: [1] };
    copyJson(original, "it");
    assertEquals(Object.isFrozen(original) || Object.isFrozen(original.a), false);
  });

  it("omits members that are undefined", () => {
    assertEquals(Object.keys(copyJson({ a: undefined, b: 1 }, "it")), ["b"]);
  });

  it("omits members that are not enumerable, or named by a symbol", () => {
    const original = { a: 1, [Symbol("kind")]: 2 };
    Object.defineProperty(original, "hidden", { value: () => 3, enumerable: false });
    assertEquals(Reflect.ownKeys(copyJson(original, "it")), ["a"]);
  });

  it("copies a member named __proto__ as a member", () => {
    const copy = copyJson(JSON.parse('{ "__proto__": { "polluted": true } }'), "it");
    assertEquals(Object.keys(copy), ["__proto__"]);
    assertEquals(Object.getPrototypeOf(copy), Object.prototype);
    assertEquals("polluted" in copy, false);
  });

  it("keeps the members of an object without a prototype", () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    assertEquals(copyJson(bare, "it"), { a: 1 });
  });

  it("copies the members of an instance of a class", () => {
    class Point {
      x = 1;
    }
    assertEquals(copyJson({ at: new Point() }, "it"), { at: { x: 1 } } as unknown);
  });

  const notJson: readonly (readonly [string, unknown, string])[] = [
    ["NaN", NaN, "NaN"],
    ["an infinite number", -Infinity, "-Infinity"],
    ["a function", () => 0, "a function"],
    ["a symbol", Symbol("s"), "a symbol"],
    ["a bigint", 1n, "a bigint"],
    ["a date", new Date(0), "an instance of Date"],
    ["a map", new Map(), "an instance of Map"],
    ["a regular expression", /a/, "an instance of RegExp"],
    ["bytes", new Uint8Array(1), "an instance of Uint8Array"],
  ];
  for (const [name, value, words] of notJson) {
    it(`rejects ${name}, with its pointer`, () => {
      assertThrows(
        () => copyJson({ "a/b": [0, value] }, "the thing"),
        TypeError,
        `Cannot copy the thing: at "/a~1b/1" it is ${words}, which is not JSON`,
      );
    });
  }

  it("rejects undefined in a list, where JSON would make it null", () => {
    assertThrows(() => copyJson([undefined], "it"), TypeError, 'at "/0" it is undefined');
  });

  it("rejects a hole in a list", () => {
    const holes = [0];
    holes.length = 2;
    assertThrows(() => copyJson(holes, "it"), TypeError, 'at "/1" it is undefined');
  });

  it("rejects a very long list of holes immediately", () => {
    const holes: unknown[] = [];
    holes.length = 4_000_000_000;
    assertThrows(() => copyJson(holes, "it"), TypeError, 'at "/0" it is undefined');
  });

  it("copies 256 levels", () => {
    assertEquals(JSON.stringify(copyJson(nested(256), "it")), JSON.stringify(nested(256)));
  });

  it("rejects 257 levels", () => {
    assertThrows(() => copyJson(nested(257), "it"), TypeError, "deeper than 256 levels");
  });

  it("rejects a value that contains itself", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    assertThrows(() => copyJson(cycle, "it"), TypeError, "it may contain itself");
  });

  it("rejects more than a million values", () => {
    const values = new Array(1_000_000).fill(0);
    assertThrows(() => copyJson(values, "it"), TypeError, "more than 1000000 values");
  });

  it("describes the position of a deep value briefly", () => {
    const error = assertThrows(
      () => copyJson({ ["long".repeat(1000)]: { x: NaN } }, "it"),
      TypeError,
    );
    assertEquals(error.message.length < 300, true);
  });
});

describe("pointerStep()", () => {
  for (
    const [key, step] of [["a", "/a"], ["", "/"], [0, "/0"], ["a/b", "/a~1b"], ["~", "/~0"], [
      "~1",
      "/~01",
    ]] as const
  ) {
    it(`writes ${JSON.stringify(key)} as ${step}`, () => assertEquals(pointerStep(key), step));
  }
});

describe("setOwn()", () => {
  for (const key of ["a", "__proto__", "constructor", "toString"]) {
    it(`sets an own, enumerable, changeable "${key}"`, () => {
      const target: Record<string, unknown> = {};
      setOwn(target, key, 1);
      assertEquals(Object.getOwnPropertyDescriptor(target, key), {
        value: 1,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    });
  }
});

/** Pairs of JSON values, and whether they are equal. */
const PAIRS: readonly (readonly [unknown, unknown, boolean])[] = data.pairs as never;

describe("jsonEqual()", () => {
  for (const [a, b, equal] of PAIRS) {
    it(`returns ${equal} for ${JSON.stringify(a)} and ${JSON.stringify(b)}`, () => {
      assertEquals(jsonEqual(a, b), equal);
      assertEquals(jsonEqual(b, a), equal);
    });
  }
});

describe("canonicalJson()", () => {
  for (const [a, b, equal] of PAIRS) {
    it(`returns ${equal ? "one text" : "two texts"} for ${JSON.stringify(a)} and ${JSON.stringify(b)}`, () => {
      assertEquals(canonicalJson(a) === canonicalJson(b), equal);
    });
  }

  it("sorts the keys at every level", () => {
    assertEquals(
      canonicalJson({ b: [{ d: 1, c: null }], a: "x" }),
      '{"a":"x","b":[{"c":null,"d":1}]}',
    );
  });
});
