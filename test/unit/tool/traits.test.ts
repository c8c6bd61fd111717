import { assertEquals, assertNotEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  compareRisk,
  deriveAnnotations,
  isRiskLevel,
  KNOWN_CATEGORIES,
  RISK_LEVELS,
  riskRank,
} from "../../../src/tool/mod.ts";

describe("isRiskLevel()", () => {
  for (const level of RISK_LEVELS) {
    it(`accepts "${level}"`, () => {
      assertEquals(isRiskLevel(level), true);
    });
  }

  for (const other of ["", "SAFE", "none", "constructor", "__proto__", 0, null, undefined, []]) {
    it(`rejects ${JSON.stringify(other) ?? "undefined"}`, () => {
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
  it("sorts from harmless to critical", () => {
    const levels = (["critical", "low", "safe", "high", "medium"] as const).toSorted(compareRisk);
    assertEquals(levels, ["safe", "low", "medium", "high", "critical"]);
  });

  it("is 0 for the same level", () => {
    assertEquals(compareRisk("high", "high"), 0);
  });
});

type Said = Parameters<typeof deriveAnnotations>[0];

const UNSAID: Said = { risk: "medium", category: undefined, tags: [], idempotent: false };

function derive(said: Partial<Said>): ReturnType<typeof deriveAnnotations> {
  return deriveAnnotations({ ...UNSAID, ...said });
}

describe("deriveAnnotations()", () => {
  for (const risk of ["safe", "low", "medium"] as const) {
    it(`leaves clients to assume the worst of a tool that only says "${risk}"`, () => {
      assertEquals(derive({ risk }), { readOnlyHint: false, idempotentHint: false });
    });
  }

  it("takes high and critical tools for destructive", () => {
    const destructive = RISK_LEVELS.filter((risk) => derive({ risk }).destructiveHint);
    assertEquals(destructive, ["high", "critical"]);
  });

  it('takes a tool tagged "read-only" for read-only, and so for idempotent, at any risk', () => {
    for (const risk of RISK_LEVELS) {
      assertEquals(derive({ risk, tags: ["read-only"] }), {
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
      });
    }
  });

  // Neither is the author's word that the tool changes nothing.
  for (
    const tags of [[], ["read"], ["write"], ["read-only", "write"], ["read-only", "destructive"]]
  ) {
    it(`does not take a tool tagged [${tags}] for read-only or idempotent, however safe`, () => {
      for (const risk of RISK_LEVELS) {
        const { readOnlyHint, idempotentHint } = derive({ risk, tags });
        assertEquals({ readOnlyHint, idempotentHint }, {
          readOnlyHint: false,
          idempotentHint: false,
        });
      }
    });
  }

  // Clients skip a question because of it, so a risk is not enough.
  it("marks a tool as non-destructive only if it is read-only", () => {
    for (const risk of RISK_LEVELS) {
      for (const tags of [[], ["write"], ["read"], ["read-only", "write"]]) {
        assertNotEquals(derive({ risk, tags }).destructiveHint, false);
      }
    }
  });

  it('takes a tool tagged "destructive" for destructive at any risk', () => {
    assertEquals(derive({ risk: "safe", tags: ["destructive"] }).destructiveHint, true);
  });

  it("takes a tool's own word that it is idempotent", () => {
    assertEquals(derive({ risk: "critical", idempotent: true }).idempotentHint, true);
  });

  it("takes a network tool for open to the world, by category or by tag", () => {
    assertEquals(derive({ category: "network" }).openWorldHint, true);
    assertEquals(derive({ category: "git", tags: ["network"] }).openWorldHint, true);
  });

  // A tool of the category "search" may search the web.
  it("takes no tool for closed to the world, whatever its category", () => {
    for (const category of [...KNOWN_CATEGORIES, "a category of my own", undefined]) {
      const { openWorldHint } = derive({ category, risk: "safe", tags: ["read-only"] });
      assertEquals(openWorldHint, category === "network" ? true : undefined);
    }
  });

  it("lets the author's hints go before, and derives the others from them", () => {
    assertEquals(deriveAnnotations(UNSAID, { readOnlyHint: true, openWorldHint: false }), {
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    });
    const reads = { ...UNSAID, tags: ["read-only"] };
    assertEquals(deriveAnnotations(reads, { readOnlyHint: false }), {
      readOnlyHint: false,
      idempotentHint: false,
    });
  });
});
