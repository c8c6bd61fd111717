import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { compilePattern, resetSteps } from "../../../src/schema/patterns.ts";
import { fnv1a } from "../../../src/tool/mod.ts";
import { cases } from "../../support/laws.ts";
import data from "./patterns.json" with { type: "json" };

/** True if an automaton runs a pattern. */
function takesSteps(pattern: ReturnType<typeof compilePattern>): boolean {
  return pattern.reads === Infinity;
}

/** Returns true if a pattern matches; `undefined` if the match exceeds the budget of steps. */
function finds(pattern: RegExp, text: string): boolean | undefined {
  resetSteps();
  try {
    return pattern.test(text);
  } catch (error) {
    assertEquals(String(error), "RangeError: Too many steps");
    return undefined;
  }
}

const ATOMS = [
  ..."abx-_1é😀.",
  "[ab]",
  "[^a]",
  "[a-c\\]-]",
  "[^]",
  "[]",
  "\\w",
  "\\W",
  "\\d",
  "\\s",
  "\\.",
  "\\n",
  "\\x61",
  "\\u0062",
  "\\u{1F600}",
  "\\uD83D\\uDE00",
  "\\ud83d",
  "\\cJ",
  "\\p{L}",
  "\\P{Lu}",
  "[\\u{1F600}x]",
];
const REPEATS = ["*", "+", "?", "*?", "+?", "??", "{0}", "{2}", "{0,2}", "{1,3}?", "{2,}"];
const { pattern: PATTERN } = fc.letrec<{ pattern: string }>((tie) => {
  const part = tie("pattern");
  return {
    pattern: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(...ATOMS),
      fc.array(part, { minLength: 2, maxLength: 3 }).map((parts) => parts.join("")),
      fc.array(part, { minLength: 2, maxLength: 3 }).map((parts) => `(${parts.join("|")})`),
      part.map((inner) => `(?<name>${inner})`),
      part.map((inner) => `(?:${inner}|)`),
      fc.tuple(part, fc.constantFrom(...REPEATS)).map(([inner, times]) => `(?:${inner})${times}`),
      fc.tuple(fc.constantFrom("^", "$", "\\b", "\\B"), part).map((parts) => parts.join("")),
      fc.tuple(fc.constantFrom("=", "!", "<=", "<!"), part)
        .map(([kind, inner]) => `(?${kind}${inner})`),
    ),
  };
});
const TEXT = fc.array(
  fc.constantFrom(..."abcx-_1é😀.A \n", "\ud83d", "\ude00"),
  { maxLength: 8 },
).map((characters) => characters.join(""));

function isRegExp(source: string): boolean {
  try {
    return new RegExp(source, "u").unicode;
  } catch {
    return false;
  }
}

/** True if a pattern matches at a code point. A plain search of V8 also finds matches inside of one. */
function matchesAtCharacter(source: string, text: string): boolean {
  const pattern = new RegExp(source, "uy");
  const matchesAt = (index: number): boolean => {
    pattern.lastIndex = index;
    return pattern.test(text);
  };
  let index = 0;
  return [...text, ""].some((character) => {
    const isMatch = matchesAt(index);
    index += character.length;
    return isMatch;
  });
}

