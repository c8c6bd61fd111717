import { describe, it } from "bun:test";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import type { ToolEvent } from "../../../mod.ts";
import { deferred, fixture, never, outcome, single, until } from "./support.ts";

async function collect(stream: AsyncIterable<ToolEvent>): Promise<ToolEvent[]> {
  const events: ToolEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** A short form of an event. */
function short(event: ToolEvent): unknown {
  switch (event.type) {
    case "metadata":
    case "output":
      return event.value;
    case "progress":
      return event.progress.done;
    case "result":
      return outcome(event.result);
  }
}

describe("ToolDispatcher.stream()", () => {
  it("yields numbered events in order, and the result last", async () => {
    const { dispatcher } = single(async function* (_, { metadata, progress }) {
      metadata({ phase: "start" });
      yield "a";
      progress(1, 2, "half");
      yield { b: 1 };
      return "end";
    });
    const events = await collect(dispatcher.stream({ name: "t", callId: "c1" }));
    assertEquals(events.map(({ type }) => type), [
      "metadata",
      "output",
      "progress",
      "output",
      "result",
    ]);
    assertEquals(events.map(short), [{ phase: "start" }, "a", 1, { b: 1 }, "end"]);
    assertEquals(events.map(({ sequence }) => sequence), [0, 1, 2, 3, 4]);
    assertEquals(events.map(({ callId }) => callId), Array(5).fill("c1"));
    assert(events.every((event) => Object.isFrozen(event)));
  });

  it("yields the result of any call, including a failed one", async () => {
    const { dispatcher } = fixture([
      { name: "sync", execute: () => 1 },
      {
        name: "throws",
        execute: () => {
          throw new Error("no");
        },
      },
      {
        name: "breaks",
        async *execute() {
          yield 1;
          throw new Error("no");
        },
      },
    ]);
    const run = async (name: string): Promise<unknown[]> =>
      (await collect(dispatcher.stream({ name }))).map(short);
    assertEquals(await run("sync"), [1]);
    assertEquals(await run("throws"), ["threw"]);
    assertEquals(await run("breaks"), [1, "threw"]);
    assertEquals(await run("none"), ["unknown_tool"]);
  });

  it("has a separate id for each call", async () => {
    const { dispatcher } = single((_, { callId }) => callId);
    const [first] = await collect(dispatcher.stream({ name: "t" }));
    const [second] = await collect(dispatcher.stream({ name: "t" }));
    const [unknown] = await collect(dispatcher.stream({ name: "none" }));
    assert(first?.type === "result" && second !== undefined && unknown !== undefined);
    assertEquals(outcome(first.result), first.callId);
    assertNotEquals(first.callId, second.callId);
    assertNotEquals(first.callId, unknown.callId);
    const [named] = await collect(dispatcher.stream({ name: "none", callId: "mine" }));
    assertEquals(named?.callId, "mine");
  });

  it("sends copies, which the tool cannot change afterwards", async () => {
    const shared = { n: 1 };
    const { dispatcher } = single((_, { metadata }) => {
      metadata(shared);
      shared.n = 2;
    });
    const [event] = await collect(dispatcher.stream({ name: "t" }));
    assert(event?.type === "metadata");
    assertEquals(event.value, { n: 1 });
    assert(Object.isFrozen(event.value));
  });

  it("begins when the first event is read, and not before", async () => {
    let runs = 0;
    const { dispatcher } = single(() => ++runs);
    const stream = dispatcher.stream({ name: "t" });
    await Promise.resolve();
    assertEquals(runs, 0);
    assertEquals(dispatcher.metrics().inFlight, 0);
    await stream.next();
    assertEquals(runs, 1);
  });

  for (
    const [what, output, made] of [
      ["output", 1, 5],
      // Each counts as five.
      ["large output", Array(3_000).fill(1.5), 2],
    ] as const
  ) {
    it(`resumes a generator when its ${what} is read`, async () => {
      const log: number[] = [];
      const { dispatcher } = single(async function* () {
        for (let n = 0; n < 50; n++) {
          log.push(n);
          yield output;
        }
      }, { maxBufferedEvents: 4 });
      const stream = dispatcher.stream({ name: "t" });
      await stream.next();
      await until(() => log.length === made);
      for (let turn = 0; turn < 200; turn++) await Promise.resolve();
      assertEquals(log.length, made);
      const rest = await collect(stream);
      assertEquals(rest.length, 50);
      assertEquals(log.length, 50);
    });
  }

  it("retains the newest progress, and drops and counts metadata above the bound", async () => {
    const { dispatcher } = single((_, { metadata, progress }) => {
      for (let n = 0; n < 10; n++) {
        metadata(n);
        progress(n);
      }
      metadata(1n);
    }, { maxBufferedEvents: 3 });
    const events = await collect(dispatcher.stream({ name: "t" }));
    const last = events.at(-1);
    assertEquals(events.filter(({ type }) => type === "progress").map(short), [9]);
    assert(last?.type === "result");
    const metadata = events.filter(({ type }) => type === "metadata").length;
    assertEquals(metadata + last.dropped, 11);
    assert(metadata >= 2 && metadata <= 4);
    assertEquals(events.map(({ sequence }) => sequence), events.map((_, index) => index));
  });

  it("aborts the call when its consumer stops, and waits until it has ended", async () => {
    const log: string[] = [];
    const { dispatcher } = single(async function* (_, { signal, defer }) {
      signal.addEventListener("abort", () => log.push("aborted"));
      defer(() => void log.push("cleanup"));
      try {
        for (let n = 0;; n++) yield n;
      } finally {
        log.push("closed");
      }
    });
    for await (const event of dispatcher.stream({ name: "t" })) {
      if (event.type === "output" && event.value === 3) break;
    }
    assertEquals(log, ["aborted", "closed", "cleanup"]);
    const [metrics] = dispatcher.metrics().tools;
    assertEquals([metrics?.inFlight, metrics?.errors], [0, { aborted: 1 }]);
  });

  it("yields outputs whose callback throws, and reports the error", async () => {
    const { dispatcher, reports } = single(async function* () {
      yield "a";
    });
    const output = () => {
      throw new Error("no");
    };
    const events = await collect(dispatcher.stream({ name: "t" }, { output }));
    assertEquals(short(events[0] as ToolEvent), "a");
    assertEquals(reports.map(({ error }) => (error as Error).message), ["no"]);
  });

  it("is over after the result, and after an early return", async () => {
    const { dispatcher } = single(() => 1);
    const stream = dispatcher.stream({ name: "t" });
    await collect(stream);
    assertEquals(await stream.next(), { done: true, value: undefined });
    const unused = dispatcher.stream({ name: "t" });
    await unused.return?.();
    assertEquals(await unused.next(), { done: true, value: undefined });
    assertEquals(dispatcher.metrics().calls, 1);
  });

  it("resolves concurrent calls of next() in order", async () => {
    const go = deferred();
    const { dispatcher } = single(async function* () {
      await go.promise;
      yield "a";
      return "b";
    });
    const stream = dispatcher.stream({ name: "t" });
    const items = [stream.next(), stream.next(), stream.next()];
    go.resolve();
    const [first, second, third] = await Promise.all(items);
    assertEquals(first?.value && short(first.value), "a");
    assertEquals(second?.value && short(second.value), "b");
    assertEquals(third?.done, true);
  });

  it("ends with its result when the caller aborts or the time is over", async () => {
    const controller = new AbortController();
    const { dispatcher, clock } = single(async function* () {
      yield 1;
      await never();
    }, { graceMs: 0 });
    const aborted: unknown[] = [];
    for await (const event of dispatcher.stream({ name: "t" }, { signal: controller.signal })) {
      aborted.push(short(event));
      controller.abort();
    }
    assertEquals(aborted, [1, "aborted"]);
    const late = collect(dispatcher.stream({ name: "t" }));
    await clock.pass(60_000);
    assertEquals((await late).map(short), [1, "timeout"]);
  });

  it("does not block a generator whose consumer has stopped reading", async () => {
    const { dispatcher, clock } = single(async function* () {
      for (let n = 0; n < 50; n++) yield n;
    }, { maxBufferedEvents: 1 });
    const stream = dispatcher.stream({ name: "t" });
    await stream.next();
    await clock.pass(60_000);
    await until(() => dispatcher.metrics().inFlight === 0);
    const rest = await collect(stream);
    assertEquals(rest.map(short).at(-1), "timeout");
  });
});
