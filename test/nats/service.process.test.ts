// The data of a worker for `nats micro` and Prometheus.

import { describe } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { type ToolDefinition, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { createToolHandler } from "@plue/tools/hono";
import { remoteTools, serveTools } from "@plue/tools/nats";
import { SECRET, TestServer, withServer } from "./server.ts";
import { event, useWorlds } from "./world.ts";

type Connection = Awaited<ReturnType<TestServer["connect"]>>;
type Answer = Readonly<Record<string, unknown>>;

/** Asks one service. */
async function ask(connection: Connection, subject: string): Promise<Answer> {
  return (await connection.request(subject, "", { timeout: 10_000 })).json();
}

const statsOf = (answer: Answer): Answer => (answer["endpoints"] as readonly Answer[])[0] ?? {};

const ping: ToolDefinition = { name: "ping", description: "Answers.", execute: () => "pong" };

describe("A worker as a service of NATS", () => {
  const { server, withWorld } = useWorlds();

  withWorld("answers who asks for all, for its name and for itself", async (world) => {
    const asking = await server.connect();
    const { worker } = await world.serve([ping]);
    const name = `plue-${world.name}`;
    const common = { name, id: worker, version: "1.0.0", metadata: { registry: world.name } };
    for (const place of ["", `.${name}`, `.${name}.${worker}`]) {
      assertEquals(await ask(asking, `$SRV.PING${place}`), {
        type: "io.nats.micro.v1.ping_response",
        ...common,
      });
      const endpoint = { name: "call", subject: `plue.v1.call.${worker}.>`, queue_group: "" };
      assertEquals(await ask(asking, `$SRV.INFO${place}`), {
        type: "io.nats.micro.v1.info_response",
        ...common,
        description: `Tools of the registry "${world.name}", by plue`,
        endpoints: [{ ...endpoint, metadata: {} }],
      });
      const { started, endpoints, ...rest } = await ask(asking, `$SRV.STATS${place}`);
      assertEquals(rest, { type: "io.nats.micro.v1.stats_response", ...common });
      assertEquals(new Date(String(started)).toISOString(), started);
      const isMeant = place.endsWith(worker);
      assertEquals(endpoints, [{
        ...endpoint,
        ...{ num_requests: 0, num_errors: 0, last_error: "" },
        ...{ processing_time: 0, average_processing_time: 0 },
        data: { in_flight: 0, ...(isMeant && { tools: [] }) },
      }]);
    }
  });

  withServer("says the same as the metrics of its process", async () => {
    const goOn = event();
    const began = event();
    const registry = new ToolRegistry({
      tools: [
        ping,
        { ...ping, name: "bad", execute: () => Promise.reject(new Error("secret 5")) },
        { ...ping, name: "number", parameters: { type: "object", required: ["n"] } },
        {
          ...ping,
          name: "asks",
          execute: (_, context) => context.ask("k", { message: "Really?" }),
        },
        { ...ping, name: "job", execution: "task", idempotent: true },
        {
          ...ping,
          name: "slow",
          async execute() {
            began.come();
            await goOn.came;
          },
        },
      ],
    });
    const dispatcher = new ToolDispatcher(registry);
    const handler = createToolHandler(registry, { dispatcher, openExecution: true });
    const options = { secret: SECRET, name: "counted" };
    await using served = await serveTools(registry, await server.connect(), {
      ...options,
      countedBy: dispatcher,
      dispatcher: { limits: { maxConcurrent: 1, maxQueued: 0 } },
    });
    const near = new ToolRegistry();
    const asking = await server.connect();
    await using _remote = await remoteTools(asking, { ...options, registry: near });
    const call = async (name: string) => {
      const result = await new ToolDispatcher(near).dispatch({ name, arguments: {} });
      return result.ok ? "ok" : result.error.code;
    };
    for (const name of ["ping", "job", "bad", "asks"]) await call(name);
    // The caller validates arguments, so these invalid ones come from another caller.
    await dispatcher.dispatch({ name: "number", arguments: {} });
    // A question that the caller cannot answer reaches two calls: one waits, one continues without
    // an answer.
    const slow = call("slow");
    await began.came;
    assertEquals(await call("ping"), "overloaded");
    const subject = `$SRV.STATS.plue-counted.${served.worker}`;
    const during = statsOf(await ask(asking, subject));
    assertEquals((during["data"] as Answer)["in_flight"], 1);
    assertEquals(during["last_error"], "overloaded: ping");
    goOn.come();
    await slow;

    const stats = statsOf(await ask(asking, subject));
    const text = await (await handler.request("/metrics", { headers: { accept: "text/plain" } }))
      .text();
    const sum = (metric: string): number =>
      [...text.matchAll(new RegExp(`^${metric}\\{.*\\} (\\S+)$`, "gm"))]
        .reduce((total, [, value]) => total + Number(value), 0);
    assertEquals([stats["num_requests"], stats["num_errors"]], [8, 4]);
    assertEquals(stats["num_requests"], sum("plue_tool_calls_total"));
    assertEquals(stats["num_errors"], sum("plue_tool_failures_total"));
    const ns = sum("plue_tool_duration_seconds_sum") * 1e9;
    assert(Math.abs(Number(stats["processing_time"]) - ns) < 1_000, `${ns}`);
    assertEquals(
      stats["average_processing_time"],
      Math.trunc(Number(stats["processing_time"]) / 8),
    );
    const { tools } = stats["data"] as { readonly tools: readonly Answer[] };
    assertEquals(tools.find(({ id }) => id === "ping"), {
      ...{ id: "ping", calls: 2, failed: 1, errors: { overloaded: 1 } },
    });
    assertEquals(tools.length, 6);
    await served.close();
    assertMatch(
      await ask(asking, subject).then(String, ({ name }) => name),
      /NoResponders|RequestError/,
    );
  });

  withServer("answers to inboxes only, and not more than it can", async () => {
    const connection = await server.connect();
    await using _served = await serveTools(new ToolRegistry({ tools: [ping] }), connection, {
      ...{ secret: SECRET, name: "asked" },
    });
    const asking = await server.connect();
    const heard: string[] = [];
    asking.subscribe("*.asked.>", { callback: (_, { subject }) => void heard.push(subject) });
    const subject = "$SRV.PING.plue-asked";
    asking.publish(subject, "", { reply: "$KV.asked.x" });
    asking.publish(subject, "", { reply: "plue.asked.x" });
    for (let i = 0; i < 5_000; i++) asking.publish(subject, "", { reply: "_INBOX.asked.x" });
    await asking.flush();
    // The worker has read the requests when its own later message has arrived.
    await connection.flush();
    await asking.flush();
    assert(heard.length > 500 && heard.length < 4_000, `${heard.length}`);
    assertEquals([...new Set(heard)], ["_INBOX.asked.x"]);
  });

  withServer("serves a user who may not hear such questions, and says so once", async () => {
    await using own = await TestServer.start({
      lines: "authorization { users = [{ user: u, password: x, permissions: { " +
        'publish: ">", subscribe: ["plue.>", "_INBOX.>"] } }] }',
    });
    const connect = () => own.connect({ user: "u", pass: "x" });
    const errors: unknown[] = [];
    await using _served = await serveTools(new ToolRegistry({ tools: [ping] }), await connect(), {
      secret: SECRET,
      onError: (error) => errors.push(error),
    });
    const near = new ToolRegistry();
    await using _remote = await remoteTools(await connect(), { registry: near, secret: SECRET });
    assertEquals((await new ToolDispatcher(near).dispatch({ name: "ping" })).ok, true);
    assertEquals(errors.length, 1);
    assertStringIncludes(String(errors[0]), 'may not subscribe to "$SRV.>"; calls are served');
  });
});
