/** Schemas of older drafts and their exports in 2020-12, judged by Ajv in each draft's mode. */

import { assert, assertEquals, assertGreater } from "@std/assert";
import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { createRequire } from "node:module";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { exportTools } from "../../src/formats/mod.ts";
import { checkSchema, compileOnce, type Dialect } from "../../src/schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, makeTool } from "../../src/tool/mod.ts";
import { aParametersSchema, aValue } from "../support/arbitrary_schema.ts";

// The same cases on every runtime and in every run. To search for new ones, leave the seed out.
fc.configureGlobal({ seed: 20261122 });

type Older = Exclude<Dialect, "draft-07" | "2020-12">;

const OPTIONS = {
  strict: false,
  allErrors: false,
  validateFormats: false,
  // plue's check validates the schema, because Ajv does not support `$anchor: 1` in draft-06.
  validateSchema: false,
} as const;

const require = createRequire(import.meta.url);
/** The declarations of this package lack its default export. */
const AjvDraft04: typeof Ajv = require("ajv-draft-04");
const draft06: object = require("ajv/dist/refs/json-schema-draft-06.json");

const JUDGES: { readonly [D in Older]: { uri: string; compile(schema: object): Judge } } = {
  "draft-04": {
    uri: "http://json-schema.org/draft-04/schema#",
    compile: (schema) => new AjvDraft04(OPTIONS).compile(schema),
  },
  "draft-06": {
    uri: "http://json-schema.org/draft-06/schema#",
    compile: (schema) => new Ajv(OPTIONS).addMetaSchema(draft06).compile(schema),
  },
  "2019-09": {
    uri: "https://json-schema.org/draft/2019-09/schema",
    compile: (schema) => new Ajv2019(OPTIONS).compile(schema),
  },
};

type Judge = (value: unknown) => unknown;

/** Returns a schema of 2020-12 in an older draft. */
function inWordsOf(dialect: Older, schema: unknown): unknown {
  if (typeof schema === "boolean") {
    return dialect === "draft-04" ? (schema ? {} : { not: {} }) : schema;
  }
  if (Array.isArray(schema)) return schema.map((item) => inWordsOf(dialect, item));
  if (!isObject(schema)) return schema;
  // Ajv 8 reads the keywords next to a reference in every draft, but the older drafts ignore them.
  if (dialect !== "2019-09" && typeof schema["$ref"] === "string") return { $ref: schema["$ref"] };
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const limit = keyword.replace("exclusiveM", "m");
    if (["const", "enum", "default", "examples", "required", "type"].includes(keyword)) {
      result[keyword] = value;
    } else if (["properties", "patternProperties", "$defs"].includes(keyword)) {
      result[keyword] = Object.fromEntries(
        Object.entries(value as object).map(([name, part]) => [name, inWordsOf(dialect, part)]),
      );
    } else if (keyword === "prefixItems") result["items"] = inWordsOf(dialect, value);
    else if (keyword === "items" && schema["prefixItems"] !== undefined) {
      result["additionalItems"] = inWordsOf(dialect, value);
    } else if (dialect === "draft-04" && limit !== keyword) {
      result[limit] = value;
      result[keyword] = true;
    } else result[keyword] = inWordsOf(dialect, value);
  }
  return result;
}

/** Keywords that Ajv misinterprets in every draft, or cannot read. */
const ODD = /__proto__|constructor|\$dynamic|unevaluated|"contains":|dependencies/;

/** Keywords that draft-04 does not have, but Ajv's mode for draft-04 supports. */
const LATER = /"(const|contains|propertyNames|if)":/;
const engine = typeboxEngine({ formats: "annotate" });

for (const dialect of Object.keys(JUDGES) as Older[]) {
  describe(`schemas of ${dialect}`, () => {
    const { uri, compile } = JUDGES[dialect];

    it("have Ajv's verdicts, registered and exported", () => {
      let judged = 0;
      let refused = 0;
      fc.assert(
        fc.property(
          aParametersSchema(),
          fc.array(aValue, { minLength: 1, maxLength: 5 }),
          (written, values) => {
            const text = JSON.stringify(written);
            if (ODD.test(text) || (dialect !== "2019-09" && "$ref" in written)) return;
            if (dialect === "draft-04" && LATER.test(text)) return;
            const schema = {
              ...inWordsOf(dialect, JSON.parse(text)) as JsonSchemaObject,
              $schema: uri,
            };
            let judge: Judge;
            try {
              checkSchema(schema);
              judge = compile(schema);
            } catch {
              refused++;
              return;
            }
            const tool = makeTool({ name: "any", description: "Does it.", parameters: schema });
            const [exported] = exportTools([tool], "mcp@2026-07-28").tools;
            const ours = compileOnce(engine, schema);
            const sent = compileOnce(engine, exported?.inputSchema as JsonSchema);
            for (const value of values) {
              judged++;
              const wanted = judge(value) === true;
              const say = `${JSON.stringify(schema)} of ${JSON.stringify(value)}`;
              assertEquals(ours.check(value), wanted, `registered: ${say}`);
              if (isObject(value)) assertEquals(sent.check(value), wanted, `exported: ${say}`);
            }
          },
        ),
        { numRuns: 1_000 },
      );
      assertGreater(judged, 500);
      assert(refused < judged);
    });
  });
}
