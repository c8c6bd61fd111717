import { describe, it } from "bun:test";
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import * as support from "./support.ts";
import { countingSignal, deferred, messageOf, never, outcome, single } from "./support.ts";

/** A tool that ends when its signal aborts. */
const POLITE = {
  execute: (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    }),
};

describe("a timeout", () => {
  for (const graceMs of [30, 0]) {
    it(`ends the call after a grace period of ${graceMs} ms if the tool ignores it`, async () => {
      const { call, clock } = single(never, { timeoutMs: 100, graceMs });
      const result = call();
      await clock.pass(100);
      if (graceMs > 0) await clock.pass(graceMs);
      const settled = await result;
      assertEquals(!settled.ok && settled.error.acknowledged, false);
      assertEquals(settled.durationMs, 100 + graceMs);
      assertEquals(
        messageOf(settled),
        'Cannot call "t": its time was over while it was running, and the tool has not stopped yet',
      );
      assertEquals(clock.timers.size, 0);
    });
  }

  it("is the lowest of the dispatcher's, the tool's and the caller's limits", async () => {
    for (
      const [tool, caller, expected] of [
        [undefined, undefined, 100],
        [20, undefined, 20],
        [undefined, 30, 30],
        [20, 10, 10],
        [20, 50, 20],
        // A tool may set more than the default, up to the maximum.
        [150, undefined, 150],
        [9_999, undefined, 200],
      ]
    ) {
      const { call, clock } = single(
        { ...POLITE, ...(tool !== undefined && { timeoutMs: tool }) },
        { timeoutMs: 100, maxTimeoutMs: 200 },
      );
      const result = call({}, { timeoutMs: caller });
      await clock.armed();
      assertEquals([...clock.timers][0]?.at, clock.now() + (expected ?? 0));
      clock.advance(expected ?? 0);
      assertEquals(outcome(await result), "timeout");
    }
  });

  it("does not run the tool if there is no time left", async () => {
    let runs = 0;
    const { call } = single(() => ++runs);
    for (const timeoutMs of [0, -5]) {
      assertEquals(outcome(await call({}, { timeoutMs })), "timeout");
    }
    assertEquals(runs, 0);
  });

  it("arms no timer for a tool whose promise has settled", async () => {
    const { call, clock } = single(() => Promise.resolve(1));
    let armed = false;
    void clock.armed().then(() => armed = true);
    assertEquals(outcome(await call()), 1);
    assertEquals(armed, false);
  });

  it("ends a generator that never waits", async () => {
    const { call, clock } = single(async function* () {
      for (let n = 0;; n++) {
        if (n === 1_000) clock.advance(1_000_000);
        yield n;
      }
    });
    const result = await call();
    assertEquals(outcome(result), "timeout");
    assertEquals(!result.ok && result.error.acknowledged, true);
  });

  for (
    const [doing, tool, options] of [
      ["starting up", { init: never }, {}],
      ["waiting for a hook", {}, { hooks: { before: never } }],
      ["checking the arguments", { validate: never }, {}],
    ] as const
  ) {
    it(`ends a call while it is ${doing}`, async () => {
      const { call, clock } = single({ execute: () => 1, ...tool }, {
        timeoutMs: 20_000,
        ...options,
      });
      const result = call();
      // The registry has a limit on init of its own, which is longer here than the call's.
      await support.until(() => [...clock.timers].some(({ at }) => at === clock.now() + 20_000));
      clock.advance(20_000);
      const settled = await result;
      assertEquals(messageOf(settled), `Cannot call "t": its time was over while it was ${doing}`);
      assertEquals(!settled.ok && "acknowledged" in settled.error, false);
    });
  }
});

