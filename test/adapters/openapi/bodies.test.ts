import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { importOpenApi } from "../../../src/adapters/openapi/mod.ts";
import { exportTools, type ImportResult } from "../../../src/formats/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";
import { call } from "../../support/call_tool.ts";
import { fakeApi } from "./fake_api.ts";

/** Imports one operation, `op`, that has a body of one media type. */
function withBody(
  mediaType: string,
  entry: object,
  rest: { readonly body?: object; readonly operation?: object; readonly schemas?: object } = {},
): {
  readonly result: ImportResult;
  readonly send: (args: unknown) => Promise<string | undefined>;
} {
  const { fetch, asked } = fakeApi();
  const result = importOpenApi({
    openapi: "3.1.0",
    paths: {
      "/a": {
        post: {
          operationId: "op",
          requestBody: { required: true, ...rest.body, content: { [mediaType]: entry } },
          responses: {},
          ...rest.operation,
        },
      },
    },
    components: { schemas: rest.schemas ?? {} },
  }, { fetch, baseUrl: "https://api.example" });
  return {
    result,
    send: async (args) => {
      const answer = await call(result.tools, "op", args);
      assert(answer.ok, answer.ok ? "" : answer.error.message);
      return asked.at(-1)?.request.body;
    },
  };
}

function inputOf(
  { tools }: ImportResult,
): { properties: Record<string, unknown>; required?: string[] } {
  return tools[0]?.parameters as never;
}

const FORM = "application/x-www-form-urlencoded";
const QUERY = { parameters: [{ name: "q", in: "query", schema: { type: "string" } }] };

describe("the body of an imported operation", () => {
  it("is a form as its encoding says", async () => {
    const { send } = withBody(FORM, {
      schema: { type: "object" },
      encoding: {
        card: { style: "deepObject", explode: true },
        list: { style: "form", explode: false },
        meta: { contentType: "application/json" },
        path: { allowReserved: true },
        odd: 7,
      },
    });
    assertEquals(
      await send({
        card: { number: 1, owner: { name: "x y" } },
        list: [1, 2],
        meta: [1],
        path: "a/b",
        none: null,
      }),
      "card%5Bnumber%5D=1&card%5Bowner%5D%5Bname%5D=x%20y&list=1,2&meta=%5B1%5D&path=a/b",
    );
  });

  it("is text", async () => {
    const { result, send } = withBody("text/csv", { schema: { type: "string" } }, {
      body: { description: "Rows." },
    });
    assertEquals(inputOf(result).properties, { body: { type: "string", description: "Rows." } });
    assertEquals(await send({ body: "a,b" }), "a,b");
  });

  it("is JSON that is not an object", async () => {
    const { result, send } = withBody("application/vnd.x+json; charset=utf-8", {
      schema: { type: "array", items: { type: "integer" } },
    });
    assertEquals(inputOf(result).required, ["body"]);
    assertEquals(await send({ body: [1, 2] }), "[1,2]");
  });

  it("is JSON if every type is allowed, and may be omitted", async () => {
    const { result, send } = withBody("*/*", { schema: { type: "array" } }, {
      body: { required: false },
    });
    assertEquals(inputOf(result).required, undefined);
    assertEquals(await send({}), undefined);
    assertEquals(await send({ body: [] }), "[]");
  });

  it("is what is left of the arguments, and nothing if nothing is left", async () => {
    const { result, send } = withBody("application/json", {
      schema: {
        type: "object",
        properties: { a: { type: "integer" } },
        additionalProperties: false,
      },
    }, { operation: QUERY });
    assertEquals(Object.keys(inputOf(result).properties), ["q", "a"]);
    assertEquals(await send({ q: "x", a: 1 }), '{"a":1}');
    assertEquals(await send({ q: "x" }), undefined);
  });

  it("is a map in a separate property, if there are parameters", async () => {
    const { result, send } = withBody("application/json", {
      schema: { type: "object", properties: { a: {} }, additionalProperties: { type: "integer" } },
    }, { operation: QUERY });
    assertEquals(Object.keys(inputOf(result).properties), ["q", "body"]);
    assertEquals(await send({ q: "x", body: { z: 1 } }), '{"z":1}');
  });

  const NESTED: readonly [string, object][] = [
    ["a union", { oneOf: [{ type: "object", properties: { a: {} } }] }],
    ["one property in two ways", {
      allOf: [
        { type: "object", properties: { a: { type: "string" } } },
        { type: "object", properties: { a: { minLength: 2 } } },
      ],
    }],
    ["a branch that is closed", {
      allOf: [{ type: "object", properties: { a: {} }, additionalProperties: false }, {
        properties: { b: {} },
      }],
    }],
    ["a property that is required and not there", {
      type: "object",
      properties: { a: {} },
      required: ["b"],
    }],
    ["no properties", { type: "object" }],
    ["a reference outside", { $ref: "#/components/schemas/Union" }],
  ];
  for (const [what, schema] of NESTED) {
    it(`has a separate property next to parameters if it has ${what}`, () => {
      const { result } = withBody("application/json", { schema }, {
        operation: QUERY,
        schemas: { Union: { anyOf: [{ type: "string" }] } },
      });
      assertEquals(Object.keys(inputOf(result).properties), ["q", "body"]);
    });
  }

  it("finds another name for its property if that is taken", () => {
    const { result } = withBody("application/json", { schema: { type: "string" } }, {
      operation: { parameters: [{ name: "body", in: "query" }] },
    });
    assertEquals(Object.keys(inputOf(result).properties), ["body", "body_2"]);
  });

  it("is merged from two branches with equal parts", () => {
    const { result } = withBody("application/json", {
      schema: {
        allOf: [{ $ref: "#/components/schemas/A" }, { $ref: "#/components/schemas/B" }, {
          $ref: "#/components/schemas/A",
        }],
      },
    }, {
      operation: QUERY,
      schemas: {
        A: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
        B: { type: "object", properties: { id: { type: "integer" }, b: true } },
      },
    });
    assertEquals(inputOf(result), {
      type: "object",
      properties: { q: { type: "string" }, id: { type: "integer" }, b: true },
      required: ["id"],
      additionalProperties: false,
    } as never);
  });

  it("is required if its properties are, and that is said", () => {
    const { result } = withBody("application/json", {
      schema: { type: "object", properties: { a: {} }, required: ["a"] },
    }, { body: { required: false }, operation: QUERY });
    assertEquals(inputOf(result).required, ["a"]);
    assertEquals(result.warnings.map(({ path, rule }) => [path, rule]), [[
      "/paths/~1a/post/requestBody",
      "required",
    ]]);
  });

  it("brings its examples, where it is the whole input", () => {
    const schema = { type: "object", properties: { a: { type: "integer" } } };
    const examples = {
      one: { summary: "One.", value: { a: 1 } },
      two: { value: { a: 2 } },
      none: {},
    };
    const { result } = withBody("application/json", { schema, examples });
    assertEquals(result.tools[0]?.examples, [{ description: "One.", input: { a: 1 } }, {
      input: { a: 2 },
    }]);
    const single = withBody("application/json", { schema, example: { a: 3 } });
    assertEquals(single.result.tools[0]?.examples, [{ input: { a: 3 } }]);
  });

  it("is omitted for methods without a body", () => {
    const { tools, warnings } = importOpenApi({
      openapi: "3.1.0",
      paths: {
        "/a": { get: { requestBody: { content: { "application/json": {} } }, responses: {} } },
      },
    });
    assertEquals(inputOf({ tools } as never).properties, {});
    assertEquals(warnings.map(({ rule }) => rule), ["requestBody"]);
  });

  it("does not send an invalid media type in a header", () => {
    const { result } = withBody("application/json\r\nx-evil: 1", { schema: {} });
    assertEquals(result.tools[0]?.execute, undefined);
    assertEquals(result.warnings.map(({ rule }) => rule), ["content", "requestBody"]);
  });
});

