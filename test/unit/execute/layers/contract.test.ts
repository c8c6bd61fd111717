/**
 * Every layer of plue, and layers of a user, through the contract of layers.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { approval } from "../../../../src/execute/layers/approval.ts";
import { concurrencyLimit } from "../../../../src/execute/layers/concurrency_limit.ts";
import { emissions } from "../../../../src/execute/layers/emissions.ts";
import { failureNotice } from "../../../../src/execute/layers/emissions.ts";
import { hooks } from "../../../../src/execute/layers/hooks.ts";
import { validators } from "../../../../src/execute/layers/validators.ts";
import { hostContext } from "../../../../src/execute/layers/host_context.ts";
import { idempotency } from "../../../../src/execute/layers/idempotency.ts";
import { metrics } from "../../../../src/execute/metrics.ts";
import { questions } from "../../../../src/execute/layers/questions.ts";
import { repair } from "../../../../src/execute/layers/repair.ts";
import { telemetry } from "../../../../src/execute/layers/telemetry.ts";
import { transactions } from "../../../../src/execute/layers/transactions.ts";
import { truncation } from "../../../../src/execute/layers/truncation.ts";
import type { Call, Layer, LayerFunction, Next, Outcome } from "../../../../src/execute/mod.ts";
import { type Answer, ToolResult, type TransactionManager } from "../../../../mod.ts";
import { describeLayer, type LayerSetup } from "../../../contract/layer_contract.ts";

const fail = (): never => {
  throw new Error("broken");
};
const never = (): Promise<never> => new Promise(() => {});

describeLayer("of nothing", () => ({ layers: [] }));

describeLayer("emissions", () => ({
  layers: [emissions()],
  context: { metadata: () => {}, progress: () => {}, output: () => {} },
  touch: ({ metadata, progress }) => {
    metadata({ at: 1 });
    progress(1, 2);
  },
}), [
  {
    title: "drops a value that is not JSON, and reports it",
    touch: ({ metadata }) => metadata(1n),
    outcome: "done",
    runs: true,
    reports: 1,
  },
]);

describeLayer("truncation", () => ({ layers: truncation("truncate") }), [
  {
    title: "cuts a text that is larger than the caller allows",
    context: { maxOutputBytes: 200 },
    execute: () => "x".repeat(998),
    outcome: `${"x".repeat(102)}… [truncated: 104 of 1000 bytes]`,
    runs: true,
  },
  {
    title: "fails a call whose caller takes no part of a text",
    context: { maxOutputBytes: 200, outputOverflow: "fail" },
    execute: () => "x".repeat(998),
    outcome: "output_too_large",
    runs: true,
  },
]);

// Approval

const APPROVED = { requiresApproval: true } as const;

describeLayer("approval", () => ({
  layers: [approval(() => true)],
  tool: APPROVED,
}), [
  {
    title: "fails a call that no approver can decide",
    layers: [approval(undefined)],
    outcome: "approval_required",
    runs: false,
  },
  {
    title: "fails a call that is not approved",
    layers: [approval(() => ({ approved: false, reason: "it is late" }))],
    outcome: "denied",
    runs: false,
  },
  {
    title: "fails a call whose approver throws",
    layers: [approval(fail)],
    outcome: "denied",
    runs: false,
    reports: 1,
  },
  {
    title: "fails a call whose approver takes too long",
    layers: [approval(never, { timeoutMs: 500 })],
    outcome: "timeout",
    runs: false,
  },
  {
    title: "fails a call whose caller cannot be asked",
    layers: [approval("ask")],
    outcome: "approval_required",
    runs: false,
  },
  {
    title: "does not concern a tool that requires no approval",
    layers: [approval(undefined)],
    tool: {},
    outcome: "done",
    runs: true,
  },
]);

// Concurrency limit

describeLayer("concurrency limit", () => {
  const limit = concurrencyLimit({ maxConcurrent: 1, maxQueued: 1 });
  return { layers: [limit], held: () => limit.queued };
});

// Failure notice

describeLayer("failure notice", () => {
  const received: unknown[] = [];
  return {
    layers: [failureNotice()],
    context: { metadata: (value: unknown) => void received.push(value) },
  };
}, [{
  title: "does not let the caller's callback change the result",
  context: { metadata: fail },
  execute: () => ToolResult.error("denied", "No"),
  outcome: "denied",
  runs: true,
  reports: 1,
}]);

// Hooks

for (const part of ["before", "after"] as const) {
  describeLayer(`${part} hook`, () => ({ layers: hooks({ [part]: async () => {} })[part] }), [
    {
      title: `fails a call whose ${part} hook throws`,
      layers: hooks({ [part]: fail })[part],
      outcome: "denied",
      runs: part === "after",
      reports: 1,
    },
    {
      title: `fails a call whose ${part} hook does not end`,
      layers: hooks({ [part]: never })[part],
      outcome: part === "before" ? "timeout" : "denied",
      runs: part === "after",
      reports: part === "before" ? 0 : 1,
    },
  ]);
}

// Host context

const CONTEXT = { type: "object", required: ["tenant"] } as const;

describeLayer("host context", () => ({
  layers: [hostContext()],
  tool: { context: CONTEXT },
  context: { context: { tenant: "a" } },
  touch: ({ context }) => assertEquals(context as unknown, { tenant: "a" }),
}), [{
  title: "fails a call whose host gives a wrong context",
  context: { context: {} },
  outcome: "unavailable",
  runs: false,
  reports: 1,
}]);

// Idempotency

/** Idempotent, since the key of another tool that may still run is not free for the next call. */
const WITH_KEY = { context: { idempotencyKey: "k" }, tool: { idempotent: true } } as const;

