import { describe, it } from "bun:test";
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { utf8Length } from "../../../src/execute/json_value.ts";
import { truncate } from "../../../src/execute/truncate.ts";

function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value));
}

describe("truncate()", () => {
  it("leaves valid JSON within the limit, whatever the characters", () => {
    for (const letter of ["x", '"', "\\", "\n", "\u0001", "é", "€", "😀", "\ud800"]) {
      for (const limit of [128, 129, 130, 131, 1_000]) {
        const cut = truncate(letter.repeat(5_000), limit);
        assertLessOrEqual(jsonBytes(cut), limit);
      }
    }
  });

  it("does not cut a code point in two", () => {
    for (const limit of [128, 129, 130, 131, 132]) {
      assert(truncate("😀".repeat(1_000), limit).isWellFormed());
    }
  });

  it("says how much there was", () => {
    const cut = truncate("x".repeat(998), 200);
    assertEquals(cut, `${"x".repeat(102)}… [truncated: 104 of 1000 bytes]`);
  });

  it("keeps the beginning of any other value's JSON", () => {
    const value = { list: Array.from({ length: 1_000 }, (_, n) => ({ n, none: undefined })) };
    const cut = truncate(value, 300);
    assert(cut.startsWith('{"list":[{"n":0},{"n":1},'));
    assert(cut.endsWith(" of more than 300 bytes]"));
    assertLessOrEqual(jsonBytes(cut), 300);
  });

  it("does not write a value out that would be endless", () => {
    let value: unknown = "leaf";
    for (let level = 0; level < 200; level++) value = [value, value];
    assert(truncate(value, 400).startsWith("[[[["));
  });

  it("honours toJSON", () => {
    const list = Array.from({ length: 100 }, () => new Date(0));
    assert(truncate(list, 200).startsWith('["1970-01-01T00:00:00.000Z","1970'));
  });
});
