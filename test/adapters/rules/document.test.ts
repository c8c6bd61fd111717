import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { buildToolset, type Tool, type ToolDispatcher } from "@plue/tools";
import { coerceArguments, memoryCallStore } from "@plue/tools/calls";
import { createToolBridge, viewOf } from "@plue/tools/finding";
import { explainCall, readRules, type RuleDocument } from "@plue/tools/rules";
import { FakeClock } from "../../unit/execute/support.ts";
import { codeOf, PAY, worldOf } from "./support.ts";

const of = (document: Partial<RuleDocument>, options: Parameters<typeof worldOf>[2] = {}) =>
  worldOf(readRules([{ tool: "bank:*", ...document }]), [PAY, { ...PAY, name: "other" }], options);

const NUMBERS = { type: "object", properties: { euros: { type: "number" } } };
const INVALID = ["invalid_arguments", "invalid_arguments"];

describe("readRules()", () => {
  it("allows calls that meet the conditions", async () => {
    const { call } = of({ when: { "/euros": { maximum: 100 } }, else: "ask" });
    assertEquals(await call("bank:pay", { euros: 100 }), "paid");
    assertEquals(await call("bank:pay", { euros: 101 }), "approval_required");
    assertEquals(await call("other", { euros: 101 }), "paid");
  });

  it("does not accept values of other types, absent arguments and inherited members", async () => {
    for (
      const schema of [
        ...[{ maximum: 100 }, { type: "number", not: { minimum: 9 } }],
        ...[{ exclusiveMaximum: 100 }, { multipleOf: 1 }],
      ]
    ) {
      const { call } = of({ when: { "/euros": schema } });
      assertEquals(await call("bank:pay", { euros: 5 }), "paid");
      for (const euros of ["5", null, [5], {}, true]) {
        assertEquals(await call("bank:pay", { euros }), "denied", JSON.stringify(schema));
      }
      assertEquals(await call("bank:pay"), "denied");
    }
    const { call } = of({ when: { "/constructor": true } });
    assertEquals(await call("bank:pay"), "denied");
    const first = of({ when: { "/euros/0": { const: "a" } } });
    assertEquals(await first.call("bank:pay", { euros: ["a"] }), "paid");
    assertEquals(await first.call("bank:pay", { euros: "a" }), "denied");
    const text = of({ when: { "/to": { pattern: "^IT" } } });
    assertEquals(await text.call("bank:pay", { to: "IT99" }), "paid");
    assertEquals(await text.call("bank:pay", { to: "DE99" }), "denied");
    const nested = of({ when: { "/euros/items": { items: { type: "number", maximum: 5 } } } });
    assertEquals(await nested.call("bank:pay", { euros: { items: [1, 2] } }), "paid");
    assertEquals(await nested.call("bank:pay", { euros: { items: [1, "2"] } }), "denied");
  });

  it("does not accept an argument that the tool does not declare", async () => {
    const orders = {
      type: "object",
      properties: { order: { type: "object", properties: { euros: { type: "number" } } } },
    };
    const conditions = { "/euros": { maximum: 100 }, "/order/cents": { maximum: 100 } };
    for (const [pointer, condition] of Object.entries(conditions)) {
      const rules = readRules([{ tool: "*", when: { [pointer]: condition } }]);
      const args = { euros: 1, order: { euros: 500, cents: 1 } };
      const { call } = worldOf(rules, [{ ...PAY, parameters: orders }]);
      assertEquals(await call("bank:pay", args), "denied");
      const open = worldOf(rules, [{ ...PAY, parameters: { type: "object" } }]);
      assertEquals(await open.call("bank:pay", args), "paid");
    }
  });

  it("is not passed by a view, an alias, the bridge, a batch, a repair, NaN and duplicate keys", async () => {
    const tool = { ...PAY, aliases: ["pay"], parameters: NUMBERS };
    const rules = readRules([{ tool: "bank:pay", when: { "/euros": { maximum: 100 } } }]);
    const { dispatcher, registry } = worldOf(rules, [tool], { repair: coerceArguments() });
    const original = registry.getTool("bank:pay") as Tool;
    registry.registerTool(viewOf(original, { name: "spend", rename: { euros: "money" } }));
    registry.registerTool(viewOf(original, { name: "much", bind: { euros: 500 } }));
    const bridge = dispatcher.withToolset(createToolBridge(buildToolset(registry)));
    const outcomes = async (target: ToolDispatcher, name: string, ...list: unknown[]) => {
      const made = list.map((args) => ({ name, arguments: args }));
      return (await target.dispatchAll(made)).map(codeOf);
    };
    const both = ["denied", "paid"];
    assertEquals(await outcomes(dispatcher, "bank:pay", { euros: 500 }, { euros: 5 }), both);
    assertEquals(await outcomes(dispatcher, "bank:pay", { euros: "500" }, { euros: "5" }), both);
    assertEquals(await outcomes(dispatcher, "bank:spend", { money: 500 }, { money: 5 }), both);
    assertEquals(await outcomes(dispatcher, "bank:much", {}), ["denied"]);
    assertEquals(await outcomes(dispatcher, "pay", { euros: 500 }), ["denied"]);
    const bridged = { name: "bank:pay", arguments: { euros: 500 } };
    assertEquals(await outcomes(bridge, "call_tool", bridged), ["denied"]);
    const texts = ['{"euros": 1, "euros": 500}', '{"euros": 1e999}', '{"euros": 5'];
    assertEquals(await outcomes(dispatcher, "bank:pay", ...texts), ["denied", ...INVALID]);
  });

  it("denies every call without a condition", async () => {
    assertEquals(await of({}).call("bank:pay"), "denied");
    assertEquals(await of({ else: "ask" }).call("bank:pay"), "approval_required");
  });

  it("counts the calls of a session that have run", async () => {
    const { call, dispatcher } = of({ perSession: 2, when: { "/euros": { maximum: 9 } } });
    const context = { sessionId: "s", principal: "ann" };
    const one = { name: "bank:pay", arguments: { euros: 1 } };
    assertEquals(await call("bank:pay", { euros: 10 }), "denied");
    for (const outcome of ["paid", "paid", "denied"]) {
      const { verdict } = await explainCall(dispatcher, one, context);
      assertEquals(verdict, outcome === "paid" ? "allow" : "deny");
      assertEquals(await call("bank:pay", { euros: 1 }), outcome);
    }
    assertEquals(await call("bank:pay", { euros: 1 }, "other"), "paid");
    assertEquals(await call("bank:pay", { euros: 1 }, "s", "bob"), "paid");
  });

  it("counts the calls of each tenant, session and principal separately", async () => {
    const { dispatcher } = of({ perSession: 1, perDay: 1 });
    const callers = [
      ...["a", "A", "b", '"b"', 'b"],["b', "null", "undefined", "7 ", "\u00e9", "e\u0301"],
      ...["\u212b", "\u00c5", "\ud800", "\ud801", "x".repeat(100_000), `${"x".repeat(99_999)}y`],
      ...[7, -7, 1e15],
    ].map((tenant) => ({ principal: "ann", sessionId: "s", context: { tenant } }));
    const others = [
      { principal: "ann", sessionId: "s" },
      { principal: "bob", sessionId: "s", context: { tenant: "a" } },
      { sessionId: "s", context: { tenant: "ann" } },
      { principal: "a", sessionId: "s", context: { tenant: "ann" } },
    ];
    for (const outcome of ["paid", "denied"]) {
      for (const context of [...callers, ...others]) {
        const result = await dispatcher.dispatch({ name: "bank:pay" }, context);
        assertEquals(codeOf(result), outcome, JSON.stringify(context).slice(0, 100));
      }
    }
    const seven = { ...callers[0], context: { tenant: "7" } };
    assertEquals(codeOf(await dispatcher.dispatch({ name: "bank:pay" }, seven)), "denied");
  });

  it("does not count a call that is not approved, and counts concurrent calls exactly", async () => {
    let isApproved = false;
    const tools = [{ ...PAY, requiresApproval: true }];
    const { call } = worldOf(readRules([{ tool: "bank:*", perSession: 2 }]), tools, {
      approve: () => isApproved,
    });
    for (let count = 0; count < 3; count++) assertEquals(await call("bank:pay"), "denied");
    isApproved = true;
    const results = await Promise.all(Array.from({ length: 5 }, () => call("bank:pay")));
    assertEquals(results.filter((result) => result === "paid").length, 2);
  });

  it("changes a count one call after another, and stores the count of a day for a day", async () => {
    const { get, create, update, ...store } = memoryCallStore();
    const expiries: number[] = [];
    let [reads, atOnce] = [0, 0];
    const slow = {
      ...store,
      update,
      async get(key: string) {
        atOnce = Math.max(atOnce, ++reads);
        await new Promise((resolve) => setTimeout(resolve));
        return await get(key).finally(() => reads--);
      },
      create(...[key, value, options]: Parameters<typeof create>) {
        expiries.push(options?.expiresAt ?? Infinity);
        return create(key, value, options);
      },
    };
    const rules = readRules([{ tool: "*", perDay: 40 }]);
    const { call } = worldOf(rules, [PAY], {}, { store: slow });
    const results = await Promise.all(Array.from({ length: 41 }, () => call("bank:pay")));
    assertEquals(results.filter((result) => result === "paid").length, 40);
    assertEquals([atOnce, expiries.length], [1, 1]);
    const hours = ((expiries[0] ?? 0) - Date.now()) / 3_600_000;
    assert(hours > 24 && hours < 26, `${hours} hours`);
  });

  it("keeps the counts of a rule without a name if other rules or its maximum change", async () => {
    const store = memoryCallStore();
    const apply = (...documents: readonly RuleDocument[]) =>
      worldOf(readRules(documents), [PAY, { ...PAY, name: "other" }], {}, { store }).call;
    const pay = { tool: "bank:pay", when: { "/euros": { minimum: 1, maximum: 9 } }, perDay: 1 };
    const other = { tool: "other", perSession: 2 };
    const outcomes = async (call: ReturnType<typeof apply>) => [
      await call("bank:pay", { euros: 1 }),
      await call("other"),
    ];
    const before = apply(other, pay);
    assertEquals(await outcomes(before), ["paid", "paid"]);
    assertEquals(await outcomes(before), ["denied", "paid"]);
    const same = { perDay: 1, when: { "/euros": { maximum: 9, minimum: 1 } }, tool: "bank:pay" };
    const first = { tool: "bank:*", perDay: 9 };
    for (const edited of [[pay, other], [first, other, same], [{ ...pay, perSession: 9 }, other]]) {
      assertEquals(await outcomes(apply(...edited)), ["denied", "denied"]);
    }
    const more = apply({ ...pay, perDay: 2 }, { ...other, name: "others" });
    assertEquals(await outcomes(more), ["paid", "paid"]);
    assertEquals(await outcomes(more), ["denied", "paid"]);
    assertEquals(await outcomes(apply(pay, { ...other, name: "others" })), ["denied", "denied"]);
  });

  it("counts a call once for each of two equal rules", async () => {
    const rule = { tool: "*", perSession: 2 };
    const { call } = worldOf(readRules([rule, rule]));
    for (const outcome of ["paid", "paid", "denied"]) assertEquals(await call("bank:pay"), outcome);
  });

  it("counts the calls of a principal in a day of its time zone", async () => {
    const clock = new FakeClock();
    const rules = readRules([{ tool: "*", perDay: 1, timeZone: "Asia/Tokyo" }]);
    const store = memoryCallStore({ clock });
    const { call } = worldOf(rules, [PAY], { clock }, { store });
    const toNoon = Date.UTC(2027, 10, 28, 14, 59) - clock.timestamp();
    clock.advance(toNoon);
    assertEquals(await call("bank:pay", {}, "a"), "paid");
    assertEquals(await call("bank:pay", {}, "b"), "denied");
    clock.advance(60_000);
    assertEquals(await call("bank:pay", {}, "c"), "paid");
  });

  it("allows calls between two times of a time zone, even across midnight", async () => {
    for (
      const [between, hours] of [
        [["08:00", "18:00"], [8, 9, 17]],
        [["22:00", "06:30"], [22, 23, 0]],
      ] as const
    ) {
      for (const hour of [0, 6, 7, 8, 9, 17, 18, 22, 23]) {
        const clock = new FakeClock();
        clock.advance(Date.UTC(2028, 0, 28, hour - 1, 30) - clock.timestamp());
        const { call } = of({ between, timeZone: "Europe/Rome" }, { clock });
        const isOpen = (hours as readonly number[]).includes(hour);
        assertEquals(await call("bank:pay"), isOpen ? "paid" : "denied", `${between} ${hour}`);
      }
    }
  });

  it("rejects an invalid document with the JSON Pointer", () => {
    for (
      const [rule, message] of [
        [{}, '"/0/tool" must be an id'],
        [{ tool: "a", els: "ask" }, 'rule 1: "/els" is not one of its fields'],
        [{ tool: "a", else: "allow" }, '"/0/else" must be'],
        [{ tool: "a", when: [] }, '"/0/when" must be'],
        [{ tool: "a", when: { euros: true } }, '"/0/when/euros" must be a JSON Pointer'],
        [{ tool: "a", when: { "/a": { if: { maximum: 9 }, else: false } } }, 'need a "type"'],
        [{ tool: "a", when: { "/a": { items: { maximum: 9 } } } }, 'need a "type"'],
        [{ tool: "a", when: { "/a": { type: "number", $ref: "#" } } }, "refers to itself"],
        [
          { tool: "a", when: { "/a": { type: "number", $ref: "#/$defs/b", $defs: { b: true } } } },
          'no "$ref"',
        ],
        [
          { tool: "a", when: { "/a": { type: "number", max: 9 } } },
          '"max" in "/0/when/~1a" has no',
        ],
        [{ tool: "a", when: { "/a": { type: "string", maximum: 9 } } }, '"maximum" in "'],
        [{ tool: "a", when: { "/a": { format: "iban" } } }, '"format" in "'],
        [
          { tool: "a", when: { "/a": { type: "array", items: [true] } } },
          "must be a schema of draft 2020-12",
        ],
        [{ tool: "a", between: ["08:00", "08:00"] }, '"/0/between" must be'],
        [{ tool: "a", when: { "/a": { maximum: "9" } } }, '"/0/when/~1a"'],
        [{ tool: "a", when: { "/a": 5 } }, '"/0/when/~1a"'],
        [{ tool: "a", when: { "/a": { maximum: 9, pattern: "x" } } }, 'need a "type"'],
        [{ tool: "a", perDay: -1 }, '"/0/perDay" must be'],
        [{ tool: "a", perSession: "2" }, '"/0/perSession" must be'],
        [{ tool: "a", between: ["8:00", "9:00"] }, '"/0/between" must be'],
        [{ tool: "a", between: ["08:00", "24:00"] }, '"/0/between" must be'],
        [{ tool: "a", perDay: 1, timeZone: "Rome" }, '"/0/timeZone" must be a time zone'],
        [{ tool: "a", timeZone: "UTC" }, '"/0/timeZone" has no effect'],
        [{ tool: { filters: [] } }, '"/0/tool" must have no filters'],
        [5, '"/0" must be an object'],
      ] as const
    ) {
      const read = () => readRules([rule as never]);
      let error: unknown;
      try {
        read();
      } catch (thrown) {
        error = thrown;
      }
      assert(error instanceof Error && error.message.includes(message), `${message}: ${error}`);
    }
    assertThrows(() => readRules({} as never), TypeError, "must be a list");
  });
});
