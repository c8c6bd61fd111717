/**
 * Uses every hook in every wrong way, in one process that watches for nothing: a rejection that is
 * not caught ends it. Prints one line for each that is answered, as JSON: the hook, the way, the
 * answer. Then `done`.
 *
 * @module
 */

import { BAD_HOOKS, HOOK_CASES, type Way, WAYS } from "./hook_cases.ts";

/** Resolves long after the timeouts of the cases, which are 1 s at most. */
function longAfter(): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve("never"), 6_000));
}

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
const hanging = names.map((name) => use(name, "hangs"));
await Promise.race([Promise.all(hanging), longAfter()]);
console.log("done");
