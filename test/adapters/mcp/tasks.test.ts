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
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { type NamedTools, runTranscripts } from "../hono/transcript.ts";
import data from "./transcripts/tasks.json" with { type: "json" };
import { accept, messageIn, modernRequest, NAME } from "./support.ts";

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
// A running task would keep Node's process alive.
afterEach(() => {
  for (const release of releases.splice(0)) release();
});

/** A tool that waits until the test releases it. At the end of the test it is always released. */
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

const AGE = { message: "How old are you?", schema: { type: "integer" } } as const;

const person = job(async (_, { ask }) => {
  const [name, age] = await Promise.all([ask("name", NAME), ask("age", AGE)]);
  return JSON.stringify([name, age].map((each) => each.action === "accept" && each.content));
});

const DOT = { type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" } as const;

const NAMED: NamedTools = {
  countedJob() {
    let ran = 0;
    return [job(() => ++ran)];
  },
  denied: () => [job(() => ToolResult.error("denied", "Not today"))],
  dots: () => [
    job(() => ToolResult.blocks([DOT]), { name: "blocks" }),
    job(() => ({ content: [DOT] }), { name: "value" }),
  ],
  nonsense: () => [job(() => ToolResult.blocks([{ type: "nonsense" } as never]))],
  person: () => [person],
};

describe("tasks of MCP 2026-07-28", () => {
  runTranscripts(data, { named: NAMED, isMcp: true });

  it("are returned immediately, and have the result of their call later", async () => {
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
});

describe("questions of a task", () => {
  it("get another key after an invalid answer, and keep that key", async () => {
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
    assertStringIncludes(inputRequests[name].params.message, "The last answer was not valid");
    await send("tasks/update", { taskId, inputResponses: { [name]: accept({ name: "Ann" }) } });
    assertEquals(Object.keys((await get(taskId)).result.inputRequests), [age]);
    await send("tasks/update", { taskId, inputResponses: { [age]: accept({ answer: 40 }) } });
    await when(taskId, "completed");
  });

  it("send their first questions before the task exists", async () => {
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
    // This client does not support tasks, so even a long call does not become a task.
    const { result: first } = await send("tools/call", call, {
      capabilities: { elicitation: { form: {} } },
    });
    assertEquals([first.resultType, "taskId" in first], ["input_required", false]);
    const { requestState } = first;
    const inputResponses = { name: accept({ name: "Ann" }) };
    const { result: task } = await send("tools/call", { ...call, requestState, inputResponses });
    assertEquals([task.resultType, "requestState" in task], ["task", false]);
    release();
    await when(task.taskId, "completed");
    assertEquals((await get(task.taskId)).result.result.content[0].text, '{"name":"Ann"}');
  });
});
