import { describe, it } from "bun:test";
import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { type AccessEntry, createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { type CallTelemetry, ToolRegistry } from "@plue/tools";
import { BASE, execute, execution, sampleRegistry } from "../hono/support.ts";
import { allEvents } from "../hono/sse.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const STREAM = { accept: "text/event-stream" };

function observed(options: ToolHandlerOptions = {}) {
  const entries: AccessEntry[] = [];
  const listeners: (() => void)[] = [];
  const app = createToolHandler(sampleRegistry(), {
    openExecution: true,
    ...options,
    observe: {
      access: (entry) => {
        entries.push(entry);
        for (const listener of listeners.splice(0)) listener();
      },
      ...options.observe,
    },
  });
  const next = (): Promise<void> => new Promise((resolve) => listeners.push(resolve));
  return { app, entries, next };
}

describe("traceparent", () => {
  const ask = async (traceparent?: string): Promise<string> => {
    const { app } = observed();
    const response = await app.request(
      `${BASE}/tools`,
      traceparent === undefined ? {} : { headers: { traceparent } },
    );
    return response.headers.get("traceparent") ?? "";
  };

  it("continues the trace of the request with a new parent id", async () => {
    const answered = await ask(`00-${TRACE}-${SPAN}-01`);
    assertMatch(answered, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
    assertEquals(answered.includes(SPAN), false);
    assertMatch(await ask(`00-${TRACE}-${SPAN}-00`), /-00$/);
  });

  it("accepts a traceparent header of a later version", async () => {
    assertMatch(await ask(`cc-${TRACE}-${SPAN}-01-what-may-come`), new RegExp(`^00-${TRACE}-`));
  });

  for (
    const header of [
      undefined,
      "",
      "nonsense",
      `ff-${TRACE}-${SPAN}-01`,
      `00-${"0".repeat(32)}-${SPAN}-01`,
      `00-${TRACE}-${"0".repeat(16)}-01`,
      `00-${TRACE.toUpperCase()}-${SPAN}-01`,
      `00-${TRACE}-${SPAN}-01-more`,
      `00-${TRACE}-${SPAN}-1`,
      `cc-${TRACE}-${SPAN}-01-${"x".repeat(600)}`,
    ]
  ) {
    it(`begins a new trace for ${JSON.stringify(header)?.slice(0, 70)}`, async () => {
      const [first, second] = [await ask(header), await ask(header)];
      assertMatch(first, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      assertEquals(first.includes(TRACE), false);
      assertNotEquals(first, second);
    });
  }
});

describe("traceparent of a response", () => {
  it("is missing by default", async () => {
    const { headers } = await createToolHandler(sampleRegistry()).request(`${BASE}/tools`);
    assertEquals(headers.get("traceparent"), null);
  });
});

describe("the access log", () => {
  it("has a line for every request, and no secrets in it", async () => {
    const { app, entries } = observed({
      authorize: (request) =>
        request.headers.get("authorization") === "Bearer sesame"
          ? { principal: "ann" }
          : new Response(null, { status: 401 }),
    });
    const as = { authorization: "Bearer sesame" };
    await app.request(`${BASE}/tools?q=secret`, { headers: as });
    await app.request(`${BASE}/tools/echo/execute`, {
      ...execution({ arguments: { text: "my-own" }, callId: "c1" }, as),
    });
    await execute(app, "echo", { arguments: { text: 5 } }, as);
    await app.request(`${BASE}/tools`);
    await app.request(`${BASE}/nowhere`);
    await app.request(`${BASE}/tools`, { method: "DELETE" });
    await app.request("http://evil.example/tools");
    const rows = entries.map(({ method, path, route, status, principal, calls }) => [
      ...[method, path, route, status, principal, calls[0]?.toolId, calls[0]?.outcome],
    ]);
    assertEquals(rows, [
      ["GET", "/tools", "/tools", 200, "ann", undefined, undefined],
      ["POST", "/tools/echo/execute", "/tools/:id/execute", 200, "ann", "echo", "ok"],
      [
        "POST",
        "/tools/echo/execute",
        "/tools/:id/execute",
        422,
        "ann",
        "echo",
        "invalid_arguments",
      ],
      ["GET", "/tools", "/tools", 401, undefined, undefined, undefined],
      ["GET", "/nowhere", undefined, 404, undefined, undefined, undefined],
      ["DELETE", "/tools", undefined, 405, undefined, undefined, undefined],
      ["GET", "/tools", "/tools", 421, undefined, undefined, undefined],
    ]);
    assertEquals(entries[1]?.calls, [{ toolId: "echo", callId: "c1", outcome: "ok" }]);
    assertEquals(/sesame|secret|my-own/.test(JSON.stringify(entries)), false);
    const now = Date.now();
    assert(entries.every(({ time }) => time <= now && time > now - 60_000));
    assert(entries.every(({ durationMs }) => durationMs >= 0));
  });

  it("writes an entry for a stream when it has ended, with the outcome of its call", async () => {
    const { app, entries, next } = observed();
    const response = await execute(app, "echo", { arguments: { text: "x" } }, STREAM);
    assertEquals(entries.length, 0);
    const logged = next();
    await allEvents(response);
    await logged;
    assertEquals([entries[0]?.status, entries[0]?.calls[0]?.outcome], [200, "ok"]);
  });

  it("writes one entry for a stream of another handler, when it has been read", async () => {
    const { app, entries, next } = observed();
    app.get(
      "/own",
      () => new Response("data: 1\n\n", { headers: { "content-type": "text/event-stream" } }),
    );
    for (const read of [true, false]) {
      const response = await app.request(`${BASE}/own`);
      assertEquals(entries.length, read ? 0 : 1);
      const logged = next();
      if (read) assertEquals(await response.text(), "data: 1\n\n");
      else await response.body?.cancel();
      await logged;
      assertMatch(response.headers.get("traceparent") ?? "", /^00-/);
    }
    assertEquals(entries.map(({ path, status }) => [path, status]), Array(2).fill(["/own", 200]));
  });

  it("writes one entry for a request that one handler passes to another", async () => {
    const { app: outer, entries } = observed({ authorize: () => ({ principal: "ann" }) });
    const { app: inner, entries: others } = observed();
    outer.all("/inner/*", (c) => inner.fetch(c.req.raw));
    await outer.request(`${BASE}/inner/nope`);
    assertEquals([entries.map(({ path }) => path), others], [["/inner/nope"], []]);
  });

  it("writes an entry for a stream whose reader disconnected", async () => {
    const { app, entries, next } = observed();
    const response = await app.request(`${BASE}/events`);
    const logged = next();
    await response.body?.cancel();
    await logged;
    assertEquals([entries[0]?.route, entries[0]?.calls], ["/events", []]);
  });

  it("does not change an answer by throwing", async () => {
    const errors: unknown[] = [];
    const app = createToolHandler(sampleRegistry(), {
      onError: (error) => void errors.push(error),
      observe: {
        access: () => {
          throw new Error("the disk is full");
        },
      },
    });
    assertEquals((await app.request(`${BASE}/tools`)).status, 200);
    assertEquals(errors.map(String), ["Error: the disk is full"]);
  });
});

describe("telemetry", () => {
  function recorded() {
    const log: string[] = [];
    let inside = 0;
    const telemetry: CallTelemetry = {
      begin({ tool, callId, sessionId, headers }) {
        log.push(`begin ${tool.id} ${callId} ${sessionId} ${headers?.get("x-mark")}`);
        return {
          place: { traceId: TRACE, spanId: SPAN, sampled: true },
          run(work) {
            inside++;
            try {
              return work();
            } finally {
              inside--;
            }
          },
          end: (result) => void log.push(`end ${result.ok ? "ok" : result.error.code}`),
        };
      },
    };
    return { log, telemetry, inside: () => inside };
  }
  const MARKED = { "x-mark": "m", "x-session-id": "s" };

  for (const accept of ["application/json", "text/event-stream"]) {
    it(`records a call with a response as ${accept}`, async () => {
      const { log, telemetry } = recorded();
      const { app } = observed({ dispatch: { telemetry } });
      const response = await execute(app, "echo", { arguments: { text: "x" }, callId: "c" }, {
        ...MARKED,
        accept,
      });
      assertEquals(response.headers.get("traceparent"), `00-${TRACE}-${SPAN}-01`);
      await response.text();
      assertEquals(log, ["begin echo c s m", "end ok"]);
    });
  }

  it("names no tool that is hidden from the caller", async () => {
    const { log, telemetry } = recorded();
    const { app } = observed({ dispatch: { telemetry } });
    await execute(app, "task:approve", {});
    assertEquals(log, []);
  });

  it("records a call once if its reader disconnected", async () => {
    const { log, telemetry } = recorded();
    const { app } = observed({ dispatch: { telemetry } });
    const response = await execute(app, "echo", { arguments: { text: "x" }, callId: "c" }, {
      ...MARKED,
      ...STREAM,
    });
    await response.body?.cancel();
    assertEquals(log.length, 2);
    assertMatch(log[1] ?? "", /^end (ok|aborted)$/);
  });

  it("does not change an answer by throwing", async () => {
    const errors: unknown[] = [];
    const fail = (): never => {
      throw new Error("telemetry is down");
    };
    const span = { place: undefined, run: <T>(work: () => T): T => work(), end() {} };
    for (
      const telemetry of [
        { begin: fail },
        { begin: () => ({ ...span, end: fail }) },
        { begin: () => ({ ...span, run: fail }) },
        {
          begin: () => ({
            ...span,
            run: <T>(work: () => T): T => {
              work();
              return fail();
            },
          }),
        },
      ]
    ) {
      const app = createToolHandler(sampleRegistry(), {
        openExecution: true,
        onError: (error) => void errors.push(error),
        dispatch: { telemetry },
      });
      const response = await execute(app, "echo", { arguments: { text: "x" } });
      assertEquals((await response.json()).content, { text: "x" });
    }
    assertEquals(errors.map(String), Array(4).fill("Error: telemetry is down"));
  });

  it("does not change a response, in whatever way it runs the call", async () => {
    for (
      const run of [
        () => {},
        (work: () => unknown) => void [work(), work()],
        async (work: () => unknown) => void await Promise.resolve().then(work),
        () => new Promise(() => {}),
        () => "another answer",
      ]
    ) {
      let count = 0;
      const registry = new ToolRegistry({
        tools: [{ name: "count", description: "Counts.", risk: "safe", execute: () => ++count }],
      });
      const place = { traceId: "no\nplace", spanId: "", sampled: true };
      const telemetry = { begin: () => ({ place, run, end() {} }) } as unknown as CallTelemetry;
      const app = createToolHandler(registry, {
        openExecution: true,
        dispatch: { telemetry },
        observe: {},
      });
      const response = await execute(app, "count", {});
      assertEquals([response.status, (await response.json()).content], [200, 1]);
    }
  });
});
