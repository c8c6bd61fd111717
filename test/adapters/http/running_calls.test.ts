import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { RunningCalls } from "../../../src/adapters/http/running_calls.ts";

const client = (): Request => new Request("http://localhost/");

describe("RunningCalls", () => {
  it("aborts a call of the same caller", async () => {
    const calls = new RunningCalls();
    const call = calls.begin({ principal: "ann", callId: "c1" }, client());
    const aborted = new Promise<void>((done) =>
      call.signal.addEventListener("abort", () => done())
    );
    assertEquals(calls.abort({ principal: "ann", callId: "c1" }), true);
    await aborted;
    call.end();
    assertEquals(calls.abort({ principal: "ann", callId: "c1" }), false);
  });

  for (
    const [principal, callId] of [
      [undefined, "c1"],
      [undefined, "c1\nann"],
      [undefined, '["ann","c1"]'],
      ["bob", "c1"],
      ["", "c1\nann"],
    ] as const
  ) {
    it(`does not abort it for ${JSON.stringify([principal, callId])}`, () => {
      const calls = new RunningCalls();
      const call = calls.begin({ principal: "ann", callId: "c1" }, client());
      assertEquals(calls.abort({ principal, callId }), false);
      assertEquals(call.signal.aborted, false);
      call.end();
    });
  }

  it("supports calls with one id that end in any order", async () => {
    const key = { principal: "ann", callId: "c1" };
    for (const order of [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0], [0, 2, 1], [2, 0, 1]]) {
      const calls = new RunningCalls();
      const begun = [0, 1, 2].map(() => calls.begin(key, client()));
      for (const [ended, index] of order.entries()) {
        assertEquals(calls.abort(key), true);
        begun[index]?.end();
        // The second end() of a call must not end another call of the same name.
        begun[index]?.end();
        const later = calls.begin(key, client());
        begun[index]?.end();
        assertEquals(calls.abort(key), true);
        // In workerd, the signal is aborted by a promise.
        await Promise.resolve();
        assertEquals(later.signal.aborted, true);
        later.end();
        assertEquals(calls.abort(key), ended < 2);
      }
      assertEquals(begun.map(({ signal }) => signal.aborted), [true, true, true]);
    }
  });

  it("ends many calls with one id without a linear search", () => {
    const calls = new RunningCalls();
    const key = { principal: "ann", callId: "c1" };
    const from = client();
    // If each end() searched all calls, this would exceed the test runner's time limit.
    const begun = Array.from({ length: 300_000 }, () => calls.begin(key, from));
    for (const call of begun) call.end();
    assertEquals(calls.abort(key), false);
  });
});
