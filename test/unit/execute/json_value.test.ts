import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { frozenCopy, readJson, utf8Length } from "../../../src/execute/json_value.ts";
import { cases } from "../../support/laws.ts";

const LIMIT = 10_000;

/** A problem in a value, and its pointer. */
function refusal(value: unknown): readonly [string, string] | undefined {
  const verdict = readJson(value, LIMIT);
  return verdict.kind === "refused" ? [verdict.pointer, verdict.what] : undefined;
}

function contentOf(value: unknown): unknown {
  const verdict = readJson(value, LIMIT);
  return verdict.kind === "json" ? verdict.value : verdict;
}

describe("readJson()", () => {
  it("passes plain data on unchanged", () => {
    for (const value of [null, true, 0, -1.5, "", "text", [], {}, { a: [{ b: null }] }]) {
      const verdict = readJson(value, LIMIT);
      assert(verdict.kind === "json" && verdict.value === value);
    }
  });

  it("rejects data that JSON.stringify would lose or change, with its pointer", () => {
    assertEquals(refusal(Number.NaN), ["", "NaN, which is not JSON"]);
    assertEquals(refusal({ a: [1, Infinity] }), ["/a/1", "Infinity, which is not JSON"]);
    assertEquals(refusal({ "a/b": { "c~d": 1n } }), ["/a~1b/c~0d", "a bigint, which is not JSON"]);
    assertEquals(refusal([1, undefined]), ["/1", "undefined, which is not JSON"]);
    assertEquals(refusal(new Array(2)), ["/0", "undefined, which is not JSON"]);
    assertEquals(refusal({ run: () => 1 }), ["/run", "a function, which is not JSON"]);
    assertEquals(refusal([Symbol("s")]), ["/0", "a symbol, which is not JSON"]);
    assertEquals(refusal({ m: new Map([[1, 2]]) }), [
      "/m",
      "an instance of Map, which is not JSON",
    ]);
    assertEquals(refusal(new Uint8Array(2)), ["", "an instance of Uint8Array, which is not JSON"]);
    assertEquals(
      refusal([Object.assign(new TypeError("no"), { code: 1 })]),
      ["/0", "an instance of TypeError, which is not JSON"],
    );
  });

  it("rejects a value that contains itself", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    assertEquals(refusal(cycle)?.[1], "deeper than 256 levels: it may contain itself");
  });

  it("rejects a value whose properties throw", () => {
    const hostile = {
      get a(): never {
        throw new Error("no");
      },
    };
    const proxy = new Proxy({}, {
      ownKeys: () => {
        throw new Error("no");
      },
    });
    const endless = {
      toJSON(): unknown {
        return this;
      },
    };
    for (const value of [hostile, proxy]) {
      assertEquals(refusal(value), ["", "a value that cannot be read"]);
    }
    assertEquals(refusal(endless), ["", "deeper than 256 levels: it may contain itself"]);
  });

  it("converts values that JSON writes in another form to plain data", () => {
    class Point {
      x = 1;
      y = 2;
    }
    const when = new Date(0);
    assertEquals(contentOf({ when, point: new Point(), none: undefined }), {
      when: "1970-01-01T00:00:00.000Z",
      point: { x: 1, y: 2 },
    });
    const made: unknown = contentOf([new Point()]);
    assert(Array.isArray(made) && Object.getPrototypeOf(made[0]) === Object.prototype);
    assertEquals(contentOf({ toJSON: () => [1] }), [1]);
  });

  it("treats objects without a prototype as plain", () => {
    const bare: Record<string, unknown> = Object.create(null);
    bare["a"] = 1;
    assert(contentOf(bare) === bare);
  });

  it("keeps an own property called __proto__", () => {
    const value: unknown = JSON.parse('{"__proto__":{"admin":true},"none":1}');
    assert(contentOf(value) === value);
    const converted = contentOf({ value, none: undefined });
    assertEquals(JSON.stringify(converted), '{"value":{"__proto__":{"admin":true},"none":1}}');
  });

  it("copies deeply with the option `copy`", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        const verdict = readJson(value, 1_000_000, true);
        assert(verdict.kind === "json");
        assertEquals(JSON.stringify(verdict.value), text);
        assertEquals(sharedParts(verdict.value, value), 0);
      }),
      cases(500),
    );
    const value: unknown = JSON.parse('{"__proto__":{"admin":true}}');
    const verdict = readJson(value, 1_000, true);
    assert(verdict.kind === "json" && verdict.value !== value);
    assertEquals(JSON.stringify(verdict.value), '{"__proto__":{"admin":true}}');
  });

  it("measures exactly if its bounds do not decide", () => {
    // 20 letters: 22 bytes, at most 122 by the bound. "é" has 2 bytes, the pair has 4.
    assertEquals(readJson("x".repeat(20), 22).kind, "json");
    assertEquals(readJson("x".repeat(21), 22), { kind: "large", bytes: 23 });
    assertEquals(readJson("é".repeat(10), 22).kind, "json");
    assertEquals(readJson("é".repeat(11), 22).kind, "large");
    assertEquals(readJson({ a: "\u0000" }, 14).kind, "json");
    assertEquals(readJson({ a: "\u0000" }, 13).kind, "large");
  });

  it("has the maximum length of a number", () => {
    assertEquals(readJson(-0.0000010000002009937222, 24), { kind: "large", bytes: 25 });
    assertEquals(readJson(-0.0000010000002009937222, 25).kind, "json");
  });

  it("decides at any limit as the written text does", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat({ max: 200 }), (value, limit) => {
        const bytes = utf8Length(JSON.stringify(value));
        const verdict = readJson(value, limit);
        assertEquals(verdict.kind, bytes <= limit ? "json" : "large");
        if (verdict.kind === "json") assert(verdict.bytes >= bytes && verdict.bytes <= limit);
      }),
      cases(3_000),
    );
  });

  it("returns the same as JSON.stringify and JSON.parse, or rejects", () => {
    fc.assert(
      fc.property(fc.object({ withDate: true, withMap: true, withBigInt: true }), (value) => {
        const verdict = readJson(value, 1e9);
        if (verdict.kind === "json") {
          assertEquals(JSON.stringify(verdict.value), JSON.stringify(value));
          assertEquals(JSON.parse(JSON.stringify(verdict.value)), verdict.value);
        }
      }),
      cases(500),
    );
  });

  it("stops at the limit, even for a value with an unbounded serialization", () => {
    let value: unknown = "leaf";
    for (let level = 0; level < 200; level++) value = [value, value];
    const verdict = readJson(value, 1_000_000);
    assertEquals(verdict.kind, "large");
  });
});

describe("frozenCopy()", () => {
  it("freezes deeply, except for lists that are too long", () => {
    const copy = frozenCopy({ short: [[1]], long: Array.from({ length: 1_001 }, () => ({})) });
    const { short = [], long = [] } = copy ?? {};
    assertEquals([copy, short, short[0], long, long[0]].map(Object.isFrozen), [
      true,
      true,
      true,
      false,
      true,
    ]);
  });
});

describe("utf8Length()", () => {
  it("counts bytes, not units", () => {
    const rows = [["", 0], ["a", 1], ["é", 2], ["€", 3], ["😀", 4], ["a😀é€", 10], ["\ud800a", 4]];
    for (const [text, bytes] of rows as [string, number][]) assertEquals(utf8Length(text), bytes);
  });
});

/** The number of lists and objects of `copy` that are also in `value`. */
function sharedParts(copy: unknown, value: unknown): number {
  const parts = (whole: unknown): readonly unknown[] =>
    typeof whole === "object" && whole !== null
      ? [whole, ...Object.values(whole).flatMap(parts)]
      : [];
  const known = new Set(parts(value));
  return parts(copy).filter((part) => known.has(part)).length;
}
