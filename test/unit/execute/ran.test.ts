/** The field `ran` of failures, by which a program can decide to repeat a call. */

import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import {
  type DispatchContext,
  type ToolContext,
  ToolResult,
  type TransactionManager,
} from "../../../mod.ts";
import type { ToolDispatcherOptions } from "../../../src/execute/mod.ts";
import { around, broken, deferred, type FakeTool, fixture, never, single } from "./support.ts";

const transactions: TransactionManager = {
  begin: () => ({ id: "tx" }),
  commit: () => {},
  rollback: () => {},
};

interface Row {
  readonly code: string;
  /** @default {"no"} */
  readonly ran?: "yes" | "unknown";
  readonly name?: string;
  readonly tool?: Partial<FakeTool>;
  readonly options?: ToolDispatcherOptions;
  readonly context?: DispatchContext;
  readonly args?: unknown;
}

const NO: readonly Row[] = [
  { code: "unknown_tool", name: "other" },
  { code: "unavailable", tool: { isAvailable: false } },
  { code: "unavailable", tool: { init: broken } },
  { code: "unavailable", tool: { context: { type: "string" } } },
  { code: "invalid_arguments", args: "{" },
  { code: "invalid_arguments", args: [] },
  { code: "invalid_arguments", tool: { validate: () => "no" } },
  { code: "threw", tool: { validate: broken } },
  { code: "denied", options: { hooks: { before: () => ({ refuse: "no" }) } } },
  { code: "threw", options: { layers: [around(broken)] } },
  { code: "approval_required", tool: { requiresApproval: true } },
  { code: "denied", tool: { requiresApproval: true }, options: { approve: () => false } },
  { code: "transaction_failed", tool: { requiresTransaction: true } },
  {
    code: "transaction_failed",
    tool: { requiresTransaction: true },
    options: { transactions: { ...transactions, begin: broken } },
  },
  { code: "timeout", context: { timeoutMs: 0 } },
  { code: "aborted", context: { signal: AbortSignal.abort() } },
];

const YES: readonly Row[] = [
  { code: "threw", ran: "yes", tool: { execute: broken } },
  { code: "threw", ran: "yes", tool: { execute: () => Promise.reject(new Error("broken")) } },
  { code: "invalid_result", ran: "yes", tool: { returns: { type: "number" } } },
  { code: "output_too_large", ran: "yes", tool: { execute: () => "x".repeat(2_000_000) } },
  { code: "overloaded", ran: "yes", tool: { execute: () => ToolResult.error("overloaded", "No") } },
  { code: "denied", ran: "yes", options: { hooks: { after: broken } } },
  {
    code: "transaction_failed",
    ran: "yes",
    tool: { requiresTransaction: true },
    options: { transactions: { ...transactions, commit: broken } },
  },
];

