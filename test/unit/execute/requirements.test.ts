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
  return result.ok ? result.content : [result.error.code, result.error.ran];
}

describe("a Dispatcher without layers", () => {
  it("runs a tool that requires nothing", async () => {
    assertEquals(await outcomeOf({}), "done");
  });

  it("does not run a tool that requires approval", async () => {
    assertEquals(await outcomeOf({ requiresApproval: true }), ["approval_required", "no"]);
  });

  it("does not run a tool for which a policy requires approval", async () => {
    const policies = { policies: [askAboveRisk("low")] };
    assertEquals(await outcomeOf({ risk: "high" }, {}, policies), ["approval_required", "no"]);
  });

  it("does not run a tool that requires a transaction", async () => {
    assertEquals(await outcomeOf({ requiresTransaction: true }), ["transaction_failed", "no"]);
  });

  it("does not run a tool that declares a context", async () => {
    const context = { type: "object", properties: { tenant: { type: "string" } } } as const;
    assertEquals(await outcomeOf({ context }, { context: { tenant: "a" } }), ["unavailable", "no"]);
  });

  it("does not run a call with an idempotency key", async () => {
    assertEquals(await outcomeOf({}, { idempotencyKey: "k" }), ["invalid_arguments", "no"]);
  });
});
