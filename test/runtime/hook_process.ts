/**
 * Uses every hook in every wrong way, in one process that watches for nothing: a rejection that is
 * not caught ends it. Prints one line for each that is answered, as JSON: the hook, the way, the
 * answer. Then `done`.
 */

import process from "node:process";
import { BAD_HOOKS, HOOK_CASES, OUTCOMES, type Way, WAYS } from "./hook_cases.ts";

async function use(name: string, way: Way): Promise<void> {
  let answer: string;
  try {
    answer = String(await HOOK_CASES[name]?.(BAD_HOOKS[way]));
  } catch (error) {
    answer = `it threw: ${error}`;
  }
  console.log(JSON.stringify([name, way, answer]));
}

const names = Object.keys(HOOK_CASES);
for (const way of WAYS.filter((way) => way !== "hangs")) {
  for (const name of names) await use(name, way);
}
const hanging = new Map(names.map((name) => [name, use(name, "hangs")]));
const never = (name: string): boolean => [OUTCOMES[name]].flat().at(2) === "never";
await Promise.all(names.filter((name) => !never(name)).map((name) => hanging.get(name)));
// Twice the longest timeout of the cases, for outcomes that must not come.
await new Promise((resolve) => setTimeout(resolve, 2_000));
console.log("done");
// The calls whose hooks hang still hold their leases.
process.exit();
