/** Tools with each of the five kinds of schemas, from definition to validated arguments. */

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { type } from "arktype";
import { describe, it } from "bun:test";
import Type from "typebox";
import * as v from "valibot";
import { z } from "zod";
import * as mini from "zod/mini";
import { defineTool, typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { checkSchema, compileOnce, validateStandard } from "../../../src/schema/mod.ts";
import type { Issue, Tool } from "../../../src/tool/mod.ts";

const engine = typeboxEngine();
const base = { name: "forecast", description: "Forecasts the weather." };

/** Returns the arguments of `execute`, or the issues. */
async function validate(tool: Tool, value: unknown): Promise<unknown> {
  checkSchema(tool.parameters);
  if (tool.parametersStandard !== undefined) {
    const outcome = await validateStandard(tool.parametersStandard, value);
    return outcome.issues === undefined ? outcome.value : pathsOf(outcome.issues);
  }
  const { check, issues } = compileOnce(engine, tool.parameters);
  return check(value) ? value : pathsOf(issues(value));
}

function pathsOf(issues: readonly Issue[]): readonly string[] {
  return issues.map((issue) => issue.path);
}

const JSON_SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
  required: ["city"],
} as const;

const TOOLS: readonly (readonly [string, Tool])[] = [
  ["JSON Schema", defineTool({ ...base, parameters: JSON_SCHEMA, execute: ({ city }) => city })],
  [
    "TypeBox",
    defineTool({
      ...base,
      parameters: Type.Object({
        city: Type.String(),
        days: Type.Optional(Type.Integer({ minimum: 1 })),
      }),
      execute: ({ city }) => city,
    }),
  ],
  [
    "Zod",
    defineTool({
      ...base,
      parameters: z.object({ city: z.string(), days: z.int().min(1).optional() }),
      execute: ({ city }) => city,
    }),
  ],
  [
    "Valibot",
    defineTool({
      ...base,
      parameters: toStandardJsonSchema(
        v.object({
          city: v.string(),
          days: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
        }),
      ),
      execute: ({ city }) => city,
    }),
  ],
  [
    "ArkType",
    defineTool({
      ...base,
      parameters: type({ city: "string", "days?": "number.integer >= 1" }),
      execute: ({ city }) => city,
    }),
  ],
];

describe("defineTool()", () => {
  for (const [name, tool] of TOOLS) {
    it(`accepts parameters from ${name}, and shows models their JSON Schema`, () => {
      checkSchema(tool.parameters);
      const { type, properties, required } = tool.parameters;
      assertEquals([type, required], ["object", ["city"]]);
      assertEquals(Object.keys(properties as object).sort(), ["city", "days"]);
    });

    it(`validates arguments by ${name}`, async () => {
      assertEquals(await validate(tool, { city: "Rome" }), { city: "Rome" });
      assertEquals(await validate(tool, { city: "Rome", days: 0 }), ["/days"]);
      assertEquals(await validate(tool, { city: 3 }), ["/city"]);
    });

    it(`shows models a JSON Schema from ${name} that agrees with the library`, () => {
      const { check } = compileOnce(engine, tool.parameters);
      assertEquals(check({ city: "Rome", days: 3 }), true);
      for (const wrong of [{}, { city: 3 }, { city: "Rome", days: 0 }, { city: "a", days: 1.5 }]) {
        assertEquals(check(wrong), false);
      }
    });
  }

  it("applies Zod's defaults, transforms and refinements", async () => {
    const tool = defineTool({
      ...base,
      parameters: z.object({
        city: z.string().trim(),
        days: z.number().default(3),
        from: z.string().default("1").transform(Number),
        to: z.coerce.number().optional(),
      }).refine(({ days, from }) => from < days, {
        message: "from must be before days",
        path: ["from"],
      }),
      execute: (params) => params.from + params.days,
    });
    assertEquals(await validate(tool, { city: " Rome ", to: "4" }), {
      city: "Rome",
      days: 3,
      from: 1,
      to: 4,
    });
    assertEquals(await validate(tool, { city: "Rome", from: "9" }), ["/from"]);
  });

  it("waits for a library that checks asynchronously", async () => {
    const tool = defineTool({
      ...base,
      parameters: z.object({
        city: z.string().refine((city) => Promise.resolve(city !== "Atlantis")),
      }),
    });
    assertEquals(await validate(tool, { city: "Rome" }), { city: "Rome" });
    assertEquals(await validate(tool, { city: "Atlantis" }), ["/city"]);
  });

  it("accepts a library's schema for results, with its input type", () => {
    const tool = defineTool({
      ...base,
      returns: z.object({ degrees: z.number() }),
      execute: () => ({ degrees: 3 }),
    });
    assert(tool.returnsStandard !== undefined);
    assertEquals(compileOnce(engine, tool.returns ?? false).check({ degrees: 3 }), true);
    assertEquals(compileOnce(engine, tool.returns ?? false).check({ degrees: "3" }), false);
  });

  it("uses the JSON Schema of zod/mini, and validates with zod", async () => {
    const schema = mini.object({ city: mini._default(mini.string(), "Rome") });
    const tool = defineTool({
      ...base,
      parameters: mini.toJSONSchema(schema),
      execute: ({ city }) => city,
    });
    assertEquals(tool.parameters["required"], undefined);
    assertEquals(await validate(tool, {}), { city: "Rome" });
  });

  it("rejects an object of schemas, and names the function that converts it", () => {
    for (const city of [z.string(), mini.string(), v.string(), type("string")]) {
      assertThrows(
        () => defineTool({ ...base, parameters: { city } }),
        TypeError,
        "its parameters must be one schema, z.object({ … })",
      );
    }
  });

  it("rejects a schema without JSON Schema, and names a library that provides it", () => {
    assertThrows(
      () => defineTool({ ...base, parameters: v.object({ city: v.string() }) }),
      TypeError,
      "toStandardJsonSchema (Valibot)",
    );
    assertThrows(
      () => defineTool({ ...base, parameters: mini.object({ city: mini.string() }) }),
      TypeError,
      "toJSONSchema (zod/mini)",
    );
    assertThrows(
      () => defineTool({ ...base, parameters: z.object({ at: z.date() }) }),
      TypeError,
      "zod cannot make a JSON Schema of its parameters",
    );
  });
});
