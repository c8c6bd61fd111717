import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import {
  type DispatchContext,
  Dispatcher,
  type Layer,
  Registry,
  type StandardSchema,
} from "../../../../src/core.ts";
import { typeboxEngine } from "../../../../src/adapters/typebox/mod.ts";
import { ToolResult } from "../../../../src/tool/mod.ts";
import { deferred, FakeClock, type FakeTool, fakeTool, never, outcome } from "../support.ts";

function dispatcherOf(
  tool: Partial<FakeTool>,
  layers: readonly Layer[],
  errors: unknown[] = [],
  clock: FakeClock = new FakeClock(),
): Dispatcher {
  const registry = new Registry({
    engine: typeboxEngine(),
    tools: [fakeTool({ name: "pay", execute: () => "paid", ...tool })],
  });
  return new Dispatcher(registry, {
    layers,
    timeoutMs: 100,
    graceMs: 0,
    closeTimeoutMs: 20,
    clock,
    onError: ({ error }) => void errors.push(error),
  });
}

/** The outcome of a call of the tool that waits for nothing but the time. */
async function outcomeInTime(
  tool: Partial<FakeTool>,
  layers: readonly Layer[],
  errors?: unknown[],
): Promise<unknown> {
  const clock = new FakeClock();
  const pending = dispatcherOf(tool, layers, errors, clock).dispatch({ name: "pay" });
  let hasEnded = false;
  void pending.then(() => hasEnded = true);
  while (!hasEnded) {
    await Promise.race([pending, clock.armed()]);
    clock.advance(100);
  }
  return outcome(await pending);
}

/** A Standard Schema whose check ends with `result`. */
function standard(result: Promise<unknown>): StandardSchema {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: () => result,
      jsonSchema: { input: () => ({}), output: () => ({}) },
    },
  } as unknown as StandardSchema;
}

describe("a condition of a layer", () => {
  it("is a function, or a field that the context of a call may have", () => {
    const fields: { readonly [Name in keyof Required<DispatchContext>]: true } = {
      sessionId: true,
      messageId: true,
      principal: true,
      services: true,
      context: true,
      trace: true,
      signal: true,
      timeoutMs: true,
      idempotencyKey: true,
      maxOutputBytes: true,
      outputOverflow: true,
      metadata: true,
      progress: true,
      onQuestion: true,
      output: true,
    };
    const use = (when: unknown): unknown =>
      dispatcherOf({}, [{ name: "l", stage: "run", for: () => denies, when: when as "sessionId" }]);
    for (const when of [undefined, () => true, ...Object.keys(fields)]) use(when);
    for (const when of ["sessionID", "", null, 7]) {
      const message = 'Cannot use the layer "l": its when must be one of sessionId, messageId,';
      assertThrows(() => use(when), TypeError, message);
    }
  });

  it("reads the arguments, in a call that other layers skip", async () => {
    const limit: Layer = {
      name: "limit",
      stage: "run",
      when: (call) => ((call.arguments as { amount: number } | undefined)?.amount ?? 0) > 100,
      for: () => (call) => call.fail("denied", "too much"),
    };
    const dispatcher = dispatcherOf({}, [limit]);
    const pay = async (amount: number): Promise<unknown> =>
      outcome(await dispatcher.dispatch({ name: "pay", arguments: { amount } }));
    assertEquals([await pay(1), await pay(1_000)], ["paid", "denied"]);
  });

  for (
    const [title, layer] of [
      ["whose condition does not hold", { when: "sessionId", for: () => denies }],
      ["that passes over the tool", { for: () => undefined }],
      ["that only observes", { observe: () => ({}) }],
    ] as const satisfies readonly (readonly [string, Partial<Layer>])[]
  ) {
    it(`never lets a tool run without the approval that it requires: a layer ${title}`, async () => {
      const approves: Layer = { name: "approves", stage: "run", meets: "approval", ...layer };
      const dispatcher = dispatcherOf({ requiresApproval: true }, [approves]);
      const code = outcome(await dispatcher.dispatch({ name: "pay" }));
      assertEquals(code, title.startsWith("whose") ? "denied" : "approval_required");
    });
  }
});

