import { describe, it } from "bun:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { ToolResult } from "@plue/tools";
import { retryCalls, type RetryOptions } from "@plue/tools/resilience";
import { FakeClock, type FakeTool, outcome } from "../../unit/execute/support.ts";
import { answering, end, unavailable } from "./support.ts";

/** Calls a tool on a clock that moves by itself. Records the milliseconds from the start. */
async function retried(
  answers: readonly unknown[],
  options: RetryOptions = {},
  { timeoutMs = 60_000, ...tool }: Partial<FakeTool> = {},
) {
  const clock = new FakeClock();
  const startedAt = clock.now();
  const times: number[] = [];
  const world = answering([], {
    clock,
    timeoutMs,
    layers: [retryCalls(options)],
    transactions: { begin: () => ({ id: "1" }), commit() {}, rollback() {} },
  }, {
    execute() {
      const answer = answers[Math.min(times.length, answers.length - 1)];
      times.push(clock.now() - startedAt);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    ...tool,
  });
  const result = await end(clock, world.call());
  return { result: outcome(result), times, runs: times.length };
}

describe("retryCalls()", () => {
  it("reuses the answers and the steps when a tool runs again", async () => {
    const done: string[] = [];
    const clock = new FakeClock();
    const { call } = answering([], { clock, layers: [retryCalls()] }, {
      async execute(_args, { ask, step }) {
        await step("reserve", () => void done.push("reserved"));
        const { action } = await ask("sure", { message: "Sure?" });
        done.push(action);
        return done.length < 4 ? unavailable : done;
      },
    });
    const onQuestion = () => {
      done.push("asked");
      return { action: "accept" } as const;
    };
    const result = await end(clock, call({}, { onQuestion }));
    assertEquals(outcome(result), ["reserved", "asked", "accept", "accept"]);
  });

  it("runs an idempotent tool again while its failure may pass", async () => {
    const { result, runs } = await retried([unavailable, unavailable, "up"]);
    assertEquals([result, runs], ["up", 3]);
  });

  it("returns the last failure after the attempts", async () => {
    const { result, runs } = await retried([unavailable], { maxAttempts: 4 });
    assertEquals([result, runs], ["unavailable", 4]);
  });

  it("doubles its delays up to the maximum, and omits up to half of each at random", async () => {
    const { times } = await retried([unavailable], { maxAttempts: 5, initialDelayMs: 4_000 });
    const delays = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    assertEquals(delays.length, 4);
    for (const [index, longest] of [4_000, 8_000, 10_000, 10_000].entries()) {
      const delay = delays[index] ?? 0;
      // The clock moves in steps of 5 ms.
      assert(delay >= longest / 2 && delay < longest + 5, `${delays}`);
    }
  });

  for (
    const [what, answer, tool, options] of [
      ["a tool that is not idempotent", unavailable, { idempotent: false }, {}],
      ["a tool that requires a transaction", unavailable, { requiresTransaction: true }, {}],
      ["a failure that does not pass", ToolResult.error("denied", "No"), {}, {}],
      ["a tool that throws, by default", new Error("no"), {}, {}],
      [
        "a failure whose delay is too long",
        ToolResult.error("overloaded", "Later", { retryAfterMs: 10_001 }),
        {},
        {},
      ],
      [
        "a failure whose delay is longer than the time of its call",
        ToolResult.error("overloaded", "Later", { retryAfterMs: 5_000 }),
        { timeoutMs: 4_000 },
        {},
      ],
    ] as const
  ) {
    it(`does not retry ${what}`, async () => {
      const clock = new FakeClock();
      const { call, runs } = answering([answer, "up"], {
        clock,
        layers: [retryCalls(options)],
        transactions: { begin: () => ({ id: "1" }), commit() {}, rollback() {} },
      }, tool);
      const result = await call();
      assert(!result.ok);
      assertEquals([runs(), result.durationMs], [1, 0]);
    });
  }

  it("does not apply to calls of tools that it does not retry", () => {
    const { for: layerFor } = retryCalls();
    for (const traits of [{}, { idempotent: true, requiresTransaction: true }]) {
      assertEquals(layerFor?.(traits as never, {} as never), undefined);
    }
  });

  it("retries the codes that are named", async () => {
    const { result, runs } = await retried([new Error("no"), "up"], { codes: ["threw"] });
    assertEquals([result, runs], ["up", 2]);
  });

  it("waits for the retryAfterMs of the failure", async () => {
    const late = ToolResult.error("overloaded", "Later", { retryAfterMs: 900 });
    const { result, times } = await retried([late, "up"], { initialDelayMs: 1 });
    assertEquals([result, times], ["up", [0, 900]]);
  });

  it("stops waiting when the call is aborted", async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const { call, runs } = answering([unavailable, "up"], { clock, layers: [retryCalls()] });
    const ending = call({}, { signal: controller.signal });
    await clock.armed();
    controller.abort();
    assertEquals([outcome(await ending), runs()], ["aborted", 1]);
    assertEquals(clock.timers.size, 0);
  });

  it("rejects invalid options", () => {
    for (const options of [{ maxAttempts: 1.5 }, { initialDelayMs: Infinity }]) {
      assertThrows(() => retryCalls(options), RangeError);
    }
    assertThrows(() => retryCalls({ codes: ["gone" as never] }), TypeError, "failure codes");
  });
});
