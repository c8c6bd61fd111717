import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, type JsonSchemaObject, type Tool } from "../../../mod.ts";
import { argumentsOf } from "../../../src/finding/signature.ts";
import data from "./signature.json" with { type: "json" };

const rows: readonly (readonly [text: string, lossy: boolean, parameters: JsonSchemaObject])[] =
  data.rows as never;

describe("argumentsOf()", () => {
  it("is bounded if references multiply", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`p${index}`, { $ref: "#" }]),
    );
    const parameters = { type: "object", properties };
    const tool = defineTool({ name: "t", description: "Does it.", parameters }) as Tool;
    const { text, lossy } = argumentsOf(tool);
    assert(lossy && text.length < 20_000, `${text.length}`);
  });

  for (const [text, lossy, parameters] of rows) {
    it(`writes ${text}${lossy ? ", and mentions an omitted rule" : ""}`, () => {
      const tool = defineTool({ name: "t", description: "Does it.", parameters }) as Tool;
      assertEquals(argumentsOf(tool), { text, lossy });
    });
  }
});