describe("an abort", () => {
  it("passes the caller's reason to the tool", async () => {
    const { signal, abort } = countingSignal();
    const reason = new Error("enough");
    let seen: unknown;
    const { call } = single((_, context) =>
      new Promise<void>((resolve) => {
        context.signal.addEventListener("abort", () => {
          seen = context.signal.reason;
          resolve();
        });
        abort(reason);
      })
    );
    const result = await call({}, { signal });
    assertEquals(outcome(result), "aborted");
    assertEquals(!result.ok && result.error.acknowledged, true);
    assertStrictEquals(seen, reason);
  });

  it("ignores output after the end of the call", async () => {
    const controller = new AbortController();
    const heard: unknown[] = [];
    const goOn = deferred();
    const ended = deferred();
    const { call, clock, dispatcher } = single(async (_, { metadata, progress }) => {
      metadata("in time");
      await goOn.promise;
      metadata("late");
      progress(1);
      ended.resolve();
      return "late";
    }, { graceMs: 10 });
    const result = call({}, {
      signal: controller.signal,
      metadata: (value) => heard.push(value),
      progress: (value) => heard.push(value),
    });
    controller.abort();
    await clock.pass(10);
    assertEquals(outcome(await result), "aborted");
    assertEquals(dispatcher.metrics().tools[0]?.abandoned, 1);
    goOn.resolve();
    await ended.promise;
    await support.until(() => dispatcher.metrics().tools[0]?.abandoned === 0);
    assertEquals(heard, ["in time", {
      type: "error",
      tool: "t",
      error: "aborted",
      message: messageOf(await result),
    }]);
  });

  it("waits for the cleanup of a generator", async () => {
    const controller = new AbortController();
    const log: string[] = [];
    const { call } = single(async function* () {
      try {
        for (let n = 0;; n++) yield n;
      } finally {
        log.push("closed");
      }
    });
    const result = await call({}, {
      signal: controller.signal,
      output: (value) => {
        if (value === 2) controller.abort();
      },
    });
    assertEquals(outcome(result), "aborted");
    assertEquals(log, ["closed"]);
  });

  it("does not wait for a callback that never resumes a generator", async () => {
    const controller = new AbortController();
    const reached = deferred();
    const { call } = single(async function* () {
      yield 1;
    });
    const result = call({}, {
      signal: controller.signal,
      output: () => (reached.resolve(), never()),
    });
    await reached.promise;
    controller.abort();
    const settled = await result;
    assertEquals(outcome(settled), "aborted");
    assertEquals(!settled.ok && settled.error.acknowledged, true);
  });

  it("aborts the signal of a tool that reads it late", async () => {
    const controller = new AbortController();
    const goOn = deferred();
    const seen: unknown[] = [];
    const { call } = single(async (_, context) => {
      await goOn.promise;
      seen.push(context.signal.aborted);
      context.throwIfAborted();
      seen.push("not reached");
    });
    const result = call({}, { signal: controller.signal });
    controller.abort(new Error("stop"));
    goOn.resolve();
    const settled = await result;
    assertEquals(outcome(settled), "aborted");
    assertEquals(!settled.ok && settled.error.acknowledged, true);
    assertEquals(seen, [true]);
  });

  it("is visible to a synchronous tool", async () => {
    const controller = new AbortController();
    const { call } = single((_, context) => {
      controller.abort(new Error("stop"));
      context.throwIfAborted();
    });
    const result = await call({}, { signal: controller.signal });
    assertEquals(messageOf(result), 'Cannot call "t": the tool threw: stop');
  });
});

describe("the caller's signal", () => {
  it("has one listener for all calls that share it, and aborts them all", async () => {
    const { signal, listeners, abort } = countingSignal();
    const { dispatcher, call } = support.fixture([
      { name: "polite", ...POLITE },
      { name: "async", execute: async () => await Promise.resolve(1) },
    ]);
    const calls = Array(50).fill({ name: "polite" });
    const results = dispatcher.dispatchAll(calls, { signal });
    await call("async", {}, { signal });
    assertEquals(listeners(), 1);
    abort();
    assertEquals((await results).map(outcome), Array(50).fill("aborted"));
  });

  it("ends a call whose tool returns before the signal has a listener", async () => {
    const { signal, listeners, abort } = countingSignal();
    const { call, clock } = single(() => Promise.resolve(1));
    const result = call({}, { signal });
    abort(new Error("left"));
    const settled = await result;
    assert(!settled.ok);
    assertEquals(settled.error.code, "aborted");
    assertEquals(settled.error.acknowledged, true);
    assertEquals([listeners(), clock.timers.size], [0, 0]);
  });

  it("gets no listener for a tool that returns within a few turns", async () => {
    const { signal, listeners } = countingSignal();
    let most = 0;
    const { call } = single(async () => {
      await Promise.resolve();
      most = Math.max(most, listeners());
      return 1;
    });
    assertEquals(outcome(await call({}, { signal })), 1);
    assertEquals(most, 0);
  });

  it("gets a listener again for later calls", async () => {
    const { signal, listeners, abort } = countingSignal();
    const { call } = support.fixture([
      { name: "polite", ...POLITE },
      { name: "async", execute: () => Promise.resolve(1) },
    ]);
    await call("async", {}, { signal });
    await call("async", {}, { signal });
    assertEquals(listeners(), 0);
    const last = call("polite", {}, { signal });
    abort();
    assertEquals(outcome(await last), "aborted");
  });

  it("has no effect after the call", async () => {
    const controller = new AbortController();
    let kept: AbortSignal | undefined;
    const { call } = single((_, { signal }) => void (kept = signal));
    const result = await call({}, { signal: controller.signal });
    controller.abort();
    assertEquals(outcome(result), null);
    assertEquals(kept?.aborted, false);
  });
});