describe("compilePattern()", () => {
  it("finds the same matches as RegExp", () => {
    fc.assert(
      fc.property(PATTERN.filter(isRegExp), fc.array(TEXT, { minLength: 4 }), (source, texts) => {
        const pattern = compilePattern(source);
        // A lookahead that always matches makes plue use an automaton.
        const automaton = compilePattern(`(?=)(?:${source})`);
        assert(takesSteps(automaton));
        for (const text of texts) {
          const matches = matchesAtCharacter(source, text);
          const found = takesSteps(pattern) ? matches : new RegExp(source, "u").test(text);
          assertEquals([finds(pattern, text), finds(automaton, text)], [found, matches], text);
        }
      }),
      cases(2_000, 11),
    );
  });

  const PLAIN: readonly string[] = data.plain;
  for (const source of PLAIN) {
    it(`runs ${source} with RegExp`, () => assert(!takesSteps(compilePattern(source))));
  }

  // Each with a text on which RegExp takes quadratic time, or more.
  const SLOW: readonly (readonly [source: string, part: string, end: string])[] = data
    .slow as never;
  for (const [source, part, end] of SLOW) {
    it(`runs ${source} as an automaton`, () => {
      const pattern = compilePattern(source);
      assert(takesSteps(pattern));
      assertEquals(finds(pattern, part.repeat(2_000) + end) ?? false, false);
    });
  }

  it("returns a verdict for long texts, or reports that they are too long", () => {
    const pattern = compilePattern("^(a+)+$");
    assertEquals(finds(pattern, "a".repeat(900_000)), true);
    assertEquals(finds(pattern, "a".repeat(16_000_000)), undefined);
    // An automaton that needs a new state at each character takes more steps.
    const heavy = compilePattern("^[ab]*a[ab]{200}c$");
    const text = Array.from({ length: 50_000 }, (_, at) => "ab"[fnv1a(`${at}`) & 1]).join("");
    assertEquals(finds(heavy, text.slice(0, 500)), false);
    assertEquals(finds(heavy, text), undefined);
  });

  const REFUSED: readonly (readonly [source: string, rule: string])[] = [
    ["(", 'a regular expression that works with the "u" flag'],
    ["\\-", 'a regular expression that works with the "u" flag'],
    ["^(a+)\\1$", 'a regular expression without references back to groups ("\\1")'],
    ["(?<n>a)\\k<n>", 'a regular expression without references back to groups ("\\k<n>")'],
    ["^(?:a{1000}){1000}$", "a regular expression with fewer parts and repetitions"],
    ["(?=a)".repeat(25), "a regular expression with fewer parts and repetitions"],
    [`${"(?:".repeat(101)}a${")".repeat(101)}`, "at most 100 groups deep"],
    ["a".repeat(20_001), "at most 20000 characters long"],
  ];
  for (const [source, rule] of REFUSED) {
    it(`rejects ${source.slice(0, 30)}`, () => {
      assertThrows(() => compilePattern(source), SyntaxError, `The pattern must be ${rule}`);
    });
  }

  it("rejects flags inside of a pattern, which not every runtime supports", () => {
    for (const source of ["(?i:a)", "(?-i:a)", "(?s-i:a)"]) {
      assertThrows(() => compilePattern(source), SyntaxError, "The pattern must be");
    }
  });

  it("bounds the total cost of many patterns, including patterns for RegExp", () => {
    const text = "x".repeat(100_000);
    resetSteps();
    assertThrows(
      () => {
        for (let at = 0; at < 1_000; at++) compilePattern(`x{27}y${at}`).test(text);
      },
      RangeError,
      "Too many steps",
    );
  });

  it("compiles patterns up to a budget", () => {
    const budget = { left: 10_000 };
    const heavy = (at: number) => `(?:(?:(?:x${at}|yy){0,9}z){0,9}){0,9}q`;
    assertThrows(
      () => {
        for (let at = 0; at < 10; at++) compilePattern(heavy(at), budget);
      },
      SyntaxError,
      "fewer parts and repetitions",
    );
    // Cached patterns cost nothing, even for an import that has used up its budget.
    compilePattern("^[a-f]{8}$");
    assert(!takesSteps(compilePattern("^[a-f]{8}$", budget)));
  });

  it("analyses a large pattern in bounded time", () => {
    const letters = Array.from({ length: 3_000 }, (_, at) => String.fromCodePoint(0x4e00 + at));
    assert(takesSteps(compilePattern(`^(?:${letters.join("|")})*$`)));
    assert(takesSteps(compilePattern(`^(?:${"\\b".repeat(3_000)}a?)*$`)));
    assert(takesSteps(compilePattern(`^(?:${"|".repeat(3_000)}a)*$`)));
  });
});
