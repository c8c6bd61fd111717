import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { buildToolset, isSuspended, type Layer, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { codeTool } from "@plue/tools/code";
import { coerceArguments, memoryCallStore, storedTickets } from "@plue/tools/calls";
import { createToolBridge, viewOf } from "@plue/tools/finding";
import {
  ask,
  deny,
  explainCall,
  explainTool,
  type Rule,
  type RuleCall,
  rules,
} from "@plue/tools/rules";
import { CallContext } from "../../../src/execute/mod.ts";
import { codeOf, messageOf, PAY, worldOf } from "./support.ts";

const upTo = (most: number): Rule => ({
  name: "amount",
  appliesTo: ({ id }) => id === "bank:pay",
  decide: ({ arguments: args }) => {
    const { euros } = args as { euros?: unknown };
    return typeof euros === "number" && euros <= most ? "allow" : deny(`at most ${most} euros`);
  },
});
const asks: Rule = { name: "ask", decide: () => ask("Really?") };

describe("rules()", () => {
  it("denies a call with the reason and the name of the rule", async () => {
    const { dispatcher } = worldOf([upTo(100)]);
    const result = await dispatcher.dispatch({ name: "bank:pay", arguments: { euros: 101 } });
    assertEquals(
      messageOf(result),
      'Cannot call "bank:pay": the rule "amount" denies it: at most 100 euros',
    );
    assertEquals(codeOf(result), "denied");
  });

  it("prefers a denial to a question, and a question to permission", async () => {
    const allow: Rule = { name: "allow", decide: () => "allow" };
    const no: Rule = { name: "no", decide: () => deny("no") };
    const approve = () => true;
    for (
      const [list, outcome] of [
        [[asks, no], "denied"],
        [[no, asks], "denied"],
        [[allow, asks], "approval_required"],
        [[allow], "paid"],
        [[], "paid"],
      ] as const
    ) assertEquals(await worldOf(list).call("bank:pay"), outcome);
    assertEquals(await worldOf([asks, no], [PAY], { approve }).call("bank:pay"), "denied");
    assertEquals(await worldOf([asks], [PAY], { approve }).call("bank:pay"), "paid");
  });

  it("runs a synchronous call without a promise", () => {
    const { dispatcher } = worldOf([upTo(100)]);
    const result = dispatcher.run({ name: "bank:pay", arguments: { euros: 1 } });
    assert(!(result instanceof Promise));
    assertEquals(codeOf(result), "paid");
  });

  it("reports the error of a rule to onError, and not to the caller", async () => {
    const broken: Rule = {
      name: "broken",
      decide() {
        throw new Error("secret");
      },
    };
    const { dispatcher, reports } = worldOf([broken]);
    const result = await dispatcher.dispatch({ name: "bank:pay" });
    assertEquals(reports.map(({ phase, error }) => [phase, (error as Error).message]), [
      ["rule", "secret"],
    ]);
    assert(!messageOf(result).includes("secret"));
  });

  it("rejects invalid verdicts", async () => {
    for (
      const verdict of [
        ...[undefined, null, true, "deny", "Allow", {}, { deny: "" }, { ask: 1 }, ["allow"]],
        ...[{ deny: "a", ask: "b" }, { allow: true }, deny("x".repeat(1_001))],
      ]
    ) {
      const { call, reports } = worldOf([{ name: "x", decide: () => verdict as never }]);
      assertEquals(await call("bank:pay"), "denied");
      assertEquals(reports.length, 1);
    }
  });

  it("passes the caller, its rights and its session to a rule", async () => {
    let seen: RuleCall | undefined;
    const { dispatcher, registry } = worldOf([{
      name: "look",
      decide: (call) => {
        seen = call;
        return "allow";
      },
    }]);
    const toolset = registry.select({ role: null, scopes: ["a"] }).narrow({ role: "clerk" });
    await dispatcher.withToolset(toolset).dispatch(
      { name: "bank:pay", arguments: { euros: 1 }, callId: "c1" },
      { principal: "ann", sessionId: "s1", messageId: "m1", context: { tenant: "acme" } },
    );
    const { principal, tenant, role, scopes, sessionId, messageId, callId, tool } =
      seen as RuleCall;
    assertEquals([principal, tenant, role, scopes], ["ann", "acme", "clerk", ["a"]]);
    assertEquals([sessionId, messageId, callId, tool.id], ["s1", "m1", "c1", "bank:pay"]);
    assertEquals([seen?.arguments, seen?.resumed], [{ euros: 1 }, false]);
    assert(Object.isFrozen(seen?.arguments));
    assert(Math.abs((seen?.now ?? 0) - Date.now()) < 60_000);
  });

  it("reads a whole number as the tenant, and fails for other values", async () => {
    const tenants: unknown[] = [];
    const look: Rule = { name: "look", decide: ({ tenant }) => (tenants.push(tenant), "allow") };
    const { dispatcher, reports } = worldOf([look]);
    for (const tenant of [7, "7", -0, null, undefined]) {
      await dispatcher.dispatch({ name: "bank:pay" }, { context: { tenant } });
    }
    assertEquals(tenants, ["7", "7", "0", undefined, undefined]);
    const invalid = [{}, [], "", true, 7n, 7.5, NaN, Infinity, 2 ** 53, { toString: () => "7" }];
    for (const tenant of invalid) {
      const result = await dispatcher.dispatch({ name: "bank:pay" }, { context: { tenant } });
      assertEquals(codeOf(result), "threw", String(tenant));
    }
    assertEquals(tenants.length, 5);
    assertEquals(
      new Set(reports.map(({ error }) => (error as Error).message)),
      new Set([
        'Cannot read the tenant: the member "tenant" of the context must be a text or a whole number',
      ]),
    );
  });

  it("does not decide again on arguments that a layer of the host has changed", async () => {
    const raise: Layer = {
      ...{ name: "raise", stage: "run" },
      for: () => (call, next) => {
        call.setArguments({ euros: 500 }, 20);
        return next(call);
      },
    };
    const tool = { ...PAY, execute: ({ euros }: { euros: number }) => euros };
    const { call } = worldOf([upTo(100)], [tool as never], { layers: [raise] });
    assertEquals(await call("bank:pay", { euros: 5 }), 500);
    const early = worldOf([upTo(100)], [tool as never], { layers: [{ ...raise, stage: "input" }] });
    assertEquals(await early.call("bank:pay", { euros: 5 }), "denied");
  });

  it("is not called by listings, and not for tools without a rule", async () => {
    let calls = 0;
    const { registry, dispatcher } = worldOf([{
      name: "count",
      appliesTo: ({ id }) => id !== "bank:pay",
      decide: () => {
        calls++;
        return "allow";
      },
    }]);
    registry.select().available();
    await dispatcher.dispatch({ name: "bank:pay" });
    assertEquals(calls, 0);
  });

  it("applies a rule whose appliesTo throws", async () => {
    const appliesTo = (): never => {
      throw new Error("broken");
    };
    const { call } = worldOf([{ name: "x", appliesTo, decide: () => deny("no") }]);
    assertEquals(await call("bank:pay"), "denied");
  });

  it("rejects invalid rules and options", () => {
    const decide = () => "allow" as const;
    for (
      const [list, options, message] of [
        [{}, {}, "must be a list"],
        [[{ decide }], {}, '"/0/name" must be a string'],
        [[{ name: "x" }], {}, '"/0/decide" must be a function'],
        [
          [{ name: "x", decide }, { name: "x", decide }],
          {},
          '"/1/name" is the name of another rule',
        ],
        [[], { stores: 1 }, '"/stores" is not one of its fields'],
        [[], { store: {} }, "store must have a get function"],
        [[], { labels: { "*": { sends: 1 } } }, '"/sends" must be true or false'],
      ] as const
    ) assertThrows(() => rules(list as never, options as never), TypeError, message);
  });
});

describe("the question of a rule", () => {
  it("is passed to the approver", async () => {
    const messages: unknown[] = [];
    const approve = (_: unknown, message?: string) => messages.push(message) > 0;
    const { call } = worldOf([asks], [PAY, { ...PAY, name: "careful", requiresApproval: true }], {
      approve,
    });
    assertEquals(await call("bank:pay"), "paid");
    // One question, although both the tool and a rule require approval.
    assertEquals(await call("careful"), "paid");
    assertEquals(messages, ['Run the tool "bank:pay"? Really?', 'Run the tool "careful"? Really?']);
  });

  it("suspends a call, which resumes once it is approved", async () => {
    const { dispatcher } = worldOf([asks], [PAY], {
      approve: "ask",
      tickets: storedTickets(memoryCallStore()),
    });
    const first = await dispatcher.dispatch({ name: "bank:pay", arguments: { euros: 7 } });
    assert(isSuspended(first));
    const [question] = first.questions;
    assertEquals(question?.message, 'Run the tool "bank:pay"? Really?');
    assertEquals(question?.arguments, { euros: 7 });
    const answers = { [question?.key ?? ""]: { action: "accept" } } as const;
    assertEquals(codeOf(await dispatcher.resume(first.ticket, answers)), "paid");
  });

  it("is decided again for a resumed call", async () => {
    let isAllowed = true;
    const { dispatcher } = worldOf(
      [asks, { name: "switch", decide: () => isAllowed ? "allow" : deny("closed") }],
      [PAY],
      { approve: "ask", tickets: storedTickets(memoryCallStore()) },
    );
    const first = await dispatcher.dispatch({ name: "bank:pay" });
    assert(isSuspended(first));
    isAllowed = false;
    const answers = { [first.questions[0]?.key ?? ""]: { action: "accept" } } as const;
    assertEquals(codeOf(await dispatcher.resume(first.ticket, answers)), "denied");
  });

  it("requires another approval if it has changed", async () => {
    let price = 1;
    const { dispatcher } = worldOf(
      [{ name: "price", decide: () => ask(`${price} euros`) }],
      [PAY],
      { approve: "ask", tickets: storedTickets(memoryCallStore()) },
    );
    const first = await dispatcher.dispatch({ name: "bank:pay" });
    assert(isSuspended(first));
    price = 2;
    const answers = { [first.questions[0]?.key ?? ""]: { action: "accept" } } as const;
    const second = await dispatcher.resume(first.ticket, answers);
    assert(isSuspended(second));
    assertMatch(second.questions[0]?.message ?? "", /2 euros/);
  });

  it("is passed to the approver of the dispatcher of the call", async () => {
    const shared = rules([asks]);
    const registry = new ToolRegistry({ tools: [PAY] });
    for (const [approves, outcome] of [[true, "paid"], [false, "denied"]] as const) {
      const own = { rules: shared, approve: () => approves };
      assertEquals(await callOf(new ToolDispatcher(registry, own), "bank:pay", {}), outcome);
    }
  });
});

describe("an attack on rules", () => {
  it("fails by arguments that are repaired", async () => {
    const tool = {
      ...PAY,
      parameters: { type: "object", properties: { euros: { type: "number" } } },
    };
    const { call } = worldOf([upTo(100)], [tool as never], { repair: coerceArguments() });
    assertEquals(await call("bank:pay", { euros: "20" }), "paid");
    assertEquals(await call("bank:pay", { euros: "200" }), "denied");
  });

  it("fails through a view, an alias, the bridge and a batch", async () => {
    const pay = { ...PAY, aliases: ["pay"] };
    const { dispatcher, registry } = worldOf([upTo(100)], [pay]);
    const original = registry.getTool("bank:pay");
    assert(original !== undefined);
    registry.registerTool(viewOf(original, { name: "spend", rename: { euros: "money" } }));
    assertEquals(await callOf(dispatcher, "bank:spend", { money: 200 }), "denied");
    assertEquals(await callOf(dispatcher, "bank:spend", { money: 20 }), "paid");
    assertEquals(await callOf(dispatcher, "pay", { euros: 200 }), "denied");
    const bridge = dispatcher.withToolset(createToolBridge(buildToolset(registry)));
    const bridged = { name: "bank:pay", arguments: { euros: 200 } };
    assertEquals(await callOf(bridge, "call_tool", bridged), "denied");
    const batch = [{ name: "bank:pay", arguments: { euros: 200 } }, {
      name: "bank:pay",
      arguments: { euros: 2 },
    }];
    assertEquals((await dispatcher.dispatchAll(batch)).map(codeOf), ["denied", "paid"]);
  });

  it("fails by a bound argument of a view", async () => {
    const { dispatcher, registry } = worldOf([upTo(100)]);
    const original = registry.getTool("bank:pay");
    assert(original !== undefined);
    registry.registerTool(viewOf(original, { name: "much", bind: { euros: 500 } }));
    assertEquals(await callOf(dispatcher, "bank:much", {}), "denied");
  });

  it("fails by duplicate keys, NaN, a text and incomplete arguments", async () => {
    const { call } = worldOf([upTo(100)]);
    assertEquals(await call("bank:pay", '{"euros": 1, "euros": 500}'), "denied");
    assertEquals(await call("bank:pay", { euros: NaN }), "invalid_arguments");
    assertEquals(await call("bank:pay", '{"euros": 1e999}'), "invalid_arguments");
    assertEquals(await call("bank:pay", { euros: "5" }), "denied");
    assertEquals(await call("bank:pay", '{"euros": 5'), "invalid_arguments");
    assertEquals(await call("bank:pay", { euros: { valueOf: () => 1 } }), "invalid_arguments");
  });

  it("fails by changing the arguments that a rule receives", async () => {
    const { call, reports } = worldOf([{
      name: "changes",
      decide: (seen) => {
        (seen.arguments as { euros: number }).euros = 1;
        return "allow";
      },
    }]);
    assertEquals(await call("bank:pay", { euros: 500 }), "denied");
    assertEquals(reports.length, 1);
  });
});

describe("explainCall()", () => {
  const list = [upTo(100), asks];

  it("returns the verdict of each rule, and does not run the tool", async () => {
    let runs = 0;
    const credentials = { bank: {} };
    const tool = { ...PAY, credentials, requiresApproval: true, execute: () => ++runs };
    const { dispatcher } = worldOf(list, [tool]);
    assertEquals(await explainCall(dispatcher, { name: "bank:pay", arguments: { euros: 200 } }), {
      verdict: "deny",
      tool: "bank:pay",
      rules: [
        { rule: "amount", verdict: "deny", reason: "at most 100 euros" },
        { rule: "ask", verdict: "ask", reason: "Really?" },
      ],
    });
    const small = await explainCall(dispatcher, { name: "bank:pay", arguments: { euros: 2 } });
    assertEquals(small.verdict, "ask");
    assertEquals(runs, 0);
  });

  it("names the tool that would run for a view and for call_tool", async () => {
    const { dispatcher, registry } = worldOf([upTo(100)]);
    const original = registry.getTool("bank:pay");
    assert(original !== undefined);
    registry.registerTool(viewOf(original, { name: "spend", rename: { euros: "money" } }));
    const bridge = dispatcher.withToolset(createToolBridge(buildToolset(registry)));
    const target = { name: "bank:pay", arguments: { euros: 200 } };
    for (
      const [explained, call] of [
        [dispatcher, { name: "bank:spend", arguments: { money: 200 } }],
        [bridge, { name: "call_tool", arguments: target }],
        [bridge, target],
      ] as const
    ) {
      const { verdict, tool, note } = await explainCall(explained, call);
      assertEquals([verdict, tool, note], ["deny", "bank:pay", undefined]);
    }
    const search = await explainCall(bridge, { name: "search_tools", arguments: { query: "a" } });
    assertEquals([search.tool, search.note], ["search_tools", undefined]);
    const broken = await explainCall(bridge, { name: "call_tool", arguments: { nothing: 1 } });
    assertEquals([broken.verdict, broken.tool], ["invalid", undefined]);
  });

  it("states that the calls of a program are decided when the program makes them", async () => {
    const { dispatcher, registry } = worldOf([upTo(100)]);
    const executor = { name: "none", run: () => Promise.reject(new Error("not called")) };
    const programs = dispatcher.withToolset(codeTool(registry, { executor: executor as never }));
    const call = { name: "run_code", arguments: { code: "await tools.bank.pay({ euros: 200 })" } };
    const { verdict, tool, note } = await explainCall(programs, call);
    assertEquals([verdict, tool], ["allow", "run_code"]);
    assertMatch(note ?? "", /decide on its calls/);
  });

  it("explains arguments and tools that are rejected before any rule", async () => {
    const context = { type: "object", required: ["account"] };
    const { dispatcher } = worldOf(list, [PAY, { ...PAY, name: "own", context }]);
    const invalid = await explainCall(dispatcher, { name: "bank:pay", arguments: { to: 1 } });
    assertEquals([invalid.verdict, invalid.error?.code], ["invalid", "invalid_arguments"]);
    const unknown = await explainCall(dispatcher, { name: "nothing" });
    assertEquals(unknown.error?.code, "unknown_tool");
    const own = { name: "own", arguments: { euros: 2 } };
    assertEquals((await explainCall(dispatcher, own)).error?.code, "unavailable");
    const accounted = await explainCall(dispatcher, own, { context: { account: 1 } });
    assertEquals(accounted.verdict, "ask");
  });

  it("is a tool for callers, even in a module with its own copy of the package", async () => {
    const tool = explainTool();
    const execute = (input: never, context: object) => {
      const call = CallContext.callOf(context);
      const OfOther = class {
        static callOf = () => call;
      };
      return tool.execute?.(input, new OfOther() as never);
    };
    const registry = new ToolRegistry({ tools: [PAY, { ...tool, execute } as never] });
    const dispatcher = new ToolDispatcher(registry, { rules: rules([upTo(100)]) });
    const args = { tool: "bank:pay", arguments: { euros: 200 } };
    const result = await dispatcher.dispatch({ name: "explain_call", arguments: args });
    assertEquals(result.ok && (result.content as { verdict: string }).verdict, "deny");
  });

  it("is a tool for callers, with the verdicts of their own session", async () => {
    const { dispatcher } = worldOf(list, [PAY, explainTool()]);
    const args = { tool: "bank:pay", arguments: { euros: 200 } };
    // This rule requires approval for every tool, including `explain_call`.
    assertEquals(await callOf(dispatcher, "explain_call", args), "approval_required");
    const registry = new ToolRegistry({ tools: [PAY, explainTool()] });
    const other = new ToolDispatcher(registry, { rules: rules([upTo(100)]) });
    const result = await other.dispatch({ name: "explain_call", arguments: args });
    assertEquals(result.ok && (result.content as { verdict: string }).verdict, "deny");
    const hidden = other.withToolset(registry.select({ denyIds: ["bank:pay"] }));
    const unknown = await hidden.dispatch({ name: "explain_call", arguments: args });
    assertEquals(
      unknown.ok && (unknown.content as { error: { code: string } }).error.code,
      "unknown_tool",
    );
  });
});

async function callOf(dispatcher: ToolDispatcher, name: string, args: unknown): Promise<unknown> {
  return codeOf(await dispatcher.dispatch({ name, arguments: args }));
}
