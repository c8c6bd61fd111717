import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { Dispatcher, Registry } from "@plue/tools/core";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { days, mayGenerateCode, watchGeneratedCode } from "../../support/generated_code.ts";

// The module's own scope: workerd generates code here, and not inside a test.
const registry = new Registry({ engine: typeboxEngine(), tools: [days("early")] });
const generated = watchGeneratedCode(() => registry.compile());
const mayAtLoad = mayGenerateCode();

describe("the schemas of typeboxEngine() after registry.compile()", () => {
  it("are checked by compiled code in calls, where it could be generated at load", async () => {
    assertEquals(generated.made > 0, mayAtLoad);
    const { made, ran } = generated;
    const dispatcher = new Dispatcher(registry);
    const right = await dispatcher.dispatch({ name: "early", arguments: { n: 3 } });
    assertEquals(right.ok && right.content, 3);
    const wrong = await dispatcher.dispatch({ name: "early", arguments: { n: 0 } });
    assertEquals(wrong.ok ? "ok" : wrong.error.code, "invalid_arguments");
    assertEquals([generated.ran > ran, generated.made], [mayAtLoad, made]);
  });

  it("are the same in a tool that is registered later, compiled or interpreted", async () => {
    const late = new Registry({ engine: typeboxEngine(), tools: [days("late")] });
    const dispatcher = new Dispatcher(late);
    const right = await dispatcher.dispatch({ name: "late", arguments: { n: 3 } });
    assertEquals(right.ok && right.content, 3);
    const wrong = await dispatcher.dispatch({ name: "late", arguments: { n: 0 } });
    assertEquals(wrong.ok ? "ok" : wrong.error.code, "invalid_arguments");
  });
});
