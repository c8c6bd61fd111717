import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { type ToolHooks, ToolResult } from "../../../mod.ts";
import type { ApprovalAnswer } from "../../../src/execute/mod.ts";
import { broken, deferred, fixture, messageOf, never, outcome, single, until } from "./support.ts";

const DOUBLE = {
  parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  returns: { type: "number" },
  execute: (params: unknown) => (params as { readonly n: number }).n * 2,
} as const;

/** The outcome of a call of `DOUBLE` with hooks. */
async function outcomeWith(hooks: ToolHooks, args: unknown = { n: 1 }): Promise<unknown> {
  return outcome(await single(DOUBLE, { hooks }).call(args));
}

describe("a before hook", () => {
  it("receives parsed arguments before their validation, and may change them", async () => {
    const seen: unknown[] = [];
    const before: ToolHooks["before"] = ({ tool, arguments: params }) => {
      seen.push(tool.id, params);
      return { arguments: { n: 5 } };
    };
    assertEquals(await outcomeWith({ before }, '{"n":"wrong"}'), 10);
    assertEquals(seen, ["t", { n: "wrong" }]);
    const wrong = { before: () => ({ arguments: { n: "no" } }) };
    assertEquals(await outcomeWith(wrong), "invalid_arguments");
  });

  it("runs in the given order, until one returns a result, which replaces the tool's", async () => {
    const log: string[] = [];
    const hooks: ToolHooks[] = [
      { before: () => void log.push("first") },
      {
        before: async () => {
          log.push(await Promise.resolve("second"));
          return { result: ToolResult.ok(7) };
        },
      },
      { before: () => void log.push("third") },
    ];
    const { call } = single({ ...DOUBLE, execute: () => void log.push("tool") }, { hooks });
    assertEquals(outcome(await call({ n: 1 })), 7);
    assertEquals(log, ["first", "second"]);
  });

  for (
    const [what, result, expected] of [
      ["a result of another type", ToolResult.ok("text"), "invalid_result"],
      ["a failure", ToolResult.error("unavailable", "later"), "unavailable"],
      ["a failure with an unknown code", { ok: false, error: { code: "no" } }, "denied"],
    ] as const
  ) {
    it(`fails the call if it returns ${what}`, async () => {
      assertEquals(
        await outcomeWith({ before: () => ({ result: result as ToolResult }) }),
        expected,
      );
    });
  }

  it("may reject the call", async () => {
    const hooks = { before: () => ({ refuse: "not on Sundays" }) };
    const result = await single(DOUBLE, { hooks }).call({ n: 1 });
    assertEquals([outcome(result), messageOf(result)], [
      "denied",
      'Cannot call "t": not on Sundays',
    ]);
  });
});

describe("a call that is aborted by a guard", () => {
  for (const part of ["hook", "rule"] as const) {
    it(`does not run its tool after the ${part}`, async () => {
      const controller = new AbortController();
      const abort = (): void => controller.abort();
      let runs = 0;
      const { call } = single(
        { execute: () => ++runs, ...(part === "rule" && { validate: abort }) },
        part === "hook" ? { hooks: { before: abort } } : {},
      );
      const result = await call({}, { signal: controller.signal });
      assertEquals([outcome(result), runs], ["aborted", 0]);
      if (part === "rule") assertStringIncludes(messageOf(result), "while it was about to run");
    });
  }
});

describe("an after hook", () => {
  it("receives every result of a known tool, in reverse order", async () => {
    const seen: unknown[] = [];
    const { call } = fixture([{ name: "double", ...DOUBLE }, { name: "idea" }], {
      hooks: [
        {
          after: ({ tool, arguments: params }, result) =>
            void seen.push([tool.id, params, outcome(result)]),
        },
        { after: () => void seen.push("inner") },
      ],
    });
    await call("double", { n: 1 });
    await call("double", "{");
    await call("idea");
    await call("none");
    assertEquals(seen, [
      ...["inner", ["double", { n: 1 }, 2]],
      ...["inner", ["double", undefined, "invalid_arguments"]],
      ...["inner", ["idea", undefined, "not_executable"]],
    ]);
  });

  it("receives the duration of the call, and cannot change the passed result", async () => {
    const seen: unknown[] = [];
    const { call, clock } = single(() => clock.advance(7) ?? 1, {
      hooks: {
        after: (_, result) => {
          seen.push(result.durationMs, Object.isFrozen(result));
          return result;
        },
      },
    });
    assertEquals(outcome(await call()), 1);
    assertEquals(seen, [7, true]);
  });

  it("may replace the result, by a result that is valid for the tool", async () => {
    assertEquals(await outcomeWith({ after: () => ToolResult.ok(9) }), 9);
    assertEquals(await outcomeWith({ after: () => ToolResult.ok("text") }), "invalid_result");
    assertEquals(await outcomeWith({ after: () => ToolResult.error("denied", "no") }), "denied");
    assertEquals(await outcomeWith({ after: (_, result) => ({ ...result }) }), 2);
  });
});

