import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { createEdgeApp, type EdgeAppOptions } from "../../../examples/edge/app.ts";
import smallest from "../../../examples/edge/smallest.ts";

const TOKEN = "correct-horse-battery";
const URL_OF_SERVICE = "https://tools.example";

const make = (options: Partial<EdgeAppOptions> = {}) =>
  createEdgeApp({ token: TOKEN, access() {}, ...options });

const post = (path: string, body: unknown, token?: string, app = make()) =>
  app.request(`${URL_OF_SERVICE}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(path === "/mcp" ? { accept: "application/json, text/event-stream" } : {}),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });

const call = (tool: string, args: unknown, token?: string, app = make()) =>
  post(`/tools/${tool}/execute`, { arguments: args }, token, app);

const content = async (tool: string, args: unknown): Promise<unknown> =>
  (await (await call(tool, args, TOKEN)).json()).content;

const echoCall = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "echo", arguments: { message: "x" } },
};
const turn = {
  role: "assistant",
  content: [{ type: "tool_use", id: "t1", name: "echo", input: { message: "x" } }],
};

describe("createEdgeApp()", () => {
  it("serves its tools over HTTP, for MCP clients and in the providers' formats", async () => {
    const app = make();
    const headers = { authorization: `Bearer ${TOKEN}` };
    const get = async (path: string) =>
      await (await app.request(`${URL_OF_SERVICE}${path}`, { headers })).json();
    const { tools } = await get("/tools");
    assertEquals(tools.map(({ id }: { id: string }) => id), [
      "echo",
      "json:get",
      "text:digest",
      "text:stats",
    ]);
    assertStringIncludes((await get("/openapi.json")).openapi, "3.1.");
    const dispatched = await post("/dispatch/anthropic", turn, TOKEN, app);
    assertStringIncludes(await dispatched.text(), "tool_result");
    assertStringIncludes(await (await post("/mcp", echoCall, TOKEN, app)).text(), '{\\"message\\"');
    assertEquals((await (await call("echo", { message: "x" }, TOKEN, app)).json()).ok, true);
  });

  it("rejects callers without the token on every route", async () => {
    for (const token of [undefined, "wrong", `${TOKEN}2`, TOKEN.slice(0, -1)]) {
      for (
        const response of [
          await call("echo", { message: "x" }, token),
          await post("/mcp", echoCall, token),
          await post("/dispatch/anthropic", turn, token),
          await make().request(`${URL_OF_SERVICE}/openapi.json`),
        ]
      ) assertEquals(response.status, 401);
    }
  });

  it("rejects all calls when no token is configured", async () => {
    for (const none of [undefined, ""]) {
      const app = make({ token: none });
      assertEquals((await app.request(`${URL_OF_SERVICE}/tools`)).status, 200);
      assertEquals((await call("echo", { message: "x" }, "", app)).status, 403);
      assertStringIncludes(await (await post("/mcp", echoCall, "", app)).text(), "authorize");
    }
  });

  it("counts and logs each request once, on all routes together", async () => {
    const paths: string[] = [];
    const all = Promise.withResolvers<void>();
    const app = make({
      requestsPerMinute: 3,
      // A stream is logged when it has ended.
      access({ path }) {
        if (paths.push(path) === 4) all.resolve();
      },
    });
    const statuses = [];
    for (let turns = 0; turns < 2; turns++) {
      for (
        const response of [
          await post("/mcp", echoCall, TOKEN, app),
          await call("echo", { message: "x" }, TOKEN, app),
        ]
      ) {
        await response.text();
        statuses.push(response.status);
      }
    }
    assertEquals(statuses, [200, 200, 200, 429]);
    await all.promise;
    const execute = "/tools/echo/execute";
    assertEquals(paths.sort(), ["/mcp", "/mcp", execute, execute]);
  });

  it("runs its tools", async () => {
    assertEquals(await content("echo", { message: "häh" }), { message: "häh" });
    assertEquals(
      await content("text:digest", { text: "abc" }),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
    assertEquals(await content("text:stats", { text: "Two words. Three more words!\nA 👩‍👩‍👧" }), {
      characters: 32,
      words: 6,
      sentences: 3,
      lines: 2,
    });
    const document = { "a/b": { "m~n": ["x", "y"] } };
    assertEquals(await content("json:get", { document, pointer: "/a~1b/m~0n/1" }), "y");
    assertEquals(await content("json:get", { document, pointer: "" }), document);
  });

  it("rejects a text that is too long to count", async () => {
    const counted = async (length: number): Promise<number> =>
      (await call("text:stats", { text: "a".repeat(length) }, TOKEN)).status;
    assertEquals([await counted(10_000), await counted(10_001)], [200, 422]);
  });

  it("does not find inherited members of a document", async () => {
    for (const pointer of ["/constructor", "/__proto__", "/length", "/0", "/-1", "/01"]) {
      for (const document of [{}, [], "text"]) {
        const response = await call("json:get", { document, pointer }, TOKEN);
        assertStringIncludes(await response.text(), "Cannot find");
      }
    }
  });
});

describe("the smallest worker", () => {
  const context = { waitUntil() {}, passThroughOnException() {}, props: {} };
  it("serves the tools to callers with the token", async () => {
    const ask = async (headers: Record<string, string>) =>
      await smallest.fetch(
        new Request(`${URL_OF_SERVICE}/tools`, { headers }),
        { PLUE_TOKEN: TOKEN },
        context,
      );
    assertEquals((await ask({})).status, 401);
    assertEquals((await ask({ authorization: `Bearer ${TOKEN}2` })).status, 401);
    const { tools } = await (await ask({ authorization: `Bearer ${TOKEN}` })).json();
    assertEquals(tools.length, 4);
  });
});
