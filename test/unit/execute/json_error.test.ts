import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { describeJsonError } from "../../../src/execute/json_error.ts";

const ROWS: readonly (readonly [text: string, says: string])[] = [
  ["{", 'it ends too early, after 1 characters: it wants a property name in quotes or "}"'],
  ['{"a":1', 'it ends too early, after 6 characters: it wants "," or "}"'],
  ["[1,2", 'it ends too early, after 4 characters: it wants "," or "]"'],
  ["[1,]", "at character 4 (line 1, column 4) it wants a value"],
  ['{"a":1,}', "at character 8 (line 1, column 8) it wants a property name in quotes"],
  ["{'a':1}", 'at character 2 (line 1, column 2) it wants a property name in quotes or "}"'],
  ['{"a" 1}', 'at character 6 (line 1, column 6) it wants a property name in quotes or "}"'],
  ['{"a":1}x', "at character 8 (line 1, column 8) it wants nothing after the value"],
  ['{\n  "a": tru\n}', "at character 10 (line 2, column 8) it wants a value"],
  [
    '"a\nb"',
    'at character 3 (line 1, column 3) it wants control characters in strings as escapes, such as "\\n"',
  ],
  ['"\\x"', 'at character 2 (line 1, column 2) it wants "\\" in strings as "\\\\"'],
  ['"\\u12"', 'at character 2 (line 1, column 2) it wants "\\" in strings as "\\\\"'],
  ['"abc', "it ends too early, after 4 characters: it wants the closing quote of a string"],
  ["01", "at character 2 (line 1, column 2) it wants nothing after the value"],
  ["[1 2]", 'at character 4 (line 1, column 4) it wants "," or "]"'],
  ['[{"a":[]}}', 'at character 10 (line 1, column 10) it wants "," or "]"'],
  ["NaN", "at character 1 (line 1, column 1) it wants a value"],
];

describe("describeJsonError()", () => {
  it("says where a text stops being JSON, and what it wants there", () => {
    for (const [text, says] of ROWS) {
      assertThrows(() => JSON.parse(text), SyntaxError);
      assertEquals(describeJsonError(text), says);
    }
  });

  it("repeats nothing of the text", () => {
    assertEquals(describeJsonError('{"password": hunter2}').includes("hunter2"), false);
  });

  it("finds no fault in JSON before its end", () => {
    for (
      const text of ['{"a":[1,-2.5e+3,"\\u00e9\\n",true,false,null,{}],"b":{"c":[]}}', " [ ] "]
    ) {
      assertEquals(JSON.parse(text) !== undefined, true);
      assertEquals(
        describeJsonError(text),
        `it ends too early, after ${text.length} characters: it wants nothing after the value`,
      );
    }
  });

  it("is not defeated by depth", () => {
    const text = "[".repeat(100_000);
    assertEquals(
      describeJsonError(text),
      "it ends too early, after 100000 characters: it wants a value",
    );
  });

  it("finds a fault exactly where JSON.parse does", () => {
    const json = fc.json({ maxDepth: 3 });
    const spoiled = fc.tuple(
      json,
      fc.nat(),
      fc.constantFrom("", ",", "}", "]", '"', "\\", "x", " "),
    )
      .map(([text, place, put]) => {
        const at = place % (text.length + 1);
        return text.slice(0, at) + put + text.slice(at + 1);
      });
    fc.assert(
      fc.property(fc.oneof(json, spoiled), (text) => {
        const says = describeJsonError(text);
        const sound = says.startsWith("it ends too early") &&
          says.endsWith("nothing after the value");
        assertEquals(sound, parses(text));
      }),
      { numRuns: 2_000 },
    );
  });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
