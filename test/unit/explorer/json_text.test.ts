import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  jsonLines,
  parse,
  pointerOf,
  withMember,
  wordsOf,
} from "../../../src/explorer/page/json_text.ts";

const SAMPLE = {
  "a/b": [1, { "~": null }, []],
  empty: {},
  text: 'quoted " and \\',
  nothing: undefined,
  deep: { deeper: [[true]] },
};

describe("jsonLines()", () => {
  it("writes what JSON.stringify writes", () => {
    for (const value of [SAMPLE, [], {}, 1, "x", null, [[[]]], { a: { b: {} } }]) {
      assertEquals(
        jsonLines(value)
          .map(({ text }) => text)
          .join("\n"),
        JSON.stringify(value, null, 2),
      );
    }
  });

  it("returns the JSON Pointer that begins in each line", () => {
    assertEquals(
      jsonLines({ "a/b": [1, { "~": null }] }).map(({ pointer }) => pointer),
      ["", "/a~1b", "/a~1b/0", "/a~1b/1", "/a~1b/1/~0", undefined, undefined, undefined],
    );
  });
});

describe("parse()", () => {
  it("parses JSON with all numbers that can be represented", () => {
    const text =
      '{"a": [9007199254740992, -1.5e300, "12345678901234567891", 100000000000000000000]}';
    assertEquals(parse(text), { ok: true, value: JSON.parse(text) });
  });

  it("rejects an integer that cannot be represented exactly", () => {
    assertEquals(parse('{"id": -12345678901234567891}'), {
      ok: false,
      message:
        "-12345678901234567891 has more digits than a number keeps: -12345678901234567000 is left",
    });
  });
});

describe("wordsOf()", () => {
  it("cuts a text into words, and loses nothing of it", () => {
    for (
      const text of [
        JSON.stringify(SAMPLE, null, 2),
        '{"a": tru',
        '"open',
        "",
        "-1.5e+3,",
        '"\\',
      ]
    ) {
      assertEquals(
        wordsOf(text)
          .map((word) => word.text)
          .join(""),
        text,
      );
    }
    assertEquals(
      wordsOf('{"k": "v", "n": -1, "t": true}').filter(({ kind }) => kind !== "plain"),
      [
        { kind: "key", text: '"k"' },
        { kind: "string", text: '"v"' },
        { kind: "key", text: '"n"' },
        { kind: "number", text: "-1" },
        { kind: "key", text: '"t"' },
        { kind: "word", text: "true" },
      ],
    );
  });
});

describe("withMember()", () => {
  it("sets, replaces and removes members, and changes nothing else", () => {
    const value = { a: [{ b: 1 }, 2], c: 3 };
    assertEquals(withMember(value, ["a", 0, "b"], 5), { a: [{ b: 5 }, 2], c: 3 });
    assertEquals(withMember(value, ["a", 0], undefined), { a: [2], c: 3 });
    assertEquals(withMember(value, ["c"], undefined), { a: [{ b: 1 }, 2] });
    assertEquals(withMember(value, ["new", "x"], 1), { ...value, new: { x: 1 } });
    assertEquals(withMember(value, [], "all"), "all");
    assertEquals(value, { a: [{ b: 1 }, 2], c: 3 });
  });

  it("keeps the order of members", () => {
    assertEquals(Object.keys(withMember({ a: 1, b: 2 }, ["a"], 3) as object), ["a", "b"]);
  });

  it("makes own members of names that every object inherits", () => {
    const made = withMember({}, ["__proto__"], { polluted: true }) as Record<string, unknown>;
    assertEquals(JSON.stringify(made), '{"__proto__":{"polluted":true}}');
    assertEquals("polluted" in {}, false);
    assertEquals(JSON.stringify(withMember({}, ["toString", "x"], 1)), '{"toString":{"x":1}}');
  });

  it("replaces a value without members by an object", () => {
    assertEquals(withMember("text", ["a"], 1), { a: 1 });
    assertEquals(withMember({ a: "text" }, ["a", 0], 1), { a: [1] });
  });
});

describe("pointerOf()", () => {
  it("escapes names", () => {
    assertEquals(pointerOf(["a/b", 0, "~"]), "/a~1b/0/~0");
  });
});