const denies: ReturnType<NonNullable<Layer["for"]>> = (call) => call.fail("denied", "no");

describe("a call", () => {
  it("ends at its timeout while a library checks the result", async () => {
    const returns = standard(never());
    assertEquals(await outcomeInTime({ returns }, []), "timeout");
  });

  it("is not run again by a layer of the stage call", async () => {
    let runs = 0;
    const twice: Layer = {
      name: "twice",
      stage: "call",
      for: () => async (call, next) => {
        await next(call);
        return await next(call);
      },
    };
    const dispatcher = dispatcherOf({ execute: () => ++runs }, [twice]);
    assertEquals([outcome(await dispatcher.dispatch({ name: "pay" })), runs], ["threw", 1]);
  });

  it("ends for a layer that waits for ever after the call was closed", async () => {
    const waits: Layer = {
      name: "waits",
      stage: "call",
      for: () => async (call, next) => {
        await next(call);
        return await call.wait("waiting for a log", never());
      },
    };
    assertEquals(await outcomeInTime({}, [waits]), "threw");
  });

  it("is passed on by an inner layer when the tool has ended", async () => {
    const order: string[] = [];
    const go = deferred();
    const layers: Layer[] = [
      {
        name: "transaction",
        stage: "run",
        for: () => async (call, next) => {
          const result = await next(call);
          order.push("commit");
          return result;
        },
      },
      {
        name: "hedge",
        stage: "run",
        for: () => async (call, next) => {
          void next(call);
          setTimeout(() => go.resolve());
          return await Promise.resolve(ToolResult.ok("fallback"));
        },
      },
    ];
    const execute = async (): Promise<string> => {
      await go.promise;
      order.push("wrote");
      return "paid";
    };
    const result = await dispatcherOf({ execute }, layers).dispatch({ name: "pay" });
    assertEquals([outcome(result), order], ["fallback", ["wrote", "commit"]]);
  });

  for (
    const [title, atEnd] of [
      ["throws", () => {
        throw new Error("at the end");
      }],
      ["rejects", () => Promise.reject(new Error("at the end"))],
      ["never settles", () => never()],
      ["gives nothing", () => undefined as never],
    ] as const satisfies readonly (readonly [string, () => unknown])[]
  ) {
    it(`ends where a change of its result ${title}`, async () => {
      const errors: unknown[] = [];
      const layer: Layer = {
        name: "changes",
        stage: "run",
        for: () => (call, next) => {
          call.atEnd(atEnd);
          return next(call);
        },
      };
      assertEquals(await outcomeInTime({}, [layer], errors), "threw");
      assertEquals(errors.length, 1);
    });
  }

  it("does not end the process with a check that rejects after the abort", async () => {
    const abort = new AbortController();
    const dispatcher = dispatcherOf({
      // Reading the signal makes the deadline listen to the caller.
      validate: (_params: unknown, { signal }: { readonly signal: AbortSignal }) => {
        abort.abort();
        return Promise.reject(new Error(`the rule fails, ${signal.aborted}`));
      },
    } as Partial<FakeTool>, []);
    const result = await dispatcher.dispatch({ name: "pay" }, { signal: abort.signal });
    // An unhandled rejection would end the process, or fail this test, in one of these turns.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setTimeout(resolve));
    assertEquals(outcome(result), "aborted");
  });
});

describe("the function of a layer", () => {
  it("is created once for each tool, where two registries have tools of one id", async () => {
    let created = 0;
    const layer: Layer = {
      name: "counts",
      stage: "run",
      for: () => {
        created++;
        return (call, next) => next(call);
      },
    };
    const registryOf = (): Registry =>
      new Registry({
        engine: typeboxEngine(),
        tools: [fakeTool({ name: "pay", execute: () => "paid" })],
      });
    const first = new Dispatcher(registryOf(), { layers: [layer] });
    const second = first.withToolset(registryOf().select());
    for (let call = 0; call < 4; call++) {
      await first.dispatch({ name: "pay" });
      await second.dispatch({ name: "pay" });
    }
    assertEquals(created, 2);
  });
});
