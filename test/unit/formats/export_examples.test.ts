import { assertEquals, assertNotStrictEquals, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { exportTools, importTools } from "../../../src/formats/mod.ts";
import { withSchemaCheck } from "../../../src/schema/mod.ts";
import { makeTool, type ToolExample } from "../../../src/tool/mod.ts";

const engine = typeboxEngine({ codeGeneration: false });

function weather(examples: readonly ToolExample[]) {
  return makeTool({
    name: "weather",
    description: "Tells the weather.",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", pattern: "^[A-Z]" },
        days: { type: "integer", minimum: 1 },
        since: { type: "string", format: "date" },
      },
      required: ["city"],
      additionalProperties: false,
    },
    examples,
  });
}

const GOOD = { input: { city: "Rome", days: 2 } };

describe("examples in an export", () => {
  it("of an import that cannot be right spoil no other tool", () => {
    const { tools } = importTools("anthropic", [{
      name: "a",
      input_schema: { type: "object", properties: { n: { type: "integer" } } },
      input_examples: [null, 5, { n: "x" }, { n: 1 }],
    }]);
    assertEquals(exportTools(tools, "anthropic").tools[0]?.input_examples, [{ n: 1 }]);
  });

  it("are checked whole with an engine, and the export is remembered by it", () => {
    const list = Object.freeze([
      weather([GOOD, { input: { city: "rome" } }, { input: { city: "Rome", since: "today" } }]),
    ]);
    assertEquals(exportTools(list, "anthropic").tools[0]?.input_examples?.length, 2);
    const checked = exportTools(list, "anthropic", { engine });
    assertEquals(checked.tools[0]?.input_examples, [GOOD.input]);
    assertStrictEquals(exportTools(list, "anthropic", { engine }).names, checked.names);
    const other = typeboxEngine({ codeGeneration: false });
    assertNotStrictEquals(
      exportTools(list, "anthropic", { engine: other }).names,
      checked.names,
    );
  });

  it("are checked without the engine where it cannot compile the schema", () => {
    const broken = withSchemaCheck({
      name: "broken",
      compile: () => {
        throw new SyntaxError("no");
      },
    });
    const { tools } = exportTools([weather([GOOD, { input: {} }])], "anthropic", {
      engine: broken,
    });
    assertEquals(tools[0]?.input_examples, [GOOD.input]);
  });
});
