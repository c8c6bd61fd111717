import { describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import {
  type Answer,
  type DispatchContext,
  isSuspended,
  ToolDispatcher,
  type ToolFailure,
  ToolRegistry,
} from "../../../../mod.ts";
import {
  type CallStore,
  callTasks,
  type CallTasksOptions,
  memoryCallStore,
  ownerDigest,
  SettledStore,
  storedKeys,
  storedTickets,
  type TaskState,
} from "../../../../src/execute/durable/mod.ts";
import type { NamedCall } from "../../../../src/execute/durable/task_starts.ts";
import { ToolResult } from "../../../../src/tool/mod.ts";
import * as support from "../support.ts";
import { deferred, FakeClock, type FakeTool, outcome } from "../support.ts";

const ANN = { principal: "ann" };
const YES: Answer = { action: "accept" };

/** One process of a service: its tasks, over a store that others may share. */
function processOf(
  tools: readonly FakeTool[],
  options: Partial<CallTasksOptions> & { readonly clock?: FakeClock } = {},
) {
  const { clock = new FakeClock() } = options;
  const { store = memoryCallStore({ clock }) } = options;
  const registry = new ToolRegistry({ tools: tools.map(support.fakeTool) });
  const dispatcher = new ToolDispatcher(registry, {
    ...{ clock, timeoutMs: 3_600_000, graceMs: 0, tickets: storedTickets(store), approve: "ask" },
  });
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const tasks = callTasks({ onError, ...options, store, clock });
  const start = async (name: string, context: DispatchContext = ANN): Promise<TaskState> => {
    const task = await tasks.start(dispatcher, { name, arguments: { n: 1 } }, context);
    assert("id" in task, JSON.stringify(task));
    return task;
  };
  /** Resolves with the task when it has that status. */
  const when = async (id: string, status: TaskState["status"]): Promise<TaskState> => {
    for await (const state of tasks.follow(id, ANN)) {
      if (state.status === status) return state;
    }
    throw new Error(`The task is not ${status}`);
  };
  /** Starts a task, and resolves with the task when it has questions. */
  const asking = async (name: string, context?: DispatchContext) =>
    await when((await start(name, context)).id, "input_required");
  /** The outcome of a task that ends with that status. */
  const ended = async (id: string, status: TaskState["status"]) => {
    const { result } = await when(id, status);
    return result && outcome(result);
  };
  /** Runs a call that becomes a task, because it takes longer than 100 ms. */
  const runLong = async (call: NamedCall, context: DispatchContext = ANN) => {
    const running = tasks.run(dispatcher, call, context, { afterMs: 100 });
    await clock.pass(100);
    const task = await running;
    assert("id" in task);
    return task;
  };
  return { clock, store, dispatcher, tasks, errors, start, when, asking, ended, runLong };
}

/** Another process with the same store, after a time in which no lease was renewed. */
function later(
  { store }: { readonly store: CallStore },
  tools: readonly FakeTool[],
  ms = 30_001,
  options: Partial<CallTasksOptions> = {},
) {
  const clock = new FakeClock();
  clock.advance(ms);
  return processOf(tools, { ...options, store, clock });
}

const DOUBLE: FakeTool = { name: "double", execute: (args) => ({ got: args }) };
const HANG: FakeTool = { name: "hang", execute: () => new Promise(() => {}) };
const AGAIN: FakeTool = { ...HANG, idempotent: true };
const TWO: FakeTool = {
  name: "two",
  execute: (_, { ask }) => Promise.all(["a", "b"].map((key) => ask(key, { message: key }))),
};
/** A tool that hangs, and the signals of its calls. */
function hanging() {
  const signals: AbortSignal[] = [];
  const tool: FakeTool = {
    name: "hang",
    execute: (_, { signal }) => new Promise(() => void signals.push(signal)),
  };
  return { signals, tool };
}
/** The first idempotency key in a store. */
async function keyOf(store: CallStore): Promise<string | undefined> {
  for await (const { key } of store.list(`key.${await ownerDigest("ann")}`)) return key;
  return undefined;
}
const codeOf = (answer: TaskState | ToolFailure | undefined): unknown =>
  answer === undefined ? undefined : "id" in answer ? answer.status : answer.error.code;

describe("callTasks()", () => {
  it("rejects an invalid store", () => {
    const wrong = [undefined, {}, { store: null }, { store: { get: () => {} } }];
    for (const options of wrong) {
      assertThrows(() => callTasks(options as CallTasksOptions), TypeError, "store must");
    }
  });
});

describe("callTasks().start()", () => {
  it("runs a call that outlives its request", async () => {
    const { start, ended, clock } = processOf([DOUBLE]);
    const controller = new AbortController();
    const task = await start("double", { ...ANN, signal: controller.signal });
    controller.abort();
    assertEquals(task.status, "working");
    assertEquals([task.tool, task.callId, task.pollMs], ["double", task.id, 1_000]);
    assertEquals(task.createdAt, clock.timestamp());
    assertEquals(await ended(task.id, "completed"), { got: { n: 1 } });
  });

  it("stores the failure of a call", async () => {
    const { start, ended } = processOf([{
      name: "fail",
      execute() {
        throw new Error("No luck");
      },
    }]);
    const { id } = await start("fail");
    assertEquals(await ended(id, "failed"), "threw");
  });

  it("returns the reason why a call does not become a task", async () => {
    const { tasks, dispatcher, start } = processOf([
      { ...DOUBLE, execution: "sync" },
      { ...HANG, execution: "task" },
    ], { maxRunning: 2 });
    const code = async (name: string, args?: unknown): Promise<unknown> =>
      codeOf(await tasks.start(dispatcher, { name, arguments: args }, ANN));
    assertEquals(await code("none"), "unknown_tool");
    assertEquals(await code("double"), "not_executable");
    assertEquals(await code("hang", { at: NaN }), "invalid_arguments");
    await start("hang");
    await start("hang");
    assertEquals(await code("hang"), "overloaded");
    // Each principal has a separate limit.
    await start("hang", { principal: "bob" });
  });

  it("counts tasks that start together against the limit of their caller", async () => {
    // A network store completes its writes only after all of them have begun.
    const written = deferred();
    const memory = memoryCallStore();
    const store: CallStore = {
      ...memory,
      create: (...entry) => written.promise.then(() => memory.create(...entry)),
    };
    const { tasks, dispatcher } = processOf([{ ...HANG, execution: "task" }], {
      maxRunning: 2,
      store,
    });
    const starting = Promise.all(
      Array.from({ length: 20 }, () => tasks.start(dispatcher, { name: "hang" }, ANN)),
    );
    // By then, the digests of the principals exist.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve));
    written.resolve();
    const started = await starting;
    assertEquals(started.filter((task) => codeOf(task) === "overloaded").length, 18);
    assertEquals(started.filter((task) => "id" in task).length, 2);
  });

  it("does not resume an answered task over the limit of its caller", async () => {
    const { tasks, dispatcher, start, when } = processOf([
      { ...HANG, execution: "task" },
      {
        name: "ask",
        execute: async (_, { ask }) => {
          await ask("ready", { message: "Ready?", schema: { type: "boolean" } });
          await new Promise(() => {});
        },
      },
    ], { maxRunning: 2 });
    const waiting: TaskState[] = [];
    for (let count = 0; count < 3; count++) {
      const { id } = await start("ask");
      waiting.push(await when(id, "input_required"));
    }
    await start("hang");
    const answered = await Promise.all(
      waiting.map(({ id }) =>
        tasks.answer(dispatcher, id, { ready: { action: "accept", content: true } }, ANN)
      ),
    );
    assertEquals(answered.map((task) => task && codeOf(task)).sort(), [
      "overloaded",
      "overloaded",
      "working",
    ]);
    const states = await Promise.all(waiting.map(({ id }) => tasks.get(id, ANN)));
    assertEquals(states.filter((task) => task?.status === "input_required").length, 2);
  });

  it("reports the progress of the call", async () => {
    const go = deferred();
    const { start, when, tasks } = processOf([{
      name: "count",
      async execute(_, { progress }) {
        for (let n = 1; n <= 3; n++) progress(n, 3, `step ${n}`);
        await go.promise;
        progress(4, 4);
      },
    }]);
    const { id } = await start("count");
    for await (const { progress } of tasks.follow(id, ANN)) if (progress?.done === 3) break;
    assertEquals((await tasks.get(id, ANN))?.progress, { done: 3, total: 3, message: "step 3" });
    go.resolve();
    assertEquals((await when(id, "completed")).progress, { done: 4, total: 4 });
  });

  it("stores the last states of the calls of a program, up to 16 kB of JSON", async () => {
    const callOf = (tool: string) => ({ type: "call", tool });
    const { start, when } = processOf([{
      name: "count",
      execute(_, { metadata }) {
        metadata(callOf("first"));
        metadata(callOf("x".repeat(16_360)));
        metadata(callOf("second"));
        metadata("of another tool");
        metadata(callOf("y".repeat(16_000)));
      },
    }]);
    const { metadata = [] } = await when((await start("count")).id, "completed");
    assertEquals(metadata, [callOf("second"), callOf("y".repeat(16_000))]);
  });
});

describe("the record of a task", () => {
  it("is parsed again for its followers only if it has changed", async () => {
    const { asking, tasks, clock } = processOf([TWO]);
    const { id } = await asking("two");
    const states = tasks.follow(id, ANN);
    await states.next();
    const next = states.next();
    const { parse } = JSON;
    let parsed = 0;
    JSON.parse = (...args) => (parsed++, parse(...args));
    for (let poll = 0; poll < 5; poll++) await clock.pass(1_000);
    JSON.parse = parse;
    assertEquals(parsed, 0);
    await tasks.cancel(id, ANN);
    assertEquals((await next).value?.status, "cancelled");
  });

  it("is written once in an interval for the progress of its call", async () => {
    const store = memoryCallStore();
    let writes = 0;
    const update: CallStore["update"] = (...args) => (writes++, store.update(...args));
    const [started, go] = [deferred(), deferred()];
    const { start, when, clock } = processOf([{
      name: "count",
      async execute(_, { progress }) {
        for (let n = 1; n <= 9; n++) {
          progress(n, 9);
          await new Promise((resolve) => setTimeout(resolve, 0));
        }
        started.resolve();
        await go.promise;
      },
    }], { store: { ...store, update } });
    const { id } = await start("count");
    await started.promise;
    await clock.pass(1_000);
    assertEquals(writes, 2);
    go.resolve();
    assertEquals((await when(id, "completed")).progress, { done: 9, total: 9 });
  });
});

describe("a task", () => {
  it("is found by its principal only", async () => {
    const { tasks, dispatcher, asking } = processOf([{ ...DOUBLE, requiresApproval: true }]);
    const { id } = await asking("double");
    for (const principal of ["bob", undefined, ""]) {
      assertEquals(await tasks.get(id, { principal }), undefined);
      assertEquals(await tasks.cancel(id, { principal }), undefined);
      assertEquals(await tasks.answer(dispatcher, id, {}, { principal }), undefined);
      assertEquals((await tasks.list({ principal })).tasks, []);
      for await (const _ of tasks.follow(id, { principal })) assert(false);
    }
    assertEquals((await tasks.get(id, ANN))?.status, "input_required");
    for (const wrong of ["", "x", `${id}x`, "../etc", "a.b", 7, null]) {
      assertEquals(await tasks.get(wrong as string, ANN), undefined);
    }
  });

  it("is not found by a principal whose toolset no longer has its tool", async () => {
    const { tasks, dispatcher, when, asking } = processOf([{
      ...{ name: "secret", requiresApproval: true, execute: () => "found" },
    }, DOUBLE]);
    const { id } = await asking("secret");
    const toolset = dispatcher.toolset.narrow({ denyIds: ["secret"] });
    const demoted = { ...ANN, toolset };
    assertEquals(await tasks.get(id, demoted), undefined);
    assertEquals(await tasks.cancel(id, demoted), undefined);
    for await (const _ of tasks.follow(id, demoted)) assert(false);
    assertEquals((await tasks.list(demoted)).tasks, []);
    const answers = { "plue:approval": YES };
    assertEquals(await tasks.answer(dispatcher.withToolset(toolset), id, answers, ANN), undefined);
    const whole = { ...ANN, toolset: dispatcher.toolset };
    assertEquals((await tasks.get(id, whole))?.status, "input_required");
    assertEquals((await tasks.list(whole)).tasks.length, 1);
    await tasks.answer(dispatcher, id, answers, ANN);
    assertEquals((await when(id, "completed")).tool, "secret");
  });

  it("continues to wait if its answers are invalid, or together too large", async () => {
    const { tasks, dispatcher, when, asking } = processOf([TWO]);
    const { id } = await asking("two");
    const large = { action: "accept", content: "x".repeat(60_000) } as const;
    for (
      const [answers, code] of [
        [{ a: large, b: large }, "invalid_arguments"],
        [undefined as never, "input_required"],
        [{ a: large }, "input_required"],
        [{ b: large }, "invalid_arguments"],
        [{ b: YES }, "working"],
      ] as const
    ) assertEquals(codeOf(await tasks.answer(dispatcher, id, answers, ANN)), code);
    await when(id, "completed");
  });

  it("waits for an answer, and resumes with it once", async () => {
    let ran = 0;
    const { tasks, dispatcher, asking, ended } = processOf([{
      ...{ name: "rm", requiresApproval: true, execute: () => ++ran },
    }]);
    const { id, questions } = await asking("rm");
    assertEquals(questions?.map(({ key, message }) => [key, message]), [
      ["plue:approval", 'Run the tool "rm"?'],
    ]);
    const wrong = await tasks.answer(dispatcher, id, { other: YES }, ANN);
    assertEquals(codeOf(wrong), "invalid_arguments");
    assertEquals((await tasks.get(id, ANN))?.status, "input_required");
    const answers = { "plue:approval": YES };
    const both = await Promise.all([1, 2].map(() => tasks.answer(dispatcher, id, answers, ANN)));
    assertEquals(both.map(codeOf).toSorted(), ["ticket_refused", "working"]);
    assertEquals([await ended(id, "completed"), ran], [1, 1]);
    assertEquals(codeOf(await tasks.answer(dispatcher, id, answers, ANN)), "ticket_refused");
  });

  it("fails when its question is declined, and does not run", async () => {
    let ran = 0;
    const { ended, tasks, dispatcher, asking } = processOf([{
      ...{ name: "rm", requiresApproval: true, execute: () => ++ran },
    }]);
    const { id } = await asking("rm");
    await tasks.answer(dispatcher, id, { "plue:approval": { action: "decline" } }, ANN);
    assertEquals([await ended(id, "failed"), ran], ["denied", 0]);
  });

  it("stores an answer until the other questions are answered", async () => {
    let ran = 0;
    const { tasks, dispatcher, store, clock, asking } = processOf([{
      name: "two",
      async execute(_, { ask }) {
        ran++;
        const [a, b] = await Promise.all([
          ask("a", { message: "a?", schema: { type: "integer" } }),
          ask("b", { message: "b?" }),
        ]);
        return [a, b];
      },
    }]);
    const { id } = await asking("two");
    const one: Answer = { action: "accept", content: 1 };
    const partly = await tasks.answer(dispatcher, id, { a: one }, ANN);
    assert(partly !== undefined && "id" in partly);
    assertEquals([partly.status, partly.questions?.map(({ key }) => key)], [
      "input_required",
      ["b"],
    ]);
    assertEquals(partly, await tasks.get(id, ANN));
    // An answered question is not repeated.
    const again = await tasks.answer(dispatcher, id, { a: { action: "decline" } }, ANN);
    assertEquals([codeOf(again), ran], ["invalid_arguments", 1]);
    // The answer is stored, so another process has it too.
    const other = callTasks({ store, clock });
    await other.answer(dispatcher, id, { b: YES }, ANN);
    let last: TaskState | undefined;
    for await (last of other.follow(id, ANN));
    assertEquals([last?.result && outcome(last.result), ran], [[one, YES], 2]);
  });

  it("retains the earlier answers if the last one cannot be used", async () => {
    let isOpen = true;
    const { when, ended, tasks, dispatcher, asking } = processOf([{
      ...TWO,
      isAvailable: () => isOpen,
    }]);
    const { id } = await asking("two");
    await tasks.answer(dispatcher, id, { a: YES }, ANN);
    isOpen = false;
    await tasks.answer(dispatcher, id, { b: { action: "decline" } }, ANN);
    const { questions } = await when(id, "input_required");
    assertEquals(questions?.map(({ key }) => key), ["b"]);
    isOpen = true;
    await tasks.answer(dispatcher, id, { b: YES }, ANN);
    assertEquals(await ended(id, "completed"), [YES, YES]);
  });

  it("stores that its result consists of blocks", async () => {
    const content = [{ type: "text", text: "dot" }] as const;
    for (const [returned, kept] of [[ToolResult.blocks(content), true], [{ content }, undefined]]) {
      const { start, when } = processOf([{ name: "draw", execute: () => returned }]);
      const { id } = await start("draw");
      const { result } = await when(id, "completed");
      assertEquals(result?.ok && [result.content, result.blocks], [{ content }, kept]);
    }
  });

  it("can ask several questions, one after the other", async () => {
    const { start, tasks, dispatcher } = processOf([{
      name: "two",
      async execute(_, { ask }) {
        await ask("a", { message: "a?" });
        await ask("b", { message: "b?" });
        return "done";
      },
    }]);
    const { id } = await start("two");
    const received: (string | undefined)[] = [];
    for await (const { status, questions } of tasks.follow(id, ANN)) {
      if (status !== "input_required") continue;
      const [question] = questions ?? [];
      received.push(question?.key);
      await tasks.answer(dispatcher, id, { [question?.key ?? ""]: YES }, ANN);
    }
    assertEquals(received, ["a", "b"]);
    const state = await tasks.get(id, ANN);
    assertEquals([state?.status, state?.questions], ["completed", undefined]);
  });

  it("fails after its tool has used an answer, because the ticket is then used, too", async () => {
    const { ended, tasks, dispatcher, asking } = processOf([{
      name: "busy",
      async execute(_, { ask }) {
        await ask("sure", { message: "Sure?" });
        return ToolResult.error("unavailable", "The upstream is away", { retryable: true });
      },
    }]);
    const { id } = await asking("busy");
    await tasks.answer(dispatcher, id, { sure: YES }, ANN);
    assertEquals(await ended(id, "failed"), "unavailable");
  });

  it("stays cancelled", async () => {
    const { signals, tool } = hanging();
    const { start, tasks, dispatcher } = processOf([tool]);
    const { id } = await start("hang");
    await support.until(() => signals.length === 1);
    const cancelled = await tasks.cancel(id, ANN);
    assertEquals([cancelled?.status, signals[0]?.aborted], ["cancelled", true]);
    assertEquals(cancelled?.result && outcome(cancelled.result), "aborted");
    const { ran, retryable } = (cancelled?.result as ToolFailure).error;
    assertEquals([ran, retryable], ["unknown", false]);
    assertEquals(await tasks.cancel(id, ANN), cancelled);
    assertEquals(codeOf(await tasks.answer(dispatcher, id, {}, ANN)), "ticket_refused");
  });

  it("is cancelled by another process", async () => {
    const { signals, tool } = hanging();
    const here = processOf([tool]);
    const there = processOf([], { store: here.store, clock: here.clock });
    const { id } = await here.start("hang");
    await support.until(() => signals.length === 1);
    assertEquals((await there.tasks.cancel(id, ANN))?.status, "cancelled");
    assertEquals(signals[0]?.aborted, false);
    here.clock.advance(10_000);
    await support.until(() => signals[0]?.aborted === true);
    assertEquals((await here.tasks.get(id, ANN))?.status, "cancelled");
  });

  it("is held as long as its process renews it", async () => {
    const work = deferred<string>();
    const here = processOf([{ name: "slow", execute: () => work.promise }]);
    const there = processOf([], { store: here.store, clock: here.clock });
    const { id } = await here.start("slow");
    const heldUntil = async (): Promise<number> => {
      for await (
        const { value } of new SettledStore(here.store).list(`task.${await ownerDigest("ann")}`)
      ) {
        return JSON.parse(new TextDecoder().decode(value)).heldUntil;
      }
      return 0;
    };
    for (let turn = 0; turn < 10; turn++) {
      const before = await heldUntil();
      here.clock.advance(10_000);
      for (let turns = 0; turns < 1_000 && await heldUntil() === before; turns++);
      assertEquals((await there.tasks.get(id, ANN))?.status, "working");
    }
    work.resolve("done");
    assertEquals((await here.when(id, "completed")).status, "completed");
  });

  it("has failed when its process has died", async () => {
    const clock = new FakeClock();
    const dead = processOf([HANG], { clock });
    const { id } = await dead.start("hang");
    // The clock of the first process stands still, so its lease is not renewed.
    const alive = later(dead, [HANG]);
    const state = await alive.tasks.get(id, ANN);
    assertEquals([state?.status, state?.result && outcome(state.result)], [
      "failed",
      "unavailable",
    ]);
    assertStringIncludes(
      state?.result?.ok === false ? state.result.error.message : "",
      "its process ended during the call; the tool may have run",
    );
    const { retryable, ran } = state?.result?.ok === false ? state.result.error : {};
    assertEquals([retryable, ran], [false, "unknown"]);
    assertEquals(await alive.tasks.recover(alive.dispatcher), 0);
  });

  it("rejects an answer with another context of the host, and continues to wait", async () => {
    const tenants: unknown[] = [];
    const { dispatcher, tasks, when, asking } = processOf([{
      name: "wipe",
      requiresApproval: true,
      context: { type: "object", required: ["tenant"] },
      execute: (_, { context }) => void tenants.push(context),
    }]);
    const inTenant = (tenant: string): DispatchContext => ({ ...ANN, context: { tenant } });
    const { id, questions } = await asking("wipe", inTenant("staging"));
    const yes = { [questions?.[0]?.key ?? ""]: YES };
    for (const context of [inTenant("production"), ANN]) {
      const refused = await tasks.answer(dispatcher, id, yes, context);
      assert(refused !== undefined && "error" in refused);
      assertEquals(refused.error.code, "ticket_refused");
      assertStringIncludes(refused.error.message, "another context");
    }
    assertEquals([tenants, (await tasks.get(id, ANN))?.status], [[], "input_required"]);
    await tasks.answer(dispatcher, id, yes, inTenant("staging"));
    await when(id, "completed");
    assertEquals(tenants, [{ tenant: "staging" }]);
  });

  it("is resumed by another process if its tool is idempotent, once, and not without end", async () => {
    const dead = processOf([AGAIN]);
    const { id } = await dead.start("hang");
    let ran = 0;
    const tool: FakeTool = {
      ...AGAIN,
      execute: (_, { principal, callId }) => [++ran, principal, callId],
    };
    const others = [1, 2, 3].map(() => later(dead, [tool]));
    assertEquals((await others[0]?.tasks.get(id, ANN))?.status, "working");
    const taken = await Promise.all(
      others.map(({ tasks, dispatcher }) => tasks.recover(dispatcher)),
    );
    assertEquals(taken.toSorted(), [0, 0, 1]);
    assertEquals(await (others[taken.indexOf(1)] as typeof dead).ended(id, "completed"), [
      1,
      "ann",
      id,
    ]);

    const killer = processOf([AGAIN]);
    const next = await killer.start("hang");
    const attempts: number[] = [];
    for (let turn = 1; turn <= 4; turn++) {
      const process = later(killer, [AGAIN], turn * 30_001);
      attempts.push(await process.tasks.recover(process.dispatcher));
      if (turn === 4) assertEquals((await process.tasks.get(next.id, ANN))?.status, "failed");
    }
    assertEquals(attempts, [1, 1, 0, 0]);
  });

  it("receives its typed context from the host in the process that resumes it", async () => {
    const context = {
      type: "object",
      properties: { tenant: { type: "string" } },
      required: ["tenant"],
    };
    const tools: readonly FakeTool[] = [
      { ...HANG, idempotent: true, context },
      { ...HANG, name: "plain", idempotent: true },
    ];
    const again = (_: unknown, { context }: { context?: unknown }) => context ?? "none";
    const failed = ["failed", "unavailable"];
    for (
      const [callContext, ends, reports] of [
        [
          ({ principal, tenant }) => ({ tenant, of: principal }),
          ["completed", { tenant: "acme", of: "ann" }],
          0,
        ],
        [() => Promise.resolve({ tenant: "acme" }), ["completed", { tenant: "acme" }], 0],
        [() => ({ tenant: 1 }), failed, 0],
        [() => undefined, failed, 0],
        [undefined, failed, 0],
        [() => Promise.reject(new Error("no")), failed, 1],
      ] as readonly (readonly [CallTasksOptions["callContext"], readonly unknown[], number])[]
    ) {
      const dead = processOf(tools);
      const { id } = await dead.start("hang", { ...ANN, context: { tenant: "acme" } });
      const plain = await dead.start("plain");
      const received: unknown[] = [];
      const alive = later(dead, tools.map((tool) => ({ ...tool, execute: again })), 30_001, {
        ...(callContext && {
          callContext: (call) => {
            received.push(call.tool);
            return callContext(call);
          },
        }),
      });
      assertEquals(await alive.tasks.recover(alive.dispatcher), 2);
      const { status, result } = await alive.when(id, ends[0] as TaskState["status"]);
      assertEquals([status, result && outcome(result), alive.errors.length], [...ends, reports]);
      assertEquals(await alive.ended(plain.id, "completed"), "none");
      assertEquals(received, callContext ? ["hang"] : []);
    }
  });

  it("is resumed even if it began with an idempotency key, which its dead run holds", async () => {
    const dead = processOf([AGAIN]);
    const { store } = dead;
    const kept = { idempotency: { kept: storedKeys(store) }, clock: dead.clock };
    const keyed = new ToolDispatcher(new ToolRegistry({ tools: [support.fakeTool(AGAIN)] }), kept);
    const context = { ...ANN, idempotencyKey: "k" };
    const task = await dead.tasks.start(keyed, { name: "hang" }, context);
    assert("id" in task);
    while (await keyOf(store) === undefined) await new Promise((wake) => setTimeout(wake, 0));
    const alive = later(dead, [{ ...AGAIN, execute: () => "done" }]);
    const { clock } = alive;
    const dispatcher = new ToolDispatcher(alive.dispatcher.toolset, { ...kept, clock });
    assertEquals(await alive.tasks.recover(dispatcher), 1);
    assertEquals(await alive.ended(task.id, "completed"), "done");
  });

  it("does not overwrite the record of the process that resumed it", async () => {
    const work = deferred<string>();
    const slow = processOf([{ name: "job", idempotent: true, execute: () => work.promise }]);
    const { id } = await slow.start("job");
    const fast = later(slow, [{ name: "job", idempotent: true, execute: () => "fast" }]);
    await fast.tasks.recover(fast.dispatcher);
    await fast.when(id, "completed");
    work.resolve("slow");
    await slow.when(id, "completed");
    assertEquals(await fast.ended(id, "completed"), "fast");
  });

  it("expires some time after its end", async () => {
    const { start, when, tasks, clock } = processOf([DOUBLE], { ttlMs: 5_000 });
    const { id } = await start("double");
    await when(id, "completed");
    clock.advance(34_999);
    assertEquals((await tasks.get(id, ANN))?.status, "completed");
    clock.advance(1);
    assertEquals(await tasks.get(id, ANN), undefined);
  });

  it("reports a result that is too large to store", async () => {
    const { start, when, errors } = processOf([{
      name: "large",
      execute: () => "x".repeat(1_048_500),
    }]);
    const { id } = await start("large");
    const { result } = await when(id, "failed");
    assertEquals([result && outcome(result), errors.length], ["output_too_large", 1]);
    assertStringIncludes(
      result && support.messageOf(result) || "",
      'Cannot call "large": its result is not stored (Cannot store a value: it has',
    );
  });
});

describe("callTasks().list()", () => {
  it("returns the newest tasks first, page by page", async () => {
    const { start, tasks, clock } = processOf([DOUBLE]);
    const ids: string[] = [];
    for (let index = 0; index < 5; index++) {
      ids.unshift((await start("double")).id);
      clock.advance(1);
    }
    await start("double", { principal: "bob" });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await tasks.list({ ...ANN, limit: 2, ...(cursor !== undefined && { cursor }) });
      seen.push(...page.tasks.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    assertEquals(seen, ids);
  });

  it("reads no more of the store than its page", async () => {
    const { start, tasks, clock, store } = processOf([DOUBLE]);
    for (let index = 0; index < 9; index++) {
      await start("double");
      clock.advance(1);
    }
    let read = 0;
    const counting: CallStore = {
      ...store,
      async *list(prefix, after) {
        for await (const entry of store.list(prefix, after)) {
          read++;
          yield entry;
        }
      },
    };
    const counted = callTasks({ store: counting, clock });
    const { nextCursor } = await counted.list({ ...ANN, limit: 3 });
    assertEquals([nextCursor === undefined, read], [false, 4]);
    assertEquals(
      (await counted.list({ ...ANN, limit: 3, cursor: nextCursor ?? "" })).tasks.map(({ id }) =>
        id
      ),
      (await tasks.list(ANN)).tasks.slice(3, 6).map(({ id }) => id),
    );
    assertEquals(read, 8);
  });

  it("ends a page early if the tasks are large", async () => {
    const large: FakeTool = { name: "large", execute: () => "x".repeat(900_000) };
    const { start, when, tasks } = processOf([large]);
    for (let index = 0; index < 6; index++) await when((await start("large")).id, "completed");
    const page = await tasks.list(ANN);
    assertEquals(page.tasks.length, 4);
    const { tasks: rest, nextCursor } = await tasks.list({ ...ANN, cursor: page.nextCursor ?? "" });
    assertEquals([rest.length, nextCursor], [2, undefined]);
  });

  it("rejects an invalid limit and an unknown cursor", async () => {
    const { tasks } = processOf([DOUBLE]);
    for (const limit of [0, -1, 1.5, NaN]) {
      await assertRejects(() => tasks.list({ limit }), RangeError, "limit must be a whole number");
    }
    for (const cursor of ["", "a.b", "x".repeat(65)]) {
      await assertRejects(() => tasks.list({ cursor }), TypeError, "nextCursor of a page");
    }
  });
});

describe("callTasks().run()", () => {
  it("returns the result of a quick call", async () => {
    const { tasks, dispatcher, store } = processOf([DOUBLE]);
    const call = { name: "double", arguments: { n: 1 } };
    const answer = await tasks.run(dispatcher, call, ANN, { afterMs: 100 });
    assertEquals("ok" in answer && outcome(answer), { got: { n: 1 } });
    for await (const _ of store.list(`task.${await ownerDigest("ann")}`)) assert(false);
  });

  it("returns a task with its progress for a longer call", async () => {
    const work = deferred<string>();
    const { runLong, when } = processOf([{
      name: "slow",
      execute(_, { progress }) {
        progress(1, 2);
        return work.promise;
      },
    }]);
    const controller = new AbortController();
    const heard: unknown[] = [];
    const { id } = await runLong({ name: "slow" }, {
      ...ANN,
      signal: controller.signal,
      progress: (progress) => void heard.push(progress),
    });
    controller.abort();
    assertEquals(heard, [{ done: 1, total: 2 }]);
    work.resolve("done");
    const { result, progress } = await when(id, "completed");
    assertEquals([result && outcome(result), progress], ["done", { done: 1, total: 2 }]);
  });

  it("returns a task for a resumed call, even if its tool always runs as a task", async () => {
    for (const execution of ["either", "task"] as const) {
      const work = deferred<string>();
      const { dispatcher, runLong, ended } = processOf([{
        name: "slow",
        execution,
        async execute(_, { ask }) {
          const { action } = await ask("name", { message: "Who?" });
          return `${action} ${await work.promise}`;
        },
      }]);
      const waiting = await dispatcher.dispatch({ name: "slow" }, ANN);
      assert(isSuspended(waiting));
      const call = { name: "slow", ticket: waiting.ticket, answers: { name: YES } };
      const { id } = await runLong(call);
      work.resolve("done");
      assertEquals(await ended(id, "completed"), "accept done");
    }
  });

  it("passes the task's call id to the tool", async () => {
    const ids: string[] = [];
    const slow: FakeTool = {
      name: "slow",
      idempotent: true,
      execute: (_, { callId }) => (ids.push(callId), new Promise(() => {})),
    };
    const first = processOf([slow]);
    const { callId } = await first.runLong({ name: "slow" });
    const second = later(first, [slow], 30_101);
    assertEquals(await second.tasks.recover(second.dispatcher), 1);
    assertEquals(ids, [callId, callId]);
  });

  it("does not rerun a call that was resumed with a ticket, since its answers are not stored", async () => {
    const first = processOf([{
      name: "slow",
      idempotent: true,
      async execute(_, { ask }) {
        await ask("sure", { message: "?" });
        return await new Promise(() => {});
      },
    }]);
    const waiting = await first.dispatcher.dispatch({ name: "slow", arguments: { n: 5 } }, ANN);
    assert(isSuspended(waiting));
    const call = { name: "slow", ticket: waiting.ticket, answers: { sure: YES } };
    const { id } = await first.runLong(call);
    const other = later(first, [DOUBLE], 30_101);
    assertEquals(await other.tasks.recover(other.dispatcher), 0);
    assertEquals((await other.tasks.get(id, ANN))?.status, "failed");
  });

  it("aborts a call whose caller disconnects before it becomes a task", async () => {
    const { tasks, dispatcher } = processOf([HANG]);
    const controller = new AbortController();
    const context = { ...ANN, signal: controller.signal };
    const running = tasks.run(dispatcher, { name: "hang" }, context, { afterMs: 100 });
    controller.abort();
    const answer = await running;
    assertEquals("ok" in answer && outcome(answer), "aborted");
  });

  it("follows the execution field of the tool", async () => {
    const work = deferred<string>();
    const { tasks, dispatcher, when } = processOf([
      { name: "always", execution: "task", execute: () => "done" },
      { name: "never", execution: "sync", execute: () => work.promise },
    ]);
    const task = await tasks.run(dispatcher, { name: "always" }, ANN, { afterMs: 100 });
    assert("id" in task);
    await when(task.id, "completed");
    const running = tasks.run(dispatcher, { name: "never" }, ANN, { afterMs: 1 });
    work.resolve("in its request");
    const answer = await running;
    assertEquals("ok" in answer && outcome(answer), "in its request");
  });

  it("continues without a task if the store fails", async () => {
    const clock = new FakeClock();
    const create = (): Promise<never> => Promise.reject(new Error("The disk is full"));
    const store = { ...memoryCallStore({ clock }), create };
    const work = deferred<string>();
    const { tasks, dispatcher, errors } = processOf(
      [{ name: "slow", execute: () => work.promise }],
      { store, clock },
    );
    const running = tasks.run(dispatcher, { name: "slow" }, ANN, { afterMs: 100 });
    await clock.pass(100);
    work.resolve("done");
    const answer = await running;
    assertEquals(["ok" in answer && outcome(answer), errors.length], ["done", 1]);
    const begun = await tasks.start(dispatcher, { name: "slow" }, ANN);
    assertEquals([codeOf(begun), errors.length], ["unavailable", 2]);
    assertStringIncludes("error" in begun ? begun.error.message : "", "nothing has run");
    assertEquals("error" in begun && begun.error.ran, "no");
  });
});
