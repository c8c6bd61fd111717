import { assertEquals, assertRejects } from "@std/assert";
import { describe, it } from "bun:test";
import { pause } from "../../../examples/workspace/walk.ts";

const { signal } = new AbortController();

/** Computes, without a break, for longer than a turn may take. */
function compute(): void {
  for (const end = performance.now() + 15; performance.now() < end;);
}

describe("pause()", () => {
  it("yields to the event loop between two computing calls, and between their steps", async () => {
    const seen: string[] = [];
    let isDone = false;
    const look = () => {
      if (isDone) return;
      seen.push("loop");
      setImmediate(look);
    };
    setImmediate(look);
    await Promise.all(["a", "b"].map(async (name) => {
      for (let step = 0; step < 3; step++) {
        compute();
        await pause(signal);
        seen.push(name);
      }
    }));
    isDone = true;
    const steps = seen.flatMap((what, index) => what === "loop" ? [] : [[what, seen[index - 1]]]);
    assertEquals(steps.length, 6);
    assertEquals(steps.map(([, before]) => before), Array(6).fill("loop"));
  });

  it("ends with the call that was aborted while it waited", async () => {
    const controller = new AbortController();
    compute();
    const paused = pause(controller.signal);
    controller.abort(new Error("enough"));
    await assertRejects(() => paused, Error, "enough");
  });
});
