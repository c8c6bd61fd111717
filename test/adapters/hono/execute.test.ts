import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { type defineTool, ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
import { BASE, execute, execution, handler, problemOf, sampleRegistry } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

const OPEN: ToolHandlerOptions = { openExecution: true };
const echo = `${BASE}/tools/echo/execute`;

describe("POST /tools/:id/execute", () => {
  it("returns the result of the call", async () => {
    const response = await execute(handler(OPEN), "echo", { arguments: { text: "hi" } });
    assertEquals(response.status, 200);
    const body = await response.json() as Record<string, unknown>;
    assertEquals(body["ok"], true);
    assertEquals(body["content"], { text: "hi" });
    assertEquals(typeof body["durationMs"], "number");
    assertEquals(typeof body["callId"], "string");
  });

  it("passes the principal to the tool", async () => {
    const who = toolOf("who", (_, { principal }) => principal ?? null);
    const app = createToolHandler(new ToolRegistry({ tools: [who] }), {
      authorize: () => ({ principal: "ann" }),
    });
    const response = await execute(app, "who", {});
    assertEquals((await response.json()).content, "ann");
  });

  it("takes an alias for the tool's id, and lists none", async () => {
    const now = toolOf("now", () => 1, { aliases: ["then"] });
    const app = createToolHandler(new ToolRegistry({ tools: [now] }), OPEN);
    const response = await execute(app, "then", {});
    assertEquals([response.status, (await response.json()).content], [200, 1]);
    assertEquals((await app.request(`${BASE}/tools/then`)).status, 404);
    assert(!(await (await app.request(`${BASE}/tools`)).text()).includes("then"));
    const { tools } = await (await app.request(`${BASE}/metrics`)).json();
    assertEquals(tools[0].aliased, 1);
  });

  it("takes __proto__ in the arguments as the unknown property that it is", async () => {
    const response = await execute(
      handler(OPEN),
      "echo",
      '{"arguments": {"text": "x", "__proto__": {"admin": true}}}',
    );
    assertEquals(response.status, 422);
    assertEquals(({} as { admin?: boolean }).admin, undefined);
  });

  it("rejects a body over the limit, with and without a declared length", async () => {
    const app = handler({ ...OPEN, maxBodyBytes: 64 });
    const body = JSON.stringify({ arguments: { text: "x".repeat(64) } });
    const declared = await app.request(
      echo,
      execution(body, { "content-length": String(body.length) }),
    );
    assertEquals(declared.status, 413);
    const chunks = new ReadableStream({
      start(controller) {
        for (const char of body) controller.enqueue(new TextEncoder().encode(char));
        controller.close();
      },
    });
    const streamed = await app.request(
      new Request(echo, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: chunks,
        duplex: "half",
      } as RequestInit),
    );
    assertEquals(streamed.status, 413);
    assertEquals((await problemOf(streamed)).code, "payload_too_large");
  });

  it("passes the ids of the call on, from the body or from headers", async () => {
    const seen: unknown[] = [];
    const registry = new ToolRegistry({
      tools: [toolOf("t", (_, { sessionId, messageId, callId }) => {
        seen.push([sessionId, messageId, callId]);
        return null;
      })],
    });
    const app = createToolHandler(registry, OPEN);
    await execute(app, "t", { sessionId: "s1", messageId: "m1", callId: "c1" });
    await execute(app, "t", "", { "x-session-id": "s2", "x-message-id": "m2", "x-call-id": "c2" });
    assertEquals(seen, [["s1", "m1", "c1"], ["s2", "m2", "c2"]]);
    const both = await execute(app, "t", { sessionId: "s1" }, { "x-session-id": "s2" });
    assertStringIncludes((await problemOf(both)).detail, "differ");
  });

  it("runs once for one idempotency key", async () => {
    let runs = 0;
    const registry = new ToolRegistry({
      tools: [toolOf("t", () => ++runs)],
    });
    const app = createToolHandler(registry, OPEN);
    const call = execution({}, { "idempotency-key": "k" });
    const first = await (await app.request(`${BASE}/tools/t/execute`, call)).json();
    const second = await (await app.request(`${BASE}/tools/t/execute`, call)).json();
    assertEquals(runs, 1);
    assertEquals((first as { content: number }).content, 1);
    assertEquals((second as { content: number; replayed: boolean }).replayed, true);
  });

  it("keeps the idempotency keys of two principals apart", async () => {
    let runs = 0;
    const registry = new ToolRegistry({
      tools: [toolOf("t", () => ++runs)],
    });
    const app = createToolHandler(registry, {
      authorize: (request) => ({ principal: request.headers.get("authorization") ?? "nobody" }),
    });
    for (const authorization of ["a", "b"]) {
      await execute(app, "t", {}, { "idempotency-key": "k", authorization });
    }
    assertEquals(runs, 2);
  });

  it("aborts the tool when the client goes away", async () => {
    const client = new AbortController();
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const registry = new ToolRegistry({
      tools: [toolOf("t", (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.resolve();
            reject(signal.reason);
          });
          started.resolve();
        }))],
    });
    const app = createToolHandler(registry, OPEN);
    const answer = app.request(
      new Request(`${BASE}/tools/t/execute`, { ...execution({}), signal: client.signal }),
    );
    await started.promise;
    client.abort();
    await aborted.promise;
    const response = await answer;
    assertEquals(response.status, 499);
    assertEquals((await problemOf(response)).code, "aborted");
  });

  it("answers each kind of failure with its status, and never a stack", async () => {
    const fails = (name: string, execute: () => never): ReturnType<typeof defineTool> =>
      toolOf(name, execute);
    const registry = new ToolRegistry({
      tools: [
        fails("threw", () => {
          throw new Error("disk on fire");
        }),
        fails("undefined", () => {
          throw undefined;
        }),
        toolOf("plan"),
        toolOf("own", () => ToolResult.error("overloaded", "Come back later")),
        toolOf("ask", () => null, { requiresApproval: true }),
        toolOf("cycle", () => {
          const cycle: Record<string, unknown> = {};
          cycle["self"] = cycle;
          return cycle;
        }),
      ],
    });
    const app = createToolHandler(registry, OPEN);
    for (
      const [id, status, code] of [
        ["threw", 500, "threw"],
        ["undefined", 500, "threw"],
        ["plan", 501, "not_executable"],
        ["own", 503, "overloaded"],
        ["ask", 403, "approval_required"],
        ["cycle", 502, "invalid_result"],
      ] as const
    ) {
      const response = await execute(app, id, {});
      assertEquals(response.status, status, id);
      const text = JSON.stringify(await problemOf(response));
      assertStringIncludes(text, `"code":"${code}"`);
      assertEquals(/\.ts:\d|at .*\(/.test(text), false, text);
    }
  });

  it("logs the error of a tool", async () => {
    const errors: unknown[] = [];
    const failed = new Error("disk on fire");
    const registry = new ToolRegistry({
      tools: [toolOf("t", () => {
        throw failed;
      })],
    });
    const app = createToolHandler(registry, {
      ...OPEN,
      onError: (error) => {
        errors.push(error);
      },
    });
    await execute(app, "t", {});
    assertEquals(errors, [failed]);
  });

  for (const accept of ["application/json", "text/event-stream"]) {
    it(`returns a failure for a result that changes after it was checked, as ${accept}`, async () => {
      // JSON at the first access; each later look throws.
      const changing = () => {
        let looks = 0;
        return Object.defineProperty({}, "a", {
          enumerable: true,
          get: () => {
            if (looks++ > 0) throw new Error("Gone");
            return 1;
          },
        });
      };
      const tool = toolOf("t", changing);
      const errors: unknown[] = [];
      const app = createToolHandler(new ToolRegistry({ tools: [tool] }), {
        ...OPEN,
        onError: (error) => errors.push(error),
      });
      const response = await execute(app, "t", {}, { accept });
      const body = await response.text();
      assertStringIncludes(body, '"invalid_result"');
      assertStringIncludes(body, "its result changed after it was checked");
      assertEquals(errors, []);
    });
  }
});

describe("GET /metrics", () => {
  it("counts the calls of the tools that the caller sees", async () => {
    const registry = sampleRegistry();
    const app = createToolHandler(registry, {
      dispatcher: new ToolDispatcher(registry),
      authorize: (request) =>
        request.headers.get("authorization") === "all" ? { role: "control" } : {},
    });
    const all = { authorization: "all" };
    await app.request(echo, execution({ arguments: { text: "x" } }));
    await execute(app, "task:approve", {}, all);
    const few = await (await app.request(`${BASE}/metrics`)).text();
    assert(few.includes('"echo"') && !few.includes("task:approve"), few);
    const more = await (await app.request(`${BASE}/metrics`, { headers: all })).json();
    assertEquals((more as { calls: number }).calls, 2);
  });
});
