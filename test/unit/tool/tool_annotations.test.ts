import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { deriveAnnotations, RISK_LEVELS } from "../../../src/tool/mod.ts";

type Said = Parameters<typeof deriveAnnotations>[0];

function derive(said: Partial<Said>): ReturnType<typeof deriveAnnotations> {
  return deriveAnnotations({
    risk: "medium",
    category: undefined,
    tags: [],
    idempotent: false,
    ...said,
  });
}

describe("deriveAnnotations()", () => {
  it("takes safe and low tools for read-only", () => {
    const readOnly = RISK_LEVELS.filter((risk) => derive({ risk }).readOnlyHint);
    assertEquals(readOnly, ["safe", "low"]);
  });

  it("takes high and critical tools for destructive", () => {
    const destructive = RISK_LEVELS.filter((risk) => derive({ risk }).destructiveHint);
    assertEquals(destructive, ["high", "critical"]);
  });

  for (const tag of ["read", "read-only"]) {
    it(`takes a tool tagged "${tag}" for read-only, and so not for destructive`, () => {
      const { readOnlyHint, destructiveHint } = derive({ risk: "critical", tags: [tag] });
      assertEquals({ readOnlyHint, destructiveHint }, {
        readOnlyHint: true,
        destructiveHint: false,
      });
    });
  }

  for (const tag of ["write", "destructive"]) {
    it(`does not take a tool tagged "${tag}" for read-only, however safe`, () => {
      assertEquals(derive({ risk: "safe", tags: ["read", tag] }).readOnlyHint, false);
    });
  }

  it('takes a tool tagged "destructive" for destructive at any risk', () => {
    assertEquals(derive({ risk: "low", tags: ["destructive"] }).destructiveHint, true);
  });

  it("takes what only reads for idempotent", () => {
    assertEquals(derive({ risk: "low" }).idempotentHint, true);
    assertEquals(derive({ risk: "medium" }).idempotentHint, false);
  });

  it("takes a tool's own word that it is idempotent", () => {
    assertEquals(derive({ risk: "critical", idempotent: true }).idempotentHint, true);
  });

  it("takes a network tool for open to the world, by category or by tag", () => {
    assertEquals(derive({ category: "network" }).openWorldHint, true);
    assertEquals(derive({ tags: ["network"] }).openWorldHint, true);
    assertEquals(derive({ category: "filesystem" }).openWorldHint, false);
  });
});
