import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import type { ToolHandlerOptions } from "@plue/tools/hono";
import { createGuard } from "../../../src/adapters/http/mod.ts";
import { BASE, execution, handler } from "../hono/support.ts";

const PAGE = "https://app.example.com";
const OPEN: ToolHandlerOptions = { allowedOrigins: [PAGE], cors: true };

const asks: RequestInit = {
  method: "OPTIONS",
  headers: { origin: PAGE, "access-control-request-method": "POST" },
};

const headersOf = (init: RequestInit): Record<string, string> =>
  init.headers as Record<string, string> | undefined ?? {};

describe("cors", () => {
  it("is off unless asked for", async () => {
    const app = handler({ allowedOrigins: [PAGE] });
    const response = await app.request(`${BASE}/tools`, { headers: { origin: PAGE } });
    assertEquals(response.headers.get("access-control-allow-origin"), null);
    assertEquals((await app.request(`${BASE}/tools`, asks)).status, 405);
  });

  it("lets a listed page read the answers, problems too", async () => {
    const app = handler(OPEN);
    for (const path of ["/tools", "/tools/nope", "/tools?wrong=1"]) {
      const response = await app.request(BASE + path, { headers: { origin: PAGE } });
      assertEquals(response.headers.get("access-control-allow-origin"), PAGE);
      assertStringIncludes(response.headers.get("access-control-expose-headers") ?? "", "etag");
      assertStringIncludes(response.headers.get("vary") ?? "", "origin");
      assertEquals(response.headers.get("access-control-allow-credentials"), null);
    }
  });

  for (
    const [what, url, init, status] of [
      ["no such route", `${BASE}/nope`, {}, 404],
      ["another method", `${BASE}/tools/echo/execute`, {}, 405],
      ["another method of a fixed route", `${BASE}/healthz`, { method: "DELETE" }, 405],
      ["the health of the server", `${BASE}/healthz`, {}, 200],
      ["a plain OPTIONS", `${BASE}/tools`, { method: "OPTIONS" }, 405],
      ["another host", "http://evil.example/tools", {}, 421],
      ["a question for another host", "http://evil.example/tools", asks, 421],
      ["closed execution", `${BASE}/tools/echo/execute`, execution({}), 403],
      ["something that broke", `${BASE}/broken`, {}, 500],
    ] as const
  ) {
    it(`lets a listed page, and no other, read the answer to ${what}`, async () => {
      const app = handler(OPEN);
      app.get("/broken", () => {
        throw new Error("broken");
      });
      const ask = (origin: string) =>
        app.request(url, { ...init, headers: { ...headersOf(init), origin } });
      const response = await ask(PAGE);
      assertEquals(response.status, status);
      assertEquals(response.headers.get("access-control-allow-origin"), PAGE);
      const names = response.headers.get("vary")?.split(",").map((name) => name.trim()) ?? [];
      assertEquals(names.filter((name) => name === "origin").length, 1);
      const other = await ask("https://evil.example");
      assertEquals(other.headers.get("access-control-allow-origin"), null);
    });
  }

  it("accepts and exposes the headers of MCP clients, including the headers for arguments", async () => {
    const names = "mcp-session-id, mcp-protocol-version, last-event-id, mcp-method, mcp-name";
    const response = await handler(OPEN).request(`${BASE}/mcp`, {
      ...asks,
      headers: {
        ...headersOf(asks),
        "access-control-request-headers": `${names}, Mcp-Param-Region, x-other, mcp-param-\u00e9`,
      },
    });
    assertEquals(response.status, 204);
    const allowed = response.headers.get("access-control-allow-headers")?.split(", ") ?? [];
    for (const name of names.split(", ")) assert(allowed.includes(name), name);
    assertEquals(allowed.filter((name) => /^(mcp-param|x-other)/.test(name)), ["mcp-param-region"]);
    const exposed = response.headers.get("access-control-expose-headers")?.split(", ") ?? [];
    for (const name of ["mcp-session-id", "www-authenticate"]) assert(exposed.includes(name), name);
  });

  it("lets a listed page read how it was turned away", async () => {
    // The headers of a fetched response are immutable.
    const fixed = Object.defineProperty(new Response(null, { status: 401 }), "headers", {
      value: new Proxy(new Headers({ "x-kept": "1" }), {
        get(target, name) {
          if (name === "set" || name === "append") throw new TypeError("immutable");
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      }),
    });
    const app = handler({ ...OPEN, authorize: () => fixed });
    const response = await app.request(`${BASE}/tools`, { headers: { origin: PAGE } });
    assertEquals(response.status, 401);
    assertEquals(response.headers.get("x-kept"), "1");
    assertEquals(response.headers.get("access-control-allow-origin"), PAGE);
  });

  it("leaves nothing of one answer on the response that turns everybody away", async () => {
    const constant = new Response(null, { status: 401, headers: { "x-kept": "1" } });
    const app = handler({
      ...OPEN,
      authorize: () => constant,
      observe: { serverTiming: true },
    });
    const before = JSON.stringify([...constant.headers]);
    const first = await app.request(`${BASE}/tools`, { headers: { origin: PAGE } });
    assertEquals(first.headers.get("access-control-allow-origin"), PAGE);
    const second = await app.request(`${BASE}/tools`);
    assertEquals([second.status, second.headers.get("x-kept")], [401, "1"]);
    assertEquals(second.headers.get("access-control-allow-origin"), null);
    assertEquals(JSON.stringify([...constant.headers]), before);
  });

  it("answers preflight requests without authorization", async () => {
    const app = handler({ ...OPEN, authorize: () => new Response(null, { status: 401 }) });
    const response = await app.request(`${BASE}/tools/echo/execute`, asks);
    assertEquals(response.status, 204);
    assertEquals(response.headers.get("access-control-allow-origin"), PAGE);
    assertEquals(response.headers.get("access-control-allow-methods"), "GET, POST, DELETE");
    assertStringIncludes(
      response.headers.get("access-control-allow-headers") ?? "",
      "authorization",
    );
    assertEquals(response.headers.get("access-control-max-age"), "600");
  });

  it("rejects pages of other origins", async () => {
    const app = handler(OPEN);
    for (const origin of ["https://evil.example", "null", `${PAGE}.evil.example`]) {
      const response = await app.request(`${BASE}/tools`, {
        ...asks,
        headers: { ...asks.headers as Record<string, string>, origin },
      });
      assertEquals(response.status, 403);
      assertEquals(response.headers.get("access-control-allow-origin"), null);
    }
  });

  it("lets browsers send cookies and further headers only when told", async () => {
    const app = handler({
      ...OPEN,
      cors: { credentials: true, headers: ["x-extra"] },
    });
    const response = await app.request(`${BASE}/tools`, asks);
    assertEquals(response.headers.get("access-control-allow-credentials"), "true");
    assertEquals(response.headers.get("access-control-max-age"), "600");
    assertStringIncludes(response.headers.get("access-control-allow-headers") ?? "", "x-extra");
  });

  for (
    const options of [
      { cors: true },
      { cors: { headers: ["a b"] }, allowedOrigins: [PAGE] },
      { cors: { maxAge: 1 }, allowedOrigins: [PAGE] },
    ] as ToolHandlerOptions[]
  ) {
    it(`rejects ${JSON.stringify(options)}`, () => {
      assertThrows(() => handler(options), Error, "Cannot serve other origins (cors)");
    });
  }
});

describe("GET /.well-known/oauth-protected-resource", () => {
  const metadata = {
    resource: "https://tools.example.com/mcp",
    authorizationServers: ["https://issuer.example"],
    scopes: ["tools:read"],
    name: "Tools",
    documentation: "https://tools.example.com/docs",
  };

  it("serves the metadata to clients without a token", async () => {
    const app = handler({
      authorize: () => new Response(null, { status: 401 }),
      protectedResource: metadata,
    });
    for (const end of ["", "/mcp"]) {
      const response = await app.request(`${BASE}/.well-known/oauth-protected-resource${end}`);
      assertEquals([response.status, await response.json()], [200, {
        resource: "https://tools.example.com/mcp",
        authorization_servers: ["https://issuer.example"],
        scopes_supported: ["tools:read"],
        bearer_methods_supported: ["header"],
        resource_name: "Tools",
        resource_documentation: "https://tools.example.com/docs",
      }]);
    }
  });

  it("is missing without protectedResource", async () => {
    const response = await handler().request(`${BASE}/.well-known/oauth-protected-resource`);
    assertEquals(response.status, 404);
  });

  it("answers to this server's hosts only", async () => {
    const response = await handler({ protectedResource: metadata })
      .request("http://evil.example/.well-known/oauth-protected-resource");
    assertEquals(response.status, 421);
  });

  for (
    const wrong of [
      { resource: "tools" },
      { resource: "https://tools.example.com/?a=b" },
      { authorizationServers: [] },
      { authorizationServers: ["issuer"] },
    ]
  ) {
    it(`rejects ${JSON.stringify(wrong)}`, () => {
      assertThrows(() => handler({ protectedResource: { ...metadata, ...wrong } }), TypeError);
    });
  }
});

describe("createGuard()", () => {
  it("judges each host by itself, whichever came before", () => {
    const guard = createGuard({});
    const codeOf = (url: string): string | undefined => guard(new Request(url))?.code;
    const hosts = ["localhost", "localhost.example", "localhost:8080", "localhostile", "127.0.0.1"];
    for (let round = 0; round < 2; round++) {
      assertEquals(hosts.map((host) => codeOf(`http://${host}/tools`)), [
        undefined,
        "forbidden_host",
        undefined,
        "forbidden_host",
        undefined,
      ]);
    }
  });

  it("compares the origin with the requested host", () => {
    const guard = createGuard({});
    const codeOf = (url: string, origin: string): string | undefined =>
      guard(new Request(url, { headers: { origin } }))?.code;
    assertEquals(codeOf("http://localhost:1/", "http://localhost:1"), undefined);
    assertEquals(codeOf("http://localhost:12/", "http://localhost:1"), "forbidden_origin");
    assertEquals(codeOf("http://localhost:1/", "http://localhost:12"), "forbidden_origin");
  });

  it("rejects a request with two hosts", () => {
    // The form in which workerd combines two headers; no program can send such a request.
    const request = { url: "http://localhost, evil.example/tools", headers: new Headers() };
    for (const allowedHosts of [["localhost"], "any"] as const) {
      const problem = createGuard({ allowedHosts })(request as Request);
      assertEquals([problem?.status, problem?.code], [400, "bad_request"]);
    }
  });
});
