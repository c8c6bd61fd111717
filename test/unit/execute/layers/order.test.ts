/** The order of the layers of a ToolDispatcher, as listed in docs/layers.md. */

import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { ToolResult } from "../../../../mod.ts";
import type { Layer } from "../../../../src/execute/mod.ts";
import { deferred, fixture, standardSchema, until } from "../support.ts";

/** A fixture whose parts record their calls. */
function observed(fails: boolean) {
  const events: string[] = [];
  const [approved, release] = [deferred(), deferred()];
  const note = (event: string): undefined => void events.push(event);
  const context = standardSchema((value) => (note("host context"), { value }));
  const own = (stage: Layer["stage"]): Layer => ({
    name: "own",
    stage,
    for: ({ id }) =>
      id !== "t" ? undefined : async (call, next) => {
        note(`own layer in ${stage}`);
        const result = await next(call);
        note(`own layer out ${stage}`);
        return result;
      },
  });
  const world = fixture([
    { name: "holds", execute: async () => await release.promise },
    {
      name: "t",
      parameters: { type: "object", required: ["n"] },
      context,
      requiresApproval: true,
      requiresTransaction: true,
      validate: () => note("rule of the tool"),
      execute: (_, { defer }) => {
        note("tool");
        defer(() => note("cleanup"));
        return fails ? ToolResult.error("denied", "No") : "done";
      },
    },
  ], {
    layers: [own("run"), own("input"), own("call")],
    telemetry: {
      begin: ({ tool }) => {
        if (tool.id === "t") note("span begins");
        return {
          place: undefined,
          run: (work) => work(),
          end: () => void (tool.id === "t" && note("span ends")),
        };
      },
    },
    idempotency: {
      kept: {
        claim() {
          note("key claimed");
          return Promise.resolve(() => note("key settled"));
        },
      },
    },
    repair: () => (note("repair"), { arguments: { n: 1 } }),
    hooks: {
      before: ({ tool }) => tool.id === "t" ? note("before") : undefined,
      after: ({ tool }) => tool.id === "t" ? note("after") : undefined,
    },
    validators: [({ tool }) => tool.id === "t" ? note("rule of the dispatcher") : undefined],
    approve: () => {
      note("approve");
      approved.resolve();
      return true;
    },
    limits: { maxConcurrent: 1 },
    transactions: {
      begin: () => (note("transaction begins"), { id: "tx" }),
      commit: () => note("transaction committed"),
      rollback: () => note("transaction rolled back"),
    },
  });
  const metadata = (value: unknown): void => {
    if ((value as { readonly type?: unknown }).type === "error") note("failure notice");
  };
  return {
    events,
    async run() {
      const first = world.call("holds");
      const call = world.call("t", "not JSON", {
        metadata,
        idempotencyKey: "k",
        context: { tenant: "a" },
      });
      await approved.promise;
      await until(() => world.dispatcher.metrics().queued === 1);
      note("slot given");
      release.resolve();
      await first;
      await call;
    },
  };
}

const UNTIL_TOOL = [
  "span begins",
  "own layer in call",
  "key claimed",
  "host context",
  "repair",
  "before",
  "own layer in input",
  "rule of the tool",
  "rule of the dispatcher",
  "approve",
  "slot given",
  "transaction begins",
  "own layer in run",
  "tool",
];

const eventsWith = (end: string): readonly string[] => [
  ...UNTIL_TOOL,
  "own layer out run",
  end,
  "own layer out input",
  "cleanup",
  "own layer out call",
  "after",
  "key settled",
  "span ends",
];

describe("the layers of a ToolDispatcher", () => {
  it("run in the documented order", async () => {
    const { events, run } = observed(false);
    await run();
    assertEquals(events, eventsWith("transaction committed"));
  });

  it("run in the documented order in a call that fails", async () => {
    const { events, run } = observed(true);
    await run();
    assertEquals(events, [...eventsWith("transaction rolled back"), "failure notice"]);
  });
});
