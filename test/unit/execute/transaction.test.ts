import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import type { ToolDispatcherOptions, TransactionManager } from "../../../mod.ts";
import { deferred, type FakeTool, messageOf, never, outcome, single, until } from "./support.ts";

interface Parts extends Partial<TransactionManager> {
  readonly execute?: FakeTool["execute"];
}

/** A tool that requires a transaction, and a manager. Both record what they do. */
function inTransaction(
  { execute = () => 1, begin, commit, rollback }: Parts,
  options: ToolDispatcherOptions = {},
) {
  const events: string[] = [];
  const transactions: TransactionManager = {
    begin: (info) => (events.push("begin"), begin ? begin(info) : { id: "tx" }),
    commit: (tx) => (events.push("commit"), commit?.(tx)),
    rollback: (tx, reason) => (events.push(`rollback ${reason.code}`), rollback?.(tx, reason)),
  };
  const run: typeof execute = (...args) => (events.push("run"), execute(...args));
  const tool = { requiresTransaction: true, returns: { type: "number" }, execute: run } as const;
  return { events, ...single(tool, { transactions, ...options }) };
}

function throws(message: string): () => never {
  return () => {
    throw new Error(message);
  };
}

const NO = { execute: throws("no") };
const CONFLICT = { commit: throws("conflict") };
const GONE = { rollback: throws("the journal is gone") };
const NOT_UNDONE = "its changes could not be rolled back: the journal is gone";
const NOT_DONE = "its changes could not be committed: conflict";

describe("a tool that requires a transaction", () => {
  for (
    const [title, parts, code, why, events] of [
      ["throws", NO, "threw", "the tool threw: no", "run"],
      [
        "rejects",
        { execute: async () => await NO.execute() },
        "threw",
        "the tool threw: no",
        "run",
      ],
      ["returns another type", { execute: () => "text" }, "invalid_result", "the tool's", "run"],
      ["returns no JSON", { execute: () => 1n }, "invalid_result", "the tool's result is", "run"],
      ["returns a large text", { execute: () => "x".repeat(2e6) }, "output_too_large", "", "run"],
      [
        "cannot be rolled back",
        { ...NO, ...GONE },
        "threw",
        `the tool threw: no; ${NOT_UNDONE}`,
        "run",
      ],
      ["cannot be committed", CONFLICT, "transaction_failed", NOT_DONE, "run,commit"],
      [
        "can be neither committed nor rolled back",
        { ...CONFLICT, ...GONE },
        ...["transaction_failed", `${NOT_DONE}; ${NOT_UNDONE}`, "run,commit"],
      ],
    ] as const satisfies readonly (readonly [string, Parts, string, string, string])[]
  ) {
    it(`is rolled back if it ${title}`, async () => {
      const world = inTransaction(parts);
      const result = await world.call();
      assertEquals(outcome(result), code);
      assertStringIncludes(messageOf(result), `Cannot call "t": ${why}`);
      assertEquals(world.events.join(), `begin,${events},rollback ${code}`);
    });
  }

  for (
    const [title, begin, why, phases] of [
      ["cannot begin", throws("The disk is full"), "could not begin: The disk is full", ["begin"]],
      ["is nothing", () => undefined as never, "manager began no transaction", []],
    ] as const
  ) {
    it(`does not run if its transaction ${title}`, async () => {
      const { call, events, reports } = inTransaction({ begin });
      const result = await call();
      assertEquals(outcome(result), "transaction_failed");
      assertStringIncludes(messageOf(result), `its transaction ${why}`);
      assertEquals([events, reports.map(({ phase }) => phase)], [["begin"], [...phases]]);
    });
  }

  it("receives the transaction, which is committed if the result is valid", async () => {
    const { call, events } = inTransaction({
      execute(_, { transaction, defer }) {
        events.push(`in ${transaction?.id}`);
        defer(() => void events.push("cleanup"));
        return 1;
      },
    });
    assertEquals(outcome(await call()), 1);
    assertEquals(events, ["begin", "run", "in tx", "commit", "cleanup"]);
  });

  it("is rolled back after the grace period if it ignores a timeout", async () => {
    const { call, clock, events } = inTransaction({
      execute(_, { defer }) {
        defer(() => void events.push("cleanup"));
        return never();
      },
    }, { graceMs: 10 });
    const result = call();
    await until(() => events.length === 2 && clock.timers.size > 0);
    clock.advance(60_000);
    await until(() => clock.timers.size > 0);
    assertEquals(events, ["begin", "run"]);
    clock.advance(10);
    assertEquals(outcome(await result), "timeout");
    assertEquals(events, ["begin", "run", "rollback timeout", "cleanup"]);
  });

  it("does not run if the transaction begins too late, which is then rolled back", async () => {
    const late = deferred<{ readonly id: string }>();
    const { call, clock, events } = inTransaction({ begin: () => late.promise });
    const result = call();
    await clock.pass(60_000);
    assertEquals(outcome(await result), "timeout");
    late.resolve({ id: "late" });
    await until(() => events.length === 2);
    assertEquals(events, ["begin", "rollback aborted"]);
  });

  it("does not wait for a commit without end", async () => {
    const { call, clock, events } = inTransaction({ commit: never }, { closeTimeoutMs: 70 });
    const result = call();
    await until(() => events.includes("commit"));
    await clock.pass(70);
    assertEquals(
      messageOf(await result),
      'Cannot call "t": its changes could not be committed within 70 ms, ' +
        "and it is unknown whether they were",
    );
  });

  it("is not rolled back by an abort after the result", async () => {
    const controller = new AbortController();
    let signal: AbortSignal | undefined;
    const { call, events } = inTransaction({
      begin(info) {
        signal = info.signal;
        return { id: "tx" };
      },
      commit: () => controller.abort(),
    });
    assertEquals(outcome(await call({}, { signal: controller.signal })), 1);
    assertEquals(events, ["begin", "run", "commit"]);
    assertEquals(signal?.aborted, false);
  });
});
