import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { ajvEngine } from "../../../src/adapters/ajv/mod.ts";
import { hardened, type SchemaEngine } from "../../../src/schema/mod.ts";
import { describeSchemaEngine } from "../../contract/schema_engine_contract.ts";

// Compiled while the module loads: inside a request, workerd does not let Ajv generate code.
describeSchemaEngine("ajvEngine()", (formats) => ajvEngine({ formats }));

describe("ajvEngine()", () => {
  const withKeyword = (keyword: string, rest: object): SchemaEngine =>
    ajvEngine({ plugins: [(ajv) => ajv.addKeyword({ keyword, ...rest })] });
  const even = withKeyword("even", { validate: (on: boolean, n: number) => !on || n % 2 === 0 })
    .compile({ type: "integer", even: true }, "2020-12");

  it("supports the keywords that a plugin adds, and names the failed one", () => {
    assertEquals([even.check(4), even.check(3)], [true, false]);
    assertEquals(even.issues(3), [{
      path: "",
      keyword: "even",
      expected: 'pass "even" keyword validation',
      message: 'The value must pass "even" keyword validation',
    }]);
    assertEquals(even.issues("x")[0]?.message, "The value must be an integer, not a string");
  });

  const validate = (): never => {
    throw new Error("broken");
  };
  const broken = withKeyword("broken", { validate }).compile({ broken: true }, "2020-12");

  it("rejects the value if a custom keyword throws", () => {
    assertEquals(broken.check(1), false);
    assertEquals(broken.issues(1).length, 1);
  });

  const repeating = hardened(withKeyword("even", { validate: () => true })).compile({
    anyOf: [{ type: "integer" }, { items: { $ref: "#" } }, { items: { $ref: "#" }, minItems: 9 }],
  });

  it("rejects a deep value if a plugin's keyword prevents caching of verdicts", () => {
    const nested = (depth: number): unknown => depth === 0 ? "no" : [nested(depth - 1)];
    assertEquals(repeating.check([[1]]), true);
    assertEquals(repeating.check(nested(60)), false);
  });

  const pluggedIn = ajvEngine({
    plugins: [
      (ajv) => ajv.addFormat("shout", /^[A-Z]+$/),
      (ajv) => ajv.addFormat("date", "^today$"),
    ],
  }).compile({ properties: { a: { format: "shout" }, b: { format: "date" } } }, "draft-07");

  it("asserts the formats of a plugin, which may replace existing formats", () => {
    assertEquals(pluggedIn.check({ a: "HEY", b: "today" }), true);
    assertEquals(pluggedIn.issues({ a: "hey", b: "2026-11-20" }).map(({ message }) => message), [
      '/a must match the format "shout"',
      '/b must match the format "date"',
    ]);
  });

  const many = ajvEngine();
  const validators = Array.from(
    { length: 1_100 },
    (_, at) => many.compile({ const: at }, "2020-12"),
  );

  it("keeps its validators when it replaces the Ajv instance that made them", () => {
    assertEquals(validators.every(({ check }, at) => check(at) && !check(at + 1)), true);
  });

  it("rejects a schema that Ajv cannot compile with a SyntaxError and a reason", () => {
    const engine = withKeyword("odd", { metaSchema: { type: "boolean" } });
    assertThrows(
      () => engine.compile({ odd: 1 }, "2020-12"),
      SyntaxError,
      "Cannot compile the schema: ",
    );
  });
});
