/** The measured operations, which run in this process or in a worker. */

import type { CallStore } from "../../src/adapters/calls/mod.ts";

/** The names of the operations, in the order in which they run. */
export const OPERATIONS = ["create", "get", "update", "delete"] as const;

const TIMES = 25;
const OWNERS = 16;
const value = new Uint8Array(300).fill(7);

/** Returns the mean time of each operation, one after another, in microseconds. */
export async function operate(store: CallStore, round: number): Promise<readonly number[]> {
  const revisions: number[] = [];
  const run = {
    create: (key: string) => store.create(key, value),
    get: (key: string) => store.get(key),
    update: (key: string, revision: number) => store.update(key, value, revision),
    delete: (key: string, revision: number) => store.delete(key, revision),
  };
  const means: number[] = [];
  for (const operation of OPERATIONS) {
    const from = performance.now();
    for (let at = 0; at < TIMES; at++) {
      const answer = await run[operation](
        `t.owner${at % OWNERS}.${round}-${at}`,
        revisions[at] ?? 0,
      );
      if (answer === undefined || answer === false) {
        throw new Error(`Cannot measure: ${operation} has failed`);
      }
      if (typeof answer === "number") revisions[at] = answer;
    }
    means.push((performance.now() - from) / TIMES * 1_000);
  }
  return means;
}
