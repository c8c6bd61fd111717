import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { readPartialJson } from "../../../src/formats/stream.ts";
import { isObject } from "../../../src/tool/mod.ts";
import { cases } from "../../support/laws.ts";

/** True if `part` may be the beginning of `whole`. */
function begins(part: unknown, whole: unknown): boolean {
  if (typeof part === "string" && typeof whole === "string") return whole.startsWith(part);
  if (Array.isArray(part)) {
    return Array.isArray(whole) && part.every((item, at) => begins(item, whole[at]));
  }
  if (isObject(part)) {
    return isObject(whole) &&
      Object.keys(part).every((name) =>
        Object.hasOwn(whole, name) && begins(part[name], whole[name])
      );
  }
  return Object.is(part, whole);
}

describe("readPartialJson()", () => {
  it("reads of every beginning what stays true for the whole", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.boolean(), (value, spaced) => {
        const whole = JSON.parse(JSON.stringify(value));
        const text = JSON.stringify(value, null, spaced ? 2 : undefined);
        let before: unknown;
        for (let end = 0; end <= text.length; end++) {
          const part = readPartialJson(text.slice(0, end));
          if (part === undefined) {
            assertEquals(before, undefined);
            continue;
          }
          assert(begins(part, whole), `${text.slice(0, end)} gave ${JSON.stringify(part)}`);
          assert(before === undefined || begins(before, part));
          before = part;
        }
        // A number may continue until another character follows it.
        assertEquals(readPartialJson(`${text} `), whole);
      }),
      cases(300),
    );
  });

  const CASES: readonly (readonly [text: string, value: unknown])[] = [
    ["", undefined],
    [" ", undefined],
    ["12", undefined],
    ["tru", undefined],
    ['"', ""],
    ['"a\\', "a"],
    ['"a\\u00', "a"],
    ['"a\\ud83d', "a"],
    ["{", {}],
    ['{"a', {}],
    ['{"a"', {}],
    ['{"a":', {}],
    ['{"a":1', {}],
    ['{"a":1,', { a: 1 }],
    ['{"a":[1,2', { a: [1] }],
    ['{"a":"x","__proto__":{"b":"y', { a: "x", ["__proto__"]: { b: "y" } }],
    ['{"a":"x"} and more', { a: "x" }],
    ['{"a":"x" "b":1}', { a: "x" }],
    ["[,1]", []],
    ['{"text":"two\nlines', { text: "two\nlines" }],
  ];
  for (const [text, value] of CASES) {
    it(`reads ${JSON.stringify(text)} as ${JSON.stringify(value)}`, () => {
      assertEquals(readPartialJson(text), value as never);
    });
  }

  it("reads texts of millions of escapes", () => {
    const text = "\n".repeat(3_000_000);
    assertEquals(readPartialJson(JSON.stringify(text)) === text, true);
    assertEquals(
      readPartialJson(JSON.stringify(`a${text}b`).slice(0, -3)) === `a${text.slice(1)}`,
      true,
    );
  });

  it("reads 64 levels, and ends on more", () => {
    const value = readPartialJson("[".repeat(100_000));
    assertEquals(JSON.stringify(value).length, 2 * 65);
  });
});
