import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import type { ToolHandlerOptions } from "@plue/tools/hono";
import { createGuard } from "../../../src/adapters/http/mod.ts";
import { BASE, handler } from "../hono/support.ts";

const PAGE = "https://app.example.com";
const OPEN: ToolHandlerOptions = { allowedOrigins: [PAGE], cors: true };

describe("cors", () => {
  it("allows a listed origin to read the response to an internal error", async () => {
    const app = handler(OPEN);
    app.get("/broken", () => {
      throw new Error("broken");
    });
    const response = await app.request(`${BASE}/broken`, { headers: { origin: PAGE } });
    assertEquals(response.status, 500);
    assertEquals(response.headers.get("access-control-allow-origin"), PAGE);
  });

  it("allows a listed origin to read a rejection", async () => {
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

  it("does not add headers of one request to a shared response of authorize", async () => {
    const constant = new Response(null, { status: 401, headers: { "x-kept": "1" } });
    const app = handler({ ...OPEN, authorize: () => constant, observe: {} });
    const before = JSON.stringify([...constant.headers]);
    const first = await app.request(`${BASE}/tools`, { headers: { origin: PAGE } });
    assertEquals(first.headers.get("access-control-allow-origin"), PAGE);
    const second = await app.request(`${BASE}/tools`);
    assertEquals([second.status, second.headers.get("x-kept")], [401, "1"]);
    assertEquals(second.headers.get("access-control-allow-origin"), null);
    assertEquals(JSON.stringify([...constant.headers]), before);
  });
});

describe("createGuard()", () => {
  it("decides on each host independently of the previous request", () => {
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
    // A proxy may end TLS, but no proxy adds it.
    assertEquals(codeOf("http://localhost/", "https://localhost"), undefined);
    assertEquals(codeOf("https://localhost/", "http://localhost"), "forbidden_origin");
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
