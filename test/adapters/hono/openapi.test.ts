import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { Hono } from "hono";
import { createToolHandler, serveFormats, type ToolHandlerOptions } from "@plue/tools/hono";
import * as formats from "@plue/tools/formats";
import { importOpenApi } from "@plue/tools/openapi";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { BASE, execute, execution, sampleRegistry } from "./support.ts";

interface Operation {
  readonly operationId: string;
  readonly requestBody: {
    readonly content: {
      readonly "application/json": {
        readonly schema: { readonly properties: Readonly<Record<string, unknown>> };
      };
    };
  };
}

interface Document {
  readonly paths: Readonly<Record<string, { readonly post?: Operation; readonly get?: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

const serve = (options: ToolHandlerOptions = {}) =>
  createToolHandler(sampleRegistry(), { formats: serveFormats(formats), ...options });

const documentOf = async (app: ReturnType<typeof serve>): Promise<Document> =>
  await (await app.request(`${BASE}/openapi.json`)).json();

describe("GET /openapi.json", () => {
  it("has every route of the handler", async () => {
    const app = serve({ journal: { async *records() {} } });
    const { paths } = await documentOf(app);
    const routes = app.routes.map(({ path }) => path.replaceAll(/:(\w+)/g, "{$1}"));
    // The document has a path for each tool instead of the first route, and omits the second.
    const others = ["/tools/{id}/execute", "/openapi.json"];
    const missing = routes.filter((path) => !others.includes(path) && !(path in paths));
    assertEquals(missing, []);
  });

  it("refers to existing schemas only", async () => {
    const document = await documentOf(serve());
    const text = JSON.stringify(document);
    for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"/]+)"/g)) {
      assert(Object.hasOwn(document.components.schemas, name), name);
    }
  });

  it("is made once, even if it is larger than the cache of pages", async () => {
    const registry = new ToolRegistry({ tools: [] });
    const description = "x".repeat(900_000);
    for (let at = 0; at < 10; at++) registry.registerTool({ name: `t${at}`, description });
    let count = 0;
    const exportTools = ((...args: Parameters<typeof formats.exportTools>) => {
      count++;
      return formats.exportTools(...args);
    }) as typeof formats.exportTools;
    const app = createToolHandler(registry, { formats: serveFormats({ ...formats, exportTools }) });
    for (let at = 0; at < 2; at++) await documentOf(app);
    assertEquals(count, 1);
  });

  it("names the path of its own request as the server", async () => {
    const app = new Hono().route("/t/:tenant", serve()).route("/t/both/api", serve());
    const tags = new Set<string | null>();
    const roots = ["/t/ann", "/t/bob", "/t/both/api"];
    for (const root of roots) {
      const response = await app.request(`${BASE}${root}/openapi.json`);
      tags.add(response.headers.get("etag"));
      assertEquals((await response.json()).servers, [{ url: root }]);
    }
    assertEquals(tags.size, roots.length);
  });

  it("has each operation once", async () => {
    const { paths } = await documentOf(serve());
    const ids = Object.values(paths).flatMap(({ get, post }) =>
      [get, post].flatMap((operation) => operation === undefined ? [] : [operation.operationId])
    );
    assertEquals(new Set(ids).size, ids.length);
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

  it("accepts the same ids as the handler", async () => {
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

  it("can be imported, and its tools called through this very handler, also below a path", async () => {
    for (const root of ["", "/t/acme"]) {
      const app = new Hono().route(root, serve({ openExecution: true }));
      const documentUrl = `${BASE}${root}/openapi.json`;
      const { tools } = importOpenApi(await (await app.request(documentUrl)).json(), {
        ...{ documentUrl, allowedHosts: [new URL(BASE).hostname] },
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
    }
  });
});
