import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import {
  createToolHandler,
  type OpenApiOptions,
  serveFormats,
  type ToolHandlerOptions,
} from "@plue/tools/hono";
import * as formats from "@plue/tools/formats";
import { importOpenApi } from "@plue/tools/openapi";
import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { BASE, execute, execution, sampleRegistry } from "./support.ts";

interface Operation {
  readonly operationId: string;
  readonly requestBody: {
    readonly required: boolean;
    readonly content: { readonly "application/json": Content };
  };
  readonly responses: {
    readonly "200": { readonly content: { readonly "application/json": Content } };
  };
}

interface Content {
  readonly schema: {
    readonly properties: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[];
  };
  readonly examples?: Readonly<
    Record<string, { readonly summary?: string; readonly value: unknown }>
  >;
}

interface Document {
  readonly openapi: string;
  readonly info: Readonly<Record<string, unknown>>;
  readonly security?: unknown;
  readonly servers?: unknown;
  readonly paths: Readonly<Record<string, { readonly post?: Operation; readonly get?: Operation }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, unknown>>;
    readonly securitySchemes?: unknown;
  };
}

const serve = (
  options: ToolHandlerOptions = {},
  registry = sampleRegistry(),
  openapi: OpenApiOptions = {},
) => createToolHandler(registry, { formats: serveFormats(formats, { openapi }), ...options });

const documentOf = async (app: ReturnType<typeof serve>): Promise<Document> =>
  await (await app.request(`${BASE}/openapi.json`)).json();

const executions = ({ paths }: Document): readonly string[] =>
  Object.keys(paths).filter((path) => path.endsWith("/execute")).sort();

