import { describe, it } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MEASURED_AFTER_MS, MeasuredQuotas } from "../../../../src/execute/durable/mod.ts";
import { FakeClock } from "../support.ts";

describe("MeasuredQuotas", () => {
  it("do not measure again soon after one has failed slowly", async () => {
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
});
