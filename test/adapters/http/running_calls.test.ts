import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { RunningCalls } from "../../../src/adapters/http/running_calls.ts";

const client = (): Request => new Request("http://localhost/");

describe("RunningCalls", () => {
  it("aborts the call of a caller's own", async () => {
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
});
