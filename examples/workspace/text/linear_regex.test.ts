import fc from "fast-check";
import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { linearRegex } from "./linear_regex.ts";

/** What JavaScript's own engine finds. */
function native(pattern: string, text: string, ignoreCase = false) {
  const match = new RegExp(pattern, ignoreCase ? "iu" : "u").exec(text);
  return match === null ? undefined : { start: match.index, end: match.index + match[0].length };
}

describe("linearRegex()", () => {
  for (
    const [pattern, text] of [
      ["abc", "xxabcabc"],
      ["", "abc"],
      ["a|ab|abc", "xabc"],
      ["(?:a|ab)(?:c|bcd)", "abcd"],
      ["a*", "baaa"],
      ["a+?b", "aaab"],
      ["a??b", "ab"],
      ["(a*)*b", "aaaac"],
      ["x{2,3}", "xxxxx"],
      ["x{2,3}?", "xxxxx"],
      ["x{0}y", "xy"],
      ["x{2,}", "axxxxb"],
      ["^a", "ba"],
      ["a$", "aba"],
      ["^$", ""],
      ["\\bfoo\\b", "a food foo."],
      ["\\Boo", "foo"],
      ["[a-c]+", "xxabcd"],
      ["[^a-c]+", "abcxyz"],
      ["[\\d_-]+", "a1-2_3"],
      ["[\\]a]", "]"],
      ["\\w+@\\w+\\.\\w+", "mail bob@example.org now"],
      ["\\s\\S", "ab cd"],
      [".", "\n\ra"],
      ["😀.", "x😀😃"],
      ["[😀-😎]+", "a😃😄b"],
      ["\\u0041\\x42\\u{43}", "xABC"],
      ["\\$\\{\\w+\\}", "a ${name} b"],
      ["(?:(?:a|b)c){2}", "acbcac"],
    ] as const
  ) {
    it(`finds /${pattern}/ in ${JSON.stringify(text)} where JavaScript does`, () => {
      assertEquals(linearRegex(pattern).find(text), native(pattern, text));
    });
  }

  it("ignores case as JavaScript does, also in classes and their opposites", () => {
    for (
      const [pattern, text] of [["straße", "STRAßE"], ["[a-f]+", "xABCz"], ["[^a]", "Ab"], [
        "É",
        "é",
      ]]
    ) {
      assertEquals(
        linearRegex(pattern ?? "", { ignoreCase: true }).find(text ?? ""),
        native(pattern ?? "", text ?? "", true),
      );
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
      .map((all) => all.join("|"));
    fc.assert(
      fc.property(
        alternatives,
        fc.array(fc.constantFrom("a", "b", "c", " ", "\n"), { maxLength: 12 }),
        (source, letters) => {
          const text = letters.join("");
          // Where a match begins is the same; where a loop over nothing ends is a matter of taste.
          assertEquals(linearRegex(source).find(text)?.start, native(source, text)?.start);
        },
      ),
      { numRuns: 2_000, seed: 42 },
    );
  });

  it("takes linear time where JavaScript takes exponential time", () => {
    const text = "a".repeat(5_000) + "!";
    for (
      const pattern of ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(?:a*)*b", "a*a*a*a*a*b", "(.*)*x"]
    ) {
      // The test ends at all: JavaScript's engine would take longer than the universe has.
      assertEquals(linearRegex(pattern).find(text), undefined);
    }
  });

  for (
    const [pattern, message] of [
      ["(a", '"(" without its ")"'],
      ["a)", '")" without its "("'],
      ["[a", '"[" without its "]"'],
      ["*a", 'nothing stands before "*"'],
      ["a**", "a quantifier follows a quantifier"],
      ["a{3,2}", "wrong order"],
      ["[z-a]", "wrong order"],
      ["\\", "ends in the middle"],
      ["\\1", '"\\1" is not supported'],
      ["(?=a)", "look-around and named groups are not supported"],
      ["(?<name>a)", "look-around and named groups are not supported"],
      ["((a{99}){99}){99}", "repeats too much"],
      ["a{9999}", "repeats too much"],
      ["(".repeat(60) + ")".repeat(60), "nested too deeply"],
      ["a".repeat(1_001), "at most 1000 characters"],
      ["\\u{110000}", "code point is malformed"],
    ] as const
  ) {
    it(`refuses /${pattern.slice(0, 20)}/, and says why`, () => {
      assertThrows(() => linearRegex(pattern), SyntaxError, message);
    });
  }
});
