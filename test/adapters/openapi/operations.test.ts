import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { importOpenApi } from "../../../src/adapters/openapi/mod.ts";
import { exportTools, type ImportResult } from "../../../src/formats/mod.ts";
import { makeTool, type Tool, type ToolDefinition } from "../../../src/tool/mod.ts";
import { call } from "../../support/call_tool.ts";
import { api, fakeApi, petStore } from "./fake_api.ts";
import ownTool from "./own_tool.json" with { type: "json" };
import hosts from "./hosts.json" with { type: "json" };

describe("importOpenApi()", () => {
  it("adds hashes to operation ids that are equal as names of tools", () => {
    const get = { operationId: "find it" };
    const post = { operationId: "find/it" };
    const others = importOpenApi({ openapi: "3.1.0", paths: { "/a": { get, post } } }).tools;
    assertEquals(others.every(({ name }) => /^find_it_[0-9a-f]{8}$/.test(name)), true);
  });

  it("creates only definitions if it lacks a fetch, an address or a supported body", () => {
    const { fetch } = fakeApi();
    const executable = (imported: ImportResult): string[] =>
      imported.tools.filter(({ execute }) => execute !== undefined).map(({ name }) => name);
    assertEquals(executable(importOpenApi(petStore())), []);
    const store = importOpenApi(petStore(), { fetch });
    assertEquals(store.tools.length - executable(store).length, 1);
    assertEquals(executable(store).includes("uploadPhoto"), false);
    const relative = importOpenApi({ ...petStore(), servers: [{ url: "/v1" }] }, { fetch });
    assertEquals(executable(relative), []);
    const warning = relative.warnings.find(({ rule }) => rule === "servers");
    assertStringIncludes(warning?.message ?? "", "give baseUrl");
  });

  const executes = (tools: readonly Tool[]): boolean[] =>
    tools.map(({ execute }) => execute !== undefined);

  for (const url of hosts.private) {
    it(`sends no calls to ${url}, in any field of the document`, () => {
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
      const fromThere = importOpenApi(document, { fetch, documentUrl }).tools;
      assertEquals(executes(fromThere), [true, true, true]);
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

  it("resolves relative servers against the URL of the document", async () => {
    const operation = (operationId: string, url: string) => ({
      get: { operationId, servers: [{ url }] },
    });
    const { fetch, requests } = fakeApi();
    const { tools } = importOpenApi({
      openapi: "3.1.0",
      paths: {
        "/a": operation("a", "/v1"),
        "/b": operation("b", "v2/"),
        "/c": { get: { operationId: "c" } },
      },
    }, { fetch, documentUrl: "https://api.example/docs/openapi.json?x=1" });
    for (const { id } of tools) await call(tools, id, {});
    assertEquals(requests.map(({ url }) => url), [
      "https://api.example/v1/a",
      "https://api.example/docs/v2/b",
      "https://api.example/c",
    ]);
  });

  it("bounds the size of shared schemas after their expansion", () => {
    const members = (count: number, make: (at: number) => readonly [string, unknown]) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => make(at)));
    const big = {
      type: "object",
      properties: members(500, (at) => [`p${at}`, { type: "string" }]),
    };
    const schema = { $ref: "#/components/schemas/Big" };
    const responses = { "200": { content: { "application/json": { schema } } } };
    const paths = members(30, (at) => [`/a${at}`, { get: { operationId: `a${at}`, responses } }]);
    const document = { openapi: "3.1.0", paths, components: { schemas: { Big: big } } };
    assertEquals(importOpenApi(document).tools.length, 30);
    const { tools, rejected } = importOpenApi(document, { limits: { maxValues: 10_000 } });
    assertEquals(tools.length, 9);
    assertEquals(rejected.length, 21);
    assertEquals(rejected.every(({ rule }) => rule === "maxValues"), true);
  });

  it("bounds the size of a shared path after its expansion", () => {
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
      const { tools, rejected } = importOpenApi(document, { limits: { maxValues: 20_000 } });
      assertEquals(tools.length < 20, true);
      assertEquals(new Set(rejected.map(({ rule }) => rule)), new Set(["maxValues"]));
    }
  });

  it("bounds the parameters of an operation", () => {
    const parameters = Array.from({ length: 1_001 }, (_, at) => ({ name: `p${at}`, in: "query" }));
    const { rejected } = importOpenApi(api("/a", "get", { parameters }));
    assertStringIncludes(rejected[0]?.message ?? "", "more than 1000 parameters");
  });

  it("imports operations with hostile names", () => {
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
    ["a relative address", { documentUrl: "openapi.json" }, "documentUrl must be an address with"],
    [
      "a host that is an address",
      { allowedHosts: ["https://a.example"] },
      "must be a list of hosts",
    ],
    ["a size of nothing", { maxResponseBytes: 0 }, "must be a whole number, 1 or above, not 0"],
    ["a flag that is none", { returns: 1 }, 'returns must be true, false or "reads", not 1'],
  ];
  for (const [what, options, message] of WRONG) {
    it(`throws for ${what}`, () => {
      assertThrows(() => importOpenApi(petStore(), options as never), Error, message);
    });
  }

  it("does not check results of more than 16 schemas", () => {
    const responses = Object.fromEntries(
      Array.from({ length: 20 }, (_, minLength) => [
        String(200 + minLength),
        { content: { "application/json": { schema: { minLength } } } },
      ]),
    );
    const { tools, warnings } = importOpenApi(api("/a", "get", { responses }));
    assertEquals(tools[0]?.returns, undefined);
    assertStringIncludes(warnings[0]?.message ?? "", "more than 16 schemas");
  });
});

describe("plue's own OpenAPI", () => {
  it("imports the fields of an exported tool", () => {
    const tool = makeTool(ownTool as ToolDefinition);
    const { tools, warnings, rejected } = importOpenApi(exportTools([tool], "openapi").tools);
    assertEquals([warnings, rejected], [[], []]);
    const [back] = tools;
    assert(back !== undefined);
    const facts = ({ id, title, description, parameters, returns, risk }: Tool) => [
      ...[id, title, description, parameters, returns, risk],
    ];
    assertEquals(facts(back), facts(tool));
    assertEquals(back.deprecated, tool.deprecated);
    assertEquals([back.examples, back.annotations], [tool.examples, tool.annotations]);
    assertEquals(back.meta?.["com.example/x"], 1);
    const { source: _source, annotations: _annotations, operation: _operation, ...hints } = back
      .meta?.["provider"] as Record<string, unknown>;
    assertEquals(hints, tool.meta?.["provider"]);
  });
});
