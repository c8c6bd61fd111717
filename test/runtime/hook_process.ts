/**
 * Uses every hook in every wrong way, in one process without handlers, so that an uncaught
 * rejection ends the process. Prints a line of JSON for each outcome: the hook, the way, the
 * outcome. Then prints `done`.
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
// Exits explicitly, because calls with hanging hooks still hold their leases.
process.exit();
