/** The time of a call that is suspended with a sealed ticket, and resumed. */

import { isSuspended, ToolDispatcher, ToolRegistry } from "../mod.ts";
import { sealedTickets } from "../src/adapters/calls/mod.ts";

const ROUNDS = 400;
const MS_PER_ROUND = 4;

/** The time of `times` runs, one after the other, in milliseconds. */
async function time(run: () => Promise<unknown>, times: number): Promise<number> {
  const from = performance.now();
  for (let turn = 0; turn < times; turn++) await run();
  return performance.now() - from;
}

/** The number of runs in a round. */
async function timesOf(run: () => Promise<unknown>): Promise<number> {
  await time(run, 3_000);
  return Math.ceil(1_000 * MS_PER_ROUND / await time(run, 1_000));
}

/** The tenth percentile of the rounds, because other work on the machine only slows a round. */
function typical(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 10)] ?? Number.NaN;
}

const registry = new ToolRegistry({
  tools: [{
    name: "rm",
    description: "Deletes a folder.",
    parameters: { type: "object", properties: { path: { type: "string" } } },
    async execute(_, { ask }) {
      const { action } = await ask("sure", { kind: "approval", message: "Delete it?" });
      return action === "accept" ? "deleted" : "kept";
    },
  }],
});
const tickets = sealedTickets({ keys: [crypto.getRandomValues(new Uint8Array(32))] });
const dispatcher = new ToolDispatcher(registry, { tickets });
const call = { name: "rm", arguments: { path: "a/b/c" } };
const context = { principal: "ann" };
const run = async (): Promise<void> => {
  const waiting = await dispatcher.dispatch(call, context);
  if (!isSuspended(waiting)) throw new TypeError("Cannot measure: the call did not wait");
  const answers = { sure: { action: "accept" } } as const;
  const result = await dispatcher.resume(waiting.ticket, answers, context);
  if (!result.ok) throw new TypeError(`Cannot measure: ${result.error.message}`);
};
const times = await timesOf(run);
const us: number[] = [];
for (let round = 0; round < ROUNDS; round++) us.push(await time(run, times) / times * 1e3);
console.log(
  `suspended with a sealed ticket and continued, together: ${
    typical(us).toFixed(0)
  } µs  (aim: 300)`,
);
