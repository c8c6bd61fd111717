import { describe } from "bun:test";
import {
  assert,
  assertEquals,
  assertLessOrEqual,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { headers } from "@nats-io/nats-core";
import { AsyncLocalStorage } from "node:async_hooks";
import * as plue from "@plue/tools";
import type { ToolDefinition } from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import type { Layer, TraceParent } from "@plue/tools/core";
import { remoteTools, serveTools } from "@plue/tools/nats";
import { SECRET, TestServer, withServer } from "./server.ts";
import {
  assertContent,
  assertFailed,
  endlessTool,
  event,
  slowTool,
  spyOn,
  useWorlds,
} from "./world.ts";

const ping: ToolDefinition = { name: "ping", description: "Answers.", execute: () => "pong" };

describe("Plain calls over NATS", () => {
  const { server, withWorld } = useWorlds();

  withWorld("runs a call once despite fake reports that its worker is missing", async (world) => {
    const { began, goOn, tool: pay, runs } = slowTool(ping, "paid");
    await world.serve([pay]);
    await world.serve([pay]);
    let isFirst = true;
    const spy = await spyOn(server, "plue.v1.call.>", {
      callback(_, { reply = "" }) {
        if (isFirst) spy.publish(reply, "", { headers: headers(503, "No Responders") });
        isFirst = false;
      },
    });
    const { dispatcher, connection } = await world.call();
    const running = dispatcher.dispatch({ name: "ping" });
    await began.came;
    await spy.flush();
    await connection.flush();
    goOn.come();
    const result = await running;
    assertEquals([result.ok ? result.content : result.error, runs()], ["paid", 1]);
  });

  withWorld("confirms a call before the tool begins", async (world) => {
    // Messages of one connection arrive in their order, so the tool sends one as well.
    const begin = () => worker.connection.publish("begun");
    const worker = await world.serve([{ ...ping, execute: begin }]);
    let accepted = 0;
    const spy = await server.connect();
    const begun = event<number>();
    spy.subscribe("_INBOX.>", {
      callback(_, { data, reply = "" }) {
        const text = new TextDecoder().decode(data.subarray(37));
        if (reply !== "" && text.includes('"accepted"')) accepted++;
      },
    });
    spy.subscribe("begun", { callback: () => begun.come(accepted) });
    await spy.flush();
    const { dispatcher } = await world.call();
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
    assertEquals(await begun.came, 1);
  });

  withServer("reports at the start which messages a user may not receive", async () => {
    await using own = await TestServer.start({
      lines: `authorization { users: [
        { user: deaf, password: x, permissions: { publish: ">", subscribe: "_INBOX.>" } }
      ] }`,
    });
    const deaf = await own.connect({ user: "deaf", pass: "x" });
    const registry = new plue.ToolRegistry({ tools: [ping] });
    const why = 'the user of the connection may not subscribe to "plue.v1.';
    await assertRejects(() => serveTools(registry, deaf, { secret: SECRET }), Error, why);
    await assertRejects(() => remoteTools(deaf, { registry, secret: SECRET }), Error, why);
  });

  withServer("continues a call that was accepted before its user lost the permission", async () => {
    const users = (denied = "") =>
      `authorization { users: [
        { user: worker, password: x },
        { user: caller, password: x, permissions: { publish: { allow: ">"${denied} } } }
      ] }`;
    await using own = await TestServer.start({ lines: users() });
    const connect = (user: string) => own.connect({ user, pass: "x" });
    const { began, goOn, tool } = slowTool(ping, "pong");
    const far = new plue.ToolRegistry({ tools: [tool] });
    await using _served = await serveTools(far, await connect("worker"), { secret: SECRET });
    const registry = new plue.ToolRegistry();
    await using _tools = await remoteTools(await connect("caller"), { registry, secret: SECRET });
    const dispatcher = new plue.ToolDispatcher(registry);
    const accepted = dispatcher.dispatch({ name: "ping" });
    await began.came;
    await own.reload(users(', deny: "plue.v1.call.>"'));
    const refused = await dispatcher.dispatch({ name: "ping" });
    assertFailed(refused, "unavailable", 'may not publish to "plue.v1.call.', "no");
    assertFailed(refused, "unavailable", "nothing has run");
    assertEquals(refused.error.retryable, false);
    goOn.come();
    assertContent(await accepted, "pong");
  });

  withWorld("reports that a result was truncated", async (world) => {
    const returns = { type: "string", minLength: 500 } as const;
    await world.serve([{ ...ping, returns, execute: () => "x".repeat(500) }], {
      dispatcher: { maxOutputBytes: 200, outputOverflow: "truncate" },
    });
    const { dispatcher } = await world.call();
    const result = await dispatcher.dispatch({ name: "ping" });
    assertEquals(result.ok && result.truncated, true);
  });

  withWorld("does not repeat a call that has yielded a value", async (world) => {
    const gone = event();
    const tool = (isFirst: boolean): ToolDefinition => ({
      ...ping,
      idempotent: true,
      async *execute() {
        yield "a";
        if (isFirst) await new Promise(() => {});
        return "end";
      },
    });
    const first = await world.serve([tool(true)]);
    const { dispatcher } = await world.call();
    const outputs: unknown[] = [];
    let message = "";
    const read = (async () => {
      for await (const one of dispatcher.stream({ name: "ping" })) {
        if (one.type === "output") {
          outputs.push(one.value);
          gone.come();
        } else if (one.type === "result" && !one.result.ok) message = one.result.error.message;
      }
    })();
    await gone.came;
    await world.serve([tool(false)]);
    await first.kill();
    await read;
    assertEquals(outputs, ["a"]);
    assertStringIncludes(message, "may have run");
  });

  withWorld("forwards outputs of one worker, even if its tool then rejects", async (world) => {
    const tool: ToolDefinition = {
      ...ping,
      async *execute() {
        yield "a";
        return plue.ToolResult.error("overloaded", "Too many requests");
      },
    };
    await world.serve([tool]);
    await world.serve([tool]);
    const { dispatcher } = await world.call();
    const seen: unknown[] = [];
    for await (const one of dispatcher.stream({ name: "ping" })) {
      seen.push(one.type === "output" ? one.value : one.type === "result" && one.result.ok);
    }
    assertEquals(seen, ["a", false]);
  });

  for (
    const [size, count, most] of [
      // 1 MiB and one more output in each of three queues: of both dispatchers, and between them.
      [1_000_000, 64, 8],
      // 64 events in each.
      [1, 1_000, 195],
    ] as const
  ) {
    withWorld(`creates few outputs of ${size} bytes before they are consumed`, async (world) => {
      let made = 0;
      await world.serve([ping, {
        ...ping,
        name: "list",
        async *execute() {
          const output = "x".repeat(size);
          for (; made < count; made++) yield output;
        },
      }]);
      const { dispatcher } = await world.call();
      let taken = 0;
      for await (const { type } of dispatcher.stream({ name: "list" })) {
        // A worker without flow control would create all outputs before it answers this call.
        if (taken % 50 === 1) await dispatcher.dispatch({ name: "ping" });
        if (type === "output") taken++;
        assertLessOrEqual(made - taken, most);
      }
      assertEquals(taken, count);
    });
  }

  withWorld("ignores a replayed answer of a worker", async (world) => {
    const { began, goOn, tool } = slowTool(ping, "pong");
    await world.serve([tool]);
    const replayed = event();
    let isReplayed = false;
    const spy = await spyOn(server, "_INBOX.>", {
      callback(_, { subject, data, reply = "" }) {
        // `accepted` is the first answer of a call.
        if (isReplayed || !reply.startsWith("plue.v1.ctl.")) return;
        isReplayed = true;
        const copy = Uint8Array.from(data);
        void began.came.then(() => {
          for (let time = 0; time < 3; time++) spy.publish(subject, copy, { reply });
          replayed.come();
        });
      },
    });
    const { dispatcher, connection } = await world.call();
    const running = dispatcher.dispatch({ name: "ping" });
    await replayed.came;
    await spy.flush();
    await connection.flush();
    goOn.come();
    const result = await running;
    assertContent(result, "pong");
  });

  for (const what of ["credit", "abort"]) {
    withWorld(`continues after the loss of a message with ${what} to its worker`, async (world) => {
      const { began, aborted, tool } = endlessTool({ ...ping, name: "endless" });
      await world.serve([tool, {
        ...ping,
        async *execute() {
          for (let count = 0; count < 200; count++) yield "x".repeat(20_000);
        },
      }]);
      const { dispatcher, connection } = await world.call();
      const publish = connection.publish.bind(connection);
      let isLost = false;
      connection.publish = (subject, data, ...rest) => {
        const isIt = subject.startsWith("plue.v1.ctl.") && `${data}` !== "" &&
          new TextDecoder().decode(data as Uint8Array).includes(`"${what}"`);
        if (isLost || !isIt) publish(subject, data, ...rest);
        isLost ||= isIt;
      };
      let outputs = 0;
      for await (const { type } of dispatcher.stream({ name: "ping" })) {
        if (type === "output") outputs++;
      }
      assertEquals(outputs, 200);
      const abort = new AbortController();
      const running = dispatcher.dispatch({ name: "endless" }, { signal: abort.signal });
      await began.came;
      abort.abort();
      await running;
      await aborted.came;
      assertEquals(isLost, true);
    });
  }

  withWorld("ends a call if one of its answers is lost", async (world) => {
    const { connection } = await world.serve([{
      ...ping,
      async *execute() {
        yield "a";
        yield "b";
        return "end";
      },
    }]);
    const publish = connection.publish.bind(connection);
    let answers = 0;
    connection.publish = (subject, ...rest) => {
      // Loses the answer after `accepted` and "a".
      if (!subject.startsWith("_INBOX.") || ++answers !== 3) publish(subject, ...rest);
    };
    const { dispatcher } = await world.call();
    const events = [];
    for await (const one of dispatcher.stream({ name: "ping" })) events.push(one);
    const [a, end, ...more] = events;
    assertEquals([a?.type === "output" && a.value, more], ["a", []]);
    assert(end?.type === "result");
    assertFailed(end.result, "unavailable", "may have run", "unknown");
  });

  const outcomes = { sync: "closed; the tool may have run", task: "closed; the call may continue" };
  for (const execution of ["sync", "task"] as const) {
    for (const what of ["registry", "connection"]) {
      withWorld(`reports for a call (${execution}) that the ${what} was closed`, async (world) => {
        const { goOn, ...slow } = slowTool({ ...ping, execution });
        const { running, remote, connection } = await world.begin(slow);
        await (what === "registry" ? remote : connection).close();
        assertFailed(await running, "unavailable", outcomes[execution], "unknown");
        goOn.come();
      });
    }
  }

  withWorld("closes a worker together with its connection", async (world) => {
    const served = await world.serve([ping]);
    await Promise.all([served.close(), served.connection.close()]);
    assertEquals(world.errors, []);
  });

  withWorld("sends the remaining time of a call to the worker", async (world) => {
    const remaining = event<number>();
    const layer: Layer = {
      name: "remaining",
      stage: "run",
      observe: () => ({ toolStarted: (call) => remaining.come(call.deadline.remainingMs) }),
    };
    await world.serve([ping], { dispatcher: { layers: [layer] } });
    const { dispatcher } = await world.call();
    await dispatcher.dispatch({ name: "ping" }, { timeoutMs: 20_000 });
    const ms = await remaining.came;
    assert(ms > 0 && ms <= 20_000, `${ms}`);
  });

  withWorld("sends a call to a worker with a free slot", async (world) => {
    const goOn = event();
    const all = event();
    let running = 0;
    for (let i = 0; i < 3; i++) {
      await world.serve([{
        ...ping,
        async execute() {
          if (++running === 3) all.come();
          await goOn.came;
        },
      }], { dispatcher: { limits: { maxConcurrent: 1, maxQueued: 0 } } });
    }
    const callers = [await world.call(), await world.call()] as const;
    const calls = [0, 1, 0].map((at) => callers[at as 0 | 1].dispatcher.dispatch({ name: "ping" }));
    await all.came;
    assertFailed(await callers[0].dispatcher.dispatch({ name: "ping" }), "overloaded");
    goOn.come();
    assertEquals((await Promise.all(calls)).map(({ ok }) => ok), [true, true, true]);
  });

  withWorld("ignores a replayed message of a worker", async (world) => {
    const worker = await world.serve([ping]);
    const { dispatcher, registry, connection } = await world.call();
    const subject = `plue.v1.here.${world.name}.${worker.worker}`;
    const beat = event<Uint8Array>();
    const spy = await spyOn(server, subject, {
      callback: (_, { data }) => beat.come(Uint8Array.from(data)),
    });
    const data = await beat.came;
    await connection.flush();
    await worker.kill();
    assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, false);
    assertEquals(registry.getAvailableTools().length, 0);
    spy.publish(subject, data);
    await spy.flush();
    await connection.flush();
    assertEquals(registry.getAvailableTools().length, 0);
  });

  withWorld("registers a remote tool when the local one with its id is removed", async (world) => {
    await world.serve([ping]);
    const registry = new plue.ToolRegistry({ tools: [{ ...ping, description: "Local." }] });
    await world.call({ registry });
    assertEquals(registry.getTool("ping")?.description, "Local.");
    registry.unregisterTool("ping");
    assertEquals(registry.getTool("ping")?.description, "Answers.");
  });

  withWorld("reports that a call aborted while it waits has not run", async (world) => {
    const { began, goOn, tool, runs } = slowTool(ping);
    const waits = event();
    await world.serve([tool], {
      dispatcher: {
        limits: { maxConcurrent: 1 },
        hooks: { before: () => void (runs() === 1 && waits.come()) },
      },
    });
    const { dispatcher } = await world.call();
    const first = dispatcher.dispatch({ name: "ping" });
    await began.came;
    const abort = new AbortController();
    const second = dispatcher.dispatch({ name: "ping" }, { signal: abort.signal });
    await waits.came;
    abort.abort();
    assertFailed(await second, "aborted", "", "no");
    goOn.come();
    assertEquals([(await first).ok, runs()], [true, 1]);
  });

  withWorld("accepts a ticket again after a busy worker has rejected it", async (world) => {
    const { began, goOn, tool: slow } = slowTool({ ...ping, name: "slow" });
    let runs = 0;
    const pay: ToolDefinition = {
      ...ping,
      async execute(_, { ask }) {
        const { action } = await ask("sure", { message: "Really?" });
        runs++;
        return action;
      },
    };
    await world.serve([pay, slow], { dispatcher: { limits: { maxConcurrent: 1, maxQueued: 0 } } });
    const { registry } = await world.call();
    const tickets = storedTickets(memoryCallStore());
    const dispatcher = new plue.ToolDispatcher(registry, { tickets });
    const suspended = await dispatcher.dispatch({ name: "ping" });
    assert(plue.isSuspended(suspended));
    const resume = async (): Promise<unknown> => {
      const answers = { sure: { action: "accept" } } as const;
      const result = await dispatcher.resume(suspended.ticket, answers);
      return result.ok ? result.content : [result.error.code, result.error.ran];
    };
    const waits = dispatcher.dispatch({ name: "slow" });
    await began.came;
    assertEquals(await resume(), ["overloaded", "no"]);
    goOn.come();
    await waits;
    assertEquals(await resume(), "accept");
    assertEquals([await resume(), runs], [["ticket_refused", "no"], 1]);
  });

  withWorld("aborts with a long reason", async (world) => {
    const { aborted, ...slow } = endlessTool(ping);
    const caller = new AbortController();
    const { running } = await world.begin(slow, { signal: caller.signal });
    caller.abort(new Error("x".repeat(600_000)));
    assertEquals((await aborted.came as Error).message.length, 500);
    assertEquals((await running).ok, false);
  });

  withWorld("shows arguments that a worker's hook has changed in the question", async (world) => {
    const asking: ToolDefinition = {
      ...ping,
      parameters: { type: "object", properties: { path: { type: "string" } } },
      execute: async (_, { ask }) =>
        (await ask("sure", { kind: "approval", message: "Sure?" })).action,
    };
    const hooks = { before: () => ({ arguments: { path: "/etc" } }) };
    await world.serve([asking], { dispatcher: { hooks } });
    const { dispatcher } = await world.call();
    const list: unknown[] = [];
    const result = await dispatcher.dispatch({ name: "ping", arguments: { path: "a" } }, {
      onQuestion({ message, arguments: shown }) {
        list.push([message, shown]);
        return { action: "accept" };
      },
    });
    assertEquals([result.ok && result.content, list], ["accept", [["Sure?", { path: "/etc" }]]]);
  });

  for (const execution of ["sync", "task"] as const) {
    withWorld(`traces a call (${execution}) once on each side`, async (world) => {
      const [caller, worker] = [spansOf("a"), spansOf("b")];
      const { telemetry } = worker;
      const tool: ToolDefinition = { ...ping, execution, idempotent: true };
      await world.serve([tool], { telemetry, dispatcher: { telemetry } });
      const { registry } = await world.call({ telemetry: caller.telemetry });
      const dispatcher = new plue.ToolDispatcher(registry, { telemetry: caller.telemetry });
      assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
      assertEquals(caller.spans, [{ id: "a1", parent: undefined, ended: 1 }]);
      assertEquals(worker.spans, [{ id: "b1", parent: "a1".padStart(16, "0"), ended: 1 }]);
      assertEquals(world.errors, []);
    });
  }

  withWorld("runs a call whose telemetry fails, and logs the error", async (world) => {
    const fail = (): never => {
      throw new Error("no trace");
    };
    const places = [fail, () => Promise.reject(new Error("no trace")), () => 5, () => ({})];
    await world.serve([ping], { telemetry: { begin: fail } });
    for (const place of places) {
      const telemetry = { place, begin: fail } as unknown as plue.CallTelemetry;
      const { dispatcher, remote } = await world.call({ telemetry });
      assertEquals((await dispatcher.dispatch({ name: "ping" })).ok, true);
      await remote.close();
    }
    // The worker's telemetry fails each time; the caller's only if it throws or returns a promise.
    assertEquals(world.errors.length, 6);
  });
});

/** Telemetry that stores its spans. A span is the active span while its call runs. */
function spansOf(name: string) {
  const active = new AsyncLocalStorage<TraceParent>();
  const spans: { id: string; parent: string | undefined; ended: number }[] = [];
  const telemetry: plue.CallTelemetry = {
    place: () => active.getStore(),
    begin({ headers }) {
      const parent = active.getStore()?.spanId ?? headers?.get("traceparent")?.split("-")[2];
      const span = { id: `${name}${spans.length + 1}`, parent, ended: 0 };
      spans.push(span);
      const place = {
        ...{ traceId: "1".padStart(32, "0"), spanId: span.id.padStart(16, "0"), sampled: true },
      };
      return { place, run: (work) => active.run(place, work), end: () => void span.ended++ };
    },
  };
  return { spans, telemetry };
}
