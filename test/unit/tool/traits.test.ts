import { assertEquals, assertNotEquals } from "@std/assert";
import { describe, it } from "bun:test";
import * as kernel from "../../../src/tool/mod.ts";
import { deriveAnnotations, RISK_LEVELS } from "../../../src/tool/mod.ts";

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
const LONG = "n".repeat(128);

const predicates: readonly (readonly [
  what: string,
  predicate: (value: unknown) => boolean,
  accepted: readonly unknown[],
  rejected: readonly unknown[],
])[] = [
  ["isToolName()", kernel.isToolName, [...NAMES, LONG], [...NOT_NAMES, ...NOT_STRINGS]],
  ["isToolId()", kernel.isToolId, [...NAMES, "chain:status", "a:b", `${LONG}:${LONG}`], [
    ...["", ":", ":a", "a:", "a:b:c", "a: b", "a:b\n", `a:${LONG}n`],
    ...NOT_STRINGS,
  ]],
  ["isRiskLevel()", kernel.isRiskLevel, RISK_LEVELS, [
    ...["", "SAFE", "none", "constructor", "__proto__", 0, null, undefined, []],
  ]],
];
for (const [what, predicate, accepted, rejected] of predicates) {
  describe(what, () => {
    it("accepts the valid values, and no others", () => {
      assertEquals(accepted.filter((value) => !predicate(value)), []);
      assertEquals(rejected.filter(predicate), []);
    });
  });
}

describe("toolId()", () => {
  it("joins a namespace and a name, which parseToolId() splits", () => {
    assertEquals([kernel.toolId("file-read"), kernel.toolId("status", "chain")], [
      "file-read",
      "chain:status",
    ]);
    assertEquals(kernel.parseToolId("file-read"), { name: "file-read" });
    assertEquals(kernel.parseToolId("chain:status"), { namespace: "chain", name: "status" });
  });
});

describe("riskRank()", () => {
  it("orders the levels from safe to critical", () => {
    assertEquals(RISK_LEVELS.map(kernel.riskRank), [0, 1, 2, 3, 4]);
  });
});

type Said = Parameters<typeof deriveAnnotations>[0];

const UNSAID: Said = { risk: "medium", category: undefined, tags: [], idempotent: false };

function derive(stated: Partial<Said>): ReturnType<typeof deriveAnnotations> {
  return deriveAnnotations({ ...UNSAID, ...stated });
}

describe("deriveAnnotations()", () => {
  for (const risk of ["safe", "low", "medium"] as const) {
    it(`derives no read-only hint from the risk "${risk}"`, () => {
      assertEquals(derive({ risk }), { readOnlyHint: false, idempotentHint: false });
    });
  }

  it("derives that high and critical tools are destructive", () => {
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

  // The author's statement that the tool changes nothing is not enough either.
  for (
    const tags of [[], ["read"], ["write"], ["read-only", "write"], ["read-only", "destructive"]]
  ) {
    it(`does not treat a tool tagged [${tags}] as read-only or idempotent, however safe`, () => {
      for (const risk of RISK_LEVELS) {
        const { readOnlyHint, idempotentHint } = derive({ risk, tags });
        assertEquals({ readOnlyHint, idempotentHint }, {
          readOnlyHint: false,
          idempotentHint: false,
        });
      }
    });
  }

  // Clients run a non-destructive tool without confirmation, so a low risk is not enough.
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

  it("derives the hint from the field idempotent", () => {
    assertEquals(derive({ risk: "critical", idempotent: true }).idempotentHint, true);
  });

  it("derives that a network tool is open to the world, by category or by tag", () => {
    assertEquals(derive({ category: "network" }).openWorldHint, true);
    assertEquals(derive({ category: "git", tags: ["network"] }).openWorldHint, true);
  });

  // A tool of the category "search" may search the web.
  it("derives for no category that a tool is closed to the world", () => {
    for (const category of [...kernel.KNOWN_CATEGORIES, "a category of my own", undefined]) {
      const { openWorldHint } = derive({ category, risk: "safe", tags: ["read-only"] });
      assertEquals(openWorldHint, category === "network" ? true : undefined);
    }
  });

  it("prefers the author's hints, and derives the others from them", () => {
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
