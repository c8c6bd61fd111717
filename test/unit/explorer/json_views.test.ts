import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import * as views from "../../../src/explorer/page/json_views.ts";
import { imagesIn, tableOf, textOf, withMember } from "../../../src/explorer/page/json_views.ts";

const SAMPLE = {
  "a/b": [1, { "~": null }, []],
  empty: {},
  text: 'quoted " and \\',
  nothing: undefined,
  deep: { deeper: [[true]] },
};

describe("jsonLines()", () => {
  it("writes the same text as JSON.stringify", () => {
    for (const value of [SAMPLE, [], {}, 1, "x", null, [[[]]], { a: { b: {} } }]) {
      const lines = views.jsonLines(value).map(({ text }) => text);
      assertEquals(lines.join("\n"), JSON.stringify(value, null, 2));
    }
  });

  it("returns the JSON Pointer that begins in each line", () => {
    assertEquals(
      views.jsonLines({ "a/b": [1, { "~": null }] }).map(({ pointer }) => pointer),
      ["", "/a~1b", "/a~1b/0", "/a~1b/1", "/a~1b/1/~0", undefined, undefined, undefined],
    );
  });
});

describe("parse()", () => {
  it("parses JSON with all numbers that can be represented", () => {
    const text =
      '{"a": [9007199254740992, -1.5e300, "12345678901234567891", 100000000000000000000]}';
    assertEquals(views.parse(text), { ok: true, value: JSON.parse(text) });
  });

  it("rejects an integer that cannot be represented exactly", () => {
    assertEquals(views.parse('{"id": -12345678901234567891}'), {
      ok: false,
      message:
        "-12345678901234567891 has too many digits for a number: it would be -12345678901234567000",
    });
  });
});

describe("wordsOf()", () => {
  it("splits a text into words without loss", () => {
    const sample = JSON.stringify(SAMPLE, null, 2);
    for (const text of [sample, '{"a": tru', '"open', "", "-1.5e+3,", '"\\']) {
      assertEquals(views.wordsOf(text).map((word) => word.text).join(""), text);
    }
    const words = views.wordsOf('{"k": "a: b", "n": -1, "t": true}').filter(({ kind }) =>
      kind !== "plain"
    );
    assertEquals(
      words.map(({ kind, text }) => `${kind} ${text}`),
      ['key "k"', 'string "a: b"', 'key "n"', "number -1", 'key "t"', "word true"],
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
  it("escapes names", () => assertEquals(views.pointerOf(["a/b", 0, "~"]), "/a~1b/0/~0"));
});

describe("tableOf()", () => {
  it("has a column for each property of the objects of a list", () => {
    assertEquals(tableOf([{ a: 1 }, { a: 2, b: "x" }]), {
      columns: ["a", "b"],
      rows: [[1, ""], [2, "x"]],
      total: 2,
    });
  });

  it("shows the only list of an object", () => {
    assertEquals(tableOf({ total: 1, items: [{ id: 1 }] })?.columns, ["id"]);
    assertEquals(tableOf({ a: [{ id: 1 }], b: [{ id: 2 }] }), undefined);
  });

  it("is undefined for other values", () => {
    for (const value of [[], [1], [{}], [{ a: 1 }, 2], {}, "text", null, undefined]) {
      assertEquals(tableOf(value), undefined);
    }
  });

  it("shows 200 rows and the total number", () => {
    const table = tableOf(Array.from({ length: 1_000 }, (_, id) => ({ id })));
    assertEquals([table?.rows.length, table?.total], [200, 1_000]);
  });
});

describe("imagesIn()", () => {
  it("finds the images of MCP content, and data URLs", () => {
    const content = [
      { type: "text", text: "a picture" },
      { type: "image", data: "R0lGODlh", mimeType: "image/gif" },
    ];
    assertEquals(imagesIn({ content }), ["data:image/gif;base64,R0lGODlh"]);
    const url = "data:image/png;base64,AAAA";
    assertEquals(imagesIn({ deep: [url] }), [url]);
  });

  it("treats no other value as an image", () => {
    for (
      const value of [
        "https://example.com/a.png",
        "data:text/html;base64,AAAA",
        "data:image/svg+xml,<svg onload=alert(1)>",
        { data: "AAAA", mimeType: "text/html" },
        { data: 'x" onerror="alert(1)', mimeType: "image/png" },
        null,
      ]
    ) assertEquals(imagesIn(value), []);
  });

  it("ends in deep and long values", () => {
    let deep: unknown = "data:image/png;base64,AAAA";
    for (let depth = 0; depth < 5_000; depth++) deep = [deep];
    assertEquals(imagesIn(deep), []);
    assertEquals(imagesIn(Array(100).fill("data:image/png;base64,AAAA")).length, 20);
  });
});

describe("textOf()", () => {
  it("leaves strings and text blocks unchanged, and shows other values as JSON", () => {
    assertEquals(textOf("a\nb"), "a\nb");
    const content = ["a", "b"].map((text) => ({ type: "text", text }));
    assertEquals(textOf({ content }), "a\nb");
    assertEquals(textOf({ content: [{ type: "image" }] }).startsWith("{"), true);
    assertEquals(textOf(undefined), "");
    assertEquals(textOf([1]), "[\n  1\n]");
  });
});
