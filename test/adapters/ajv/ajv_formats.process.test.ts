import { assertEquals } from "@std/assert";
import addFormats from "ajv-formats";
import { describe, it } from "bun:test";
import { ajvEngine } from "../../../src/adapters/ajv/mod.ts";

describe("ajvEngine()", () => {
  it("accepts the formats of ajv-formats, including formats outside of the drafts", () => {
    const engine = ajvEngine({ plugins: [(ajv) => addFormats.default(ajv)] });
    const { check, issues } = engine.compile({
      properties: { port: { format: "int32" }, day: { format: "date" } },
    }, "2020-12");
    assertEquals(check({ port: 80, day: "2026-11-20" }), true);
    assertEquals(check({ port: 2 ** 40 }), false);
    assertEquals(issues({ day: "today" }).map(({ message }) => message), [
      '/day must match the format "date"',
    ]);
    assertEquals(issues({ port: 2 ** 40 }).length, 1);
  });
});
