import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readFileSync } from "node:fs";
import { codeOf, flagsOf, STATUS } from "../../../src/adapters/native/replies.ts";

const header = readFileSync(new URL("../../../ffi/include/plue.h", import.meta.url), "utf8");

describe("STATUS", () => {
  it("has the numbers of plue.h", () => {
    const numbers = new Map(
      [...header.matchAll(/^ {4}PLUE_([A-Z_]+) = (\d+)/gm)]
        .map(([, name = "", number]) => [name.toLowerCase(), Number(number)]),
    );
    for (const [code, number] of Object.entries(STATUS)) {
      assertEquals([code, number], [code, numbers.get(code) ?? 0]);
    }
  });
});

describe("flagsOf()", () => {
  it("has the numbers of plue.h", () => {
    const plain = { ok: true, content: null, durationMs: 0 } as const;
    const numbers = [...header.matchAll(/^ {4}PLUE_RESULT_([A-Z]+) = (\d+)/gm)].map((
      [, name = "", number],
    ) => [name.toLowerCase(), Number(number)]);
    assertEquals(numbers, [
      ["blocks", flagsOf({ ...plain, blocks: true })],
      ["truncated", flagsOf({ ...plain, truncated: true })],
      ["replayed", flagsOf({ ...plain, replayed: true })],
      ["repaired", flagsOf({ ...plain, repaired: [{ path: "", message: "" }] })],
    ]);
    assertEquals(flagsOf(plain), 0);
    assertEquals(flagsOf({ ...plain, blocks: true, replayed: true }), 5);
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
