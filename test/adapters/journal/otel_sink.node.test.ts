import { assertEquals, assertRejects } from "@std/assert";
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
});
