import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { type Caller, createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import {
  BASE,
  execute,
  execution,
  handler,
  idsOf,
  problemOf,
  sampleRegistry,
} from "../hono/support.ts";

const as = (caller: Caller): ToolHandlerOptions => ({ authorize: () => caller });

describe("authorize", () => {
  for (
    const [what, caller, ids] of [
      ["nothing", {}, ["echo", "file-write", "plan", "rm"]],
      ["a role", { role: "control" }, ["echo", "file-write", "plan", "rm", "task:approve"]],
      ["another role", { role: "impl" }, ["echo", "file-write", "plan", "rm"]],
      ["scopes", { scopes: ["secrets:read"] }, ["echo", "file-write", "plan", "rm", "secrets"]],
      ["a maximum risk", { maxRisk: "safe" }, ["echo", "plan"]],
      ["a context", { context: { hasTerminal: false } }, ["echo", "file-write", "plan"]],
    ] as const
  ) {
    it(`shows a caller with ${what} that caller's tools`, async () => {
      assertEquals(await idsOf(await handler(as(caller)).request(`${BASE}/tools`)), ids);
    });
  }

  it("rejects a caller with a field that is a promise, whose rejection ends no process", async () => {
    for (const field of ["principal", "role", "scopes", "expiresAt", "explain", "callContext"]) {
      const errors: unknown[] = [];
      const lookup = (): Caller => ({ [field]: Promise.reject(new Error("the lookup failed")) });
      const app = handler({ authorize: lookup, onError: (error) => errors.push(error) });
      assertEquals((await execute(app, "echo", { arguments: { text: "x" } })).status, 500, field);
      assertStringIncludes(String(errors[0]), "it is a promise, and must be given at once");
    }
    for (const caller of [{ principal: 7 }, { principal: null }, { expiresAt: NaN }]) {
      const app = handler(as(caller as unknown as Caller));
      assertEquals((await app.request(`${BASE}/tools`)).status, 500, JSON.stringify(caller));
    }
  });

  it("lets a caller call exactly what it sees", async () => {
    for (const caller of [{}, { role: "control" }, { maxRisk: "safe" }] satisfies Caller[]) {
      const app = handler(as(caller));
      const seen = await idsOf(await app.request(`${BASE}/tools`));
      for (const { id } of sampleRegistry().tools) {
        const response = await execute(app, id, { arguments: id === "echo" ? { text: "x" } : {} });
        assertEquals(response.status === 404, !seen.includes(id), id);
      }
    }
  });

  for (const selection of [undefined, { role: undefined }, { scopes: undefined }]) {
    it(`hides tools with roles or scopes without authorize: ${JSON.stringify(selection)}`, async () => {
      const app = handler(selection === undefined ? {} : { selection });
      const ids = await idsOf(await app.request(`${BASE}/tools`));
      assertEquals(ids, ["echo", "file-write", "plan", "rm"]);
    });
  }

  it("is called for each request, and checks equal callers once", async () => {
    const caller: { role?: string; scopes?: string[]; context?: object } = {};
    const app = handler(as(caller as Caller));
    const ids = async () => await idsOf(await app.request(`${BASE}/tools`));
    const everyone = ["echo", "file-write", "plan", "rm"];
    assertEquals(await ids(), everyone);
    caller.scopes = ["secrets:read"];
    assertEquals(await ids(), [...everyone, "secrets"]);
    caller.scopes.pop();
    assertEquals(await ids(), everyone);
    caller.role = "control";
    assertEquals(await ids(), [...everyone, "task:approve"]);
    caller.context = { enabledToolIds: new Set(["echo"]) };
    assertEquals(await ids(), ["echo"]);
    caller.context = { enabledToolIds: new Set(["plan"]) };
    assertEquals(await ids(), ["plan"]);
    for (
      const wrong of [{ role: 5 }, { scopes: "control" }, { scopes: [undefined] }, { rôle: "" }]
    ) {
      Object.assign(caller, wrong);
      assertEquals((await app.request(`${BASE}/tools`)).status, 500);
    }
  });

  for (const wrong of [false, 5, "", null]) {
    it(`rejects ${JSON.stringify(wrong)} after an equal request of the caller {}`, async () => {
      const callers: unknown[] = [{}, {}, wrong];
      const app = handler({ authorize: () => callers.shift() as Caller });
      const statuses: number[] = [];
      while (callers.length > 0) statuses.push((await app.request(`${BASE}/tools`)).status);
      assertEquals(statuses, [200, 200, 500]);
    });
  }

  it("cannot be widened by a query", async () => {
    const app = handler(as({ role: "impl" }));
    assertEquals(await idsOf(await app.request(`${BASE}/tools?role=control&namespace=task`)), []);
  });

  it("sends the response that turns a caller away, on every route", async () => {
    const app = handler({ authorize: () => new Response("who?", { status: 401 }) });
    for (const path of ["/tools", "/tools/echo", "/tools/echo/explain", "/metrics"]) {
      assertEquals((await app.request(BASE + path)).status, 401);
    }
    const response = await execute(app, "echo", { arguments: { text: "x" } });
    assertEquals(response.status, 401);
  });

  it("rejects everything when it throws or returns an invalid caller, and logs the error", async () => {
    const errors: unknown[] = [];
    for (
      const authorize of [
        () => {
          throw new Error("the secret is sesame");
        },
        () => undefined,
        () => ({ rôle: "control" }),
        () => ({ maxRisk: "enormous" }),
      ]
    ) {
      const app = handler({
        authorize: authorize as never,
        onError: (error) => {
          errors.push(error);
        },
      });
      const response = await app.request(`${BASE}/tools`);
      assertEquals(response.status, 500);
      const text = await response.text();
      assertEquals(text.includes("sesame") || text.includes("rôle"), false);
    }
    assertEquals(errors.length, 4);
  });

  it("explains hidden tools only to a caller with explain", async () => {
    const hidden = `${BASE}/tools/task:approve/explain`;
    assertEquals((await handler(as({})).request(hidden)).status, 404);
    const response = await handler(as({ explain: true })).request(hidden);
    assertStringIncludes(await response.text(), "role");
  });
});

describe("the guard", () => {
  for (const host of ["localhost:8787", "127.0.0.1", "[::1]:80"]) {
    it(`lets in a request for ${host}`, async () => {
      assertEquals((await handler().request(`http://${host}/tools`)).status, 200);
    });
  }

  it("turns away a host that it does not answer to, as DNS rebinding would send", async () => {
    const response = await handler({ openExecution: true }).request(
      "http://evil.example:8787/tools/echo/execute",
      execution({ arguments: { text: "x" } }, { origin: "http://evil.example:8787" }),
    );
    assertEquals(response.status, 421);
    assertEquals((await problemOf(response)).code, "forbidden_host");
  });

  it("accepts the allowed hosts, and no others", async () => {
    const app = handler({ allowedHosts: ["tools.example.com"] });
    assertEquals((await app.request("https://tools.example.com/tools")).status, 200);
    assertEquals((await app.request("http://localhost/tools")).status, 421);
    const any = handler({ allowedHosts: "any" });
    assertEquals((await any.request("https://x.example/tools")).status, 200);
  });

  for (const origin of ["https://evil.example", "null", "http://localhost:3000"]) {
    it(`turns away a page of origin ${origin}`, async () => {
      const response = await handler().request(`${BASE}/tools`, { headers: { origin } });
      assertEquals(response.status, 403);
      assertEquals((await problemOf(response)).code, "forbidden_origin");
    });
  }

  it("lets in pages of its own origin and of listed ones", async () => {
    const app = handler({ allowedOrigins: ["https://app.example.com"] });
    for (const origin of ["http://localhost", "https://app.example.com"]) {
      assertEquals((await app.request(`${BASE}/tools`, { headers: { origin } })).status, 200);
    }
  });

  for (
    const options of [
      { allowedHosts: ["localhost:80x"] },
      { allowedHosts: ["localhost:8787"] },
      { allowedHosts: ["a/b"] },
      { allowedHosts: ["*.example.com"] },
      { allowedOrigins: ["https://*.example.com"] },
      { allowedOrigins: ["*"] },
      { allowedOrigins: ["app.example.com"] },
      { allowedOrigins: ["https://app.example.com/"] },
      { maxBodyBytes: 0 },
      { openExecutoin: true },
      { openExecution: "false" },
      { openExplain: 1 },
      { authorize: 5 },
      { selection: { maxRisk: "lwo" } },
      { dispatcher: {} },
      { onError: 3 },
      { allowedHosts: "localhost" },
      { maxEventStreams: 0.5 },
    ] as unknown as ToolHandlerOptions[]
  ) {
    it(`rejects the options ${JSON.stringify(options)}`, () => {
      const error = assertThrows(() => createToolHandler(sampleRegistry(), options));
      assert(error instanceof TypeError || error instanceof RangeError);
      assertStringIncludes(error.message, "Cannot ");
    });
  }
});
