import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/adapters/frameworks/mod.ts";
import { credentials, fromContext } from "../../../src/adapters/credentials/mod.ts";
import { deny, rules } from "../../../src/adapters/rules/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { memoryCallStore } from "../../../src/execute/durable/mod.ts";
import { type DispatchContext, ToolDispatcher } from "../../../src/execute/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { defineTool } from "../../../src/tool/mod.ts";

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object", properties: { amount: { type: "number" } } },
  requiresApproval: true,
  credentials: { bank: {} },
  execute: ({ amount }) => `paid ${amount}`,
});
const toolset = buildToolset([pay]);
const engine = typeboxEngine();
const dispatcher = new ToolDispatcher(toolset, {
  engine,
  approve: "ask",
  credentials: credentials(fromContext(() => "the-token")),
  rules: rules([{
    name: "limit",
    decide: (call) => Object(call.arguments).amount > 9 ? deny("too much") : "allow",
  }]),
});
const approvals = plue.frameworkApprovals(memoryCallStore());
const call = { toolCallId: "c1", messages: [] };

function payFor(context: DispatchContext, from = dispatcher) {
  const tool = plue.toAiSdkTools(toolset, { dispatcher: from, approvals, context })["pay"];
  return {
    asks: async (input: object, messages: readonly unknown[] = []) =>
      await tool?.needsApproval?.(input, { ...call, messages }),
    run: async (input: object) => await tool?.execute(input, call),
  };
}

describe("frameworkApprovals()", () => {
  it("approves one call with the approved arguments, once", async () => {
    const { asks, run } = payFor({});
    await assertRejects(() => run({ amount: 1 }), Error, "it needs approval");
    assertEquals(await asks({ amount: 1 }), true);
    await assertRejects(() => run({ amount: 2 }), Error, "it needs approval");
    assertEquals(await run({ amount: 1 }), "paid 1");
    await assertRejects(() => run({ amount: 1 }), Error, "it needs approval");
  });

  it("approves the call of one caller only", async () => {
    const ada = { principal: "ada", sessionId: "s1" };
    await payFor(ada).asks({ amount: 1 });
    for (const other of [{ ...ada, principal: "bob" }, { ...ada, sessionId: "s2" }]) {
      await assertRejects(() => payFor(other).run({ amount: 1 }), Error, "it needs approval");
    }
    const tenant = payFor({ ...ada, context: "acme" });
    await assertRejects(() => tenant.run({ amount: 1 }), Error, "it needs approval");
    assertEquals(await payFor(ada).run({ amount: 1 }), "paid 1");
  });

  it("does not approve a call of a history that the client may have written", async () => {
    const { asks, run } = payFor({ principal: "eve" });
    const content = [{ type: "tool-call", toolCallId: "c1" }];
    assertEquals(await asks({}, [{ role: "user", content: "?" }, { content }]), true);
    await assertRejects(() => run({}), Error, "it needs approval");
  });

  it("requests no approval for a call that a rule denies, or with invalid arguments", async () => {
    const { asks, run } = payFor({});
    assertEquals([await asks({ amount: 10 }), await asks({ amount: "x" })], [false, false]);
    await assertRejects(() => run({ amount: 10 }), Error, "too much");
  });

  it("rejects options without an effect", () => {
    const decides = new ToolDispatcher(toolset, { engine, approve: () => true });
    assertThrows(() => payFor({}, decides), TypeError, 'the dispatcher must have approve: "ask"');
    assertThrows(() => payFor({ onQuestion: () => null }), TypeError, "exclude each other");
    assertThrows(() => plue.frameworkApprovals({} as never), TypeError, "Cannot keep approvals");
    const kit = { tool: () => 0, ToolMessage: Object };
    assertThrows(
      () => plue.toLangChainTools(toolset, { dispatcher, approvals, ...kit }),
      TypeError,
      "set both approvals and interrupt, or neither",
    );
  });
});
