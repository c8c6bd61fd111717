import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/tool/mod.ts";
import { isListOf, isWord, readFields } from "../../../src/tool/mod.ts";

describe("fail()", () => {
  it("contains the failed action and the reason", () => {
    const cause = new Error("inner");
    const error = assertThrows(() => plue.fail("open it", "it is locked", cause), TypeError);
    assertEquals([error.message, error.cause], ["Cannot open it: it is locked", cause]);
  });

  it("has no cause without an earlier error", () => {
    const error = assertThrows(() => plue.fail("open it", "it is locked"), TypeError);
    assertEquals(Object.hasOwn(error, "cause"), false);
  });
});

describe("createCheck()", () => {
  const checkEven = plue.createCheck(
    "an even number",
    (value): value is number => typeof value === "number" && value % 2 === 0,
  );

  it("returns a valid value", () => assertEquals(checkEven("count", 4, "it"), 4));

  it("contains the problem and the expectation", () => {
    assertThrows(
      () => checkEven("count", "four", "the number"),
      TypeError,
      'Cannot count: the number must be an even number, not "four"',
    );
  });

  it("creates checks from a predicate", () => {
    assertThrows(
      () => plue.checkFlag("try", 1, "it"),
      TypeError,
      "it must be true or false, not 1",
    );
    assertThrows(() => plue.checkWord("try", "", "it"), TypeError, "a string that is not empty");
    assertThrows(() => plue.checkFunction("try", {}, "it"), TypeError, "a function, not an object");
  });
});

describe("isListOf()", () => {
  it("checks every item", () => {
    assertEquals(isListOf(["a", "b"], isWord), true);
    assertEquals(isListOf([], isWord), true);
    assertEquals(isListOf(["a", ""], isWord), false);
    assertEquals(isListOf("ab", isWord), false);
  });

  it("checks holes, and stops at the first invalid item", () => {
    const holes: string[] = [];
    holes.length = 4_000_000_000;
    assertEquals(isListOf(holes, isWord), false);
  });
});

describe("numberFrom()", () => {
  it("accepts its bounds, and nothing beyond them", () => {
    const check = plue.numberFrom(1, 3);
    assertEquals([1, 2.5, 3].map((value) => check("try", value, "it")), [1, 2.5, 3]);
    for (const value of [0.9, 3.1, Number.NaN, "2", null]) {
      assertThrows(() => check("try", value, "it"), RangeError, "it must be a number from 1 to 3");
    }
  });
});

describe("wholeFrom()", () => {
  it("accepts whole numbers only", () => {
    const check = plue.wholeFrom(0);
    assertEquals([0, 7].map((value) => check("try", value, "it")), [0, 7]);
    for (const value of [-1, 1.5, Infinity, Number.NaN, "2"]) {
      assertThrows(() => check("try", value, "it"), RangeError, "a whole number, 0 or above");
    }
  });
});

describe("readFields()", () => {
  const checks = { flag: plue.checkFlag, word: plue.checkWord };

  it("returns only the present fields", () => {
    assertEquals(readFields("read it", { flag: false, word: undefined }, checks), { flag: false });
  });

  it("reads each field once", () => {
    let reads = 0;
    const object = {
      get word(): string {
        return `read ${++reads}`;
      },
    };
    assertEquals(readFields("read it", object, checks), { word: "read 1" });
    assertEquals(reads, 1);
  });

  it("contains the pointer of the problem", () => {
    assertThrows(
      () => readFields("read it", { flag: 1 }, checks),
      TypeError,
      'Cannot read it: "/flag" must be true or false, not 1',
    );
    assertThrows(
      () => readFields("read it", { flag: 1 }, checks, (field) => `its ${field}`),
      TypeError,
      "Cannot read it: its flag must be",
    );
  });

  for (const field of ["flags", "fla"]) {
    it(`suggests a field for the unknown field ${field}`, () => {
      assertThrows(
        () => readFields("read it", { [field]: true }, checks),
        TypeError,
        `Cannot read it: "/${field}" is not one of its fields: did you mean "flag"?`,
      );
    });
  }

  for (const field of ["x", "constructor", "__proto__", "a/b"]) {
    it(`rejects the unknown field ${field}`, () => {
      const object = JSON.parse(`{ ${JSON.stringify(field)}: true }`) as Record<string, unknown>;
      const escaped = field.replace("/", "~1");
      assertThrows(
        () => readFields("read it", object, checks),
        TypeError,
        `Cannot read it: "/${escaped}" is not one of its fields: flag, word`,
      );
    });
  }
});
