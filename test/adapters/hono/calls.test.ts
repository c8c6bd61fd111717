import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { type ToolDefinition, ToolRegistry } from "@plue/tools";
import { callTasks, memoryCallStore, sealedTickets } from "@plue/tools/calls";
import { BASE } from "./support.ts";

const KEY = new Uint8Array(32).fill(1);
const YES = { sure: { action: "accept" } };

/** The complete response of a handler. */
interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // deno-lint-ignore no-explicit-any
  readonly body: any;
  readonly text: string;
}

/** A service whose callers send their names in a header. */
function service(options: ToolHandlerOptions = {}, tools: readonly ToolDefinition[] = [ASKS]): (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Answered> {
  const store = memoryCallStore();
  const app = createToolHandler(new ToolRegistry({ tools }), {
    authorize: ({ headers }) => ({ principal: headers.get("x-user") ?? "ann" }),
    tasks: callTasks({ store, pollMs: 5 }),
    dispatch: { tickets: sealedTickets({ keys: [KEY], store }), approve: "ask" },
    ...options,
  });
  return async (method, path, body, headers = {}) => {
    const response = await app.request(BASE + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { "content-type": "application/json", ...headers },
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== "" ? JSON.parse(text) : undefined,
    };
  };
}

const ASKS: ToolDefinition = {
  name: "rm",
  description: "Deletes a file.",
  parameters: { type: "object", properties: { path: { type: "string" } } },
  async execute(params, { ask }) {
    const { path } = params as { readonly path?: string };
    const { action } = await ask("sure", { kind: "approval", message: `Delete ${path}?` });
    return action === "accept" ? `deleted ${path}` : "kept";
  },
};
const RUN = "/tools/rm/execute";
const CALL = { arguments: { path: "a.txt" }, callId: "c 1" };
const EVENTS = { accept: "text/event-stream" };

describe("a call that waits, over HTTP", () => {
  it("continues in another process, and repeats the question without an answer", async () => {
    const { body: { ticket } } = await service()("POST", RUN, CALL);
    const other = service();
    const again = await other("POST", "/calls/c%201", { ticket });
    assertEquals([again.status, again.headers.get("location")], [202, "/calls/c%201"]);
    assertEquals(again.body.questions.length, 1);
    const answers = { sure: { action: "decline" } };
    const { body } = await other("POST", "/calls/c%201", { ticket: again.body.ticket, answers });
    assertEquals(body.content, "kept");
  });

  it("has a location below the path of the app", async () => {
    const app = createToolHandler(new ToolRegistry({ tools: [ASKS] }), {
      openExecution: true,
      dispatch: { tickets: sealedTickets({ keys: [KEY] }) },
    });
    const { Hono } = await import("hono");
    const mounted = new Hono().route("/api/v1", app);
    const response = await mounted.request(`${BASE}/api/v1${RUN}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-call-id": "c" },
      body: "{}",
    });
    assertEquals(response.headers.get("location"), "/api/v1/calls/c");
  });
});

describe("a task over HTTP", () => {
  const ASYNC = { prefer: "respond-async, wait=10" };

  it("is listed in pages, the newest first", async () => {
    const ask = service({}, [{ name: "rm", description: "Deletes.", execute: () => "gone" }]);
    const ids: string[] = [];
    for (let index = 0; index < 3; index++) {
      ids.push((await ask("POST", RUN, {}, ASYNC)).body.id);
    }
    const seen: string[] = [];
    for (let query = "?limit=2"; query !== "";) {
      const { body } = await ask("GET", `/calls${query}`);
      seen.push(...body.tasks.map(({ id }: { id: string }) => id));
      query = body.nextCursor === undefined ? "" : `?limit=2&cursor=${body.nextCursor}`;
    }
    assertEquals(seen, ids.toSorted());
    assertEquals((await ask("GET", "/calls", undefined, { "x-user": "bob" })).body.tasks, []);
  });

  it("is cancelled by its caller only", async () => {
    const ask = service({}, [{
      name: "rm",
      description: "Hangs.",
      execution: "task",
      execute: () => new Promise(() => {}),
    }]);
    const { status, headers, body: { id } } = await ask("POST", RUN, {});
    // The tool always runs as a task, so no preference of the client was applied.
    assertEquals([status, headers.get("preference-applied")], [202, null]);
    assertEquals((await ask("DELETE", `/calls/${id}`, undefined, { "x-user": "bob" })).status, 404);
    assertEquals((await ask("DELETE", `/calls/${id}`)).body.status, "cancelled");
    assertEquals((await ask("GET", `/calls/${id}`)).body.result.error.code, "aborted");
    assertEquals((await ask("GET", "/calls/none")).status, 404);
  });

  it("replaces a call that exceeds taskAfterMs", async () => {
    const quick = service({ taskAfterMs: 60_000 });
    const done = await quick("POST", RUN, CALL);
    assertEquals([done.status, done.body.status], [202, "input_required"]);
    let finish = (_content: string): void => {};
    const slow = service({ taskAfterMs: 1 }, [{
      name: "rm",
      description: "Takes long.",
      execute: () => new Promise<string>((resolve) => finish = resolve),
    }]);
    const { status, body } = await slow("POST", RUN, {});
    assertEquals([status, body.status], [202, "working"]);
    finish("done");
    await slow("GET", `/calls/${body.id}`, undefined, EVENTS);
    assertEquals((await slow("GET", `/calls/${body.id}`)).body.result.content, "done");
  });

  it("is followed until the caller's token ends, or its tool is hidden", async () => {
    for (const ends of ["the token", "the tool"]) {
      let finish = (): void => {};
      const execute = (): Promise<string> =>
        new Promise((resolve) => finish = () => resolve("secret"));
      const tool = { name: "work", description: "Works.", execute };
      const registry = new ToolRegistry({ tools: [tool] });
      const app = createToolHandler(registry, {
        authorize: () => ends === "the token" ? { expiresAt: Date.now() + 200 } : {},
        tasks: callTasks({ store: memoryCallStore(), pollMs: 5 }),
      });
      const headers = { "content-type": "application/json", ...ASYNC };
      const begun = await app.request(`${BASE}/tools/work/execute`, { method: "POST", headers });
      const { id } = await begun.json();
      const { body } = await app.request(`${BASE}/calls/${id}`, { headers: EVENTS });
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      let isOpen = true;
      const read = async (): Promise<void> => {
        const { done, value = "" } = await reader?.read() ?? { done: true };
        isOpen = !done;
        text += value;
      };
      while (isOpen && !text.includes("working")) await read();
      if (ends === "the tool") {
        registry.unregisterTool("work");
        finish();
      }
      while (isOpen) await read();
      assertEquals(text.includes("secret"), false, ends);
      finish();
    }
  });

  it("is unavailable, not lost, while its store is unreachable", async () => {
    const fail = (): Promise<never> => Promise.reject(new Error("The disk is full"));
    const store = { ...memoryCallStore(), create: fail, get: fail };
    const ask = service({ tasks: callTasks({ store }), onError: () => {} });
    const begun = await ask("POST", RUN, CALL, ASYNC);
    assertEquals([begun.status, begun.body.code, begun.body.retryable], [409, "unavailable", true]);
    assertEquals(begun.body.ran, "no");
    assertStringIncludes(begun.body.detail, "its task cannot be stored now; nothing has run");
    const id = `/calls/${"0".repeat(11)}${"x".repeat(22)}`;
    for (const [method, body] of [["GET"], ["DELETE"], ["POST", { answers: YES }]] as const) {
      const { status, body: { code, detail } } = await ask(method, id, body);
      assertEquals([status, code], [503, "unavailable"], method);
      assertStringIncludes(detail, "Cannot reach the tasks now");
    }
  });
});
