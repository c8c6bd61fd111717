import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { exportTools, importTools } from "../../../src/formats/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";

describe("examples in an export", () => {
  it("of an import that cannot be right spoil no other tool", () => {
    const { tools } = importTools("anthropic", [{
      name: "a",
      input_schema: { type: "object", properties: { n: { type: "integer" } } },
      input_examples: [null, 5, { n: "x" }, { n: 1 }],
    }]);
    assertEquals(exportTools(tools, "anthropic").tools[0]?.input_examples, [{ n: 1 }]);
  });

  it("are omitted if they do not fit the exported schema", () => {
    const weather = makeTool({
      name: "weather",
      description: "Tells the weather.",
      parameters: {
        type: "object",
        properties: { city: { type: "string", pattern: "^[A-Z]" }, days: { minimum: 1 } },
        required: ["city"],
      },
      examples: [{ input: { city: "Rome", days: 2 } }, { input: {} }, { input: { city: 1 } }],
    });
    const { tools, losses } = exportTools([weather], "anthropic");
    assertEquals(tools[0]?.input_examples, [{ city: "Rome", days: 2 }]);
    assertEquals(losses.map(({ path }) => path), ["/examples/1", "/examples/2"]);
  });
});
