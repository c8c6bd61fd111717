import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import * as formats from "../../../src/formats/mod.ts";
import { exportTools } from "../../../src/formats/mod.ts";
import { normalizeOpenApi30 } from "../../../src/formats/transform/older_dialects.ts";
import { closeObjects } from "../../../src/formats/transform/properties.ts";
import * as kernel from "../../../src/tool/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import { aToolSchema, aValue, aValueFor } from "../../support/arbitrary_schema.ts";
import { cases } from "../../support/laws.ts";
import { runPass } from "./run_pass.ts";

fc.configureGlobal(cases(100));

const engine = typeboxEngine({ codeGeneration: false });
const runs = cases(120);

const toolOf = (parameters: kernel.JsonSchemaObject): kernel.Tool =>
  kernel.makeTool({ name: "t", description: "A tool.", parameters });

const aTool = aToolSchema().map(toolOf);

/** Tools with closed objects, because strict modes narrow what open objects accept. */
const aClosedTool = aTool.map(({ parameters }) =>
  toolOf(runPass({ leave: closeObjects })(parameters).schema as kernel.JsonSchemaObject)
);

const accepts = (schema: JsonSchema, value: unknown): boolean =>
  engine.compile(schema, "2020-12").check(value);

/** The schema that a target's export of one tool holds, as JSON Schema. */
function exportedSchema(tools: unknown, target: formats.TargetId): JsonSchema {
  if (target === "openapi@3.1") {
    // References point into the document, so the schema is read inside of it.
    const { schemas } =
      (tools as { components: { schemas: Record<string, JsonSchema> } }).components;
    return { $ref: "#/components/schemas/t.parameters", components: { schemas } };
  }
  const entry = target === "ai-sdk"
    ? (tools as Record<string, unknown>)["t"]
    : (tools as unknown[])[0];
  const found = findSchema(entry);
  return target === "gemini.typed"
    ? normalizeOpenApi30(plainSchema(found) as JsonSchema).schema
    : found;
}

const PLACES = [
  "function",
  "parameters",
  "parametersJsonSchema",
  "functionDeclarations",
  "toolSpec",
  "input_schema",
  "inputSchema",
  "json",
  "jsonSchema",
  "schema",
];

function findSchema(entry: unknown): JsonSchema {
  let at = entry as Record<string, unknown>;
  for (;;) {
    const place = PLACES.find((name) => Object.hasOwn(at, name) && typeof at[name] === "object");
    if (place === undefined || at["type"] === "object") return at;
    const next = at[place];
    at = (Array.isArray(next) ? next[0] : next) as Record<string, unknown>;
  }
}

/** Gemini's typed schema with the spelling of JSON Schema. */
function plainSchema(part: unknown): unknown {
  if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(part)) {
    if (key === "type") result[key] = String(value).toLowerCase();
    else if (/^(min|max)(Items|Length|Properties)$/.test(key)) result[key] = Number(value);
    else if (key === "anyOf") result[key] = (value as unknown[]).map(plainSchema);
    else if (key === "items") result[key] = plainSchema(value);
    else if (key === "properties") {
      result[key] = Object.fromEntries(
        Object.entries(value as object).map(([name, inner]) => [name, plainSchema(inner)]),
      );
    } else result[key] = value;
  }
  return result;
}

const show = (tool: kernel.Tool, wire: JsonSchema, value: unknown): string =>
  JSON.stringify({ original: tool.parameters, wire, value });

for (const { id } of formats.listTargets()) {
  describe(`exportTools() to ${id}, for any schema`, () => {
    it("sends the tool or returns a reason, and changes nothing", () => {
      fc.assert(
        fc.property(aTool, (tool) => {
          const before = JSON.stringify(tool.parameters);
          const { names, rejected } = exportTools([tool], id);
          assertEquals(names.encodings.length + rejected.length, 1);
          assertEquals(JSON.stringify(tool.parameters), before);
        }),
        runs,
      );
    });

    it("returns the same each time", () => {
      fc.assert(
        fc.property(aTool, (tool) => {
          const again = kernel.makeTool({
            name: "t",
            description: "A tool.",
            parameters: tool.parameters,
          });
          const { tools, losses } = exportTools([tool], id);
          const second = exportTools([again], id);
          assertEquals(JSON.stringify(second.tools), JSON.stringify(tools));
          assertEquals(second.losses, losses);
        }),
        runs,
      );
    });

    it("accepts the values that the tool accepts, unless a loss narrows", () => {
      let checked = 0;
      fc.assert(
        fc.property(
          fc.oneof(aTool, aClosedTool).chain((tool) =>
            fc.tuple(fc.constant(tool), fc.oneof(aValueFor(tool.parameters), aValue))
          ),
          ([tool, value]) => {
            const { tools, losses, names, rejected } = exportTools([tool], id);
            if (
              rejected.length > 0 || losses.some((loss) => loss.side === "input" && loss.narrows)
            ) return;
            if (!accepts(tool.parameters, value)) return;
            checked++;
            const wire = exportedSchema(tools, id);
            const written = formats.encodeArguments(value, names.encodingOf("t")?.input);
            assert(accepts(wire, written), show(tool, wire, value));
          },
        ),
        runs,
      );
      // A law that rarely applies proves nothing.
      assert(checked > runs.numRuns / 20, `${checked} of ${runs.numRuns} were checked`);
    });

    it("accepts only values that the tool accepts, unless a loss widens", () => {
      fc.assert(
        fc.property(
          aTool.chain((tool) => {
            const { tools, rejected } = exportTools([tool], id);
            const wire = rejected.length > 0 ? true : exportedSchema(tools, id);
            return fc.tuple(fc.constant(tool), fc.oneof(aValueFor(wire), aValue));
          }),
          ([tool, value]) => {
            const { tools, losses, names, rejected } = exportTools([tool], id);
            if (
              rejected.length > 0 || losses.some((loss) => loss.side === "input" && loss.widens)
            ) return;
            const wire = exportedSchema(tools, id);
            if (!accepts(wire, value)) return;
            const read = formats.decodeArguments(value, names.encodingOf("t")?.input);
            assert(accepts(tool.parameters, read), show(tool, wire, value));
          },
        ),
        runs,
      );
    });
  });
}

describe("exportTools(), where the root must be one plain object", () => {
  const refused = ["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"];
  for (const target of ["openai", "openai.strict", "anthropic", "anthropic.strict"] as const) {
    it(`sends one to ${target}, whatever the schema`, () => {
      fc.assert(
        fc.property(aTool, (tool) => {
          const { tools, rejected } = exportTools([tool], target);
          if (rejected.length > 0) return;
          const root = exportedSchema(tools, formats.targetOf(target).id) as Record<
            string,
            unknown
          >;
          assertEquals(root["type"], "object");
          assertEquals(refused.filter((keyword) => keyword in root), []);
        }),
        cases(300),
      );
    });
  }
});