describe("the results of an imported operation", () => {
  const results = (responses: object, rest: object = {}): ImportResult =>
    importOpenApi({
      openapi: "3.1.0",
      paths: { "/a": { get: { operationId: "op", responses } } },
      ...rest,
    });
  const json = (schema: unknown): object => ({ content: { "application/json": { schema } } });

  it("are the responses of default if no success is described", () => {
    assertEquals(
      results({ default: json({ type: "string" }), "404": json({}) }).tools[0]?.returns,
      { type: "string" },
    );
    assertEquals(
      results({ default: json({ type: "string" }), "2XX": json({ type: "null" }) }).tools[0]
        ?.returns,
      undefined,
    );
  });

  it("are not checked if the document describes too little", () => {
    assertEquals(
      results({ "200": { content: { "application/json": {} } } }).tools[0]?.returns,
      true,
    );
    const head = importOpenApi({
      openapi: "3.1.0",
      paths: { "/a": { head: { responses: { "200": json({ type: "string" }) } } } },
    });
    assertEquals(head.tools[0]?.returns, undefined);
    const lost = results({ "200": { $ref: "#/components/responses/Nope" } });
    assertEquals([lost.tools[0]?.returns, lost.warnings.length], [undefined, 1]);
    const many = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [String(200 + index), json({ minLength: index })]),
    );
    assertStringIncludes(results(many).warnings[0]?.message ?? "", "more than 16 schemas");
  });

  it("are the JSON where there is something else too", () => {
    const { returns } = results({
      "200": {
        content: { "text/html": {}, "application/problem+json": { schema: { type: "array" } } },
      },
    }).tools[0] ?? {};
    assertEquals(returns, { type: "array" });
  });
});

describe("plue's own OpenAPI", () => {
  it("brings back what a tool said to providers", () => {
    const tool = makeTool({
      name: "find",
      title: "Find",
      description: "Finds.",
      parameters: {
        type: "object",
        properties: { node: { $ref: "#/$defs/node" } },
        $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
      },
      returns: { type: "string" },
      risk: "low",
      annotations: { readOnlyHint: true, openWorldHint: false },
      examples: [{ description: "One.", input: { node: {} } }],
      deprecated: true,
      meta: {
        "com.example/x": 1,
        provider: {
          strict: false,
          deferLoading: true,
          allowedCallers: ["direct"],
          async: true,
          cacheControl: { type: "ephemeral", ttl: "5m" },
          eagerInputStreaming: true,
          taskSupport: "optional",
          namespaceDescription: "N.",
        },
      },
    });
    const { tools, warnings, rejected } = importOpenApi(exportTools([tool], "openapi").tools);
    assertEquals([warnings, rejected], [[], []]);
    const [back] = tools;
    assert(back !== undefined);
    assertEquals(
      [
        back.id,
        back.title,
        back.description,
        back.parameters,
        back.returns,
        back.risk,
        back.deprecated,
      ],
      [
        tool.id,
        tool.title,
        tool.description,
        tool.parameters,
        tool.returns,
        tool.risk,
        tool.deprecated,
      ],
    );
    assertEquals([back.examples, back.annotations], [tool.examples, tool.annotations]);
    assertEquals(back.meta?.["com.example/x"], 1);
    const { source: _source, annotations: _annotations, operation: _operation, ...hints } = back
      .meta?.["provider"] as Record<string, unknown>;
    assertEquals(hints, tool.meta?.["provider"]);
  });
});