describe("approval", () => {
  const RISKY = { ...DOUBLE, requiresApproval: true };

  it("is requested with validated arguments, and only if the tool requires it", async () => {
    const received: unknown[] = [];
    const { call } = fixture([{ name: "risky", ...RISKY }, { name: "free", ...DOUBLE }], {
      approve: ({ tool, arguments: params, principal, sessionId }) => {
        received.push([tool.id, params, principal, sessionId]);
        return true;
      },
    });
    await call("risky", { n: "wrong" });
    await call("free", { n: 1 });
    assertEquals(received, []);
    assertEquals(outcome(await call("risky", { n: 4 }, { principal: "ann", sessionId: "s1" })), 8);
    assertEquals(received, [["risky", { n: 4 }, "ann", "s1"]]);
  });

  it("is a yes or a no, with a reason", async () => {
    for (const yes of [true, { approved: true }, Promise.resolve(true)]) {
      assertEquals(outcome(await single(RISKY, { approve: () => yes }).call({ n: 1 })), 2);
    }
    const noes = [
      "yes",
      null,
      { approved: 1 },
      { approved: "ask" },
      { ask: "" },
      { ask: 1 },
      {},
      "",
    ];
    for (const no of [false, { approved: false, reason: "too late" }, ...noes]) {
      const result = await single(RISKY, { approve: () => no as ApprovalAnswer }).call({ n: 1 });
      const why = Object(no).reason === undefined ? "" : ": too late";
      assertEquals(outcome(result), "denied");
      assertEquals(messageOf(result), `Cannot call "t": it was not approved${why}`);
    }
  });

  it("is denied by an approver that throws", async () => {
    const { call, reports } = single(RISKY, { approve: broken });
    assertEquals(
      messageOf(await call({ n: 1 })),
      'Cannot call "t": it was not approved: the approver failed',
    );
    assertEquals(reports.map(({ phase }) => phase), ["approve"]);
  });

  it("does not count against the timeout of the call", async () => {
    const answer = deferred<boolean>();
    const options = { approve: () => answer.promise, timeoutMs: 100, graceMs: 0 };
    const { call, clock } = single({ requiresApproval: true, execute: never }, options);
    const result = call();
    await clock.pass(5_000);
    answer.resolve(true);
    // The call's own timer replaces the timer of the approval.
    await until(() => [...clock.timers].every(({ at }) => at === clock.now() + 100));
    await clock.pass(100);
    assertEquals(outcome(await result), "timeout");
  });

  it("has a separate time limit, and can be aborted", async () => {
    const signals: AbortSignal[] = [];
    const { call, clock } = single(RISKY, {
      approve: ({ signal }) => {
        signals.push(signal);
        return never();
      },
      approvalTimeoutMs: 9_000,
    });
    const late = call({ n: 1 });
    await clock.pass(9_000);
    assertStringIncludes(
      messageOf(await late),
      "its time was over while it was waiting for approval",
    );
    const controller = new AbortController();
    const aborted = call({ n: 1 }, { signal: controller.signal });
    await clock.armed();
    controller.abort();
    assertEquals(outcome(await aborted), "aborted");
    assert(signals.every(({ aborted }) => aborted));
  });
});

describe("limits of concurrent calls", () => {
  it("queue calls in order, and reject the calls beyond the queue", async () => {
    const started: number[] = [];
    const ends = [deferred(), deferred(), deferred()];
    const { call, dispatcher } = single(async (params) => {
      const { n } = params as { readonly n: number };
      started.push(n);
      await ends[n]?.promise;
      return n;
    }, { limits: { maxConcurrent: 1, maxQueued: 2 } });
    const calls = [0, 1, 2].map((n) => call({ n }));
    assertEquals([started, dispatcher.metrics().queued], [[0], 2]);
    const refused = await call({ n: 3 });
    assert(!refused.ok);
    assertEquals([refused.error.code, refused.error.retryable], ["overloaded", true]);
    for (const end of ends) end.resolve();
    assertEquals((await Promise.all(calls)).map(outcome), [0, 1, 2]);
    assertEquals([started, dispatcher.metrics().queued], [[0, 1, 2], 0]);
  });

  it("hold per tool", async () => {
    const end = deferred();
    const { call } = fixture([
      { name: "slow", execute: () => end.promise },
      { name: "other", execute: () => "other" },
    ], { limits: { maxConcurrentPerTool: 1, maxQueued: 0 } });
    const running = call("slow");
    assertEquals(outcome(await call("slow")), "overloaded");
    assertEquals(outcome(await call("other")), "other");
    end.resolve();
    await running;
  });

  it("count the calls of a tool with callsTools, and not the tool itself", async () => {
    const { call } = fixture([
      { name: "outer", callsTools: true, execute: async () => outcome(await call("inner")) },
      { name: "inner", execute: () => "ran" },
    ], { limits: { maxConcurrent: 1, maxQueued: 0 } });
    assertEquals(outcome(await call("outer")), "ran");
  });

  it("do not run the tool of a waiting call that is aborted or times out", async () => {
    const end = deferred();
    let runs = 0;
    const execute = () => (runs++, end.promise);
    const { call, clock } = single({ execute }, { limits: { maxConcurrent: 1 }, timeoutMs: 1_000 });
    const running = call({}, { timeoutMs: 900 });
    const controller = new AbortController();
    const aborted = call({}, { signal: controller.signal });
    controller.abort();
    assertEquals(
      messageOf(await aborted),
      'Cannot call "t": the call was aborted while it was waiting for a slot',
    );
    const late = call({}, { timeoutMs: 50 });
    await until(() => clock.timers.size === 2);
    clock.advance(50);
    assertEquals(outcome(await late), "timeout");
    end.resolve();
    assertEquals([outcome(await running), runs], [null, 1]);
    assertEquals([outcome(await call()), runs], [null, 2]);
  });

  it("are not used up by tools that never end", async () => {
    const { call, clock, dispatcher } = fixture([
      { name: "rude", execute: never },
      { name: "fine", execute: () => "ran" },
    ], { limits: { maxConcurrent: 1 }, graceMs: 0 });
    const rude = call("rude");
    await clock.pass(60_000);
    assertEquals(outcome(await rude), "timeout");
    assertEquals(outcome(await call("fine")), "ran");
    assertEquals(dispatcher.metrics().tools.find(({ id }) => id === "rude")?.abandoned, 1);
  });
});
