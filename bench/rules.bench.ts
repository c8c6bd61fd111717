/**
 * The cost of five rules on a call, and of a dispatcher whose rules do not concern the called tool. The
 * dispatches are measured in turns, in many short rounds: the best rounds are those that no other
 * process has delayed.
 */

import { ToolDispatcher, ToolRegistry } from "../mod.ts";
import {
  amountAtMost,
  pathWithin,
  readRules,
  type Rule,
  rules,
} from "../src/adapters/rules/mod.ts";

const ROUNDS = 2_000;
const WARM_UP = 400;
const CALLS = 200;

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
const times = new Map<string, number[]>(Object.keys(subjects).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, dispatcher] of Object.entries(subjects)) {
    const from = performance.now();
    for (let count = 0; count < CALLS; count++) {
      const result = dispatcher.run(call, context);
      if (result instanceof Promise || !result.ok) throw new Error(`"${name}" failed`);
    }
    times.get(name)?.push((performance.now() - from) / CALLS * 1e6);
  }
}
/** Returns the best round and the median round, in nanoseconds a call. */
const figuresOf = (name: string): readonly [best: number, median: number] => {
  const sorted = (times.get(name) ?? []).slice(WARM_UP).sort((a, b) => a - b);
  return [sorted[0] ?? Number.NaN, sorted[sorted.length >> 1] ?? Number.NaN];
};
const print = (name: string, [best, median]: readonly [number, number]): void =>
  console.log(`${name}: best ${best.toFixed(0)} ns, median ${median.toFixed(0)} ns`);
for (const name of times.keys()) print(name, figuresOf(name));
const [with5, without] = [figuresOf("five rules"), figuresOf("no rules")];
print("five rules add (aim: below 1,000 on Bun)", [with5[0] - without[0], with5[1] - without[1]]);
