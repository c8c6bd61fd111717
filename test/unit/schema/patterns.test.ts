import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { compilePattern, resetSteps } from "../../../src/schema/patterns.ts";

/** Whether an automaton reads a text first. */
function hasAutomaton(pattern: ReturnType<typeof compilePattern>): boolean {
  return pattern.looks === Infinity;
}

/** Whether a pattern is found; `undefined` if that takes more steps than there are. */
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

function canBeCounted(source: string): boolean {
  try {
    return compilePattern(source).unicode;
  } catch {
    return false;
  }
}

describe("compilePattern()", () => {
  it("finds what RegExp finds", () => {
    fc.assert(
      fc.property(
        PATTERN.filter(canBeCounted),
        fc.array(TEXT, { minLength: 4 }),
        (source, texts) => {
          const pattern = compilePattern(source);
          for (const text of texts) {
            assertEquals(finds(pattern, text), new RegExp(source, "u").test(text), text);
          }
        },
      ),
      { numRuns: 2_000, seed: 11 },
    );
  });

  const PLAIN = [
    "",
    "a",
    "^$",
    ".*",
    ".+",
    ".*.*=.*",
    "\\S",
    "^.*$",
    "^x-",
    "\\.json$",
    "^[a-z]+$",
    "^[A-Za-z_][A-Za-z0-9_]*$",
    "^[a-z0-9]+(?:-[a-z0-9]+)*$",
    "^\\d{4}-\\d{2}-\\d{2}$",
    "^(?:\\d{1,3}\\.){3}\\d{1,3}$",
    "^(get|put|post|patch|head|options)$",
    "^[^/]+/[^/]+$",
    "^.{0,65535}$",
    "^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$",
    "^(?:https?|ftp)://[^\\s/$.?#].[^\\s]*$",
    "^\\p{L}+$",
    "^(schemas|responses|parameters|examples|requestBodies|headers|securitySchemes|links)$",
  ];
  for (const source of PLAIN) {
    it(`leaves ${source} to RegExp`, () => assert(!hasAutomaton(compilePattern(source))));
  }

  // Each with a text on which RegExp takes quadratic time, or more.
  const SLOW: readonly (readonly [source: string, part: string, end: string])[] = [
    ["^(a+)+$", "a", "!"],
    ["^(a*)*$", "a", "!"],
    ["^(a|a)*$", "a", "!"],
    ["^(a|aa)+$", "a", "!"],
    ["^(?:a?){30}a{30}$", "a", "!"],
    ["^(\\w+\\s?)*$", "a", "!"],
    ["^(\\d+)*[0-9]$", "1", "x"],
    ["(x+x+)+y", "x", ""],
    ["a+b", "a", ""],
    ["\\s+$", " ", "x"],
    [".+.*=.*", "a", ""],
    ["^[^@]+@[^@]+\\.[^@]+$", "a@.", "@"],
    ["^\\p{L}+(?:\\p{L}|é)*$", "é", "!"],
    ["^(([a-z])+.)+[A-Z]([a-z])+$", "a", ""],
    ["^(?=(a+)+$)", "a", "!"],
    ["^(?!(a+)+$)[^]*!!$", "a", "!"],
    ["^(?:(?:a{1,20}){1,20}){1,5}$", "a", "!"],
  ];
  for (const [source, part, end] of SLOW) {
    it(`has an automaton for ${source}`, () => {
      const pattern = compilePattern(source);
      assert(hasAutomaton(pattern));
      assertEquals(finds(pattern, part.repeat(20_000) + end) ?? false, false);
      const short = part.repeat(5) + end;
      assertEquals(finds(pattern, short), new RegExp(source, "u").test(short));
    });
  }

  /** Patterns of usual tools, some of them Zod's, each with a long text. */
  const USUAL: readonly (readonly [source: string, text: string])[] = [
    ["^.*\\.md$", `${"a/b.c".repeat(2_000)}.md`],
    [".*\\S.*", "word ".repeat(2_000)],
    ["^[^@]+@[^@]+\\.[^@]+$", `${"a".repeat(2_000)}@${"b.".repeat(20)}com`],
    ["^(?=.*[A-Z])(?=.*[a-z])(?=.*\\d).{8,}$", "aB3".repeat(1_000)],
    ["^\\s*\\S.*$", `  ${"x".repeat(10_000)}`],
    [
      "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+" +
      "[A-Za-z]{2,}$",
      `${"first.last".repeat(50)}@${"mail-1.".repeat(50)}example`,
    ],
    [
      "^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|::|([0-9a-fA-F]{1,4})?::([0-9a-fA-F]{1,4}:?){0,6})$",
      "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    ],
    [
      "^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(\\d+M)?(\\d+D)?" +
      "(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+([.,]\\d+)?S)?)?)$",
      `P${"1".repeat(1_000)}Y`,
    ],
  ];
  for (const [source, text] of USUAL) {
    it(`tests a long text with ${source.slice(0, 40)}`, () => {
      assertEquals(finds(compilePattern(source), text), true);
    });
  }

  it("answers for long texts, or says that they are too long", () => {
    const pattern = compilePattern("^(a+)+$");
    assertEquals(finds(pattern, "a".repeat(300_000)), true);
    assertEquals(finds(pattern, "a".repeat(16_000_000)), undefined);
  });

  it("tests no text in too many ways where a pattern looks ahead", () => {
    const pattern = compilePattern("^(?=a)(a+)+$");
    assertEquals(finds(pattern, `${"a".repeat(12)}!`), false);
    assertEquals(finds(pattern, `${"a".repeat(40)}!`), undefined);
  });

  it("counts the ways that read nothing", () => {
    const sources = ["^(?:|||a){40}\\b$", "(?=(?:|||){40}$)b", "^(?:(?:|\\b||){40})*b"];
    for (const source of sources) {
      assertEquals(finds(compilePattern(source), "c"), undefined, source);
    }
  });

  const REFUSED: readonly (readonly [source: string, rule: string])[] = [
    ["(", 'a regular expression that works with the "u" flag'],
    ["\\-", 'a regular expression that works with the "u" flag'],
    ["^(a+)\\1$", 'a regular expression without references back to groups ("\\1")'],
    ["(?<n>a)\\k<n>", 'a regular expression without references back to groups ("\\k<n>")'],
    ["(?:){1000000000}", "a regular expression with fewer parts and repetitions"],
    ["^(?:a?){1000}$", "a regular expression with fewer parts and repetitions"],
    ["a".repeat(2_001), "a regular expression with fewer parts and repetitions"],
    [
      "(?<=^(a+)+)b",
      "a regular expression without choices and repetitions that look behind",
    ],
  ];
  for (const [source, rule] of REFUSED) {
    it(`refuses ${source.slice(0, 30)}`, () => {
      assertThrows(() => compilePattern(source), SyntaxError, `The pattern must be ${rule}`);
    });
  }

  it("rejects flags inside of a pattern, which not every runtime supports", () => {
    for (const source of ["(?i:a)", "(?-i:a)", "(?s-i:a)"]) {
      assertThrows(() => compilePattern(source), SyntaxError, "The pattern must be");
    }
  });

  it("bounds the steps of many patterns together, including patterns without an automaton", () => {
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

  it("compiles no more states than its budget allows", () => {
    const budget = { left: 10_000 };
    const heavy = (at: number) => `${"x{200}y{200}".repeat(3)}${at}`;
    assertThrows(
      () => {
        for (let at = 0; at < 10; at++) compilePattern(heavy(at), budget);
      },
      SyntaxError,
      "fewer parts and repetitions",
    );
    // What is cached costs nothing, and an import that has used up its budget keeps it.
    compilePattern("^[a-f]{8}$");
    assert(!hasAutomaton(compilePattern("^[a-f]{8}$", budget)));
  });

  it("refuses a pattern that takes long to read", () => {
    const letters = Array.from({ length: 3_000 }, (_, at) => String.fromCodePoint(0x4e00 + at));
    assertThrows(() => compilePattern(`^(?:${letters.join("|")})*$`), SyntaxError, "fewer parts");
    assertEquals(finds(compilePattern(`^(?:${"\\b".repeat(3_000)}a?)*$`), "a"), true);
    assertEquals(finds(compilePattern(`^(?:${"|".repeat(3_000)}a)*$`), "a!"), false);
  });
});
