// A Worker on workerd, which calls the tools of NATS workers over WebSocket.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { type ToolDefinition, ToolRegistry } from "@plue/tools";
import { serveTools } from "@plue/tools/nats";
import { type ServedWorker, serveWorker } from "../runtime/workerd.ts";
import { freePort } from "../support/free_port.ts";
import { maybe } from "../support/skip.ts";
import { missing, SECRET, TestServer } from "./server.ts";

const why = missing ??
  (spawnSync("workerd", ["--version"]).status === 0 ? undefined : "workerd is not installed");
const withWorkerd = maybe(why === undefined, why ?? "");
const TOKEN = "a-token-of-the-tests";
let began = (): void => {};

/** Tools that return their worker, and a tool that does not end. */
const tools = (by: string): readonly ToolDefinition[] => [
  { name: "who", description: "Says who.", risk: "low", execute: () => by },
  {
    ...{ name: "job", description: "Says who, once.", risk: "low" },
    ...{ execution: "task", idempotent: true },
    execute: () => by,
  },
  {
    ...{ name: "hang", description: "Does not end.", risk: "low" },
    execute() {
      began();
      return new Promise(() => {});
    },
  },
  {
    ...{ name: "count", description: "Counts.", risk: "low" },
    async *execute() {
      for (const number of [1, 2, 3]) yield number;
      return "end";
    },
  },
];

describe("a Worker on workerd", () => {
  let server: TestServer;
  let worker: ServedWorker;
  const serve = async (by: string) =>
    await serveTools(new ToolRegistry({ tools: tools(by) }), await server.connect(), {
      secret: SECRET,
    });
  const call = async (name: string): Promise<Record<string, unknown>> => {
    const response = await fetch(`${worker.url}/tools/${name}/execute`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}` },
      body: '{"arguments":{}}',
    });
    return { status: response.status, ...await response.json() as Record<string, unknown> };
  };

  beforeAll(async () => {
    if (why !== undefined) return;
    const port = await freePort();
    server = await TestServer.start({
      lines: `websocket { listen: "127.0.0.1:${port}", no_tls: true }`,
    });
    const bindings = { NATS: `ws://127.0.0.1:${port}`, PLUE_NATS_SECRET: SECRET, TOKEN };
    const text = Object.entries(bindings)
      .map(([name, value]) => `(name = "${name}", text = ${JSON.stringify(value)})`).join(", ");
    worker = await serveWorker(
      join(import.meta.dirname, "../../examples/cluster/edge_worker.ts"),
      `compatibilityFlags = ["nodejs_compat"], bindings = [${text}],`,
    );
  });
  afterAll(async () => {
    await worker?.stop();
    await server?.stop();
  });

  withWorkerd("calls many tools concurrently, until the server is lost", async () => {
    const one = await serve("one");
    await serve("two");
    const list = await fetch(`${worker.url}/tools`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const { tools: listed } = await list.json() as { readonly tools: readonly { id: string }[] };
    assertEquals(listed.map(({ id }) => id), ["count", "hang", "job", "who"]);

    const answers = await Promise.all(Array.from({ length: 40 }, () => call("who")));
    assertEquals(new Set(answers.map((answer) => answer["content"])), new Set(["one", "two"]));
    assertEquals((await call("job"))["status"], 200);
    const stream = await fetch(`${worker.url}/tools/count/execute`, {
      method: "POST",
      headers: {
        ...{ "content-type": "application/json", accept: "text/event-stream" },
        authorization: `Bearer ${TOKEN}`,
      },
      body: '{"arguments":{}}',
    });
    const text = await stream.text();
    assertEquals(text.match(/^event: \w+/gm), [
      ...["event: output", "event: output", "event: output", "event: result"],
    ]);

    // The Worker may still list the closed NATS worker, but calls must go to the other NATS worker.
    await one.close();
    for (let i = 0; i < 10; i++) assertEquals((await call("who"))["content"], "two");

    await server.kill();
    const lost = await call("who");
    assertEquals([lost["code"], lost["retryable"]], ["unavailable", true]);
    assert(String(lost["detail"]).includes("there is no connection to NATS; nothing has run"));
    await server.start();
    for (let isBack = false; !isBack;) isBack = (await call("who"))["ok"] === true;

    const begins = new Promise<void>((resolve) => began = resolve);
    const hanging = call("hang");
    await begins;
    await server.kill();
    const cut = await hanging;
    // The tool may have run, and is not idempotent.
    assertEquals([cut["code"], cut["retryable"], cut["ran"]], ["unavailable", false, "unknown"]);
    assert(String(cut["detail"]).includes("the tool may have run"));
  });
});
