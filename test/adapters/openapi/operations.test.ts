import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { importOpenApi } from "../../../src/adapters/openapi/mod.ts";
import type { ImportResult } from "../../../src/formats/mod.ts";
import type { Tool } from "../../../src/tool/mod.ts";
import { call } from "../../support/call_tool.ts";
import { fakeApi } from "./fake_api.ts";
import { petStore } from "./pet_store.ts";

function tool({ tools }: ImportResult, name: string): Tool {
  const found = tools.find((one) => one.name === name);
  assert(found !== undefined, `no tool ${name} among ${tools.map((one) => one.name)}`);
  return found;
}

/** A document with one operation. */
function api(
  path: string,
  method: string,
  operation: object,
  rest: object = {},
): Record<string, unknown> {
  return { openapi: "3.1.0", paths: { [path]: { [method]: operation } }, ...rest };
}

describe("importOpenApi()", () => {
  const result = importOpenApi(petStore());

  it("makes a tool of each operation, named by its id, or by its path", () => {
    assertEquals(result.tools.map(({ name }) => name), [
      "listPets",
      "createPet",
      // Two operations have the id "pet": neither may keep it.
      "get_pets_petId",
      "put_pets_petId",
      "delete_pets_petId",
      "patchPet",
      "uploadPhoto",
      "login",
      "broken",
    ]);
    assertEquals(
      result.warnings.filter(({ rule }) => rule === "operationId").map((
        { tool, path },
      ) => [tool, path]),
      [
        ["get_pets_petId", "/paths/~1pets~1{petId}/get/operationId"],
        ["put_pets_petId", "/paths/~1pets~1{petId}/put/operationId"],
      ],
    );
  });

  it("distinguishes operations with similar paths", () => {
    const get = { responses: {}, parameters: [{ name: "b", in: "path", required: true }] };
    const { tools, rejected } = importOpenApi({
      openapi: "3.1.0",
      paths: {
        "/a/{b}": { get },
        "/a/b": { get: { responses: {} } },
        "/a": {
          get: { responses: {}, operationId: "find it" },
          post: { responses: {}, operationId: "find/it" },
        },
        "/c": { get: { responses: {}, operationId: "get_d" } },
        "/d": { get: { responses: {} } },
      },
    });
    assertEquals(rejected, []);
    const names = tools.map(({ name }) => name);
    assertEquals(names.slice(0, 2), ["get__a__b_", "get__a_b"]);
    assertEquals(names.slice(2, 4).every((name) => /^find_it_[0-9a-f]{8}$/.test(name)), true);
    // An id that is given comes before a name that is made.
    assertEquals(names.slice(4), ["get_d", "get__d"]);
  });

  it("rejects an operation that it cannot describe or send, and keeps the others", () => {
    assertEquals(
      result.rejected.map(({ name, path, rule }) => [name, path, rule]),
      [
        ["trace", "/paths/~1broken/trace", "method"],
        ["outside", "/paths/~1broken/post", "parameters"],
      ].sort((a, b) => (a[0] as string) < (b[0] as string) ? -1 : 1),
    );
    assertStringIncludes(
      result.rejected.find(({ name }) => name === "outside")?.message ?? "",
      "nothing is fetched",
    );
  });

  it("takes parameters of the path and of the operation, whose own win", () => {
    const { parameters } = tool(result, "get_pets_petId");
    assertEquals(parameters, {
      type: "object",
      properties: {
        petId: { type: "integer", description: "The pet." },
        verbose: { type: "boolean" },
      },
      required: ["petId"],
      additionalProperties: false,
    });
  });

  it("supports unusual names of parameters, and requires no credentials", () => {
    const { parameters } = tool(result, "listPets");
    assertEquals(Object.keys(parameters["properties"] as object), [
      "X-Trace",
      "filter",
      "filter[id]",
      "$top",
      "sort",
    ]);
    const left = result.warnings.filter(({ tool, rule }) =>
      tool === "listPets" && rule === "parameters"
    );
    assertEquals(left.map(({ path }) => path), [
      "/paths/~1pets/get/parameters/4",
      "/paths/~1pets/get/parameters/5",
    ]);
  });

  it("merges the body's properties into the input, through references and allOf", () => {
    const { parameters } = tool(result, "put_pets_petId");
    assertEquals(Object.keys(parameters["properties"] as object), [
      "petId",
      "verbose",
      "name",
      "secret",
      "kind",
      "weight",
      "children",
    ]);
    assertEquals(parameters["required"], ["petId", "name"]);
  });

  it("leaves what is only read out of the input, also inside of recursion", () => {
    const { parameters } = tool(result, "put_pets_petId");
    const pet = (parameters["$defs"] as Record<string, { allOf: { properties: object }[] }>)["Pet"];
    assertEquals(Object.keys(pet?.allOf[1]?.properties ?? {}), [
      "secret",
      "kind",
      "weight",
      "children",
    ]);
    assertEquals((pet?.allOf[1] as unknown as { required: unknown }).required, []);
  });

  it("leaves what is only written out of the results", () => {
    const { returns } = tool(result, "get_pets_petId");
    const defs = (returns as { $defs: Record<string, { allOf: { properties: object }[] }> }).$defs;
    assertEquals(Object.keys(defs["Pet"]?.allOf[1]?.properties ?? {}), [
      "id",
      "kind",
      "weight",
      "children",
    ]);
    assertEquals(returns, { ...defs["Pet"], $defs: defs } as never);
  });

  it("converts the schemas of 3.0 to JSON Schema, and names the losses", () => {
    const { returns } = tool(result, "get_pets_petId");
    const defs =
      (returns as { $defs: Record<string, { allOf: { properties: Record<string, unknown> }[] }> })
        .$defs;
    assertEquals(defs["Pet"]?.allOf[1]?.properties["weight"], {
      type: ["number", "null"],
      exclusiveMinimum: 0,
      examples: [3.5],
    });
    assertEquals(
      result.warnings.filter(({ rule }) => rule === "discriminator").map(({ path }) => path),
      ["/components/schemas/Pet/allOf/1/discriminator"],
    );
  });

  it("nests the body where its properties would collide with parameters", () => {
    const { parameters } = tool(result, "patchPet");
    assertEquals(Object.keys(parameters["properties"] as object), ["petId", "verbose", "body"]);
    assertEquals(parameters["required"], ["petId", "body"]);
  });

  it("takes the body for the whole input where there are no parameters", () => {
    const { parameters } = tool(result, "login");
    assertEquals(parameters["required"], ["user"]);
    assertEquals(parameters["additionalProperties"], undefined);
  });

  it("has no schema for results without a body, or without JSON", () => {
    assertEquals(tool(result, "put_pets_petId").returns, undefined);
    assertEquals(tool(result, "patchPet").returns, undefined);
    assertEquals(
      result.warnings.filter(({ tool, rule }) => tool === "patchPet" && rule === "responses")
        .length,
      1,
    );
  });

  it("imports a tool with an invalid result schema, and does not check its results", () => {
    assertEquals(tool(result, "broken").returns, undefined);
    const [warning] = result.warnings.filter(({ tool }) => tool === "broken");
    assertStringIncludes(warning?.message ?? "", "results are not checked");
  });

  it("infers hints and risk from the method", () => {
    const of = (name: string): unknown => {
      const { risk, annotations } = tool(result, name);
      return [
        risk,
        annotations.readOnlyHint,
        annotations.destructiveHint,
        annotations.idempotentHint,
      ];
    };
    assertEquals(of("listPets"), ["low", true, false, true]);
    assertEquals(of("createPet"), ["medium", false, true, false]);
    assertEquals(of("put_pets_petId"), ["medium", false, true, true]);
    assertEquals(of("delete_pets_petId"), ["high", false, true, true]);
  });

  it("describes a tool by description, summary or path, and tags it", () => {
    assertEquals(tool(result, "createPet").description, "Adds a pet.");
    assertEquals(tool(result, "listPets").description, "List pets");
    assertEquals(tool(result, "listPets").title, "List pets");
    assertEquals(tool(result, "listPets").tags, ["pets", "read-model"]);
    assertEquals(tool(result, "delete_pets_petId").description, "DELETE /pets/{petId}");
    assertEquals(tool(result, "delete_pets_petId").deprecated, true);
  });

  it("takes no document's word for the tag that selects read-only tools", () => {
    const document = api("/a", "delete", { tags: ["read-only", "a"], responses: {} });
    const { tools, warnings } = importOpenApi(document);
    assertEquals(tools[0]?.tags, ["a"]);
    assertEquals(warnings.map(({ path, message }) => [path, message]), [
      ["/paths/~1a/delete/tags", 'The tag "read-only" is left out: only the option tags gives it'],
    ]);
    const [owned] = importOpenApi(document, { tags: ["read-only"] }).tools;
    assertEquals(owned?.tags, ["read-only", "a"]);
  });

  it("keeps how a call becomes a request in the tool's hints, not in its schema", () => {
    const { operation } = tool(result, "patchPet").meta?.["provider"] as {
      operation: Record<string, unknown>;
    };
    assertEquals(operation, {
      operationId: "patchPet",
      method: "PATCH",
      path: "/pets/{petId}",
      server: "https://eu.pets.example/v2",
      parameters: [
        { key: "petId", name: "petId", in: "path", style: "simple", explode: false },
        { key: "verbose", name: "verbose", in: "query", style: "form", explode: true },
      ],
      body: { kind: "json", mediaType: "application/merge-patch+json", from: "one", key: "body" },
      security: [{ key: [] }],
      inferred: true,
    });
  });

  it("leaves deprecated operations out on demand", () => {
    const { tools, rejected } = importOpenApi(petStore(), { deprecated: false });
    assertEquals(tools.some(({ deprecated }) => deprecated !== false), false);
    assertEquals(rejected.filter(({ rule }) => rule === "deprecated").length, 1);
  });

  it("has no address if the default of a server's variable is not one of its enum", () => {
    const variables = { a: { default: "evil.example/", enum: ["eu"] } };
    const servers = [{ url: "https://{a}.pets.example", variables }];
    const { tools } = importOpenApi({ ...petStore(), servers });
    const { operation } = tools[0]?.meta?.["provider"] as { operation: { server?: string } };
    assertEquals(operation.server, undefined);
  });

  it("makes definitions only without a fetch, an address, or a body that it can write", () => {
    const { fetch } = fakeApi();
    const executable = (given: ImportResult): string[] =>
      given.tools.filter(({ execute }) => execute !== undefined).map(({ name }) => name);
    assertEquals(executable(result), []);
    const store = importOpenApi(petStore(), { fetch });
    assertEquals(store.tools.length - executable(store).length, 1);
    assertEquals(executable(store).includes("uploadPhoto"), false);
    const relative = importOpenApi({ ...petStore(), servers: [{ url: "/v1" }] }, {
      fetch,
    });
    assertEquals(executable(relative), []);
    assertStringIncludes(
      relative.warnings.find(({ rule }) => rule === "servers")?.message ?? "",
      "give baseUrl",
    );
  });

  const PRIVATE = [
    "http://169.254.169.254/latest",
    "http://127.0.0.1:8080",
    "http://2130706433",
    "http://0x7f.1",
    "http://0177.0.0.1",
    "http://0",
    "http://10.1.2.3",
    "http://100.100.100.200",
    "http://172.31.0.1",
    "http://192.168.1.1",
    "http://198.19.0.1",
    "http://168.63.129.16",
    "http://224.0.0.1",
    "http://255.255.255.255",
    "http://[::1]",
    "http://[::]",
    "http://[::ffff:169.254.169.254]",
    "http://[64:ff9b::a9fe:a9fe]",
    "http://[2002:7f00:1::]",
    "http://[2001::1]",
    "http://[2001:db8::1]",
    "http://[fd00:ec2::254]",
    "http://[fe80::1]",
    "https://localhost",
    "https://localhost.",
    "https://LOCALHOST:9",
    "https://app.localhost",
    "https://printer.local",
    "https://metadata.google.internal",
    "https://metadata",
  ];
  const executes = (tools: readonly Tool[]): boolean[] =>
    tools.map(({ execute }) => execute !== undefined);

  for (const url of PRIVATE) {
    it(`sends no calls to ${url}, whatever names it`, () => {
      const { fetch } = fakeApi();
      const document = {
        openapi: "3.1.0",
        servers: [{ url }],
        paths: {
          "/a": { get: { operationId: "a" } },
          "/b": { get: { operationId: "b", servers: [{ url }] } },
          "/c": { get: { operationId: "c" }, servers: [{ url }] },
        },
      };
      const { tools, warnings } = importOpenApi(document, { fetch });
      assertEquals(executes(tools), [false, false, false]);
      assertEquals(warnings.map(({ rule }) => rule), ["servers", "servers", "servers"]);
      assertStringIncludes(warnings[0]?.message ?? "", "give its host in allowedHosts");

      const { host, hostname } = new URL(url);
      for (const allowed of [host, hostname]) {
        const { tools } = importOpenApi(document, { fetch, allowedHosts: [allowed] });
        assertEquals(executes(tools), [true, true, true]);
      }
      const documentUrl = new URL("/openapi.json", url).href;
      assertEquals(executes(importOpenApi(document, { fetch, documentUrl }).tools), [
        true,
        true,
        true,
      ]);
    });
  }

  for (
    const url of ["https://api.example", "http://8.8.8.8", "http://172.32.0.1", "http://[2a00::1]"]
  ) {
    it(`sends calls to ${url}, unless other hosts are allowed`, () => {
      const { fetch } = fakeApi();
      const document = {
        openapi: "3.1.0",
        servers: [{ url }],
        paths: { "/a": { get: { operationId: "a" } } },
      };
      assertEquals(executes(importOpenApi(document, { fetch }).tools), [true]);
      const allowedHosts = ["api.other.example"];
      assertEquals(executes(importOpenApi(document, { fetch, allowedHosts }).tools), [false]);
    });
  }

  it("starts relative servers where the document came from", async () => {
    const operation = (operationId: string, url: string) => ({
      get: { operationId, servers: [{ url }] },
    });
    const { fetch, asked } = fakeApi();
    const { tools } = importOpenApi({
      openapi: "3.1.0",
      paths: {
        "/a": operation("a", "/v1"),
        "/b": operation("b", "v2/"),
        "/c": { get: { operationId: "c" } },
      },
    }, { fetch, documentUrl: "https://api.example/docs/openapi.json?x=1" });
    for (const { id } of tools) await call(tools, id, {});
    assertEquals(asked.map(({ url }) => url), [
      "https://api.example/v1/a",
      "https://api.example/docs/v2/b",
      "https://api.example/c",
    ]);
  });

  it("rejects options that are not addresses or hosts", () => {
    assertThrows(
      () => importOpenApi(petStore(), { documentUrl: "openapi.json" }),
      TypeError,
      'documentUrl must be an address with "https:" or "http:"',
    );
    assertThrows(
      () => importOpenApi(petStore(), { allowedHosts: ["https://api.example"] }),
      TypeError,
      'allowedHosts must be a list of hosts such as "api.example.com"',
    );
  });

  it("imports a schema of 3.1 unchanged, and inlines its root", () => {
    const schema = {
      type: "object",
      properties: { a: { type: ["string", "null"] } },
      required: ["a"],
      minProperties: 1,
    };
    const { tools } = importOpenApi(api("/a", "post", {
      operationId: "a",
      requestBody: {
        required: true,
        content: { "application/json": { schema: { $ref: "#/components/schemas/A" } } },
      },
      responses: {
        "200": { description: "", content: { "application/json": { schema: true } } },
      },
    }, { components: { schemas: { A: schema } } }));
    assertEquals(tools[0]?.parameters, schema);
    assertEquals(tools[0]?.returns, true);
  });

  it("answers one of several successes, null for one without a body", () => {
    const { tools } = importOpenApi(api("/a", "get", {
      responses: {
        "200": { content: { "application/json": { schema: { type: "string" } } } },
        "202": { content: { "application/json": { schema: { type: "integer" } } } },
        "204": {},
        "404": { content: { "application/json": { schema: { type: "object" } } } },
      },
    }));
    assertEquals(tools[0]?.returns, {
      anyOf: [{ type: "string" }, { type: "integer" }, { type: "null" }],
    });
  });

  it("reads the method QUERY of 3.2, and additional ones", () => {
    const { tools } = importOpenApi({
      openapi: "3.2.0",
      paths: {
        "/a": { query: { responses: {} }, additionalOperations: { COPY: { responses: {} } } },
      },
    });
    assertEquals(tools.map(({ name, risk }) => [name, risk]), [["query_a", "low"], [
      "copy_a",
      "medium",
    ]]);
  });

  it("gives parameters of one name different keys", () => {
    const { tools } = importOpenApi(api("/a/{id}", "get", {
      parameters: [
        { name: "id", in: "path", required: true, schema: { type: "string" } },
        { name: "id", in: "query", schema: { type: "string" } },
      ],
      responses: {},
    }));
    assertEquals(Object.keys(tools[0]?.parameters["properties"] as object), ["id", "query_id"]);
  });

  it("keeps definitions of one name apart", () => {
    const { tools } = importOpenApi(api("/a", "get", {
      parameters: [
        { name: "x", in: "query", schema: { $ref: "#/components/schemas/A" } },
        { name: "y", in: "query", schema: { $ref: "#/components/schemas/B/properties/A" } },
      ],
      responses: {},
    }, {
      components: {
        schemas: {
          A: { type: "string" },
          B: { type: "object", properties: { A: { type: "integer" } } },
        },
      },
    }));
    assertEquals(tools[0]?.parameters["$defs"], {
      A: { type: "string" },
      A_2: { type: "integer" },
    });
  });

  const UNSENDABLE: readonly [string, string, object][] = [
    ["a parameter that its path does not name", "/a", { parameters: [{ name: "id", in: "path" }] }],
    ["a path with a parameter that is none", "/a/{id}", {}],
    ["a path that leads up", "/a/../b", {}],
    ["a path with a query", "/a?b=c", {}],
    ["a path with a backslash", "/a\\b", {}],
    ["a path without a slash", "a", {}],
    ["a required parameter in an unknown place", "/a", {
      parameters: [{ name: "q", in: "querystring", required: true }],
    }],
    ["a required header that is none", "/a", {
      parameters: [{ name: "a\r\nb", in: "header", required: true }],
    }],
    ["a parameter that leads nowhere", "/a", {
      parameters: [{ $ref: "#/components/parameters/Nope" }],
    }],
    ["a body that leads nowhere", "/a", { requestBody: { $ref: "other.yaml" } }],
  ];
  for (const [what, path, operation] of UNSENDABLE) {
    it(`rejects ${what}`, () => {
      const { tools, rejected } = importOpenApi(api(path, "put", operation));
      assertEquals(tools, []);
      assertEquals(rejected.length, 1);
      assertStringIncludes(rejected[0]?.message ?? "", `Cannot import PUT "${path}"`);
    });
  }

  it("lets no argument set the headers that a request stands on", () => {
    const parameters = ["Host", "content-length", "Cookie", "Proxy-Authorization", "X-Fine"].map((
      name,
    ) => ({
      name,
      in: "header",
      schema: { type: "string" },
    }));
    const { tools } = importOpenApi(api("/a", "get", { parameters, responses: {} }));
    assertEquals(Object.keys(tools[0]?.parameters["properties"] as object), ["X-Fine"]);
  });

  it("explains what to do with YAML, JSON as text, and Swagger 2.0", () => {
    const messageOf = (document: unknown) => importOpenApi(document).rejected[0]?.message;
    assertEquals(
      messageOf("openapi: 3.1.0"),
      "Cannot read the document: it is text: give the value that JSON.parse makes of it or, if it " +
        'is YAML, a parser such as the npm package "yaml"',
    );
    assertEquals(
      messageOf({ swagger: "2.0", paths: {} }),
      "Cannot read the document: it is Swagger 2.0: convert it to OpenAPI 3 first, such as with " +
        'the npm package "swagger2openapi"',
    );
    assertEquals(
      messageOf({ openapi: "4.0.0" }),
      'Cannot read the document: its "openapi" must be a version from "3.0" to "3.2"',
    );
  });

  it("rejects documents of other versions, and values that are not documents", () => {
    for (const document of [{ swagger: "2.0" }, { openapi: "4.0.0" }, {}, [], null, "openapi", 1]) {
      const { tools, rejected } = importOpenApi(document);
      assertEquals(tools, []);
      assertEquals(rejected.map(({ rule }) => rule), ["openapi"]);
    }
  });

  it("survives references in circles", () => {
    const { tools, rejected } = importOpenApi(api("/a", "get", {
      parameters: [{ $ref: "#/components/parameters/A" }],
      responses: {},
    }, { components: { parameters: { A: { $ref: "#/components/parameters/A" } } } }));
    assertEquals([tools.length, rejected.length], [0, 1]);
    const schemas = importOpenApi(api("/a", "get", {
      parameters: [{ name: "a", in: "query", schema: { $ref: "#/components/schemas/A" } }],
      responses: {},
    }, { components: { schemas: { A: { $ref: "#/components/schemas/A" } } } }));
    assertStringIncludes(schemas.rejected[0]?.message ?? "", "refers to itself");
  });

  it("bounds what shared schemas grow to", () => {
    const big = {
      type: "object",
      properties: Object.fromEntries(
        Array.from({ length: 500 }, (_, index) => [`p${index}`, { type: "string" }]),
      ),
    };
    const paths = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`/a${index}`, {
        get: {
          operationId: `a${index}`,
          responses: {
            "200": {
              content: { "application/json": { schema: { $ref: "#/components/schemas/Big" } } },
            },
          },
        },
      }]),
    );
    const document = { openapi: "3.1.0", paths, components: { schemas: { Big: big } } };
    assertEquals(importOpenApi(document).tools.length, 100);
    const { tools, rejected } = importOpenApi(document, { limits: { maxValues: 10_000 } });
    assertEquals(tools.length, 9);
    assertEquals(rejected.length, 91);
    assertEquals(rejected.every(({ rule }) => rule === "maxValues"), true);
  });

  it("bounds what a shared path grows to", () => {
    const many = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, index) => [`2${index}`, { description: "" }]),
    );
    const rows: readonly object[] = [
      { get: { "x-tool-meta": many } },
      { get: { responses: many } },
      { get: { responses: { "200": { $ref: "#/x-shared" } } } },
      { get: { tags: Object.values(many).map((_, index) => `tag ${index}`) } },
    ];
    for (const item of rows) {
      const paths = Object.fromEntries(
        Array.from({ length: 200 }, (_, index) => [`/a${index}`, { $ref: "#/x-item" }]),
      );
      const document = { openapi: "3.1.0", paths, "x-item": item, "x-shared": { many } };
      const { tools, rejected } = importOpenApi(document, {
        limits: { maxValues: 20_000 },
      });
      assertEquals(tools.length < 20, true);
      assertEquals(new Set(rejected.map(({ rule }) => rule)), new Set(["maxValues"]));
    }
  });

  it("bounds the parameters of an operation", () => {
    const parameters = Array.from(
      { length: 1_001 },
      (_, index) => ({ name: `p${index}`, in: "query" }),
    );
    const { rejected } = importOpenApi(api("/a", "get", { parameters }));
    assertStringIncludes(rejected[0]?.message ?? "", "more than 1000 parameters");
  });

  it("follows references whose names are encoded", () => {
    const { tools } = importOpenApi({
      ...api("/a", "get", {
        parameters: [{
          name: "x",
          in: "query",
          schema: { $ref: "#/components/schemas/50%25~1all" },
        }],
      }),
      components: { schemas: { "50%/all": { type: "integer" } } },
    });
    assertEquals(tools[0]?.parameters["properties"], { x: { $ref: "#/$defs/50%25~1all" } });
    assertEquals(tools[0]?.parameters["$defs"], { "50%/all": { type: "integer" } });
  });

  it("takes hostile names for names", () => {
    const document = JSON.parse(`{
      "openapi": "3.1.0",
      "paths": {
        "/__proto__": { "get": { "operationId": "constructor", "parameters": [
          { "name": "__proto__", "in": "query", "schema": { "type": "string" } },
          { "name": "x", "in": "query", "schema": { "$ref": "#/components/schemas/__proto__" } }
        ], "responses": {} } }
      },
      "components": { "schemas": { "__proto__": { "type": "integer" } } }
    }`);
    const { tools } = importOpenApi(document);
    assertEquals(tools[0]?.name, "constructor");
    assertEquals(Object.keys(tools[0]?.parameters["properties"] as object), ["__proto__", "x"]);
    assertEquals(Object.keys(tools[0]?.parameters["$defs"] as object), ["__proto__"]);
  });

  const WRONG: readonly [string, Record<string, unknown>, string][] = [
    ["a fetch that is none", { fetch: 1 }, "fetch must be a function"],
    ["fetch and execute", { fetch: () => {}, execute: () => {} }, "not both"],
    ["an address that is none", { baseUrl: "example.com" }, "baseUrl must be an address"],
    ["an address with a password", { baseUrl: "https://a:b@c.example" }, "without credentials"],
    ["an address of a file", { baseUrl: "file:///etc" }, "baseUrl must be an address"],
    ["a size of nothing", { maxResponseBytes: 0 }, "must be a whole number, 1 or above, not 0"],
    ["a flag that is none", { returns: 1 }, 'returns must be true, false or "reads", not 1'],
  ];
  for (const [what, options, message] of WRONG) {
    it(`throws for ${what}`, () => {
      assertThrows(() => importOpenApi(petStore(), options as never), Error, message);
    });
  }
});
