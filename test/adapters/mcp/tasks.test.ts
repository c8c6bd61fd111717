import { defineTool, type Tool, ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
import {
  type CallTasks,
  callTasks,
  memoryCallStore,
  sealedTickets,
  type TaskStatus,
} from "@plue/tools/calls";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { afterEach, describe, it } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { askModern, connect, legacyRequest, messageIn, modernRequest } from "./support.ts";

const KEY = new Uint8Array(32).fill(7);
const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const ALL = { ...TASKS, elicitation: { form: {}, url: {} } };

interface Message {
  readonly status: number;
  // The type of the result is up to the test.
  // deno-lint-ignore no-explicit-any
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

interface Service {
  readonly mcp: McpEndpoint;
  readonly tasks: CallTasks;
  readonly registry: ToolRegistry;
  /** Sends a request as a client of 2026-07-28. */
  send(method: string, params: Record<string, unknown>, as?: Client): Promise<Message>;
  /** Calls the first tool, which becomes a task. */
  begin(as?: Client): Promise<string>;
  get(taskId: string, as?: Client): Promise<Message>;
  /** Resolves when a task of a principal has that status. */
  when(taskId: string, status: TaskStatus, principal?: string): Promise<void>;
}

interface Client {
  readonly capabilities?: unknown;
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly meta?: Record<string, unknown>;
}

function serve(tools: readonly Tool[], options: McpEndpointOptions = {}): Service {
  const registry = new ToolRegistry({ tools });
  const store = memoryCallStore();
  const tasks = callTasks({ store, pollMs: 20 });
  const mcp = createMcpEndpoint(registry, {
    openExecution: true,
    tasks,
    dispatcher: new ToolDispatcher(registry, {
      approve: "ask",
      tickets: sealedTickets({ keys: [KEY], store }),
    }),
    ...options,
  });
  const send: Service["send"] = async (method, params, client = {}) => {
    const { capabilities = ALL, token, headers = {}, meta = {} } = client;
    const { taskId } = params;
    const response = await mcp.fetch(
      modernRequest(method, {
        ...params,
        _meta: { "io.modelcontextprotocol/clientCapabilities": capabilities, ...meta },
      }, {
        ...(typeof taskId === "string" ? { "mcp-name": taskId } : {}),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      }),
    );
    return { status: response.status, ...await messageIn(response) };
  };
  return {
    mcp,
    tasks,
    registry,
    send,
    async begin(as) {
      const { result } = await send("tools/call", { name: tools[0]?.name, arguments: {} }, as);
      assertEquals(result?.resultType, "task");
      return result.taskId;
    },
    get: (taskId, as) => send("tasks/get", { taskId }, as),
    async when(taskId, status, principal) {
      for await (const state of tasks.follow(taskId, { principal })) {
        if (state.status === status) return;
      }
      throw new Error(`The task is not ${status}`);
    },
  };
}

/** A tool that is always a task. */
function job(execute: NonNullable<Tool["execute"]>, fields: Partial<Tool> = {}): Tool {
  return defineTool(
    { name: "job", description: "Works.", execution: "task", ...fields, execute } as never,
  );
}

const releases: (() => void)[] = [];
// A task that runs keeps Node's process alive.
afterEach(() => {
  for (const release of releases.splice(0)) release();
});

/** A tool that waits until it is let go, at the end of the test at the latest. */
function held(fields: Partial<Tool> = {}): { readonly tool: Tool; release(): void } {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => release = resolve);
  const tool = job(async (_, { progress }) => {
    progress(1, 2, "half of it");
    await released;
    return { sum: 3 };
  }, fields);
  releases.push(release);
  return { tool, release };
}

describe("tasks of MCP 2026-07-28", () => {
  it("answer a call immediately, and have its result later", async () => {
    const { tool, release } = held();
    const { send, get, when } = serve([tool]);
    const { result: created } = await send("tools/call", { name: "job", arguments: {} });
    const { taskId, createdAt, lastUpdatedAt, _meta, ...rest } = created;
    assertEquals(rest, {
      status: "working",
      ttlMs: 86_400_000,
      pollIntervalMs: 20,
      resultType: "task",
    });
    assertEquals(new Date(createdAt).toISOString(), createdAt);
    assertEquals(lastUpdatedAt, createdAt);
    const { result: working } = await get(taskId);
    assertEquals([working.status, working.resultType], ["working", "complete"]);
    release();
    await when(taskId, "completed");
    const { result: done } = await get(taskId);
    assertEquals([done.taskId, done.status, done.resultType], [taskId, "completed", "complete"]);
    assertEquals(done.result, {
      content: [{ type: "text", text: '{"sum":3}' }],
      structuredContent: { sum: 3 },
      resultType: "complete",
    });
  });

  it("have their progress, and a lifetime that counts from their beginning", async () => {
    const { tool } = held();
    const { begin, tasks, get } = serve([tool]);
    const id = await begin();
    for await (const { progress } of tasks.follow(id)) if (progress !== undefined) break;
    const { result: { statusMessage, ttlMs, createdAt, lastUpdatedAt } } = await get(id);
    assertEquals(statusMessage, "half of it");
    assertEquals(ttlMs, Date.parse(lastUpdatedAt) - Date.parse(createdAt) + 86_400_000);
  });

  it("fail for clients without tasks, if the tool must be a task", async () => {
    let ran = 0;
    const { send, mcp, get } = serve([job(() => ++ran)]);
    const call = { name: "job", arguments: {} };
    const { status, error } = await send("tools/call", call, { capabilities: {} });
    assertEquals([status, error?.code, ran], [400, -32_021, 0]);
    assertEquals(error?.data, { requiredCapabilities: TASKS });
    const asked = await get("none", { capabilities: {} });
    assertEquals([asked.status, asked.error?.code], [400, -32_021]);
    // Older revisions have no such tasks: the call waits for its result.
    const older = await messageIn(
      await mcp.fetch(legacyRequest({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call })),
    );
    assertEquals([older.result?.["content"], ran], [[{ type: "text", text: "1" }], 1]);
  });

  it("also begin with a call that requests its progress", async () => {
    const { send, get, when } = serve([job(() => "done")]);
    const { result } = await send("tools/call", { name: "job", arguments: {} }, {
      meta: { progressToken: 1 },
    });
    assertEquals(result.resultType, "task");
    await when(result.taskId, "completed");
    assertEquals((await get(result.taskId)).result.result.content[0].text, "done");
  });

  it("are long calls, if the client and the tool support tasks", async () => {
    const long = held({ execution: "either" });
    const { begin, send } = serve([long.tool], { taskAfterMs: 1 });
    await begin();
    const waiting = send("tools/call", { name: "job", arguments: {} }, { capabilities: {} });
    long.release();
    assertEquals((await waiting).result.resultType, "complete");

    const short = serve([job(() => 1, { execution: "either" })], { taskAfterMs: 60_000 });
    const { result } = await short.send("tools/call", { name: "job", arguments: {} });
    assertEquals([result.resultType, result.content[0].text], ["complete", "1"]);

    const sync = held({ execution: "sync" });
    const never = serve([sync.tool], { taskAfterMs: 1 });
    const called = never.send("tools/call", { name: "job", arguments: {} });
    sync.release();
    assertEquals((await called).result.resultType, "complete");
  });

  it("are a caller's own", async () => {
    const { tool, release } = held();
    const { begin, get, send, when } = serve([tool], {
      authorize: (request) => ({
        principal: request.headers.get("authorization")?.slice(7) ?? "nobody",
      }),
    });
    const ann = { token: "ann" };
    const id = await begin(ann);
    const answers = [
      await get(id, { token: "bob" }),
      await send("tasks/update", { taskId: id, inputResponses: {} }, { token: "bob" }),
      await send("tasks/cancel", { taskId: id }, { token: "bob" }),
      await get("AAAAAAAAAAAAAAAAAAAAAA", ann),
      await get("no id at all", ann),
    ];
    const message = "Cannot find the task: this caller has none with that id, or its time is over";
    for (const { error } of answers) assertEquals(error, { code: -32_602, message });
    release();
    await when(id, "completed", "ann");
    assertEquals((await get(id, ann)).result.status, "completed");
  });

  it("are not found by a caller that does not see their tool any more", async () => {
    const { tool } = held();
    const { begin, get, registry } = serve([tool]);
    const id = await begin();
    registry.unregisterTool("job");
    assertEquals((await get(id)).error?.code, -32_602);
  });

  it("are cancelled", async () => {
    let aborted = (): void => {};
    const whenAborted = new Promise<void>((resolve) => aborted = resolve);
    const { begin, send, get } = serve([
      job((_, { signal }) => {
        signal.addEventListener("abort", aborted);
        return new Promise(() => {});
      }),
    ]);
    const id = await begin();
    const { result } = await send("tasks/cancel", { taskId: id });
    assertEquals([result.resultType, "taskId" in result], ["complete", false]);
    await whenAborted;
    const { result: task } = await get(id);
    assertEquals([task.status, "result" in task], ["cancelled", false]);
    assertEquals((await send("tasks/cancel", { taskId: id })).result.resultType, "complete");
  });

  it("have failed where the answer to the call were an error, and not with the tool", async () => {
    const { begin, when, get } = serve([job(() => ToolResult.error("denied", "Not today"))]);
    const id = await begin();
    await when(id, "failed");
    const { result: { status, result } } = await get(id);
    assertEquals([status, result.isError], ["completed", true]);
    assertStringIncludes(result.content[0].text, "Not today");

    const wrong = serve([job(() => ToolResult.blocks([{ type: "nonsense" } as never]))]);
    const other = await wrong.begin();
    await wrong.when(other, "completed");
    const { result: failed } = await wrong.get(other);
    assertEquals([failed.status, failed.error.code, "result" in failed], [
      "failed",
      -32_603,
      false,
    ]);
    assertEquals(failed.statusMessage, failed.error.message);
  });

  it("distinguish MCP's content from similar values", async () => {
    const dot = { type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" } as const;
    const content = serve([job(() => ToolResult.blocks([dot]))]);
    const id = await content.begin();
    await content.when(id, "completed");
    const { result: { result: kept } } = await content.get(id);
    assertEquals(kept, { content: [dot], resultType: "complete" });

    const value = serve([job(() => ({ content: [dot] }))]);
    const other = await value.begin();
    await value.when(other, "completed");
    const { result: { result } } = await value.get(other);
    assertEquals([result.content[0].type, result.structuredContent], ["text", { content: [dot] }]);
  });

  it("work through a bridge", async () => {
    const { tool, release } = held({ namespace: "far" });
    const { send, get, when } = serve([tool], { tools: "bridge" });
    const { result: { taskId } } = await send("tools/call", {
      name: "call_tool",
      arguments: { name: "far:job", arguments: {} },
    });
    release();
    await when(taskId, "completed");
    const { result: { status, result } } = await get(taskId);
    assertEquals([status, result.content[0].text], ["completed", '{"sum":3}']);
  });

  it("are named by a header", async () => {
    const { tool } = held();
    const { begin, get, mcp } = serve([tool]);
    const id = await begin();
    const other = await get(id, { headers: { "mcp-name": "another" } });
    assertEquals([other.status, other.error?.code], [400, -32_020]);
    const none = await mcp.fetch(modernRequest("tasks/get", { taskId: id }));
    assertEquals(none.status, 400);
  });

  it("are announced where there are some, to clients that have them", async () => {
    const { tool } = held();
    const { mcp, send } = serve([tool]);
    const { result } = await send("server/discover", {});
    assertEquals(result.capabilities.extensions, TASKS.extensions);
    const older = await connect(mcp, "legacy");
    assertEquals(older.getServerCapabilities()?.extensions, undefined);
    await older.close();

    const registry = new ToolRegistry({ tools: [tool] });
    const without = createMcpEndpoint(registry, { openExecution: true });
    const asked = await askModern(without, "tasks/get", { taskId: "x" }, { "mcp-name": "x" });
    assertEquals(asked.error?.code, -32_601);
    const discovered = await askModern(without, "server/discover");
    const { extensions } = discovered.result?.["capabilities"] as { readonly extensions?: unknown };
    assertEquals(extensions, undefined);
  });

  it("are not served where execution is closed", async () => {
    const { tool } = held();
    const { get } = serve([tool], { openExecution: false });
    assertEquals((await get("x")).error?.code, -32_601);
  });

  it("cannot be followed, and clients without tasks get an error", async () => {
    const { tool } = held();
    const { send } = serve([tool]);
    const params = { notifications: { taskIds: ["x"] } };
    const { status, error } = await send("subscriptions/listen", params, { capabilities: {} });
    assertEquals([status, error?.code, error?.data], [400, -32_021, {
      requiredCapabilities: TASKS,
    }]);
    // Nothing of it is acknowledged, so the stream ends.
    assertEquals((await send("subscriptions/listen", params)).result.resultType, "complete");
  });
});

const NAME = {
  message: "What is your name?",
  schema: {
    type: "object",
    properties: { name: { type: "string", minLength: 2 } },
    required: ["name"],
  },
} as const;
const AGE = { message: "How old are you?", schema: { type: "integer" } } as const;
const accept = (content: unknown) => ({ action: "accept", content });

const person = job(async (_, { ask }) => {
  const [name, age] = await Promise.all([ask("name", NAME), ask("age", AGE)]);
  return JSON.stringify([name, age].map((each) => each.action === "accept" && each.content));
});

describe("questions of a task", () => {
  it("are part of it, and wait until all are answered", async () => {
    const { begin, when, get, send } = serve([person]);
    const taskId = await begin();
    await when(taskId, "input_required");
    const { result: asked } = await get(taskId);
    assertEquals(asked.inputRequests.name.params, {
      message: NAME.message,
      requestedSchema: NAME.schema,
    });
    const first = { name: accept({ name: "Ann" }), other: accept({}) };
    const { result } = await send("tasks/update", { taskId, inputResponses: first });
    assertEquals([result.resultType, "status" in result], ["complete", false]);
    const { result: partly } = await get(taskId);
    assertEquals([partly.status, Object.keys(partly.inputRequests)], ["input_required", ["age"]]);
    // An answer that comes again is ignored.
    const again = { name: accept({ name: "Bob" }) };
    assertEquals((await send("tasks/update", { taskId, inputResponses: again })).status, 200);
    await send("tasks/update", { taskId, inputResponses: { age: accept({ answer: 40 }) } });
    await when(taskId, "completed");
    assertEquals((await get(taskId)).result.result.content[0].text, '[{"name":"Ann"},40]');
  });

  it("come under another key when an answer did not fit, and keep that key", async () => {
    const { begin, when, get, send } = serve([person]);
    const taskId = await begin();
    await when(taskId, "input_required");
    const wrong = { name: accept({ name: "A" }), age: accept({ answer: "old" }) };
    await send("tasks/update", { taskId, inputResponses: wrong });
    await when(taskId, "input_required");
    const { result: { inputRequests } } = await get(taskId);
    const [name = "", age = ""] = Object.keys(inputRequests).sort().reverse();
    assertMatch(name, /^name~\w+$/);
    assertMatch(age, /^age~\w+$/);
    assertStringIncludes(inputRequests[name].params.message, "The last answer did not fit");
    await send("tasks/update", { taskId, inputResponses: { [name]: accept({ name: "Ann" }) } });
    assertEquals(Object.keys((await get(taskId)).result.inputRequests), [age]);
    await send("tasks/update", { taskId, inputResponses: { [age]: accept({ answer: 40 }) } });
    await when(taskId, "completed");
  });

  it("ask their first questions before there is a task", async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => release = resolve);
    const { send, when, get } = serve([
      job(async (_, { ask }) => {
        const answer = await ask("name", NAME);
        await released;
        return JSON.stringify(answer.action === "accept" && answer.content);
      }, { execution: "either" }),
    ], { taskAfterMs: 1 });
    const call = { name: "job", arguments: {} };
    // A client without tasks receives the question, even on a slow machine.
    const { result: asked } = await send("tools/call", call, {
      capabilities: { elicitation: { form: {} } },
    });
    assertEquals([asked.resultType, "taskId" in asked], ["input_required", false]);
    const { requestState } = asked;
    const inputResponses = { name: accept({ name: "Ann" }) };
    const { result: task } = await send("tools/call", { ...call, requestState, inputResponses });
    assertEquals([task.resultType, "requestState" in task], ["task", false]);
    release();
    await when(task.taskId, "completed");
    assertEquals((await get(task.taskId)).result.result.content[0].text, '{"name":"Ann"}');
  });

  it("show a client only the questions that it supports", async () => {
    const { begin, when, get } = serve([person]);
    const taskId = await begin();
    await when(taskId, "input_required");
    const { result } = await get(taskId, { capabilities: TASKS });
    assertEquals([result.status, result.inputRequests], ["input_required", {}]);
    assertEquals(result.statusMessage, "It waits for an answer that this client cannot give");
    // A tool does not wait if its caller cannot answer questions.
    const other = await begin({ capabilities: TASKS });
    await when(other, "failed");
    assertEquals((await get(other)).result.result.isError, true);
  });

  it("cannot be answered without an object of answers", async () => {
    const { begin, when, send } = serve([person]);
    const taskId = await begin();
    await when(taskId, "input_required");
    const { error } = await send("tasks/update", { taskId });
    assertEquals(error?.code, -32_602);
    assert(error?.message.includes("/inputResponses must be an object"), error?.message);
  });
});
