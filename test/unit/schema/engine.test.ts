import { assertEquals, assertNotStrictEquals, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import * as schemas from "../../../src/schema/mod.ts";
import { compileOnce } from "../../../src/schema/mod.ts";

/** An engine that records the compiled schemas. */
function fakeEngine(): schemas.SchemaEngine & { readonly compiled: schemas.Dialect[] } {
  const compiled: schemas.Dialect[] = [];
  const engine = schemas.withSchemaCheck({
    name: "fake",
    compile(_schema, dialect) {
      compiled.push(dialect);
      return { check: () => true, issues: () => [] };
    },
  });
  return { ...engine, compiled };
}

describe("compileOnce()", () => {
  it("compiles a schema on first use, once per engine", () => {
    const [one, other] = [fakeEngine(), fakeEngine()];
    const schema = { type: "string" };
    const validator = compileOnce(one, schema);
    assertStrictEquals(compileOnce(one, schema), validator);
    assertEquals(one.compiled.length, 1);
    assertNotStrictEquals(compileOnce(other, schema), validator);
    assertEquals(other.compiled.length, 1);
  });

  it("uses the identity of the schema object, not its content", () => {
    const engine = fakeEngine();
    compileOnce(engine, { type: "string" });
    compileOnce(engine, { type: "string" });
    assertEquals(engine.compiled.length, 2);
  });

  it("passes the given or detected draft to the engine", () => {
    const engine = fakeEngine();
    compileOnce(engine, { items: [true] });
    compileOnce(engine, {}, "draft-07");
    compileOnce(engine, {});
    assertEquals(engine.compiled, ["draft-07", "draft-07", "2020-12"]);
  });

  it("compiles the schemas true and false once each", () => {
    const engine = fakeEngine();
    assertStrictEquals(compileOnce(engine, true), compileOnce(engine, true));
    assertStrictEquals(compileOnce(engine, false), compileOnce(engine, false));
    assertNotStrictEquals(compileOnce(engine, true), compileOnce(engine, false));
    assertEquals(engine.compiled.length, 2);
  });

  it("tries again after an engine that failed", () => {
    const engine = fakeEngine();
    let failing = true;
    const moody = schemas.withSchemaCheck({
      name: "moody",
      compile(schema, dialect) {
        if (failing) throw new SyntaxError("Cannot compile the schema: not now");
        return engine.compile(schema, dialect);
      },
    });
    const schema = {};
    let message = "";
    try {
      compileOnce(moody, schema);
    } catch (error) {
      message = String(error);
    }
    assertEquals(message, "SyntaxError: Cannot compile the schema: not now");
    failing = false;
    assertEquals(compileOnce(moody, schema).check(1), true);
  });
});
