import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { isToolId, isToolName, parseToolId, toolId } from "../../../src/tool/mod.ts";

const NAMES = ["a", "file-read", "file_read", "file.read", "0", "-", "constructor", "__proto__"];
const NOT_NAMES = [
  "",
  " ",
  "a b",
  "a:b",
  "a/b",
  "é",
  "a\n",
  "\na",
  "a\u0000",
  "名",
  "a".repeat(129),
];
const NOT_STRINGS = [undefined, null, 1, true, {}, ["a"], Symbol("a")];

describe("isToolName()", () => {
  for (const name of [...NAMES, "a".repeat(128)]) {
    it(`accepts ${JSON.stringify(name.slice(0, 20))} of length ${name.length}`, () => {
      assertEquals(isToolName(name), true);
    });
  }

  for (const name of NOT_NAMES) {
    it(`rejects ${JSON.stringify(name.slice(0, 20))} of length ${name.length}`, () => {
      assertEquals(isToolName(name), false);
    });
  }

  for (const value of NOT_STRINGS) {
    it(`rejects ${String(value)} of type ${typeof value}`, () => {
      assertEquals(isToolName(value), false);
    });
  }
});

describe("isToolId()", () => {
  for (const id of [...NAMES, "chain:status", "a:b", `${"n".repeat(128)}:${"n".repeat(128)}`]) {
    it(`accepts ${JSON.stringify(id.slice(0, 20))}`, () => {
      assertEquals(isToolId(id), true);
    });
  }

  for (const id of ["", ":", ":a", "a:", "a:b:c", "a: b", "a:b\n", `a:${"n".repeat(129)}`]) {
    it(`rejects ${JSON.stringify(id.slice(0, 20))}`, () => {
      assertEquals(isToolId(id), false);
    });
  }

  for (const value of NOT_STRINGS) {
    it(`rejects ${String(value)} of type ${typeof value}`, () => {
      assertEquals(isToolId(value), false);
    });
  }
});

describe("toolId()", () => {
  it("is the name alone without a namespace", () => {
    assertEquals(toolId("file-read"), "file-read");
  });

  it("puts the namespace before the name", () => {
    assertEquals(toolId("status", "chain"), "chain:status");
  });
});

describe("parseToolId()", () => {
  it("gives no namespace where there is none", () => {
    assertEquals(parseToolId("file-read"), { name: "file-read" });
  });

  it("takes apart what toolId() put together", () => {
    assertEquals(parseToolId(toolId("status", "chain")), { namespace: "chain", name: "status" });
  });
});
