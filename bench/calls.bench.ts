/**
 * The cost of suspended calls. A call without questions, against the same dispatcher bundled
 * without `src/execute/questions.ts`: the two run in turns, and the best of each counts. And a call
 * that is suspended with a sealed ticket, and continued.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { isSuspended, ToolDispatcher, ToolRegistry } from "../mod.ts";
import { sealedTickets } from "../src/adapters/calls/mod.ts";

const ROUNDS = 400;
const MS_PER_ROUND = 4;
/** The number of measurements of each bundle, each in its own process. */
const TURNS = 7;

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

/** The tenth percentile of the rounds: other work on the machine only adds to a round. */
function typical(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 10)] ?? Number.NaN;
}

/** The time of a call of a dispatcher that a bundle of plue makes, in nanoseconds. */
async function timeOfCall(file: string, isAsync: boolean): Promise<number> {
  const plue: typeof import("../mod.ts") = await import(file);
  const add = plue.defineTool({
    name: "add",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    execute: isAsync ? async ({ a, b }) => await Promise.resolve(a + b) : ({ a, b }) => a + b,
  });
  const dispatcher = new plue.ToolDispatcher(new plue.ToolRegistry({ tools: [add] }));
  const call = { name: "add", arguments: '{"a":1,"b":2}' };
  const run = (): Promise<unknown> => dispatcher.dispatch(call, { sessionId: "bench" });
  const times = await timesOf(run);
  const ns: number[] = [];
  for (let round = 0; round < ROUNDS; round++) ns.push(await time(run, times) / times * 1e6);
  return typical(ns);
}

/**
 * Compares in separate processes, in turns: in one process, the code that is loaded first is
 * faster.
 */
async function compare(): Promise<void> {
  const { bundle } = await import("../scripts/lib/bundle.ts");
  const folder = mkdtempSync(join(tmpdir(), "plue-bench-"));
  const files = ["without.mjs", "whole.mjs"].map((name) => join(folder, name));
  try {
    const leftOut = [["src/execute/questions.ts"], []];
    for (const [index, file] of files.entries()) {
      writeFileSync(file, (await bundle("mod.ts", leftOut[index])).text);
    }
    for (const kind of ["sync", "async"]) {
      const best = files.map(() => Infinity);
      for (let turn = 0; turn < TURNS; turn++) {
        for (const [index, file] of files.entries()) {
          const words = [import.meta.filename, file, kind];
          const { stdout } = spawnSync(process.execPath, words, { encoding: "utf8" });
          best[index] = Math.min(best[index] ?? Infinity, Number(stdout));
        }
      }
      const [without = Number.NaN, whole = Number.NaN] = best;
      console.log(
        `a call that asks nothing, ${kind}: ${without.toFixed(0)} ns without questions, with them ${
          (whole / without).toFixed(3)
        } of that  (aim: 1.02)`,
      );
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function suspend(): Promise<void> {
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
}

const [file, kind] = process.argv.slice(2);
if (file !== undefined) console.log(await timeOfCall(file, kind === "async"));
else {
  if ("Bun" in globalThis) await compare();
  else console.log("a call without questions is compared on Bun, which makes the bundles");
  await suspend();
}
