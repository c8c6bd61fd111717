import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { otelSink, verifyJournal } from "@plue/tools/journal";
import { bytesOf, recorded } from "./support.ts";

// test/edge/journal.process.test.ts has a test with the SDK.
describe("otelSink()", () => {
  it("emits each record, and emits it again if its export has failed", async () => {
    const bodies: string[] = [];
    let isBroken = true;
    const flush = () => isBroken ? Promise.reject(new Error("No collector")) : Promise.resolve();
    const sink = otelSink({ emit: ({ body }) => void bodies.push(body) }, flush);
    const { call, journal: kept } = recorded([{ name: "ping" }], { sink });
    await call("ping");
    await assertRejects(() => kept.flush(), Error, "No collector");
    isBroken = false;
    await kept.close();
    const { ok, records } = await verifyJournal(bytesOf([...new Set(bodies)]));
    assertEquals([ok, records, bodies.length], [true, 3, 4]);
    assertEquals(await kept.records().next(), { done: true, value: undefined });
  });

  const failed = new Error("No exporter");
  const BROKEN: readonly (readonly [what: string, ...Parameters<typeof otelSink>])[] = [
    ["a logger throws", {
      emit: () => {
        throw failed;
      },
    }],
    ["an async logger rejects", { emit: () => Promise.reject(failed) }],
    ["an export throws", { emit: () => {} }, () => {
      throw failed;
    }],
    ["an export rejects", { emit: () => {} }, () => Promise.reject(failed)],
    ["an export hangs", { emit: () => {} }, () => new Promise(() => {})],
  ];
  for (const [what, logger, flush] of BROKEN) {
    it(`stores or counts the records of all calls if ${what}, and throws no error`, async () => {
      const { clock } = recorded([]);
      const { call, journal: kept } = recorded([{ name: "ping", execute: () => "pong" }], {
        ...{ sink: otelSink(logger, flush), maxBuffered: 5_000, clock },
      });
      void kept.flush().catch(() => {});
      for (let calls = 0; calls < 30; calls++) assertEquals((await call("ping")).ok, true);
      const { waiting, dropped } = kept.stats();
      assertEquals([waiting + dropped, dropped > 10], [30, true]);
      const closing = assertRejects(() => kept.close());
      for (let turns = 0; turns < 20; turns++) await Promise.resolve();
      clock.advance(10_000);
      await closing;
    });
  }

  it("rejects a logger without emit", () => {
    for (const logger of [undefined, {}]) {
      assertThrows(
        () => otelSink(logger as never),
        TypeError,
        "Cannot emit a journal: logger must have a emit function",
      );
    }
  });
});
