/** The OpenAPI document, judged by two validators and by the values that its schemas accept. */

import SwaggerParser from "@apidevtools/swagger-parser";
import { Validator } from "@seriousme/openapi-schema-validator";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import { exportTools } from "../../src/formats/mod.ts";
import { detectDialect } from "../../src/schema/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";
import { aToolSchema, aValueFor } from "../support/arbitrary_schema.ts";
import { ALL } from "./tools.ts";

// The same cases on every runtime and in every run. To search for new ones, leave the seed out.
fc.configureGlobal({ seed: 20261120 });

type Json = Readonly<Record<string, unknown>>;

/** The document in its serialized form. */
const documentOf = (tools: readonly Tool[]): Json =>
  JSON.parse(JSON.stringify(exportTools(tools, "openapi@3.1").tools));

/** Ten tools. A validator compiles its own schema for each document, which takes most of the time. */
const tenTools = (canRead: (tool: Tool) => boolean): fc.Arbitrary<readonly Tool[]> =>
  fc.tuple(
    ...Array.from({ length: 10 }, (_, at) =>
      fc.tuple(aToolSchema(), aToolSchema()).map(([parameters, returns]) =>
        makeTool({ name: `any${at}`, description: "Does it.", parameters, returns })
      ).filter(canRead)),
  );

/** The validator loses the siblings of a `$ref` before it resolves the reference. */
const hasPlainRoots = ({ parameters, returns }: Tool): boolean =>
  [parameters, returns].every((schema) => typeof schema !== "object" || !("$ref" in schema));

/** Each validator: its check, an invalid document that it rejects, and the readable tools. */
const VALIDATORS: readonly (readonly [
  name: string,
  check: (document: Json) => Promise<void>,
  invalid: Json,
  canRead: (tool: Tool) => boolean,
])[] = [
  [
    "@seriousme/openapi-schema-validator",
    async (document) => {
      const { valid, errors } = await new Validator().validate(structuredClone(document));
      assert(valid, JSON.stringify(errors));
    },
    { info: { version: "1.0.0" } },
    hasPlainRoots,
  ],
  [
    "@apidevtools/swagger-parser",
    async (document) => {
      await SwaggerParser.validate(structuredClone(document) as never);
    },
    { components: {} },
    () => true,
  ],
];

for (const [name, check, invalid, canRead] of VALIDATORS) {
  describe(name, () => {
    it("rejects an invalid document", async () => {
      await assertRejects(() => check({ ...documentOf(ALL), ...invalid }));
    });

    it("accepts the documents of all tools, of no tools, and of random tools", async () => {
      await check(documentOf(ALL));
      await check(documentOf([]));
      await fc.assert(
        fc.asyncProperty(tenTools(canRead), (tools) => check(documentOf(tools))),
        { numRuns: 3 },
      );
    });
  });
}

describe("the content of the document", () => {
  const document = documentOf(ALL);
  const operations = Object.values(document["paths"] as Readonly<Record<string, { post: Json }>>)
    .map(({ post }) => post);

  it("has one operation per tool, with a unique id", () => {
    const ids = operations.map((operation) => operation["operationId"]);
    assertEquals(ids.length, ALL.length);
    assertEquals(new Set(ids).size, ALL.length);
    assertEquals(operations.map((one) => one["description"]), ALL.map((tool) => tool.description));
  });

  it("accepts the arguments that the tools accept, and no others", () => {
    const options = { strict: false, validateFormats: false };
    const draft07 = new Ajv(options);
    const ajv = new Ajv2020(options);
    ajv.addSchema({ $id: "https://example.com/", ...document } as object);
    const { names } = exportTools(ALL, "openapi@3.1");
    for (const tool of ALL) {
      const engine = detectDialect(tool.parameters) === "draft-07" ? draft07 : ajv;
      const own = engine.compile(tool.parameters);
      const sent = ajv.compile({
        $ref: `https://example.com/#/components/schemas/${names.nameOf(tool.id)}.parameters`,
      });
      const values = aValueFor(tool.parameters);
      fc.assert(
        fc.property(values, (value) => assertEquals(sent(value), own(value))),
        { numRuns: 20 },
      );
    }
  });

  it("becomes the same tools when it is imported", () => {
    const { tools, rejected } = importOpenApi(document, {
      baseUrl: "https://example.com",
    });
    assertEquals(rejected, []);
    assertEquals(tools.length, ALL.length);
  });
});
