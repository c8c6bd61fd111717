/**
 * The cost of five rules on a call, and of a dispatcher whose rules do not concern the called tool. The
 * dispatches are measured in turns, in one run.
 */

import { ToolDispatcher, ToolRegistry } from "../mod.ts";
import {
  amountAtMost,
  pathWithin,
  readRules,
  type Rule,
  rules,
} from "../src/adapters/rules/mod.ts";

const ROUNDS = 40;
const CALLS = 5_000;

const registry = new ToolRegistry({
  tools: [{
    name: "pay",
    description: "Pays an amount.",
    parameters: {
      type: "object",
      properties: { euros: { type: "number" }, to: { type: "string" } },
      required: ["euros", "to"],
    },
    execute: () => "paid",
  }],
});

const FIVE: readonly Rule[] = [
  { name: "principal", decide: ({ principal }) => principal === "ann" ? "allow" : { deny: "no" } },
  { name: "session", decide: ({ sessionId }) => sessionId === "s" ? "allow" : { deny: "no" } },
  amountAtMost(100, { tool: "pay", argument: "/euros" }),
  pathWithin("/srv", { tool: "pay", argument: "/to" }),
  ...readRules([{ tool: "pay", when: { "/euros": { minimum: 1 } } }]),
];

const subjects: Readonly<Record<string, ToolDispatcher>> = {
  "no rules": new ToolDispatcher(registry),
  "five rules for another tool": new ToolDispatcher(registry, {
    rules: rules(FIVE.map((rule) => ({ ...rule, appliesTo: () => false }))),
  }),
  "five rules": new ToolDispatcher(registry, { rules: rules(FIVE) }),
};

const call = { name: "pay", arguments: '{"euros":20,"to":"/srv/a/b"}' };
const context = { principal: "ann", sessionId: "s" };
const times = new Map<string, number[]>();
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, dispatcher] of Object.entries(subjects)) {
    const from = performance.now();
    for (let count = 0; count < CALLS; count++) {
      const result = dispatcher.run(call, context);
      if (result instanceof Promise || !result.ok) throw new Error(`"${name}" failed`);
    }
    const list = times.get(name) ?? [];
    times.set(name, [...list, (performance.now() - from) / CALLS * 1e6]);
  }
}
const median = (name: string): number =>
  times.get(name)?.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN;
for (const name of times.keys()) console.log(`${name}: ${median(name).toFixed(0)} ns a call`);
const added = median("five rules") - median("no rules");
console.log(`five rules add ${added.toFixed(0)} ns (aim: below 1,000 on Bun)`);