describeLayer("idempotency", (clock) => ({ layers: idempotency({}, clock), ...WITH_KEY }), [{
  title: "fails a call whose key is not valid",
  context: { idempotencyKey: "" },
  outcome: "invalid_arguments",
  runs: false,
}]);

describeLayer("idempotency with stored keys", (clock) => {
  let held = 0;
  const kept = {
    async claim() {
      await Promise.resolve();
      held++;
      return async () => {
        await Promise.resolve();
        held--;
      };
    },
  };
  return { layers: idempotency({ kept }, clock), ...WITH_KEY, held: () => held };
});

// Metrics

describeLayer("metrics", (clock) => {
  const layer = metrics(clock);
  const held = (): number => {
    const { tools: [tool], inFlight } = layer.snapshot();
    return inFlight + (tool?.inFlight ?? 0);
  };
  return { layers: [layer], held };
});

// Questions

describeLayer("questions", () => {
  const layer = questions();
  return {
    layers: [layer, layer.again],
    context: { onQuestion: (): Answer => ({ action: "accept", content: "yes" }) },
    touch: ({ ask, step }) => {
      void ask("sure", { message: "Sure?" });
      void step("first", () => 1);
    },
  };
}, [{
  title: "fails the call of a tool whose caller cannot be asked",
  context: {},
  execute: async ({ ask }) => (await ask("name", { message: "Your name?" })).action,
  outcome: "input_unavailable",
  runs: true,
}]);

// Repair

describeLayer("repair", () => ({
  layers: [repair(() => ({ arguments: { n: 1 } }))],
  tool: { parameters: { type: "object", required: ["n"] } },
  arguments: "{n: 1}",
}), [
  {
    title: "fails a call whose arguments stay text",
    layers: [repair(() => undefined)],
    outcome: "invalid_arguments",
    runs: false,
  },
  {
    title: "fails a call whose arguments stay wrong",
    layers: [repair(() => undefined)],
    arguments: {},
    outcome: "invalid_arguments",
    runs: false,
  },
  {
    title: "fails a call whose repair throws",
    layers: [repair(fail)],
    outcome: "invalid_arguments",
    runs: false,
    reports: 1,
  },
  {
    title: "ends a call whose repair does not end",
    layers: [repair(never)],
    outcome: "timeout",
    runs: false,
  },
]);

// Telemetry

describeLayer("telemetry", (clock) => {
  let open = 0;
  const begin = () => {
    const begun = clock.now();
    open++;
    return {
      place: undefined,
      run: <T>(work: () => T) => work(),
      end({ durationMs }: ToolResult) {
        assertEquals(durationMs, clock.now() - begun);
        open--;
      },
    };
  };
  return { layers: [telemetry({ begin })], held: () => open };
}, [{
  title: "runs a call whose telemetry throws",
  layers: [telemetry({ begin: fail })],
  outcome: "done",
  runs: true,
  reports: 1,
}]);

// Transactions

const IN_TRANSACTION = { requiresTransaction: true } as const;

