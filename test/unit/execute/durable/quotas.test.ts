import { describe, it } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MEASURED_AFTER_MS, MeasuredQuotas } from "../../../../src/execute/durable/mod.ts";
import { FakeClock } from "../support.ts";

describe("MeasuredQuotas", () => {
  it("do not measure again soon after a slow failure", async () => {
    const clock = new FakeClock();
    let measured = 0;
    const quotas = new MeasuredQuotas({
      ...{ maxBytes: 10_240, clock, firstBytes: 0 },
      measure() {
        measured++;
        clock.advance(5_000);
        return Promise.reject(new Error("the server does not answer"));
      },
    });
    const write = () =>
      quotas.write("ann", 10, () => Promise.resolve("written"), () => Promise.resolve("full"));
    await assertRejects(write, Error, "the server does not answer");
    assertEquals(await write(), "written");
    await assertRejects(write, Error, "the server does not answer");
    assertEquals(measured, 1);
    clock.advance(MEASURED_AFTER_MS);
    await assertRejects(write, Error, "the server does not answer");
    assertEquals(measured, 2);
  });

  it("do not measure again for ten times the duration of a slow measurement, while bytes are free", async () => {
    const clock = new FakeClock();
    let measured = 0;
    const measure = () => Promise.resolve(clock.advance(2_000)).then(() => (measured++, 0));
    const quotas = new MeasuredQuotas({ maxBytes: 10_240, clock, firstBytes: 0, measure });
    const write = (bytes = 1_000) =>
      quotas.write("ann", bytes, () => Promise.resolve("written"), () => Promise.resolve("full"));
    for (let at = 0; at < 5; at++) assertEquals([await write(), measured], ["written", 1]);
    assertEquals([await write(6_000), measured], ["full", 1]);
    clock.advance(20_000);
    assertEquals([await write(), measured], ["written", 2]);
  });
});
