import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { Dispatcher, Registry } from "@plue/tools/core";
import { ajvEngine } from "../../../src/adapters/ajv/mod.ts";
import { days, mayGenerateCode } from "../../support/generated_code.ts";

// The module's own scope: workerd generates code here, and not inside a test.
const registry = new Registry({ engine: ajvEngine(), tools: [days("early")] });
registry.compile();

describe("the schemas of ajvEngine() after registry.compile()", () => {
  it("serve calls that may not generate code", async () => {
    const dispatcher = new Dispatcher(registry);
    const right = await dispatcher.dispatch({ name: "early", arguments: { n: 3 } });
    assertEquals(right.ok && right.content, 3);
    const wrong = await dispatcher.dispatch({ name: "early", arguments: { n: 0 } });
    assertEquals(wrong.ok ? "ok" : wrong.error.code, "invalid_arguments");
  });

  it("must be compiled at load where a call may not generate code", async () => {
    const reports: unknown[] = [];
    const late = new Registry({ engine: ajvEngine(), tools: [days("late")] });
    const dispatcher = new Dispatcher(late, { onError: ({ error }) => reports.push(error) });
    const result = await dispatcher.dispatch({ name: "late", arguments: { n: 3 } });
    const may = mayGenerateCode();
    assertEquals(result.ok ? "ok" : result.error.code, may ? "ok" : "unavailable");
    const causes = reports.map((error) => String((error as Error).cause));
    assertEquals(
      causes.map((cause) => cause.includes("call the registry's compile()")),
      may ? [] : [true],
    );
  });
});