function transactionLog(changes: Partial<TransactionManager> = {}): LayerSetup {
  let open = 0;
  const manager: TransactionManager = {
    async begin() {
      await Promise.resolve();
      open++;
      return { id: "tx" };
    },
    async commit() {
      await Promise.resolve();
      open--;
    },
    async rollback() {
      await Promise.resolve();
      open--;
    },
    ...changes,
  };
  return { layers: [transactions(manager)], tool: IN_TRANSACTION, held: () => open };
}

describeLayer("transactions", () => transactionLog(), [
  {
    title: "fails a call without a manager",
    layers: [transactions()],
    outcome: "transaction_failed",
    runs: false,
  },
  {
    title: "fails a call whose transaction cannot begin",
    ...transactionLog({ begin: fail }),
    outcome: "transaction_failed",
    runs: false,
    reports: 1,
  },
  {
    title: "fails a call whose transaction does not begin",
    ...transactionLog({ begin: never }),
    outcome: "timeout",
    runs: false,
  },
  {
    title: "fails a call whose transaction cannot be committed",
    ...transactionLog({ commit: fail }),
    outcome: "transaction_failed",
    runs: true,
    reports: 1,
  },
  {
    title: "fails a call whose transaction is not committed in time",
    ...transactionLog({ commit: never }),
    outcome: "transaction_failed",
    runs: true,
  },
]);

// Validators

describeLayer("validators", () => ({ layers: validators([() => undefined]) }), [
  {
    title: "fails a call that a rule refuses",
    layers: validators([() => "it is too late"]),
    outcome: "invalid_arguments",
    runs: false,
  },
  {
    title: "fails a call whose rule throws",
    layers: validators([fail]),
    outcome: "denied",
    runs: false,
    reports: 1,
  },
  {
    title: "ends a call whose rule does not end",
    layers: validators([never]),
    outcome: "timeout",
    runs: false,
  },
]);

// Layers of a user

for (const stage of ["call", "input", "run"] as const) {
  describeLayer(`of a user in the stage ${stage}`, () => {
    let held = 0;
    const layer: Layer = {
      name: "leased",
      stage,
      for: () => async (call, next) => {
        await call.wait("waiting for a lease", Promise.resolve());
        held++;
        try {
          return await next(call);
        } finally {
          held--;
        }
      },
    };
    return { layers: [layer], held: () => held };
  }, [
    {
      title: "ends a call that waits for good",
      layers: [{ name: "waits", stage, for: () => (call) => call.wait("testing", never()) }],
      outcome: "timeout",
      runs: false,
    },
    {
      title: "runs the tool of a call that throws before next()",
      layers: [{ name: "throws", stage, for: () => fail }],
      outcome: "threw",
      runs: false,
      reports: 1,
    },
  ]);
}

/** The example of docs/layers.md. */
function sessionBudget(maxCalls: number): Layer {
  const counts = new Map<string, number>();
  return {
    name: "session-budget",
    stage: "run",
    when: "sessionId",
    for: () => (call, next) => {
      const { sessionId = "" } = call.options;
      const count = (counts.get(sessionId) ?? 0) + 1;
      if (count > maxCalls) return call.fail("denied", `a session has ${maxCalls} calls`);
      counts.set(sessionId, count);
      return next(call);
    },
  };
}

describeLayer(
  "session budget",
  () => ({ layers: [sessionBudget(10)], context: { sessionId: "s1" } }),
  [
    {
      title: "fails the call of a session that is over its budget",
      layers: [sessionBudget(0)],
      outcome: "denied",
      runs: false,
    },
    {
      title: "takes no part in calls without a session",
      layers: [sessionBudget(0)],
      context: {},
      outcome: "done",
      runs: true,
    },
  ],
);

/** A layer may be an object of a class, which reads its own fields. */
class OnlyFor implements Layer {
  readonly name: string = "only-for";
  readonly stage = "run";
  readonly #toolId: string;

  constructor(toolId: string) {
    this.#toolId = toolId;
  }

  when(call: Call): boolean {
    return call.tool.id === this.#toolId;
  }

  for(): LayerFunction {
    return (call: Call, next: Next): Outcome =>
      this.#toolId === "other" ? call.fail("denied", "it is for another tool") : next(call);
  }
}

describeLayer("of a class", () => ({ layers: [new OnlyFor("t")] }), [{
  title: "takes no part in calls of another tool",
  layers: [new OnlyFor("other")],
  outcome: "done",
  runs: true,
}]);
