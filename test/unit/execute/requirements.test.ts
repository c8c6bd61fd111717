import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { Dispatcher, Registry, type ToolDefinition } from "../../../src/core.ts";
import { askAboveRisk } from "../../../src/select/mod.ts";

const TOOL: ToolDefinition = { name: "act", description: "Acts.", execute: () => "done" };

async function outcomeOf(tool: Partial<ToolDefinition>, context = {}, policies = {}) {
  const registry = new Registry({ engine: typeboxEngine(), tools: [{ ...TOOL, ...tool }] });
  const dispatcher = new Dispatcher(registry.select(policies));
  const result = await dispatcher.dispatch({ name: "act" }, context);
  return result.ok ? result.content : [result.error.code, result.error.ran, result.error.retryable];
}

const CONTEXT = { type: "object", properties: { tenant: { type: "string" } } } as const;
const NAMED = { context: { tenant: "a" } };
const CAREFUL = { policies: [askAboveRisk("low")] };

describe("a Dispatcher without layers", () => {
  it("runs a tool that requires nothing", async () => assertEquals(await outcomeOf({}), "done"));

  for (
    const [what, code, tool, context, selection] of [
      ["a tool that requires approval", "approval_required", { requiresApproval: true }],
      ["a tool that a policy is careful with", "approval_required", { risk: "high" }, {}, CAREFUL],
      ["a tool that requires a transaction", "transaction_failed", { requiresTransaction: true }],
      ["a tool that declares a context", "unavailable", { context: CONTEXT }, NAMED],
      ["a call with an idempotency key", "invalid_arguments", {}, { idempotencyKey: "k" }],
    ] as const
  ) {
    it(`does not run ${what}`, async () => {
      assertEquals(await outcomeOf(tool, context, selection), [code, "no", false]);
    });
  }
});
