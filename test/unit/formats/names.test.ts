import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { exportTools, listTargets } from "../../../src/formats/mod.ts";
import * as selection from "../../../src/select/mod.ts";
import { mapNames, OPENAI_NAME_RULE } from "../../../src/select/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";
import { cases } from "../../support/laws.ts";

fc.configureGlobal(cases(100));

const GEMINI = listTargets().find(({ id }) => id === "gemini")?.names ?? OPENAI_NAME_RULE;

describe("legalName()", () => {
  for (
    const [id, rule, name] of [
      ["read", OPENAI_NAME_RULE, "read"],
      ["chain:status", OPENAI_NAME_RULE, "chain__status"],
      ["a.b:c.d", OPENAI_NAME_RULE, "a_b__c_d"],
      ["chain:status", GEMINI, "chain.status"],
      ["1password", GEMINI, "_1password"],
      ["constructor", OPENAI_NAME_RULE, "constructor"],
      ["x".repeat(64), OPENAI_NAME_RULE, "x".repeat(64)],
    ] as const
  ) {
    it(`writes "${id.slice(0, 20)}" as "${name.slice(0, 20)}"`, () => {
      assertEquals(selection.legalName(id, rule), name);
    });
  }

  it("truncates a long id, and appends a hash of the whole id", () => {
    const one = selection.legalName("x".repeat(65), OPENAI_NAME_RULE);
    const two = selection.legalName("x".repeat(66), OPENAI_NAME_RULE);
    assertEquals(one.length, 64);
    assert(one !== two);
    assert(/^x{55}_[0-9a-f]{8}$/.test(one), one);
  });
});

describe("mapNames()", () => {
  it("uses a legal id as the name, and adds a hash to equal names of other ids", () => {
    const names = mapNames(["a.b", "a_b", "a/b"], OPENAI_NAME_RULE);
    assertEquals(names.get("a_b"), "a_b");
    assert(/^a_b_[0-9a-f]{8}$/.test(names.get("a.b") ?? ""));
    assert(/^a_b_[0-9a-f]{8}$/.test(names.get("a/b") ?? ""));
  });

  it("does not assign a name that a hash happens to produce", () => {
    const hashed = mapNames(["a.b", "a_b"], OPENAI_NAME_RULE).get("a.b") ?? "";
    const names = mapNames(["a.b", "a_b", hashed], OPENAI_NAME_RULE);
    assertEquals(names.get(hashed), hashed);
    assertEquals(new Set(names.values()).size, 3);
  });

  const part = fc.stringMatching(/^[A-Za-z0-9_.-]{1,6}$/);
  const anId = fc.oneof(
    part,
    fc.tuple(part, part).map((both) => both.join(":")),
    fc.constantFrom("a:b", "a__b", "a.b", "a_b", "a-b", "__proto__", "x".repeat(90)),
  );
  const someIds = fc.uniqueArray(anId, { maxLength: 12 });

  it("is injective and legal, and independent of the order", () => {
    fc.assert(
      fc.property(someIds, fc.constantFrom(OPENAI_NAME_RULE, GEMINI), (ids, rule) => {
        const names = mapNames(ids, rule);
        assertEquals([...names.keys()], ids);
        assertEquals(new Set(names.values()).size, ids.length);
        for (const name of names.values()) assert(selection.isLegalName(name, rule), name);
        const reversed = mapNames([...ids].reverse(), rule);
        for (const id of ids) assertEquals(reversed.get(id), names.get(id));
      }),
    );
  });

  it("maps back from every target", () => {
    const legalIds = someIds.map((ids) =>
      ids.filter((id) => id.split(":").every((one) => one.length <= 128))
    );
    fc.assert(
      fc.property(
        legalIds,
        fc.constantFrom(...listTargets().map(({ id }) => id)),
        (ids, target) => {
          const tools = ids.map((id) => {
            const [name, namespace] = id.split(":").reverse();
            return makeTool({ name: name ?? "", namespace, description: "A tool." });
          });
          const { names } = exportTools(tools, target);
          for (const { id, name, namespace } of names.encodings) {
            assertEquals(names.idOf(name, namespace), id);
            assertEquals(names.nameOf(id), name);
          }
        },
      ),
      cases(300),
    );
  });
});
