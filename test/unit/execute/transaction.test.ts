import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import type { TransactionManager } from "../../../mod.ts";
import { deferred, fixture, messageOf, outcome, until } from "./support.ts";

interface Log {
  readonly manager: TransactionManager;
  readonly events: string[];
}

/** A transaction manager that records its calls. */
function manager(parts: Partial<TransactionManager> = {}): Log {
  const events: string[] = [];
  return {
    events,
    manager: {
      begin(info) {
        events.push(`begin ${info.tool.id}`);
        return parts.begin?.(info) ?? { id: "tx" };
      },
      commit(transaction) {
        events.push(`commit ${transaction.id}`);
        return parts.commit?.(transaction);
      },
      rollback(transaction, reason) {
        events.push(`rollback ${transaction.id} ${reason.code}`);
        return parts.rollback?.(transaction, reason);
      },
    },
  };
}

const WRITE = { name: "write", requiresTransaction: true, returns: { type: "number" } } as const;

function throwing(message: string): () => never {
  return () => {
    throw new Error(message);
  };
}

describe("a tool that requires a transaction", () => {
  it("gets the transaction, which is committed when the result is valid", async () => {
    const { manager: transactions, events } = manager();
    const { call } = fixture([{
      ...WRITE,
      execute: (_, { transaction, defer }) => {
        events.push(`run in ${transaction?.id}`);
        defer(() => void events.push("cleanup"));
        return 1;
      },
    }, { name: "read", execute: () => 2 }], { transactions });
    assertEquals(outcome(await call("read")), 2);
    assertEquals(outcome(await call("write")), 1);
    assertEquals(events, ["begin write", "run in tx", "commit tx", "cleanup"]);
  });

  it("is rolled back when the tool throws, or its result is rejected", async () => {
    const rows: readonly (readonly [() => unknown, string])[] = [
      [throwing("no"), "threw"],
      [() => "text", "invalid_result"],
      [() => 1n, "invalid_result"],
      [() => "x".repeat(2_000_000), "output_too_large"],
      [() => Promise.reject(new Error("no")), "threw"],
    ];
    for (const [execute, code] of rows) {
      const { manager: transactions, events } = manager();
      const { call } = fixture([{ ...WRITE, execute }], { transactions });
      assertEquals(outcome(await call("write")), code);
      assertEquals(events, ["begin write", `rollback tx ${code}`]);
    }
  });

  it("is rolled back after the grace period when it ignores a timeout", async () => {
    const { manager: transactions, events } = manager();
    const { call, clock } = fixture(
      [{
        ...WRITE,
        execute: (_, { defer }) => {
          defer(() => void events.push("cleanup"));
          return new Promise(() => {});
        },
      }],
      { transactions, graceMs: 10 },
    );
    const result = call("write");
    await until(() => events.length === 1 && clock.timers.size > 0);
    clock.advance(60_000);
    await until(() => clock.timers.size > 0);
    assertEquals(events, ["begin write"]);
    clock.advance(10);
    assertEquals(outcome(await result), "timeout");
    assertEquals(events, ["begin write", "rollback tx timeout", "cleanup"]);
  });

  it("does not run when the transaction cannot begin", async () => {
    let ran = false;
    const { manager: transactions, events } = manager({ begin: throwing("the disk is full") });
    const { call, reports } = fixture([{ ...WRITE, execute: () => void (ran = true) }], {
      transactions,
    });
    const result = await call("write");
    assertEquals(outcome(result), "transaction_failed");
    assertStringIncludes(messageOf(result), "could not begin: the disk is full");
    assertEquals([ran, events.length, reports[0]?.phase], [false, 1, "begin"]);
  });

  it("is rolled back when the transaction began too late", async () => {
    const late = deferred<{ readonly id: string }>();
    const { manager: transactions, events } = manager({ begin: () => late.promise });
    let ran = false;
    const { call, clock } = fixture([{ ...WRITE, execute: () => void (ran = true) }], {
      transactions,
    });
    const result = call("write");
    await clock.pass(60_000);
    assertEquals(outcome(await result), "timeout");
    late.resolve({ id: "late" });
    await until(() => events.length === 2);
    assertEquals(events, ["begin write", "rollback late aborted"]);
    assertEquals(ran, false);
  });

  it("fails when the commit fails, and is rolled back", async () => {
    const { manager: transactions, events } = manager({ commit: throwing("conflict") });
    const { call } = fixture([{ ...WRITE, execute: () => 1 }], { transactions });
    const result = await call("write");
    assertEquals(
      messageOf(result),
      'Cannot call "write": its changes could not be committed: conflict',
    );
    assertEquals(events, ["begin write", "commit tx", "rollback tx transaction_failed"]);
  });

  it("reports a failed rollback", async () => {
    const { manager: transactions } = manager({ rollback: throwing("the journal is gone") });
    const { call, reports } = fixture([{ ...WRITE, execute: throwing("no") }], { transactions });
    const result = await call("write");
    assertEquals(outcome(result), "threw");
    assertEquals(
      messageOf(result),
      'Cannot call "write": the tool threw: no; ' +
        "its changes could not be rolled back: the journal is gone",
    );
    assertEquals(reports.map(({ phase }) => phase), ["execute", "rollback"]);
  });

  it("says both when commit and rollback fail", async () => {
    const { manager: transactions } = manager({
      commit: throwing("conflict"),
      rollback: throwing("the journal is gone"),
    });
    const { call } = fixture([{ ...WRITE, execute: () => 1 }], { transactions });
    const result = await call("write");
    assertEquals(outcome(result), "transaction_failed");
    assertStringIncludes(messageOf(result), "conflict; its changes could not be rolled back");
  });

  it("does not wait for a commit for ever", async () => {
    const { manager: transactions, events } = manager({ commit: () => new Promise(() => {}) });
    const { call, clock } = fixture([{ ...WRITE, execute: () => 1 }], {
      transactions,
      closeTimeoutMs: 70,
    });
    const result = call("write");
    await until(() => events.includes("commit tx"));
    await clock.pass(70);
    assertEquals(
      messageOf(await result),
      'Cannot call "write": its changes could not be committed within 70 ms, ' +
        "and whether they were is not known",
    );
  });

  it("is not undone by an abort that comes after the result", async () => {
    const controller = new AbortController();
    let signal: AbortSignal | undefined;
    const { manager: transactions, events } = manager({
      begin: (info) => {
        signal = info.signal;
        return { id: "tx" };
      },
      commit: () => controller.abort(),
    });
    const { call } = fixture([{ ...WRITE, execute: () => 1 }], { transactions });
    assertEquals(outcome(await call("write", {}, { signal: controller.signal })), 1);
    assertEquals(events, ["begin write", "commit tx"]);
    assertEquals(signal?.aborted, false);
  });
});

describe("a transaction manager that begins nothing", () => {
  it("fails the call, and the tool does not run", async () => {
    let ran = false;
    const { call } = fixture([{
      name: "write",
      requiresTransaction: true,
      execute: () => {
        ran = true;
      },
    }], {
      transactions: { begin: () => undefined as never, commit() {}, rollback() {} },
    });
    assertEquals(outcome(await call("write")), "transaction_failed");
    assertEquals(ran, false);
  });
});
