import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { type ToolHooks, ToolResult } from "../../../mod.ts";
import type { ApprovalAnswer } from "../../../src/execute/mod.ts";
import { deferred, fixture, messageOf, outcome, until } from "./support.ts";

const DOUBLE = {
  name: "double",
  parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  returns: { type: "number" },
  execute: (params: unknown) => (params as { readonly n: number }).n * 2,
} as const;

describe("a before hook", () => {
  it("sees parsed arguments and may change them, before they are validated", async () => {
    const seen: unknown[] = [];
    const hook: ToolHooks = {
      before: ({ tool, arguments: params }) => {
        seen.push(tool.id, params);
        return { arguments: { n: 5 } };
      },
    };
    const { call } = fixture([DOUBLE], { hooks: hook });
    assertEquals(outcome(await call("double", '{"n":"wrong"}')), 10);
    assertEquals(seen, ["double", { n: "wrong" }]);
    const spoils = fixture([DOUBLE], { hooks: { before: () => ({ arguments: { n: "no" } }) } });
    assertEquals(outcome(await spoils.call("double", { n: 1 })), "invalid_arguments");
  });

  it("runs in the order given, until one answers", async () => {
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
    let ran = false;
    const { call } = fixture([{ ...DOUBLE, execute: () => void (ran = true) }], { hooks });
    assertEquals(outcome(await call("double", { n: 1 })), 7);
    assertEquals(log, ["first", "second"]);
    assertEquals(ran, false);
  });

  it("may return a result instead of the tool", async () => {
    const answering = (result: unknown) =>
      fixture([DOUBLE], { hooks: { before: () => ({ result: result as ToolResult }) } })
        .call("double", { n: 1 });
    assertEquals(outcome(await answering(ToolResult.ok("text"))), "invalid_result");
    assertEquals(outcome(await answering(ToolResult.error("unavailable", "later"))), "unavailable");
    assertEquals(outcome(await answering({ ok: false, error: { code: "nonsense" } })), "denied");
  });

  it("may reject", async () => {
    const { call } = fixture([DOUBLE], { hooks: { before: () => ({ refuse: "not on Sundays" }) } });
    const result = await call("double", { n: 1 });
    assertEquals(outcome(result), "denied");
    assertEquals(messageOf(result), 'Cannot call "double": not on Sundays');
  });
});

describe("a call that is aborted while a guard thinks", () => {
  it("does not touch its tool", async () => {
    const controller = new AbortController();
    let ran = false;
    const tool = { ...DOUBLE, execute: () => void (ran = true) };
    const { call } = fixture([tool], { hooks: { before: () => controller.abort() } });
    const result = await call("double", { n: 1 }, { signal: controller.signal });
    assertEquals(outcome(result), "aborted");
    const own = fixture([{ ...tool, validate: () => controller.abort() }]);
    const fresh = new AbortController();
    const other = fixture([{ ...tool, validate: () => fresh.abort() }]);
    assertEquals(
      outcome(await own.call("double", { n: 1 }, { signal: controller.signal })),
      "aborted",
    );
    assertEquals(
      messageOf(await other.call("double", { n: 1 }, { signal: fresh.signal })),
      'Cannot call "double": the call was aborted while it was about to run',
    );
    assertEquals(ran, false);
  });
});

describe("an after hook", () => {
  it("sees every result of a known tool, in reverse order", async () => {
    const seen: unknown[] = [];
    const { call } = fixture([DOUBLE, { name: "idea" }], {
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
      "inner",
      ["double", { n: 1 }, 2],
      "inner",
      ["double", undefined, "invalid_arguments"],
      "inner",
      ["idea", undefined, "not_executable"],
    ]);
  });

  it("sees how long the call took, and cannot change what it is shown", async () => {
    const seen: unknown[] = [];
    const { call, clock } = fixture([{ ...DOUBLE, execute: () => clock.advance(7) ?? 1 }], {
      hooks: {
        after: (_, result) => {
          seen.push(result.durationMs, Object.isFrozen(result));
          return result;
        },
      },
    });
    assertEquals(outcome(await call("double", { n: 1 })), 1);
    assertEquals(seen, [7, true]);
  });

  it("may replace the result, within what the tool could answer", async () => {
    const replacing = (answer: unknown) =>
      fixture([DOUBLE], { hooks: { after: () => answer as ToolResult } }).call("double", { n: 1 });
    assertEquals(outcome(await replacing(ToolResult.ok(9))), 9);
    assertEquals(outcome(await replacing(ToolResult.ok("text"))), "invalid_result");
    assertEquals(outcome(await replacing(ToolResult.error("denied", "no"))), "denied");
    const spread = await fixture([DOUBLE], {
      hooks: { after: (_, result) => ({ ...result }) },
    }).call("double", { n: 1 });
    assertEquals(outcome(spread), 2);
  });
});

