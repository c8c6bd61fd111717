import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { importOpenApi } from "../../../src/adapters/openapi/mod.ts";
import { documentPart } from "../../support/arbitrary_document.ts";
import { cases } from "../../support/laws.ts";
import { petStore } from "./fake_api.ts";

describe("importOpenApi()", () => {
  it("rejects a document that is too deep", () => {
    let deep: Record<string, unknown> = { type: "object" };
    for (let level = 0; level < 5_000; level++) deep = { type: "object", properties: { a: deep } };
    assertEquals(importOpenApi({ ...petStore(), deep }).rejected.map(({ rule }) => rule), [
      "document",
    ]);
  });

  // In quadratic time this would take minutes.
  it("reads a long path of opening braces in linear time", () => {
    const document = petStore();
    const path = `/${"{".repeat(500_000)}`;
    const { tools } = importOpenApi({ ...document, paths: { [path]: { get: {} } } });
    assertEquals(tools.length, 1);
  });

  it("returns the same import for the same document", () => {
    const write = (): string => JSON.stringify(importOpenApi(petStore()));
    assertEquals(write(), write());
  });

  it("never throws because of a document", () => {
    const document = fc.oneof(
      documentPart,
      fc.record({
        openapi: fc.constantFrom("3.0.0", "3.1.0"),
        paths: documentPart,
        components: documentPart,
      }),
    );
    fc.assert(
      fc.property(document, (value) => {
        const { tools } = importOpenApi(value);
        assertEquals(new Set(tools.map(({ id }) => id)).size, tools.length);
      }),
      cases(400, 7),
    );
  });

  it("never throws because of an API's response", () => {
    // `fc.dictionary` discards equal keys, and with only a few keys most of the values.
    const someOf = <T>(keys: readonly string[], value: fc.Arbitrary<T>) =>
      fc.record(Object.fromEntries(keys.map((key) => [key, value])), { requiredKeys: [] });
    const schema = fc.constantFrom<unknown>(
      { $ref: "#/components/schemas/A" },
      { $ref: "#/components/schemas/B" },
      { $ref: "#/paths" },
      { $ref: "x" },
      { type: "object", properties: { a: { $ref: "#/components/schemas/A" } } },
      { allOf: [{ $ref: "#/components/schemas/B" }] },
      true,
      7,
      null,
      { nullable: true },
      { type: "string", nullable: true, enum: ["a"] },
      { allOf: 1 },
      { required: 1 },
      { properties: [] },
      { type: "object", properties: { a: 1 } },
    );
    const parameter = fc.oneof(
      fc.record({
        name: fc.constantFrom<unknown>("a", "b", "", 1),
        in: fc.constantFrom<unknown>("path", "query", "header", "cookie", "x", 1),
        schema,
        style: fc.constantFrom<unknown>("form", "deepObject", undefined, 3),
        required: fc.boolean(),
      }),
      fc.constantFrom<unknown>({ $ref: "#/components/parameters/P" }, null, 1),
    );
    const content = someOf(["application/json", "text/plain", "x", "*/*"], fc.record({ schema }));
    const operation = fc.record({
      operationId: fc.constantFrom<unknown>("x", "y", "", 1, undefined),
      parameters: fc.array(parameter, { maxLength: 3 }),
      requestBody: fc.oneof(
        fc.record({ content, required: fc.boolean() }),
        fc.constant({ $ref: "#" }),
      ),
      responses: someOf(["200", "204", "default", "2XX"], fc.record({ content })),
      security: fc.constantFrom<unknown>([], 1),
    }, { requiredKeys: [] });
    const document = fc.record({
      openapi: fc.constantFrom("3.0.0", "3.1.0"),
      paths: someOf(
        ["/a", "/{a}", "/{a}/{b}", "/{", "a"],
        someOf(["get", "post", "put", "x"], operation),
      ),
      components: fc.record({
        schemas: fc.record({ A: schema, B: schema }),
        parameters: fc.record({ P: parameter }),
      }),
      servers: fc.constantFrom<unknown>([{ url: "https://x.example/{v}" }], [{}], 1, [{
        url: "::",
      }]),
    });
    fc.assert(
      fc.property(document, (value) => {
        const { tools } = importOpenApi(value, { fetch: () => Promise.reject(new Error("no")) });
        assertEquals(new Set(tools.map(({ id }) => id)).size, tools.length);
      }),
      cases(150, 9),
    );
  });
});
