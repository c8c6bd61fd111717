import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import { type SchemaEngine, withSchemaCheck } from "../../../src/schema/mod.ts";
import { fakeRegistry, fakeTool, requiredOnlyEngine } from "./fakes.ts";

const object = () => ({ type: "object", properties: {} });

/** An engine that cannot compile schemas with this title. */
function brittleEngine(title: string): SchemaEngine {
  const engine = requiredOnlyEngine();
  return withSchemaCheck({
    name: "brittle",
    compile(schema, dialect) {
      if ((schema as { readonly title?: string }).title === title) {
        throw new SyntaxError("Cannot compile the schema: code generation is forbidden");
      }
      return engine.compile(schema, dialect);
    },
  });
}

describe("ToolRegistry.compile()", () => {
  it("compiles parameters and results of all tools, so that calls compile nothing", async () => {
    const engine = requiredOnlyEngine();
    const registry = fakeRegistry({
      engine,
      tools: [
        fakeTool("a", { parameters: object(), returns: object(), execute: () => ({}) }),
        fakeTool("b", { parameters: object() }),
      ],
    });
    assertEquals(engine.compiled, 0);
    registry.compile();
    assertEquals(engine.compiled, 3);
    const result = await new ToolDispatcher(registry).dispatch({ name: "a", arguments: {} });
    assertEquals([result.ok, engine.compiled], [true, 3]);
    registry.compile();
    assertEquals(engine.compiled, 3);
  });

  it("compiles nothing that a schema's own library checks", () => {
    const engine = requiredOnlyEngine();
    const parameters = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) => ({ value }),
        jsonSchema: { input: object, output: object },
      },
    } as const;
    fakeRegistry({ engine, tools: [fakeTool("a", { parameters })] }).compile();
    assertEquals(engine.compiled, 0);
  });

  it("throws all that cannot be compiled, by tool and field, and compiles the rest", async () => {
    const bad = { ...object(), title: "bad" };
    const registry = fakeRegistry({
      engine: brittleEngine("bad"),
      tools: [
        fakeTool("a", { parameters: bad }),
        fakeTool("b", { returns: bad }),
        fakeTool("c", { parameters: object(), execute: () => "fine" }),
      ],
    });
    const error = assertThrows(() => registry.compile(), AggregateError, "and 1 more");
    assertEquals(error.errors.map(({ message }) => message), [
      'Cannot compile tool "a": its parameters: Cannot compile the schema: code generation is forbidden',
      'Cannot compile tool "b": its returns: Cannot compile the schema: code generation is forbidden',
    ]);
    const result = await new ToolDispatcher(registry).dispatch({ name: "c", arguments: {} });
    assertEquals(result.ok, true);
  });
});

describe("a call whose schemas cannot be compiled", () => {
  it("is unavailable before anything has run, and logs the reason", async () => {
    const reports: unknown[] = [];
    const ran: string[] = [];
    const registry = fakeRegistry({
      engine: brittleEngine("bad"),
      tools: [
        fakeTool("a", {
          returns: { ...object(), title: "bad" },
          init: () => void ran.push("init"),
          execute: () => void ran.push("execute"),
        }),
      ],
    });
    const dispatcher = new ToolDispatcher(registry, {
      onError: ({ phase, error }) =>
        void reports.push(phase, ((error as Error).cause as Error).message),
    });
    const result = await dispatcher.dispatch({ name: "a", arguments: {} });
    assertEquals(result.ok ? "ok" : [result.error.code, result.error.message], [
      "unavailable",
      'Cannot call "a": Tool "a" is not ready: its schemas cannot be compiled here',
    ]);
    assertEquals(reports[0], "init");
    assertStringIncludes(String(reports[1]), "its returns: Cannot compile the schema: code gen");
    assertEquals(ran, []);
    // The failed call does not hold the tool, so disposal does not wait for it.
    await registry.dispose();
  });
});
