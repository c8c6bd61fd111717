import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import type { Selection } from "../../../src/select/mod.ts";
import { NativeConfigError, readNativeConfig } from "../../../src/adapters/native/config.ts";

describe("readNativeConfig()", () => {
  for (const text of [undefined, "", "  \n", "{}"]) {
    it(`takes ${JSON.stringify(text)} for nothing in particular`, () => {
      assertEquals(readNativeConfig(text), { selection: {}, config: undefined });
    });
  }

  it("tells the selection from the tools' configuration", () => {
    const selection: Selection = {
      role: null,
      scopes: ["read"],
      context: { hasTerminal: false },
      maxRisk: "low",
      namespace: "chain",
      allowIds: ["a"],
      denyIds: ["b"],
      categories: ["git"],
      excludeCategories: ["network"],
      tagsAny: ["x"],
      tagsAll: ["y"],
    };
    const config = { a: { root: "/" } };
    assertEquals(readNativeConfig(JSON.stringify({ ...selection, config })), { selection, config });
  });

  for (
    const [text, why] of [
      ["{", "it is not JSON"],
      ["[]", "it must be a JSON object"],
      ["null", "it must be a JSON object"],
      ['{"maxRsk":"low"}', '"maxRsk" is not one of its fields, context, role,'],
      ['{"filters":[]}', '"filters" is not one of its fields'],
      ['{"__proto__":{}}', '"__proto__" is not one of its fields'],
      ['{"config":[]}', '"config" must be an object of configurations by tool id'],
      ['{"config":null}', '"config" must be an object of configurations by tool id'],
    ] as const
  ) {
    it(`refuses ${text}`, () => {
      assertThrows(
        () => readNativeConfig(text),
        NativeConfigError,
        `Cannot read config_json: ${why}`,
      );
    });
  }

  it("does not repeat a long field", () => {
    const error = assertThrows(
      () => readNativeConfig(JSON.stringify({ ["x".repeat(10_000)]: 1 })),
      NativeConfigError,
      "",
    );
    assertEquals(error.message.length < 400, true);
  });
});