describe("context.defer()", () => {
  it("runs cleanups last in, first out, each whatever the others do", async () => {
    const log: string[] = [];
    const { call, reports } = single((_, { defer }) => {
      defer(() => void log.push("first"));
      defer(async () => {
        await Promise.resolve();
        log.push("second");
        support.broken();
      });
      defer(() => (log.push("third"), support.broken()));
      return "done";
    });
    assertEquals(outcome(await call()), "done");
    assertEquals(log, ["third", "second", "first"]);
    assertEquals(reports.map(({ phase }) => phase), ["cleanup", "cleanup"]);
  });

  it("does not wait without end", async () => {
    const { call, clock, reports } = single((_, { defer }) => {
      defer(never);
      return 1;
    }, { closeTimeoutMs: 50 });
    const result = call();
    await clock.pass(50);
    assertEquals(outcome(await result), 1);
    assertEquals(reports.map(({ phase }) => phase), ["cleanup"]);
  });

  it("runs a cleanup immediately if the call was closed before", async () => {
    const goOn = deferred();
    const cleaned = deferred();
    const { call, clock } = single(async (_, { defer }) => {
      await goOn.promise;
      defer(cleaned.resolve);
    }, { graceMs: 0 });
    const result = call();
    await clock.pass(60_000);
    assertEquals(outcome(await result), "timeout");
    goOn.resolve();
    await cleaned.promise;
  });

  it("runs cleanups that a stopping tool defers only after it has stopped", async () => {
    const log: string[] = [];
    const controller = new AbortController();
    const { call } = single(async (_, { signal, defer }) => {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      defer(() => void log.push("cleanup"));
      await Promise.resolve();
      log.push("stopped");
    });
    const result = call({}, { signal: controller.signal });
    controller.abort();
    assertEquals(outcome(await result), "aborted");
    assertEquals(log, ["stopped", "cleanup"]);
  });

  it("accepts functions only", async () => {
    const { call } = single((_, { defer }) => defer(1 as never));
    assertEquals(
      messageOf(await call()),
      'Cannot call "t": the tool threw: Cannot defer a cleanup: it must be a function, not 1',
    );
  });
});

describe("a generator of another library", () => {
  for (
    const [what, stop] of [
      ["throws", support.broken],
      ["returns no promise", () => ({ done: true, value: undefined })],
      ["rejects", () => Promise.reject(new Error("no"))],
    ] as const
  ) {
    it(`ends its call and releases its slot if its return ${what}`, async () => {
      const generator = {
        ...{ next: never, return: stop },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
      const { call, clock, dispatcher } = single(() => generator as never, {
        timeoutMs: 100,
        limits: { maxConcurrent: 1 },
      });
      for (let turn = 0; turn < 2; turn++) {
        const result = call();
        await clock.pass(100);
        assertEquals(outcome(await result), "timeout");
      }
      assertEquals(dispatcher.metrics().inFlight, 0);
    });
  }
});

describe("a signal that a function returns", () => {
  it("is not read by a synchronous call", async () => {
    const { call } = single(() => "done");
    let reads = 0;
    const result = await call({}, { signal: () => (reads++, AbortSignal.abort()) });
    assertEquals([outcome(result), reads], ["done", 0]);
  });

  it("is read once by a call that waits, and aborts it", async () => {
    const { call } = single(POLITE);
    const controller = new AbortController();
    let reads = 0;
    const result = call({}, { signal: () => (reads++, controller.signal) });
    controller.abort();
    assertEquals([outcome(await result), reads], ["aborted", 1]);
  });
});
