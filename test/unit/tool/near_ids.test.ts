import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { nearIds } from "../../../src/tool/mod.ts";

const ids = ["chain:status", "echo", "file-list", "file-read", "file-write", "task:list", "rm"];

describe("nearIds()", () => {
  const rows: [wanted: string, near: string[]][] = [
    ["fileRead", ["file-read"]],
    ["FILE.READ", ["file-read"]],
    ["fiel-read", ["file-read"]],
    ["file-raed", ["file-read"]],
    ["status", ["chain:status"]],
    ["tasks:status", ["chain:status"]],
    ["fs:file-write", ["file-write"]],
    ["file-lst", ["file-list"]],
    ["list", ["task:list"]],
    ["ecko", ["echo"]],
    ["xx", []],
    // Two letters of four, and one of two, are another word.
    ["ecco", ["echo"]],
    ["ache", []],
    ["rn", []],
    ["fs:rm", ["rm"]],
    ["completely-else", []],
    ["", []],
    ["::--", []],
    ["x".repeat(258), []],
  ];
  for (const [wanted, near] of rows) {
    it(`answers [${near}] for "${wanted.slice(0, 20)}"`, () => {
      assertEquals(nearIds(wanted, ids), near);
    });
  }

  it("puts the nearest first and keeps to the limit", () => {
    const many = ["reads", "read", "re-ad", "rea", "bread"];
    assertEquals(nearIds("read", many, 10), ["re-ad", "read", "bread", "rea", "reads"]);
    assertEquals(nearIds("read", many), ["re-ad", "read", "bread"]);
  });

  it("finds a short name in another namespace", () => {
    assertEquals(nearIds("rm", ["fs:rm", "fs:mv"]), ["fs:rm"]);
  });

  it("looks at the first thousand ids", () => {
    const many = Array.from({ length: 999 }, (_, index) => `tool-number-${index}`);
    assertEquals(nearIds("eco", [...many, "echo", "ecko"]), ["echo"]);
  });

  it("returns nothing for an empty list", () => assertEquals(nearIds("read", []), []));
});