describe("the failure of a call", () => {
  for (const { code, ran = "no", name = "t", tool, options, context, args } of [...NO, ...YES]) {
    const what = [tool, options, context].flatMap((one) => Object.keys(one ?? {})).join(", ");
    it(`reports that the tool ${ran === "no" ? "did not run" : "ran"}: ${code} ${what}`, async () => {
      let runs = 0;
      const execute = tool?.execute ?? (() => "done");
      const run: typeof execute = (...args) => (runs++, execute(...args));
      const { call } = fixture([{ name: "t", ...tool, execute: run }], options);
      const result = await call(name, args, context);
      assert(!result.ok);
      assertEquals([result.error.code, result.error.ran], [code, ran]);
      assertEquals(runs > 0, ran === "yes");
    });
  }

  it('is "no" for a call that waited for a slot', async () => {
    const limits = { maxConcurrent: 1, maxQueued: 0 };
    const { call } = single(never, { limits });
    void call();
    const result = await call();
    assert(!result.ok);
    assertEquals([result.error.code, result.error.ran], ["overloaded", "no"]);
  });

  for (
    const [title, stops, idempotent, ran, retryable] of [
      ["ran if it stopped", true, false, "yes", true],
      ["may still run if it did not stop", false, false, "unknown", false],
      ["may still run, and may be called again if it is idempotent", false, true, "unknown", true],
    ] as const
  ) {
    it(`reports after a timeout that the tool ${title}`, async () => {
      const started = deferred();
      const { call, clock } = fixture([{
        name: "t",
        idempotent,
        execute: (_params, { signal }) => {
          started.resolve();
          if (!stops) return never();
          return new Promise((_, reject) =>
            signal.addEventListener("abort", () => reject(signal.reason))
          );
        },
      }], { timeoutMs: 100, graceMs: stops ? 100 : 0 });
      const pending = call("t");
      await started.promise;
      await clock.pass(100);
      const result = await pending;
      assert(!result.ok);
      const { error } = result;
      assertEquals([error.code, error.ran, error.retryable], ["timeout", ran, retryable]);
    });
  }

  for (const isGenerator of [false, true]) {
    const what = isGenerator ? "generator" : "function";
    it(`is the result of the other process, even if the ${what} that calls it is aborted`, async () => {
      const started = deferred();
      const execute = async (_params: unknown, { signal }: ToolContext) => {
        started.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return ToolResult.error("aborted", "It has not begun there", { ran: "no" });
      };
      const { call } = single(
        !isGenerator ? execute : async function* (...args) {
          yield 1;
          return await execute(...args);
        },
      );
      const abort = new AbortController();
      const pending = call({}, { signal: abort.signal });
      await started.promise;
      abort.abort();
      const result = await pending;
      assert(!result.ok);
      assertEquals([result.error.code, result.error.ran], ["aborted", "no"]);
    });
  }

  it("is not a field of a success, or of a call that waits for answers", async () => {
    const { call } = single(() => 1);
    assertEquals(Object.keys(await call()), ["ok", "content", "durationMs"]);
  });
});

/** A tool of another process whose answer was lost. */
const LOST = (ran: "no" | "unknown", idempotent = false): FakeTool => ({
  name: "t",
  idempotent,
  execute: () => ToolResult.error("unavailable", "Lost", { ran }),
});

describe("a tool that may have run", () => {
  it("makes the call retryable only if it is idempotent", async () => {
    for (
      const [ran, idempotent, retryable] of [
        ["unknown", false, false],
        ["unknown", true, true],
        ["no", false, true],
      ] as const
    ) {
      const result = await fixture([LOST(ran, idempotent)]).call("t");
      assert(!result.ok);
      assertEquals([result.error.ran, result.error.retryable], [ran, retryable]);
    }
  });

  it("is not retryable if a layer returns the result", async () => {
    const lost = ToolResult.error("unavailable", "Lost", { ran: "unknown" });
    const { call } = single(() => 1, { layers: [around(() => lost)] });
    const result = await call();
    assert(!result.ok);
    assertEquals([result.error.ran, result.error.retryable], ["unknown", false]);
  });

  it("is not run again by a layer that retries retryable failures", async () => {
    let runs = 0;
    const { call } = single(() => {
      runs++;
      return ToolResult.error("unavailable", "Lost", { ran: "unknown" });
    }, {
      layers: [around(async (call, next) => {
        const result = await next(call);
        return !result.ok && result.error.retryable ? await next(call) : result;
      })],
    });
    await call();
    assertEquals(runs, 1);
  });

  it("has its result stored for its idempotency key, unless it is idempotent", async () => {
    for (const [idempotent, replayed] of [[false, true], [true, undefined]] as const) {
      const { call } = fixture([LOST("unknown", idempotent)]);
      await call("t", {}, { idempotencyKey: "k" });
      const again = await call("t", {}, { idempotencyKey: "k" });
      assert(!again.ok);
      assertEquals(again.replayed, replayed);
      assertEquals([again.error.ran, again.error.retryable], ["unknown", idempotent]);
    }
  });

  it("is the same for a replayed failure as for the first call", async () => {
    const { call } = single(broken);
    const first = await call({}, { idempotencyKey: "k" });
    const again = await call({}, { idempotencyKey: "k" });
    assert(!first.ok && !again.ok);
    assertEquals(again.replayed, true);
    assertEquals(again.error, first.error);
  });
});
