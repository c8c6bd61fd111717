import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { isRiskLevel, RISK_LEVELS } from "../../../src/tool/mod.ts";

describe("isRiskLevel()", () => {
  for (const level of RISK_LEVELS) {
    it(`says yes to "${level}"`, () => {
      assertEquals(isRiskLevel(level), true);
    });
  }

  for (const other of ["", "SAFE", "none", "constructor", "__proto__", 0, null, undefined, []]) {
    it(`says no to ${JSON.stringify(other) ?? "undefined"}`, () => {
      assertEquals(isRiskLevel(other), false);
    });
  }
});
