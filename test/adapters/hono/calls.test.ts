import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import * as formats from "@plue/tools/formats";
import { createToolHandler, serveFormats, type ToolHandlerOptions } from "@plue/tools/hono";
import { type Question, type ToolDefinition, ToolRegistry } from "@plue/tools";
import { callTasks, memoryCallStore, runByClient, sealedTickets } from "@plue/tools/calls";
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

/** A service whose callers name themselves by a header. */
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
  it("is not answered in another tenant than its own, with a ticket or as a task", async () => {
    const ask = service({
      authorize: ({ headers }) => ({
        principal: "ann",
        callContext: { tenant: headers.get("x-tenant") },
      }),
    });
    const [own, other] = [{ "x-tenant": "staging" }, { "x-tenant": "production" }];
    const answers = { sure: { action: "accept" } };
    const { body: { ticket } } = await ask("POST", RUN, CALL, own);
    const { body: { id } } = await ask("POST", RUN, CALL, { ...own, prefer: "respond-async" });
    while ((await ask("GET", `/calls/${id}`)).body.status !== "input_required");
    for (
      const [path, body] of [["/calls/c%201", { ticket, answers }], [`/calls/${id}`, { answers }]]
    ) {
      const refused = await ask("POST", String(path), body, other);
      assertEquals([refused.status, refused.body.code], [410, "ticket_refused"]);
      assertStringIncludes(refused.body.detail, "another context");
      assertEquals(refused.body.ran, "no");
      const done = await ask("POST", String(path), body, own);
      assertEquals(done.body.error, undefined);
      assert(done.status < 300, done.text);
    }
  });

  it("is one of a tool that the caller runs, whose answer is the result", async () => {
    const ask = service({}, [{
      name: "locate",
      description: "Says where the device is.",
      parameters: { type: "object", properties: { exact: { type: "boolean" } } },
      execute: runByClient({ returns: { type: "number" } }),
    }]);
    const path = "/tools/locate/execute";
    const { status, body } = await ask("POST", path, { arguments: { exact: true }, callId: "l1" });
    assertEquals(status, 202);
    assertEquals(
      body.questions.map((one: Question) => [one.key, one.kind, one.arguments, one.schema]),
      [["client", "client", { exact: true }, { type: "number" }]],
    );
    const answers = { client: { action: "accept", content: 41.9 } };
    const done = await ask("POST", "/calls/l1", { ticket: body.ticket, answers });
    assertEquals([done.status, done.body.content], [200, 41.9]);
  });

  it("is answered 202 with its questions, its ticket and its place", async () => {
    const { status, headers, body } = await service()("POST", RUN, CALL);
    assertEquals([status, headers.get("location")], [202, "/calls/c%201"]);
    assertEquals(headers.get("content-type"), "application/json");
    const { ticket, durationMs, ...rest } = body;
    assertEquals([typeof ticket, typeof durationMs], ["string", "number"]);
    assertEquals(rest, {
      callId: "c 1",
      status: "input_required",
      ok: false,
      error: {
        code: "input_required",
        message: 'Cannot call "rm": it waits for an answer: Delete a.txt?',
        retryable: false,
      },
      questions: [{
        key: "sure",
        kind: "approval",
        message: "Delete a.txt?",
        arguments: { path: "a.txt" },
      }],
    });
  });

  it("continues with the answer, once", async () => {
    const ask = service();
    const { headers, body: { ticket } } = await ask("POST", RUN, CALL);
    const place = headers.get("location") ?? "";
    const { status, body } = await ask("POST", place, { ticket, answers: YES });
    assertEquals([status, body.content, body.callId], [200, "deleted a.txt", "c 1"]);
    const again = await ask("POST", place, { ticket, answers: YES });
    assertEquals([again.status, again.body.code], [410, "ticket_refused"]);
  });

  it("is logged without the name that its client writes into a returned turn", async () => {
    const logged: unknown[] = [];
    const ask = service({
      formats: serveFormats(formats),
      observe: { access: ({ calls }) => void logged.push(calls[0]?.toolId, calls[0]?.outcome) },
    });
    const { body: { callId, ...result } } = await ask("POST", RUN, CALL);
    const call = { callId, name: "harmless", wireName: "harmless", result };
    const turn = { calls: [call], answers: { [callId]: YES } };
    await ask("POST", "/dispatch/anthropic", turn);
    assertEquals(logged, ["rm", "input_required", "", "ok"]);
  });

  it("continues in another process, and repeats the question without an answer", async () => {
    const { body: { ticket } } = await service()("POST", RUN, CALL);
    const other = service();
    const asked = await other("POST", "/calls/c%201", { ticket });
    assertEquals([asked.status, asked.headers.get("location")], [202, "/calls/c%201"]);
    assertEquals(asked.body.questions.length, 1);
    const answers = { sure: { action: "decline" } };
    const { body } = await other("POST", "/calls/c%201", { ticket: asked.body.ticket, answers });
    assertEquals(body.content, "kept");
  });

  it("rejects another caller", async () => {
    const ask = service();
    const { body: { ticket } } = await ask("POST", RUN, CALL);
    const { status, body } = await ask("POST", "/calls/x", { ticket, answers: YES }, {
      "x-user": "bob",
    });
    assertEquals([status, body.code], [410, "ticket_refused"]);
    assertStringIncludes(body.detail, "was given to another caller");
  });

  it("sends its questions in a stream, and continues in one", async () => {
    const ask = service();
    const { text } = await ask("POST", RUN, CALL, EVENTS);
    const events = [...text.matchAll(/event: (\w+)\ndata: (.*)\n/g)];
    assertEquals(events.map(([, name]) => name), ["question", "result"]);
    const { ticket, questions } = JSON.parse(events[0]?.[2] ?? "");
    assertEquals(questions[0].key, "sure");
    assertEquals(JSON.parse(events[1]?.[2] ?? "").result.ticket, ticket);
    const rest = await ask("POST", "/calls/c%201", { ticket, answers: YES }, EVENTS);
    assertStringIncludes(rest.text, '"content":"deleted a.txt"');
    assertEquals(rest.headers.get("x-call-id"), "c 1");
  });

  it("gets an error for an invalid continuation", async () => {
    const ask = service();
    const { body: { ticket } } = await ask("POST", RUN, CALL);
    const wrong: [unknown, number, string][] = [
      [[], 400, "it must be an object"],
      [{ answer: {} }, 400, '"answer" is not one of its fields: ticket, answers'],
      [{ ticket: 7 }, 400, '"ticket" must be a string'],
      [{ ticket, answers: [] }, 400, '"answers" must be an object'],
      [{ ticket, answers: { other: YES.sure } }, 422, 'there is no question "other"'],
      [{ ticket: "made up" }, 410, "its ticket is damaged, or was not made here"],
      [{ answers: YES }, 404, "Cannot find a task"],
    ];
    for (const [body, status, words] of wrong) {
      const answer = await ask("POST", "/calls/c%201", body);
      assertEquals(answer.status, status, words);
      assertStringIncludes(answer.body.detail, words);
    }
    const { body } = await ask("POST", "/calls/c%201", { "a/b~": 1 });
    assertEquals(body.pointer ?? body.issues?.[0]?.path, "/a~1b~0");
    const place = await ask("POST", "/calls/zzz%0Aabc", { ticket, answers: YES });
    assertEquals([place.status, place.body.code], [400, "bad_request"]);
    // The id names the call in answers and logs, so it must be the call's.
    const other = await ask("POST", "/calls/other", { ticket, answers: YES });
    assertEquals([other.status, other.body.code], [410, "ticket_refused"]);
    assertStringIncludes(other.body.detail, "its ticket is for another call");
  });

  it("waits nowhere if execution is closed", async () => {
    const closed = createToolHandler(new ToolRegistry({ tools: [ASKS] }));
    for (const [method, path] of [["POST", "/calls/x"], ["DELETE", "/calls/x"]] as const) {
      const response = await closed.request(BASE + path, {
        method,
        headers: { "content-type": "application/json" },
        ...(method === "POST" ? { body: "{}" } : {}),
      });
      assertEquals(response.status, 403);
    }
  });

  it("answers 405 for other methods", async () => {
    const { status, headers } = await service()("PUT", "/calls/x");
    assertEquals([status, headers.get("allow")], [405, "GET, HEAD, POST, DELETE"]);
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

  it("is begun by a preference, shown, and ends with its result", async () => {
    const ask = service({}, [{ name: "rm", description: "Deletes.", execute: () => "gone" }]);
    const begun = await ask("POST", RUN, {}, ASYNC);
    assertEquals([begun.status, begun.headers.get("preference-applied")], [202, "respond-async"]);
    assertEquals(begun.headers.get("location"), `/calls/${begun.body.id}`);
    assertEquals([begun.body.status, begun.body.tool], ["working", "rm"]);
    const place = begun.headers.get("location") ?? "";
    const { text } = await ask("GET", place, undefined, EVENTS);
    const states = [...text.matchAll(/event: task\ndata: (.*)\n/g)]
      .map(([, data = ""]) => JSON.parse(data));
    assertEquals(states.at(-1).status, "completed");
    const shown = await ask("GET", place);
    assertEquals([shown.status, shown.body.result.content], [200, "gone"]);
    assertEquals((await ask("GET", "/calls")).body.tasks.map(({ id }: { id: string }) => id), [
      begun.body.id,
    ]);
  });

  it("asks a question, and continues with the answer", async () => {
    const ask = service();
    const { body: { id } } = await ask("POST", RUN, CALL, ASYNC);
    const { text } = await ask("GET", `/calls/${id}`, undefined, { ...EVENTS, "x-user": "bob" });
    assertStringIncludes(text, "Cannot find a task");
    let state = (await ask("GET", `/calls/${id}`)).body;
    while (state.status === "working") state = (await ask("GET", `/calls/${id}`)).body;
    assertEquals([state.status, state.questions[0].message], ["input_required", "Delete a.txt?"]);
    assertEquals("ticket" in state, false);
    const wrong = await ask("POST", `/calls/${id}`, { answers: { other: YES.sure } });
    assertEquals([wrong.status, wrong.body.code], [422, "invalid_arguments"]);
    const answered = await ask("POST", `/calls/${id}`, { answers: YES });
    assertEquals([answered.status, answered.body.status], [202, "working"]);
    await ask("GET", `/calls/${id}`, undefined, EVENTS);
    const { body } = await ask("GET", `/calls/${id}`);
    assertEquals(body.result.content, "deleted a.txt");
    assertEquals((await ask("POST", `/calls/${id}`, { answers: YES })).status, 410);
  });

  it("is cancelled by its caller only", async () => {
    const ask = service({}, [{
      name: "rm",
      description: "Hangs.",
      execution: "task",
      execute: () => new Promise(() => {}),
    }]);
    const { status, headers, body: { id } } = await ask("POST", RUN, {});
    // The tool runs as a task; the client has preferred nothing.
    assertEquals([status, headers.get("preference-applied")], [202, null]);
    assertEquals((await ask("DELETE", `/calls/${id}`, undefined, { "x-user": "bob" })).status, 404);
    assertEquals((await ask("DELETE", `/calls/${id}`)).body.status, "cancelled");
    assertEquals((await ask("GET", `/calls/${id}`)).body.result.error.code, "aborted");
    assertEquals((await ask("GET", "/calls/none")).status, 404);
  });

  it("is what a call becomes that takes long", async () => {
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

  it("is not begun for a tool that runs in its request, or without tasks", async () => {
    const tool: ToolDefinition = { name: "rm", description: "Deletes.", execute: () => "gone" };
    const never = service({ taskAfterMs: 0 }, [{ ...tool, execution: "sync" }]);
    assertEquals((await never("POST", RUN, {}, ASYNC)).body.content, "gone");
    const app = createToolHandler(new ToolRegistry({ tools: [tool] }), { openExecution: true });
    const response = await app.request(BASE + RUN, {
      method: "POST",
      headers: { "content-type": "application/json", ...ASYNC },
      body: "{}",
    });
    assertEquals((await response.json()).content, "gone");
    assertEquals((await app.request(`${BASE}/calls`)).status, 200);
  });

  it("is not found by a caller that does not see its tool any more", async () => {
    const ask = service({
      authorize: ({ headers }) => ({
        principal: "ann",
        role: headers.get("x-role") ?? "admin",
      }),
      tasks: callTasks({ store: memoryCallStore(), pollMs: 5 }),
    }, [{ ...ASKS, allowedRoles: ["admin"] }]);
    const { body: { id } } = await ask("POST", RUN, CALL, ASYNC);
    let state = (await ask("GET", `/calls/${id}`)).body;
    while (state.status === "working") state = (await ask("GET", `/calls/${id}`)).body;
    const guest = { "x-role": "guest" };
    for (const method of ["GET", "DELETE"]) {
      assertEquals((await ask(method, `/calls/${id}`, undefined, guest)).status, 404);
    }
    assertEquals((await ask("POST", `/calls/${id}`, { answers: YES }, guest)).status, 404);
    assertEquals((await ask("GET", "/calls", undefined, guest)).body.tasks, []);
    assertEquals((await ask("GET", `/calls/${id}`)).body.status, "input_required");
  });

  it("is followed until the caller's token ends, or its tool is hidden", async () => {
    for (const ends of ["the token", "the tool"]) {
      let finish = (): void => {};
      const execute = (): Promise<string> =>
        new Promise((resolve) => finish = () => resolve("secret"));
      const tool = { name: "work", description: "Works.", execute };
      const registry = new ToolRegistry({ tools: [tool] });
      const app = createToolHandler(registry, {
        authorize: () => ends === "the token" ? { expiresAt: Date.now() + 20 } : {},
        tasks: callTasks({ store: memoryCallStore(), pollMs: 5 }),
      });
      const headers = { "content-type": "application/json", ...ASYNC };
      const begun = await app.request(`${BASE}/tools/work/execute`, { method: "POST", headers });
      const { id } = await begun.json();
      const { body } = await app.request(`${BASE}/calls/${id}`, { headers: EVENTS });
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      while (!text.includes("working")) text += (await reader?.read())?.value;
      if (ends === "the tool") {
        registry.unregisterTool("work");
        finish();
      }
      while (true) {
        const { done, value } = await reader?.read() ?? { done: true };
        if (done) break;
        text += value;
      }
      assertEquals(text.includes("secret"), false, ends);
      finish();
    }
  });

  it("is listed for callers with a name only, who are not one for the server", async () => {
    const anonymous = service({
      openExecution: true,
      authorize: () => ({}),
    }, [{ name: "rm", description: "Deletes.", execute: () => "gone" }]);
    const { body: { id } } = await anonymous("POST", RUN, {}, ASYNC);
    assertEquals((await anonymous("GET", `/calls/${id}`)).status, 200);
    assertEquals((await anonymous("GET", "/calls")).body, { tasks: [] });
  });

  it("is unavailable, not lost, while its store is out of reach", async () => {
    const fail = (): Promise<never> => Promise.reject(new Error("The disk is full"));
    const store = { ...memoryCallStore(), create: fail, get: fail };
    const ask = service({ tasks: callTasks({ store }), onError: () => {} });
    const begun = await ask("POST", RUN, CALL, ASYNC);
    assertEquals([begun.status, begun.body.code, begun.body.retryable], [409, "unavailable", true]);
    assertEquals(begun.body.ran, "no");
    assertStringIncludes(begun.body.detail, "its task cannot be kept now; nothing has run");
    const id = `/calls/${"0".repeat(11)}${"x".repeat(22)}`;
    for (const [method, body] of [["GET"], ["DELETE"], ["POST", { answers: YES }]] as const) {
      const { status, body: { code, detail } } = await ask(method, id, body);
      assertEquals([status, code], [503, "unavailable"], method);
      assertStringIncludes(detail, "Cannot reach the tasks now");
    }
  });

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

  it("fails for an unknown tool, invalid arguments and an invalid query", async () => {
    const ask = service();
    assertEquals((await ask("POST", "/tools/none/execute", {}, ASYNC)).status, 404);
    for (
      const query of ["?limit=0", "?limit=x", "?limit=1001", "?who=ann", "?cursor=", "?cursor=a.b"]
    ) {
      assertEquals((await ask("GET", `/calls${query}`)).status, 400);
    }
    const task = await ask("POST", RUN, { arguments: { path: 7 } }, ASYNC);
    assertEquals(task.status, 202);
    await ask("GET", `/calls/${task.body.id}`, undefined, EVENTS);
    const { body } = await ask("GET", `/calls/${task.body.id}`);
    assertEquals([body.status, body.result.error.code], ["failed", "invalid_arguments"]);
    assert(body.result.error.issues.length > 0);
  });
});
