import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readFileSync } from "node:fs";
import { codeOf, STATUS } from "../../../src/adapters/native/statuses.ts";

describe("STATUS", () => {
  it("has the numbers of plue.h", () => {
    const header = readFileSync(
      new URL("../../../ffi/include/plue.h", import.meta.url),
      "utf8",
    );
    const numbers = new Map(
      [...header.matchAll(/^ {4}PLUE_([A-Z_]+) = (\d+)/gm)]
        .map(([, name = "", number]) => [name.toLowerCase(), Number(number)]),
    );
    for (const [code, number] of Object.entries(STATUS)) {
      assertEquals([code, number], [code, numbers.get(code) ?? 0]);
    }
  });
});

describe("codeOf()", () => {
  it("is the way back, and threw for other numbers", () => {
    assertEquals([codeOf(3), codeOf(13), codeOf(0), codeOf(127)], [
      "denied",
      "threw",
      "threw",
      "threw",
    ]);
  });
});