describe("GET /openapi.json", () => {
  it("has every route of the handler", async () => {
    const app = serve();
    const { paths } = await documentOf(app);
    const routes = app.routes.map(({ path }) => path.replaceAll(/:(\w+)/g, "{$1}"));
    // Each tool has a path of its own there, and the document does not name itself.
    const others = ["/tools/{id}/execute", "/openapi.json"];
    const missing = routes.filter((path) => !others.includes(path) && !(path in paths));
    assertEquals(missing, []);
  });

  it("has an operation for each of the caller's tools, and no other's", async () => {
    const control = await documentOf(serve({ authorize: () => ({ role: "control" }) }));
    assertEquals(executions(control), [
      "/tools/echo/execute",
      "/tools/file-write/execute",
      "/tools/plan/execute",
      "/tools/rm/execute",
      "/tools/task:approve/execute",
    ]);
    const other = await documentOf(serve({ authorize: () => ({ maxRisk: "safe" }) }));
    assertEquals(executions(other), ["/tools/echo/execute", "/tools/plan/execute"]);
    assertEquals(JSON.stringify(other).includes("approve"), false);
  });

  it("describes the bodies of requests and responses, including their envelopes", async () => {
    const document = await documentOf(serve());
    const echo = document.paths["/tools/echo/execute"]?.post;
    const body = echo?.requestBody.content["application/json"].schema;
    assertEquals(echo?.requestBody.required, true);
    assertEquals(body?.required, ["arguments"]);
    assertEquals(body?.properties["arguments"], { $ref: "#/components/schemas/echo.parameters" });
    assertEquals(Object.keys(body?.properties ?? {}).sort(), [
      "arguments",
      "callId",
      "idempotencyKey",
      "messageId",
      "sessionId",
    ]);
    assertEquals(document.components.schemas["echo.parameters"], {
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
      additionalProperties: false,
    });
    const write = document.paths["/tools/file-write/execute"]?.post;
    assertEquals(write?.requestBody.required, false);
  });

  it("wraps the examples as they must be sent", async () => {
    const registry = new ToolRegistry({
      tools: [
        defineTool({
          name: "add",
          description: "Adds.",
          parameters: { type: "object", properties: { n: { type: "number" } } },
          returns: { type: "number" },
          examples: [{ description: "One", input: { n: 1 } }],
        }),
      ],
    });
    const document = await documentOf(serve({}, registry));
    const add = document.paths["/tools/add/execute"]?.post;
    assertEquals(add?.requestBody.content["application/json"].examples, {
      example1: { summary: "One", value: { arguments: { n: 1 } } },
    });
    assertEquals(
      add?.responses["200"].content["application/json"].schema.properties["content"],
      { $ref: "#/components/schemas/add.returns" },
    );
  });

  it("refers to existing schemas only", async () => {
    const document = await documentOf(serve());
    const text = JSON.stringify(document);
    for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"/]+)"/g)) {
      assert(Object.hasOwn(document.components.schemas, name), name);
    }
  });

  it("has each operation once", async () => {
    const { paths } = await documentOf(serve());
    const ids = Object.values(paths).flatMap(({ get, post }) =>
      [get, post].flatMap((operation) => operation === undefined ? [] : [operation.operationId])
    );
    assertEquals(new Set(ids).size, ids.length);
  });

  it("names its address, its version and its authentication", async () => {
    const open = await documentOf(serve());
    assertEquals([open.security, open.components.securitySchemes], [undefined, undefined]);
    const named = await documentOf(serve({ authorize: () => ({}) }, sampleRegistry(), {
      title: "My tools",
      version: "2.0.0",
      description: "All of them.",
      servers: ["https://tools.example.com"],
    }));
    assertEquals(named.info, { title: "My tools", version: "2.0.0", description: "All of them." });
    assertEquals(named.servers, [{ url: "https://tools.example.com" }]);
    assertEquals(named.security, [{ bearer: [] }]);
    assertEquals(named.components.securitySchemes, { bearer: { type: "http", scheme: "bearer" } });
  });

  it("is made once for as long as the tools stay the same", async () => {
    const registry = sampleRegistry();
    const app = serve({}, registry);
    const first = await app.request(`${BASE}/openapi.json`);
    const etag = first.headers.get("etag") ?? "";
    const again = await app.request(`${BASE}/openapi.json`, { headers: { "if-none-match": etag } });
    assertEquals(again.status, 304);
    registry.unregisterTool("echo");
    const changed = await app.request(`${BASE}/openapi.json`, {
      headers: { "if-none-match": etag },
    });
    assertEquals(changed.status, 200);
  });

  it("is missing without formats", async () => {
    assertEquals(
      (await createToolHandler(sampleRegistry()).request(`${BASE}/openapi.json`)).status,
      404,
    );
  });

  it("has the routes of the formats, and their responses", async () => {
    const app = serve({ openExecution: true });
    const { paths, components } = await documentOf(app);
    assertEquals(paths["/dispatch/{target}"]?.post?.operationId, "dispatchTurn");
    const ask = async (schema: string, path: string, init: RequestInit = {}): Promise<void> => {
      const response = await app.request(BASE + path, init);
      const { required } = components.schemas[schema] as { readonly required: readonly string[] };
      assertEquals(Object.keys(await response.json()).toSorted(), required.toSorted());
    };
    await ask("Export", "/tools?format=openai.chat");
    const turn = { role: "assistant", tool_calls: [] };
    await ask("Turn", "/dispatch/openai.chat", execution(turn));
  });

  it("takes for ids what the handler takes", async () => {
    const app = serve({ openExecution: true });
    const { paths } = await documentOf(app);
    const { schema } =
      paths["/tools/echo/execute"]?.post?.requestBody.content["application/json"] ??
        { schema: { properties: {} } };
    const { pattern, minLength, maxLength } = schema.properties["callId"] as {
      readonly pattern: string;
      readonly minLength: number;
      readonly maxLength: number;
    };
    for (
      const callId of [
        ...["a", "a b", "~", "!", " a", "a ", " ", "", "\u00e4", "a\nb", "a\n", "x".repeat(256)],
        "x".repeat(257),
      ]
    ) {
      const fits = new RegExp(pattern, "u").test(callId) && callId.length >= minLength &&
        callId.length <= maxLength;
      const { status } = await execute(app, "echo", { arguments: { text: "x" }, callId });
      assertEquals([callId, status], [callId, fits ? 200 : 400]);
    }
  });

  it("can be imported, and its tools called through this very handler", async () => {
    const app = serve({ openExecution: true });
    const { tools } = importOpenApi(await documentOf(app), {
      baseUrl: BASE,
      fetch: async (url, init) => await app.request(url, init as RequestInit),
    });
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }));
    const echo = tools.find(({ id }) => /(^|[.:])echo$/.test(id));
    const result = await dispatcher.dispatch({
      name: echo?.id ?? "",
      arguments: { arguments: { text: "there and back" } },
    });
    assert(result.ok, JSON.stringify(result));
    assertEquals((result.content as { content: unknown }).content, { text: "there and back" });
  });
});
