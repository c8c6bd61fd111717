// Imported operations against a real HTTP server, through the runtime's own `fetch`.

import { afterAll, beforeAll, describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import type { Tool } from "../../mod.ts";
import { call } from "../support/call_tool.ts";
import { petStore } from "../adapters/openapi/fake_api.ts";

/** The server's record of the last request. */
interface Seen {
  readonly method: string | undefined;
  readonly url: URL;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

let server: Server;
let base = "";
let tools: readonly Tool[] = [];
let seen: Seen | undefined;
let answer: (response: ServerResponse, seen: Seen) => void = (response) =>
  response.writeHead(204).end();
/** Called when a client disconnects before it has received its response. */
let gone: () => void = () => {};

function json(value: unknown, status = 200): typeof answer {
  return (response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

describe("an imported operation over HTTP", () => {
  beforeAll(async () => {
    server = createServer((request, response) => {
      const chunks: Uint8Array[] = [];
      request.on("data", (chunk: Uint8Array) => chunks.push(chunk));
      response.on("close", () => {
        if (!response.writableFinished) gone();
      });
      request.on("end", () => {
        seen = {
          method: request.method,
          url: new URL(request.url ?? "", base),
          headers: request.headers,
          body: new TextDecoder().decode(Uint8Array.from(chunks.flatMap((chunk) => [...chunk]))),
        };
        answer(response, seen);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert(typeof address === "object" && address !== null);
    base = `http://127.0.0.1:${address.port}/api`;
    tools = importOpenApi(petStore(), {
      fetch: globalThis.fetch,
      baseUrl: base,
      authorize: () => ({ query: { api_key: "k" } }),
    }).tools;
  });

  afterAll(async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });

  it("arrives in the form that the API requires", async () => {
    answer = json([{ id: 1, name: "Mo", weight: null }]);
    const result = await call(tools, "listPets", {
      "X-Trace": "t 1",
      filter: { status: "a&b" },
      "filter[id]": [1, 2],
      $top: 5,
      sort: ["a", "b"],
    });
    assertEquals(result.ok && result.content, [{ id: 1, name: "Mo", weight: null }]);
    assertEquals(seen?.method, "GET");
    assertEquals(seen?.url.pathname, "/api/pets");
    assertEquals([...seen?.url.searchParams ?? []], [
      ["filter[status]", "a&b"],
      ["filter[id]", "1"],
      ["filter[id]", "2"],
      ["$top", "5"],
      ["sort", "a,b"],
      ["api_key", "k"],
    ]);
    assertEquals(seen?.headers["x-trace"], "t 1");
  });

  it("arrives with its body", async () => {
    answer = json({ id: 7, name: "Mü" }, 201);
    const result = await call(tools, "createPet", { name: "Mü", weight: 2 });
    assertEquals(result.ok && result.content, { id: 7, name: "Mü" });
    assertEquals(JSON.parse(seen?.body ?? ""), { name: "Mü", weight: 2 });
    assertEquals(seen?.headers["content-type"], "application/json");
    answer = (response) => response.writeHead(204).end();
    const login = await call(tools, "login", { user: "ü+ &", scopes: ["a", "b"] });
    assertEquals(login.ok && login.content, null);
    assertEquals([...new URLSearchParams(seen?.body)], [["user", "ü+ &"], ["scopes", "a"], [
      "scopes",
      "b",
    ]]);
  });

  it("cannot be redirected to another path", async () => {
    answer = (response) => response.writeHead(204).end();
    await call(tools, "put_pets_petId", { petId: "../../admin?x#y", name: "n" });
    assertEquals(seen?.url.pathname, "/api/pets/..%2F..%2Fadmin%3Fx%23y");
    seen = undefined;
    const result = await call(tools, "put_pets_petId", { petId: "..", name: "n" });
    assertEquals(!result.ok && result.error.code, "invalid_arguments");
    assertEquals(seen, undefined);
  });

  it("follows no redirect", async () => {
    let requests = 0;
    answer = (response) => {
      requests++;
      response.writeHead(302, { location: `${base}/elsewhere` }).end();
    };
    const result = await call(tools, "listPets", {});
    assert(!result.ok);
    assertStringIncludes(result.error.message, "a redirect, which is not followed");
    assertEquals(requests, 1);
  });

  it("stops a response that does not end", async () => {
    const left = new Promise<void>((resolve) => gone = resolve);
    answer = (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const chunk = "x".repeat(65_536);
      const write = (): void => {
        if (!response.destroyed) response.write(chunk, () => setImmediate(write));
      };
      write();
    };
    const result = await call(tools, "listPets", {});
    assertEquals(!result.ok && result.error.code, "output_too_large");
    await left;
  });

  it("disconnects from the server when the call is aborted", async () => {
    const left = new Promise<void>((resolve) => gone = resolve);
    const controller = new AbortController();
    answer = () => controller.abort();
    const result = await call(tools, "listPets", {}, controller.signal);
    assertEquals(!result.ok && result.error.code, "aborted");
    await left;
  });

  it("reports an unreachable server", async () => {
    const { tools: lost } = importOpenApi(petStore(), {
      fetch: globalThis.fetch,
      // No test listens on port 9, which is reserved for "discard".
      baseUrl: "http://127.0.0.1:9",
    });
    const result = await call(lost, "listPets", {});
    assert(!result.ok);
    assertEquals([result.error.code, result.error.retryable], ["threw", true]);
    assertStringIncludes(result.error.message, "Cannot get a response to GET /pets");
  });
});
