/**
 * The OpenAPI document, judged by two validators and by the values that its schemas accept.
 *
 * @module
 */

import SwaggerParser from "@apidevtools/swagger-parser";
import { Validator } from "@seriousme/openapi-schema-validator";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import { exportTools } from "../../src/formats/mod.ts";
import { checkSchema, detectDialect } from "../../src/schema/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";
import { aParametersSchema, aValueFor } from "../support/arbitrary_schema.ts";
import { ALL } from "./tools.ts";

// The same cases on every runtime and in every run. To search for new ones, leave the seed out.
fc.configureGlobal({ seed: 20261120 });

type Json = Readonly<Record<string, unknown>>;

/** The document in its serialized form. */
const documentOf = (tools: readonly Tool[]): Json =>
  JSON.parse(JSON.stringify(exportTools(tools, "openapi@3.1").tools));

const anyTool = fc.tuple(aParametersSchema(), aParametersSchema())
  .filter((schemas) => {
    try {
      schemas.forEach((schema) => checkSchema(schema));
      return true;
    } catch {
      return false;
    }
  })
  .map(([parameters, returns]) =>
    makeTool({ name: "any", description: "Does it.", parameters, returns })
  );

/** It loses the siblings of a `$ref` before it resolves the reference. */
const hasPlainRoots = ({ parameters, returns }: Tool): boolean =>
  [parameters, returns].every((schema) => typeof schema !== "object" || !("$ref" in schema));

/** The errors of seriousme's validator for a document. */
async function faults(document: Json): Promise<unknown> {
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  return valid ? undefined : errors;
}

/** Rejects if swagger-parser has something against a document. */
async function parse(document: Json): Promise<void> {
  await SwaggerParser.validate(structuredClone(document) as never);
}

describe("@seriousme/openapi-schema-validator", () => {
  it("rejects a document without a title", async () => {
    assert(await faults({ ...documentOf(ALL), info: { version: "1.0.0" } }) !== undefined);
  });

  it("takes the document of all tools", async () => {
    assertEquals(await faults(documentOf(ALL)), undefined);
  });

  it("takes the document of no tools", async () => {
    assertEquals(await faults(documentOf([])), undefined);
  });

  it("takes the document of any tool", async () => {
    await fc.assert(
      fc.asyncProperty(anyTool.filter(hasPlainRoots), async (tool) => {
        assertEquals(await faults(documentOf([tool])), undefined);
      }),
      { numRuns: 30 },
    );
  });
});

describe("@apidevtools/swagger-parser", () => {
  it("rejects an unresolvable reference", async () => {
    const document = documentOf(ALL);
    await assertRejects(() => parse({ ...document, components: {} }));
  });

  it("takes the document of all tools", async () => await parse(documentOf(ALL)));

  it("takes the document of no tools", async () => await parse(documentOf([])));

  it("takes the document of any tool", async () => {
    await fc.assert(
      fc.asyncProperty(anyTool, async (tool) => await parse(documentOf([tool]))),
      { numRuns: 30 },
    );
  });
});

describe("the content of the document", () => {
  const document = documentOf(ALL);
  const operations = Object.values(document["paths"] as Readonly<Record<string, { post: Json }>>)
    .map(({ post }) => post);

  it("has one operation per tool, with an id of its own", () => {
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
