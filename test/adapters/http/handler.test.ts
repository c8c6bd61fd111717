import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import * as hono from "@plue/tools/hono";
import { composeToolHandler, type HttpPart, serveExecution, serveListing } from "@plue/tools/hono";
import { ToolDispatcher } from "@plue/tools";
import { BASE, execution, idsOf, problemOf, sampleRegistry } from "../hono/support.ts";

const registry = sampleRegistry();
// Some of the parts use layers.
const dispatcher = new ToolDispatcher(registry);

/** Sends a request to a handler of these parts. */
const send = async (
  parts: readonly HttpPart[],
  path: string,
  init: RequestInit = {},
  options: Omit<hono.ComposedHandlerOptions, "parts"> = {},
): Promise<Response> =>
  await composeToolHandler(registry, { openExecution: true, dispatcher, ...options, parts })
    .fetch(new Request(BASE + path, init));

const call = execution({ arguments: { text: "x" } });

describe("composeToolHandler()", () => {
  it("has the routes of its parts and no others", async () => {
    const paths: Record<string, readonly HttpPart[]> = {
      "/tools": [serveListing()],
      "/tools/echo": [serveListing()],
      "/tools/echo/explain": [hono.serveExplanations()],
      "/explain": [hono.serveExplanations()],
      "/calls": [hono.serveCalls()],
      "/metrics": [hono.serveMetrics()],
      "/healthz": [hono.serveHealth()],
    };
    for (const [path, parts] of Object.entries(paths)) {
      assertEquals((await send(parts, path)).status, 200, path);
      assertEquals((await problemOf(await send([serveExecution()], path))).code, "not_found", path);
    }
    assertEquals((await send([serveExecution()], "/tools/echo/execute", call)).status, 200);
    assertEquals((await send([serveListing()], "/tools/echo/execute", call)).status, 404);
  });

  it("responds to a call in the same way as createToolHandler()", async () => {
    const answers = [];
    for (
      const response of [
        await send([serveExecution()], "/tools/echo/execute", call),
        await hono.createToolHandler(registry, { openExecution: true })
          .request(`${BASE}/tools/echo/execute`, call),
      ]
    ) {
      const { callId: _, durationMs: _ms, ...body } = await response.json();
      answers.push([response.status, [...response.headers], body]);
    }
    assertEquals(answers[0], answers[1]);
  });

  it("rejects other hosts, except on the route for health checks", async () => {
    const { fetch } = composeToolHandler(registry, { parts: [serveListing(), hono.serveHealth()] });
    const statuses = [];
    for (const path of ["/tools", "/healthz"]) {
      statuses.push((await fetch(new Request(`http://other.example${path}`))).status);
    }
    assertEquals(statuses, [421, 200]);
  });

  it("lists all tools on one page, and rejects a query without queryPages()", async () => {
    const whole = await send([serveListing()], "/tools");
    assertEquals((await idsOf(whole)).includes("echo"), true);
    const headers = { "if-none-match": whole.headers.get("etag") ?? "" };
    assertEquals((await send([serveListing()], "/tools", { headers })).status, 304);
    assertEquals((await send([serveListing()], "/tools?q=echo")).status, 400);
    const queried = await send(
      [serveListing({ pageOf: hono.queryPages() })],
      "/tools?tagsAny=text",
    );
    assertEquals(await idsOf(queried), ["echo"]);
  });

  it("sends the result to a client that accepts a stream, unless streamCall is set", async () => {
    const stream = { ...call, headers: { ...call.headers as object, accept: "text/event-stream" } };
    const typeOf = async (part: HttpPart): Promise<string | null> => {
      const response = await send([part], "/tools/echo/execute", stream);
      // An unread stream would keep the process running.
      await response.text();
      return response.headers.get("content-type");
    };
    assertEquals(await typeOf(serveExecution()), "application/json");
    assertEquals(
      await typeOf(serveExecution({ streamCall: hono.streamCall })),
      "text/event-stream",
    );
  });

  it("rejects parts whose layers the dispatcher does not have", async () => {
    assertThrows(
      () => composeToolHandler(registry, { parts: [hono.serveMetrics()] }),
      TypeError,
      "the dispatcher must be a ToolDispatcher",
    );
    const { fetch } = composeToolHandler(registry, {
      openExecution: true,
      parts: [serveExecution()],
    });
    const keyed = { ...call, headers: { ...call.headers as object, "idempotency-key": "k" } };
    const { status } = await fetch(new Request(`${BASE}/tools/echo/execute`, keyed));
    assertEquals(status, 422);
  });

  it("counts, logs and exposes every response with the corresponding parts", async () => {
    const entries: hono.AccessEntry[] = [];
    const { fetch } = composeToolHandler(registry, {
      allowedOrigins: ["https://app.example"],
      parts: [
        hono.observeRequests({ access: (entry) => void entries.push(entry) }),
        hono.allowCrossOrigin(),
        hono.limitRate({ limit: 1, windowMs: 60_000 }),
        serveListing(),
      ],
    });
    const headers = { origin: "https://app.example" };
    const statuses = [];
    for (
      const [path, method] of [["/tools", "GET"], ["/tools", "GET"], ["/none", "HEAD"]] as const
    ) {
      const response = await fetch(new Request(BASE + path, { method, headers }));
      statuses.push(response.status);
      assertEquals(response.headers.get("access-control-allow-origin"), "https://app.example");
      assertEquals(response.headers.has("traceparent"), true);
    }
    assertEquals(statuses, [200, 429, 404]);
    const request = { ...headers, "access-control-request-method": "POST" };
    const preflight = await fetch(
      new Request(`${BASE}/any`, { method: "OPTIONS", headers: request }),
    );
    assertEquals(preflight.status, 204);
    assertEquals(entries.map(({ route, status }) => [route, status]), [
      ["/tools", 200],
      ["/tools", 429],
      [undefined, 404],
      [undefined, 204],
    ]);
  });

  it("runs the first of two observers around the second", async () => {
    const order: string[] = [];
    const named = (name: string): HttpPart => () => ({
      async around(_, answer) {
        order.push(`${name} begins`);
        const response = await answer();
        order.push(`${name} ends`);
        return response;
      },
    });
    await send([named("a"), named("b")], "/tools");
    assertEquals(order, ["a begins", "b begins", "b ends", "a ends"]);
  });

  it("reads the parameter of a path as Hono does", async () => {
    const name: HttpPart = () => ({
      routes: [{ method: "GET", path: "/of/:id/x", answer: ({ param }) => new Response(param) }],
    });
    for (
      const [path, param] of [
        ["/of/a/x", "a"],
        ["/of/task:approve/x?q=1", "task:approve"],
        ["/of/task%3Aapprove/x", "task:approve"],
        ["/of/a%2Fb/x", "a/b"],
        ["/of/a%25b/x", "a%b"],
        ["/of/%zz/x", "%zz"],
      ] as const
    ) assertEquals(await (await send([name], path)).text(), param, path);
    for (const path of ["/of//x", "/of/x", "/of/a/b/x", "/of/a/x/", "/of/a"]) {
      assertEquals((await send([name], path)).status, 404, path);
    }
  });

  it("answers HEAD as GET without the body, and 405 with the methods of a path", async () => {
    const head = await send([serveListing()], "/tools", { method: "HEAD" });
    const body = await (await send([serveListing()], "/tools")).text();
    assertEquals([head.headers.get("content-length"), head.body], [String(body.length), null]);
    const wrong = await send([serveListing()], "/tools", { method: "DELETE" });
    assertEquals([wrong.status, wrong.headers.get("allow")], [405, "GET, HEAD"]);
    const calls = await send([hono.serveCalls()], "/calls/x", { method: "PUT" });
    assertEquals(calls.headers.get("allow"), "GET, HEAD, POST, DELETE");
  });
});

describe("createToolHandler()", () => {
  it("responds in the same way when it is mounted in another app", async () => {
    const { Hono } = await import("hono");
    const tools = hono.createToolHandler(registry, { openExecution: true });
    const app = new Hono().route("/api/:tenant", tools);
    for (
      const [path, init] of [
        ["/tools/echo/execute", call],
        ["/tools/task%3Aapprove", {}],
        ["/tools/echo", { method: "HEAD" }],
        ["/tools", { method: "DELETE" }],
        ["/healthz", {}],
      ] as const
    ) {
      const mounted = await app.request(`${BASE}/api/acme${path}`, init);
      assertEquals(mounted.status, (await tools.request(BASE + path, init)).status, path);
    }
  });

  it("passes other paths to the added routes", async () => {
    const app = hono.createToolHandler(registry, { openExecution: true });
    app.get("/more", (c) => c.text("more"));
    assertEquals(await (await app.request(`${BASE}/more`)).text(), "more");
    assertEquals((await app.request(`${BASE}/none`)).status, 404);
  });
});
