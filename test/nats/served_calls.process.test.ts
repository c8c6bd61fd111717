import { describe } from "bun:test";
import { assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import type { NatsConnection } from "@nats-io/nats-core";
import { type Tool, type ToolDefinition, ToolDispatcher, ToolRegistry } from "@plue/tools";
import {
  callSubject,
  type Control,
  controlSubject,
  type Frame,
  type OpenedPart,
  openPart,
  Receiver,
  Sender,
} from "../../src/adapters/nats/protocol.ts";
import { Seal } from "../../src/adapters/nats/seal.ts";
import { MAX_KEPT_BYTES, ServedCalls } from "../../src/adapters/nats/served_calls.ts";
import { FakeClock } from "../unit/execute/support.ts";
import { SECRET, useServer, withServer } from "./server.ts";
import { event, linkOf } from "./world.ts";

const seal = new Seal("test", SECRET);
let names = 0;

describe("ServedCalls", () => {
  // On a loaded machine, the server would close the connection of a receiver that is too slow for it.
  const server = useServer({ lines: 'max_pending: 256MB\nwrite_deadline: "60s"' });

  /** A worker with one tool and a manual clock, and the messages to its callers. */
  async function open(definition: Partial<ToolDefinition> & Pick<ToolDefinition, "execute">) {
    const clock = new FakeClock();
    const worker = `worker_${++names}`;
    const registry = new ToolRegistry({
      tools: [{ name: "work", description: "Works.", ...definition } as ToolDefinition],
    });
    const [connection, far] = [await server.connect(), await server.connect()];
    const served = new ServedCalls({
      link: linkOf(far),
      ...{ worker, clock, dispatcher: new ToolDispatcher(registry, { maxOutputBytes: 2 ** 26 }) },
      // A tenth of the limit, because sending more takes seconds.
      maxKeptBytes: MAX_KEPT_BYTES / 10,
      toolAt: (): Tool | undefined => registry.getTool("work"),
    });
    /** Waits until the worker has read the sent messages. */
    const read = async (): Promise<void> => {
      await connection.flush();
      await far.flush();
    };
    await read();
    /** Sends the first messages of a call, and collects the worker's replies. */
    const call = (
      input: unknown = {},
      messages: (of: number) => number = (of) => of,
      id = `call_${++names}`,
      inbox = `_INBOX.${id}`,
    ) => {
      const frames: Frame[] = [];
      const [first, ended] = [event<Frame>(), event()];
      const receiver = new Receiver();
      connection.subscribe(inbox, {
        callback(_, message) {
          const frame = receiver.take(openPart(seal, message) as OpenedPart) as Frame | undefined;
          if (frame === undefined) return;
          frames.push(frame);
          first.come(frame);
          if (frame.type === "result") ended.come();
        },
      });
      const parts: Parameters<NatsConnection["publish"]>[] = [];
      const collector = {
        info: connection.info,
        publish: (...part: typeof parts[number]) => void parts.push(part),
      };
      new Sender(collector as unknown as NatsConnection, seal, callSubject(worker, "path"), inbox)
        .send({ id, time: clock.timestamp(), arguments: input });
      const rest = parts.splice(messages(parts.length));
      for (const part of parts) connection.publish(...part);
      const control = new Sender(connection, seal, controlSubject(worker, id));
      return {
        ...{ id, frames, first: first.came, ended: ended.came },
        say: (words: Control) => control.send(words),
        sendRest: () => rest.forEach((part) => connection.publish(...part)),
      };
    };
    return { clock, read, call, far, served };
  }

  withServer("sends heartbeats immediately after a pause of its process", async () => {
    const [began, goOn] = [event(), event()];
    const { clock, call } = await open({
      async execute() {
        began.come();
        await goOn.came;
      },
    });
    const { first, say, frames, ended } = call();
    await first;
    say({ go: true });
    await began.came;
    clock.advance(5_000);
    goOn.come();
    await ended;
    assertEquals(frames.map(({ type }) => type), ["accepted", "beat", "result"]);
  });

  withServer("runs a long call once", async () => {
    let runs = 0;
    const goOn = event();
    const { clock, call, read } = await open({
      idempotent: true,
      async execute() {
        runs++;
        await goOn.came;
      },
    });
    const { id, frames, ended } = call();
    await read();
    for (let tick = 0; tick < 100; tick++) clock.advance(500);
    call({}, undefined, id, `_INBOX.other.${id}`);
    await read();
    goOn.come();
    await ended;
    assertEquals([runs, frames.at(-1)?.type], [1, "result"]);
  });

  withServer("sends answers only to the inbox of a call's own id", async () => {
    let runs = 0;
    const { call, read } = await open({ idempotent: true, execute: () => ++runs });
    const wrong = ["_INBOX.of.another", "$KV.plue_calls.own", "plue.v1.here.own"]
      .map((inbox) => call({}, undefined, "own", inbox));
    await read();
    await call().ended;
    assertEquals([runs, ...wrong.map(({ frames }) => frames)], [1, [], [], []]);
  });

  for (const idempotent of [false, true]) {
    withServer(`handles aborts sent during a pause (idempotent: ${idempotent})`, async () => {
      let runs = 0;
      const { clock, call, read } = await open({ idempotent, execute: () => ++runs });
      // After a pause of the process, the timer fires before the messages are read.
      clock.advance(5_000);
      const { first, say, frames, ended } = call();
      if (!idempotent) {
        await first;
        say({ go: true });
      }
      say({ abort: "the caller has given up" });
      await read();
      clock.advance(50);
      await ended;
      assertEquals([runs, frames.at(-1)?.type], [0, "result"]);
    });
  }

  withServer("ignores a grant that is not a number", async () => {
    let sent = 0;
    const { call, read } = await open({
      idempotent: true,
      async *execute() {
        while (++sent < 20) yield "x".repeat(1_000_000);
      },
    });
    const { first, say } = call();
    await first;
    await read();
    const before = sent;
    const grants = [null, {}, { credit: "a" }, { credit: 0, granted: "b" }, { credit: -1 }];
    for (const grant of grants) say(grant as Control);
    await read();
    assertEquals(sent, before);
    say({ abort: "enough" });
    await read();
  });

  withServer("drops an incomplete call after a timeout", async () => {
    const { clock, call, read } = await open({ execute: () => "done" });
    const large = call("x".repeat(1_200_000), () => 1);
    await read();
    for (let tick = 0; tick < 14; tick++) clock.advance(500);
    large.sendRest();
    await call().first;
    assertEquals(large.frames, []);
  });

  withServer("rejects large calls while too many are incomplete", async () => {
    const { call } = await open({ execute: () => "done" });
    assertEquals(MAX_KEPT_BYTES, 128 * 1_024 ** 2);
    const sizes = [6_000_000, 6_000_000, 4_000_000];
    const calls = sizes.map((size) => call("x".repeat(size), (of) => of - 1));
    const refused = await calls[2]?.first;
    assertEquals(refused?.type, "refused");
    assertStringIncludes(
      refused?.type === "refused" ? refused.why : "",
      "no memory for another call",
    );
    calls[0]?.sendRest();
    assertEquals((await calls[0]?.first)?.type, "accepted");
    assertEquals(calls[1]?.frames, []);
  });

  const sized = {
    idempotent: true,
    parameters: { type: "object", properties: { size: { type: "integer" } } },
    execute: (input: unknown) => "x".repeat((input as { size: number }).size),
  } as const;

  /** Delays the server's confirmations for a connection. */
  function holdFlush(connection: NatsConnection) {
    const [requested, released] = [event(), event()];
    const flush = connection.flush.bind(connection);
    connection.flush = async () => {
      requested.come();
      await released.came;
      await flush();
    };
    return { requested: requested.came, release: released.come };
  }

  withServer("sends large results as fast as the server confirms them", async () => {
    const { call, far } = await open({ idempotent: true, execute: () => "x".repeat(6_000_000) });
    let [unconfirmed, most] = [0, 0];
    const [flush, publish] = [far.flush.bind(far), far.publish.bind(far)];
    far.publish = (subject, data, ...rest) => {
      unconfirmed += data?.length ?? 0;
      most = Math.max(most, unconfirmed);
      publish(subject, data, ...rest);
    };
    far.flush = async () => {
      await flush();
      unconfirmed = 0;
    };
    const calls = Array.from({ length: 4 }, () => call());
    await Promise.all(calls.map(({ ended }) => ended));
    assertLess(most, 5_000_000);
  });

  withServer("sends heartbeats of calls whose large results wait to be sent", async () => {
    const { call, clock, far } = await open(sized);
    const { requested, release } = holdFlush(far);
    const first = call({ size: 6_000_000 });
    await requested;
    const second = call({ size: 6_000_000 });
    // Small results do not wait for large ones.
    assertEquals((await call({ size: 1 }).first).type, "result");
    for (let tick = 0; tick < 4; tick++) clock.advance(500);
    assertEquals((await second.first).type, "beat");
    release();
    await Promise.all([first.ended, second.ended]);
    const types = (frames: readonly Frame[]) => frames.map(({ type }) => type);
    assertEquals([types(first.frames), types(second.frames)], [["result"], ["beat", "result"]]);
  });

  withServer("rejects calls of a tool if too many of its results wait to be sent", async () => {
    const { call, far } = await open(sized);
    const { release } = holdFlush(far);
    const large = [1, 2, 3].map(() => call({ size: 5_000_000 }));
    let first: Frame;
    do first = await call({ size: 1 }).first; while (first.type !== "refused");
    assertStringIncludes(first.why, "no memory for a result");
    release();
    await Promise.all(large.map(({ ended }) => ended));
    assertEquals((await call({ size: 1 }).first).type, "result");
  });

  withServer("ends when its connection is closed while a large result is sent", async () => {
    const { call, far, served } = await open({
      idempotent: true,
      execute: () => "x".repeat(6_000_000),
    });
    const { requested } = holdFlush(far);
    call();
    await requested;
    await far.close();
    await served.drain(0);
    assertEquals(served.running, 0);
  });
});
