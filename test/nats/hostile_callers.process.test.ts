// A caller that has the secret and reads the inboxes of other callers cannot answer for workers.

import { describe } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Msg } from "@nats-io/nats-core";
import type { ToolDefinition } from "@plue/tools";
import { callIdOf, controlSubject, Sender } from "../../src/adapters/nats/protocol.ts";
import { runKey, type RunMessage, sealRun } from "../../src/adapters/nats/runs.ts";
import { Seal } from "../../src/adapters/nats/seal.ts";
import { SECRET } from "./server.ts";
import { assertContent, endlessTool, event, slowTool, useWorlds, type World } from "./world.ts";

const seal = new Seal("test", SECRET);
const echo: ToolDefinition = {
  ...{ name: "echo", description: "Returns a text.", idempotent: true },
  execute: () => "forged",
};

describe("A hostile caller over NATS", () => {
  const { server, withWorld } = useWorlds();

  /** Receives the call or the task of a tool, and the first answer to an inbox. */
  async function listen(world: World, tool: string) {
    const spy = await server.connect();
    const call = event<Pick<Msg, "subject" | "data"> & { readonly reply: string }>();
    const news = event<string>();
    spy.subscribe("plue.v1.*.>", {
      callback(_, { subject, reply = "", data }) {
        if (!subject.includes(`${world.name}./.${tool}.`)) return;
        call.come({ subject, reply, data: Uint8Array.from(data) });
      },
    });
    spy.subscribe("_INBOX.>", {
      callback(_, { subject, data }) {
        if (new TextDecoder().decode(data).includes('"progress"')) news.come(subject);
      },
    });
    await spy.flush();
    return { spy, call: call.came, news: news.came };
  }

  withWorld("cannot set the result of another caller's call", async (world) => {
    const { began, goOn, tool } = slowTool({ ...echo, name: "pay" }, "paid");
    const worker = await world.serve([tool, echo]);
    const { dispatcher } = await world.call();
    const [pay, echoed] = [await listen(world, "pay"), await listen(world, "echo")];
    assertContent(await dispatcher.dispatch({ name: "echo" }), "forged");
    const running = dispatcher.dispatch({ name: "pay" });
    await began.came;
    const { reply } = await pay.call;
    const path = (await echoed.call).subject.split(".").slice(4).join(".");
    // A worker that answers the hostile call, to the inbox of the other caller.
    const other = await world.serve([echo]);
    const send = (to: string, id: string): number =>
      new Sender(pay.spy, seal, `plue.v1.call.${to}.${path}`, reply).send({ id, time: Date.now() });
    send(other.worker, callIdOf(reply));
    send(other.worker, "own");
    send(worker.worker, callIdOf(reply));
    await pay.spy.flush();
    assertContent(await dispatcher.dispatch({ name: "echo" }), "forged");
    goOn.come();
    assertContent(await running, "paid");
  });

  withWorld("cannot cause a caller to abort another caller's call", async (world) => {
    const { began, goOn, tool } = slowTool({ ...echo, name: "pay" }, "paid");
    const worker = await world.serve([tool]);
    const { dispatcher, connection } = await world.call();
    const { spy, call } = await listen(world, "pay");
    const running = dispatcher.dispatch({ name: "pay" });
    await began.came;
    const { reply } = await call;
    let aborts = 0;
    const control = controlSubject(worker.worker, callIdOf(reply));
    spy.subscribe(control, { callback: () => void aborts++ });
    new Sender(spy, seal, reply.replace(/[^.]*$/, "unknown"), control).send({ type: "accepted" });
    await spy.flush();
    await connection.flush();
    await spy.flush();
    goOn.come();
    assertContent(await running, "paid");
    assertEquals(aborts, 0);
  });

  withWorld("cannot end or replace the task of another caller", async (world) => {
    const { aborted, tool } = endlessTool({ ...echo, name: "build", execution: "task" });
    let runs = 0;
    await world.serve([{
      ...tool,
      execute(input, context) {
        runs++;
        context.progress(1);
        return tool.execute?.(input, context);
      },
    }]);
    const { dispatcher } = await world.call();
    const { spy, call, news } = await listen(world, "build");
    const abort = new AbortController();
    let isOver = false;
    const running = dispatcher.dispatch({ name: "build" }, { signal: abort.signal })
      .finally(() => isOver = true);
    const inbox = await news;
    const { subject, data } = await call;
    const path = subject.split(".").slice(3, -2).join(".");
    const [nonce, time] = ["hostile", Date.now()];
    const own = { id: await runKey(path, { nonce }), nonce, time, inbox };
    const key = "run.x.another";
    const sent: readonly RunMessage[] = [
      { ...seal.unwrap(data, subject, "caller") as RunMessage, time: time + 60_000 },
      { ...own, time: time + 60_000 },
      { ...own, id: key },
      { ...own, inbox: "$KV.plue_calls.x" },
    ];
    const answers: string[] = [];
    spy.subscribe(inbox, { callback: (_, { data }) => void answers.push(`${data}`) });
    for (const message of sent) {
      const { subject, body } = await sealRun(path, message, seal);
      await spy.request(subject, body);
    }
    while (world.errors.length < sent.length) await spy.flush();
    await spy.flush();
    assertEquals([isOver, runs], [false, 1]);
    for (const error of world.errors.slice(2)) {
      assertStringIncludes(String(error), "damaged or has a wrong signature, and was not run");
    }
    abort.abort();
    await aborted.came;
    assertEquals((await running).ok, false);
  });
});
