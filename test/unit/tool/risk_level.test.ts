import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { compareRisk, isRiskLevel, RISK_LEVELS, riskRank } from "../../../src/tool/mod.ts";

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

describe("riskRank()", () => {
  it("counts from 0 for safe to 4 for critical", () => {
    assertEquals(RISK_LEVELS.map(riskRank), [0, 1, 2, 3, 4]);
    assertEquals(riskRank("safe"), 0);
    assertEquals(riskRank("critical"), 4);
  });
});

describe("compareRisk()", () => {
  it("sorts from harmless to grave", () => {
    const levels = (["critical", "low", "safe", "high", "medium"] as const).toSorted(compareRisk);
    assertEquals(levels, ["safe", "low", "medium", "high", "critical"]);
  });

  it("is 0 for the same level", () => {
    assertEquals(compareRisk("high", "high"), 0);
  });
});
