import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { imagesIn, tableOf, textOf } from "../../../src/explorer/page/result_views.ts";

describe("tableOf()", () => {
  it("has a column for each property of the objects of a list", () => {
    assertEquals(tableOf([{ a: 1 }, { a: 2, b: "x" }]), {
      columns: ["a", "b"],
      rows: [
        [1, ""],
        [2, "x"],
      ],
      total: 2,
    });
  });

  it("takes the only list of an object", () => {
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
    assertEquals(imagesIn({ deep: ["data:image/png;base64,AAAA"] }), [
      "data:image/png;base64,AAAA",
    ]);
  });

  it("takes nothing else for an image", () => {
    for (
      const value of [
        "https://example.com/a.png",
        "data:text/html;base64,AAAA",
        "data:image/svg+xml,<svg onload=alert(1)>",
        { data: "AAAA", mimeType: "text/html" },
        { data: 'x" onerror="alert(1)', mimeType: "image/png" },
        null,
      ]
    ) {
      assertEquals(imagesIn(value), []);
    }
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
    assertEquals(
      textOf({
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      }),
      "a\nb",
    );
    assertEquals(textOf({ content: [{ type: "image" }] }).startsWith("{"), true);
    assertEquals(textOf(undefined), "");
    assertEquals(textOf([1]), "[\n  1\n]");
  });
});
