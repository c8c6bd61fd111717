/** Every layer of plue, and layers of a user, through the contract of layers. */

import { assertEquals } from "@std/assert";
import { approval, validators } from "../../../../src/execute/layers/approval.ts";
import { concurrencyLimit } from "../../../../src/execute/layers/concurrency_limit.ts";
import { emissions, failureNotice } from "../../../../src/execute/layers/emissions.ts";
import { hooks } from "../../../../src/execute/layers/hooks.ts";
import { hostContext } from "../../../../src/execute/layers/host_context.ts";
import { idempotency } from "../../../../src/execute/layers/idempotency.ts";
import { metrics } from "../../../../src/execute/metrics.ts";
import { questions } from "../../../../src/execute/layers/questions.ts";
import { repair } from "../../../../src/execute/layers/repair.ts";
import { telemetry } from "../../../../src/execute/layers/telemetry.ts";
import { transactions } from "../../../../src/execute/layers/transactions.ts";
import { truncation } from "../../../../src/execute/layers/truncation.ts";
import type { Call, Layer, LayerFunction, Next, Outcome } from "../../../../src/execute/mod.ts";
import { type Answer, ToolResult } from "../../../../mod.ts";
import { describeLayer, ran, stopped } from "../../../contract/layer_contract.ts";
import { broken, never } from "../support.ts";

describeLayer("of nothing", () => ({ layers: [] }));

describeLayer("emissions", () => ({
  layers: [emissions()],
  context: { metadata: () => {}, progress: () => {}, output: () => {} },
  touch: ({ metadata, progress }) => {
    metadata({ at: 1 });
    progress(1, 2);
  },
}));

describeLayer("truncation", () => ({ layers: truncation("truncate") }));

describeLayer("approval", () => ({
  layers: [approval(() => true)],
  tool: { requiresApproval: true },
}), [
  stopped("fails a call whose caller cannot be asked", "approval_required", [approval("ask")]),
  ran("does not concern a tool that requires no approval", "done", {
    layers: [approval(undefined)],
    tool: {},
  }),
]);

describeLayer("concurrency limit", () => {
  const limit = concurrencyLimit({ maxConcurrent: 1, maxQueued: 1 });
  return { layers: [limit], held: () => limit.queued };
});

describeLayer("failure notice", () => {
  const received: unknown[] = [];
  return {
    layers: [failureNotice()],
    context: { metadata: (value: unknown) => void received.push(value) },
  };
}, [
  ran("does not let the caller's callback change the result", "denied", {
    context: { metadata: broken },
    execute: () => ToolResult.error("denied", "No"),
  }, 1),
]);

for (const [part, ends] of [["before", stopped], ["after", ran]] as const) {
  const throws = hooks({ [part]: broken })[part];
  const hangs = hooks({ [part]: never })[part];
  describeLayer(`${part} hook`, () => ({ layers: hooks({ [part]: async () => {} })[part] }), [
    ends(`fails a call whose ${part} hook throws`, "denied", throws, 1),
    part === "before"
      ? stopped("fails a call whose before hook does not end", "timeout", hangs)
      : ran("fails a call whose after hook does not end", "denied", hangs, 1),
  ]);
}

describeLayer("host context", () => ({
  layers: [hostContext()],
  tool: { context: { type: "object", required: ["tenant"] } },
  context: { context: { tenant: "a" } },
  touch: ({ context }) => assertEquals(context as unknown, { tenant: "a" }),
}));

// Idempotency

/** Idempotent: otherwise the key of a tool that may still run would not be free again. */
const WITH_KEY = { context: { idempotencyKey: "k" }, tool: { idempotent: true } } as const;

describeLayer("idempotency", (clock) => ({ layers: idempotency({}, clock), ...WITH_KEY }));

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

describeLayer("metrics", (clock) => {
  const layer = metrics(clock);
  const held = (): number => {
    const { tools: [tool], inFlight } = layer.snapshot();
    return inFlight + (tool?.inFlight ?? 0);
  };
  return { layers: [layer], held };
});

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
});

describeLayer("repair", () => ({
  layers: [repair(() => ({ arguments: { n: 1 } }))],
  tool: { parameters: { type: "object", required: ["n"] } },
  arguments: "{n: 1}",
}), [stopped("ends a call whose repair does not end", "timeout", [repair(never)])]);

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
}, [ran("runs a call whose telemetry throws", "done", [telemetry({ begin: broken })], 1)]);

describeLayer("transactions", () => {
  let open = 0;
  const close = async (): Promise<void> => {
    await Promise.resolve();
    open--;
  };
  const begin = async () => {
    await Promise.resolve();
    open++;
    return { id: "tx" };
  };
  return {
    layers: [transactions({ begin, commit: close, rollback: close })],
    tool: { requiresTransaction: true },
    held: () => open,
  };
}, [stopped("fails a call without a manager", "transaction_failed", [transactions()])]);

describeLayer("validators", () => ({ layers: validators([() => undefined]) }), [
  stopped("ends a call whose rule does not end", "timeout", validators([never])),
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
    stopped("ends a call that waits for good", "timeout", [{
      name: "waits",
      stage,
      for: () => (call) => call.wait("testing", never()),
    }]),
    stopped("runs the tool of a call that throws before next()", "threw", [{
      name: "throws",
      stage,
      for: () => broken,
    }], 1),
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
    stopped("fails the call of a session that is over its budget", "denied", [sessionBudget(0)]),
    ran("takes no part in calls without a session", "done", {
      layers: [sessionBudget(0)],
      context: {},
    }),
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

describeLayer("of a class", () => ({ layers: [new OnlyFor("t")] }), [
  ran("takes no part in calls of another tool", "done", [new OnlyFor("other")]),
]);
