/** The layer of rules through the contract of layers. */

import { ToolResult } from "@plue/tools";
import { memoryCallStore } from "@plue/tools/calls";
import { ask, deny, type Rule, rules } from "@plue/tools/rules";
import { describeLayer, ran, stopped } from "../../contract/layer_contract.ts";
import { broken, never } from "../../unit/execute/support.ts";

const allow: Rule = { name: "all", decide: () => "allow" };
const labels = { produces: ["untrusted"], reads: ["private"] };

describeLayer("rules", () => ({ layers: [...rules([allow])] }), [
  stopped("denies a call", "denied", [...rules([{ name: "no", decide: () => deny("no") }])]),
  stopped("denies a call if a later promise denies it", "denied", [
    ...rules([allow, { name: "no", decide: () => Promise.resolve(deny("no")) }]),
  ]),
  stopped(
    "denies a call if a rule throws",
    "denied",
    [...rules([{ name: "x", decide: broken }])],
    1,
  ),
  stopped("denies a call if a rule rejects", "denied", [
    ...rules([{ name: "x", decide: async () => await broken() }]),
  ], 1),
  stopped("denies a call if a rule returns another value", "denied", [
    ...rules([{ name: "x", decide: () => true as never }]),
  ], 1),
  stopped("fails a call that needs approval where no layer requests it", "approval_required", [
    ...rules([{ name: "x", decide: () => ask("Sure?") }]),
  ]),
  stopped("ends a call whose rule does not return in time", "timeout", [
    ...rules([{ name: "x", decide: never }]),
  ]),
  ran("runs a call that every rule allows", "done", [
    ...rules([allow, { name: "later", decide: () => Promise.resolve("allow") }]),
  ]),
]);

describeLayer("rules with labels", (clock) => ({
  layers: [...rules([allow], { store: memoryCallStore({ clock }) })],
  tool: { labels },
  startsWithoutClock: true,
}), [
  stopped("fails a call whose labels cannot be read", "threw", {
    layers: [...rules([{ ...allow, usesSession: true }], {
      store: Object.assign(memoryCallStore(), { get: broken }),
    })],
    startsWithoutClock: true,
  }, 1),
  stopped("does not run a tool whose labels cannot be stored", "threw", {
    layers: [...rules([allow], { store: Object.assign(memoryCallStore(), { create: broken }) })],
    startsWithoutClock: true,
  }, 1),
  ran("returns the failure of a tool", "denied", {
    layers: [...rules([allow], { store: memoryCallStore() })],
    startsWithoutClock: true,
    execute: () => ToolResult.error("denied", "No"),
  }),
]);