describe("approval", () => {
  const risky = { ...DOUBLE, requiresApproval: true };

  it("is requested with validated arguments, and only if the tool requires it", async () => {
    const asked: unknown[] = [];
    const { call } = fixture([risky, { ...DOUBLE, name: "free" }], {
      approve: ({ tool, arguments: params, principal, sessionId }) => {
        asked.push([tool.id, params, principal, sessionId]);
        return true;
      },
    });
    await call("double", { n: "wrong" });
    await call("free", { n: 1 });
    assertEquals(asked, []);
    const result = await call("double", { n: 4 }, { principal: "ann", sessionId: "s1" });
    assertEquals(outcome(result), 8);
    assertEquals(asked, [["double", { n: 4 }, "ann", "s1"]]);
  });

  it("is a yes or a no, with a reason", async () => {
    const rows: readonly (readonly [unknown, unknown, string])[] = [
      [true, 2, ""],
      [{ approved: true }, 2, ""],
      [Promise.resolve(true), 2, ""],
      [false, "denied", "it was not approved"],
      [{ approved: false, reason: "too late" }, "denied", "it was not approved: too late"],
      ["yes", "denied", "it was not approved"],
      [null, "denied", "it was not approved"],
      [{ approved: 1 }, "denied", "it was not approved"],
      [{ approved: "ask" }, "denied", "it was not approved"],
      [{ ask: "" }, "denied", "it was not approved"],
      [{ ask: 1 }, "denied", "it was not approved"],
      [{}, "denied", "it was not approved"],
      ["", "denied", "it was not approved"],
    ];
    for (const [answer, expected, says] of rows) {
      const { call } = fixture([risky], { approve: () => answer as ApprovalAnswer });
      const result = await call("double", { n: 1 });
      assertEquals(outcome(result), expected);
      assertStringIncludes(messageOf(result), says);
    }
  });

  it("is denied by an approver that throws", async () => {
    const { call, reports } = fixture([risky], {
      approve: () => {
        throw new Error("secret");
      },
    });
    const result = await call("double", { n: 1 });
    assertEquals(
      messageOf(result),
      'Cannot call "double": the approver failed, so the call is refused',
    );
    assertEquals(reports.map(({ phase }) => phase), ["approve"]);
  });

  it("does not cost the call its time", async () => {
    const answer = deferred<boolean>();
    const { call, clock } = fixture(
      [{ ...risky, execute: () => new Promise(() => {}) }],
      { approve: () => answer.promise, timeoutMs: 100, graceMs: 0 },
    );
    const result = call("double", { n: 1 });
    await clock.pass(5_000);
    answer.resolve(true);
    // The call's own timer replaces the timer of the approval.
    await until(() => [...clock.timers].every(({ at }) => at === clock.now() + 100));
    await clock.armed();
    clock.advance(100);
    assertEquals(outcome(await result), "timeout");
  });

  it("has a limit of its own, and can be aborted", async () => {
    const signals: AbortSignal[] = [];
    const { call, clock } = fixture([risky], {
      approve: ({ signal }) => {
        signals.push(signal);
        return new Promise(() => {});
      },
      approvalTimeoutMs: 9_000,
    });
    const late = call("double", { n: 1 });
    await clock.pass(9_000);
    assertEquals(
      messageOf(await late),
      'Cannot call "double": its time was over while it was waiting for approval',
    );
    const controller = new AbortController();
    const aborted = call("double", { n: 1 }, { signal: controller.signal });
    await clock.armed();
    controller.abort();
    assertEquals(outcome(await aborted), "aborted");
    assert(signals.every(({ aborted }) => aborted));
  });
});

describe("limits on calls at once", () => {
  it("queue calls in order, and reject the calls beyond the queue", async () => {
    const started: unknown[] = [];
    const ends = [deferred(), deferred(), deferred()];
    const { call, dispatcher } = fixture([{
      name: "job",
      execute: async (params) => {
        const { n } = params as { readonly n: number };
        started.push(n);
        await ends[n]?.promise;
        return n;
      },
    }], { limits: { maxConcurrent: 1, maxQueued: 2 } });
    const calls = [0, 1, 2].map((n) => call("job", { n }));
    assertEquals(started, [0]);
    assertEquals(dispatcher.metrics().queued, 2);
    const refused = await call("job", { n: 3 });
    assertEquals(outcome(refused), "overloaded");
    assertEquals(!refused.ok && refused.error.retryable, true);
    for (const end of ends) end.resolve();
    assertEquals((await Promise.all(calls)).map(outcome), [0, 1, 2]);
    assertEquals(started, [0, 1, 2]);
    assertEquals(dispatcher.metrics().queued, 0);
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

  it("let a waiting call be aborted or run out of time, without its tool", async () => {
    const end = deferred();
    const runs: unknown[] = [];
    const { call, clock } = fixture([{
      name: "job",
      execute: async (params) => {
        runs.push(params);
        await end.promise;
      },
    }], { limits: { maxConcurrent: 1 }, timeoutMs: 1_000 });
    const running = call("job", { n: 1 }, { timeoutMs: 900 });
    const controller = new AbortController();
    const aborted = call("job", { n: 2 }, { signal: controller.signal });
    controller.abort();
    assertEquals(
      messageOf(await aborted),
      'Cannot call "job": the call was aborted while it was waiting for a slot',
    );
    const late = call("job", { n: 3 }, { timeoutMs: 50 });
    await until(() => clock.timers.size === 2);
    clock.advance(50);
    assertEquals(outcome(await late), "timeout");
    end.resolve();
    assertEquals(outcome(await running), null);
    assertEquals(runs, [{ n: 1 }]);
    assertEquals(outcome(await call("job", { n: 4 })), null);
  });

  it("are not used up by tools that never end", async () => {
    const { call, clock, dispatcher } = fixture([
      { name: "rude", execute: () => new Promise(() => {}) },
      { name: "fine", execute: () => "ran" },
    ], { limits: { maxConcurrent: 1 }, graceMs: 0 });
    const rude = call("rude");
    const waiting = call("fine");
    await clock.pass(60_000);
    assertEquals(outcome(await rude), "timeout");
    assertEquals(["ran", "timeout"].includes(String(outcome(await waiting))), true);
    assertEquals(outcome(await call("fine")), "ran");
    assertEquals(dispatcher.metrics().tools.find(({ id }) => id === "rude")?.abandoned, 1);
  });
});
