import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { FAILURE_CODES, isFailureCode } from "../../../src/tool/mod.ts";

describe("FAILURE_CODES", () => {
  it("is the closed set of codes", () => {
    assertEquals(Object.keys(FAILURE_CODES), [
      "unknown_tool",
      "unavailable",
      "denied",
      "not_executable",
      "invalid_arguments",
      "invalid_result",
      "approval_required",
      "aborted",
      "timeout",
      "transaction_failed",
      "output_too_large",
      "overloaded",
      "threw",
    ]);
  });

  it("says which failures may pass by themselves", () => {
    const retryable = Object.entries(FAILURE_CODES)
      .filter(([, { retryable }]) => retryable)
      .map(([code]) => code);
    assertEquals(retryable, ["unavailable", "aborted", "timeout", "overloaded"]);
  });
});

describe("isFailureCode()", () => {
  it("says yes to every code", () => {
    assertEquals(Object.keys(FAILURE_CODES).every(isFailureCode), true);
  });

  for (const other of ["", "THREW", "constructor", "__proto__", "toString", 1, null, undefined]) {
    it(`says no to ${JSON.stringify(other) ?? "undefined"}`, () => {
      assertEquals(isFailureCode(other), false);
    });
  }
});
