import fc from "fast-check";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { cases } from "../../support/laws.ts";
import { type Match, regexFinder } from "../../../examples/workspace/patterns.ts";
import data from "./patterns.json" with { type: "json" };

/** The first match of JavaScript's own engine. */
function native(pattern: string, text: string, ignoreCase = false): Match | undefined {
  const match = new RegExp(pattern, ignoreCase ? "iu" : "u").exec(text);
  return match === null ? undefined : { start: match.index, end: match.index + match[0].length };
}

describe("regexFinder()", () => {
  for (const [pattern, text] of data.texts as [string, string][]) {
    it(`finds /${pattern}/ in ${JSON.stringify(text)} where JavaScript does`, () => {
      assertEquals(regexFinder(pattern, false).find(text), native(pattern, text));
    });
  }

  it("ignores case as JavaScript does, including in classes and negated classes", () => {
    for (const [pattern, text] of data.cases as [string, string][]) {
      assertEquals(regexFinder(pattern, true).find(text), native(pattern, text, true));
    }
  });

  it("agrees with JavaScript on any pattern of the supported syntax", () => {
    const { pattern } = fc.letrec<{ pattern: string; atom: string }>((tie) => ({
      atom: fc.oneof(
        { depthSize: "small" },
        fc.constantFrom("a", "b", "c", ".", "[ab]", "[^b]", "\\w", "\\b", "^", "$"),
        tie("pattern").map((inner) => `(?:${inner})`),
      ),
      pattern: fc.array(
        fc.tuple(tie("atom"), fc.constantFrom("", "", "*", "+", "?", "*?", "+?", "??", "{1,2}"))
          .map(([atom, quantifier]) => /^(\^|\$|\\b)$/.test(atom) ? atom : atom + quantifier),
        { maxLength: 4 },
      ).map((parts) => parts.join("")),
    }));
    const alternatives = fc.array(pattern, { minLength: 1, maxLength: 3 })
      .map((all) => all.join("|"))
      // Longer patterns may exceed the limit of repetitions.
      .filter((all) => all.length <= 200);
    fc.assert(
      fc.property(
        alternatives,
        fc.array(fc.constantFrom("a", "b", "c", " ", "\n"), { maxLength: 12 }),
        (source, letters) => {
          const text = letters.join("");
          // Engines differ in where a match of a loop over empty matches ends.
          assertEquals(regexFinder(source, false).find(text)?.start, native(source, text)?.start);
        },
      ),
      cases(2_000),
    );
  });

  it("takes linear time where JavaScript takes exponential time", () => {
    const text = "a".repeat(5_000) + "!";
    for (const pattern of data.exponential) {
      // JavaScript's engine would not finish within the time of the test.
      assertEquals(regexFinder(pattern, false).find(text), undefined);
    }
  });

  const long: readonly (readonly [string, string])[] = [
    [`(?:${"[a-c]x".repeat(160)}){1000}`, "repeats too much"],
    [`((${"ab".repeat(450)}{10}){10}){10}`, "repeats too much"],
    ["a".repeat(1_001), "at most 1000 characters"],
  ];
  for (const [pattern, message] of [...data.rejected as [string, string][], ...long]) {
    it(`rejects /${pattern.slice(0, 20)}/ with the reason`, () => {
      const error = assertThrows(() => regexFinder(pattern, false), SyntaxError, message);
      assert(error.message.startsWith("Cannot compile the pattern: "), error.message);
    });
  }
});
