/** Times and memory of programs: the figures of `docs/code-mode.md`. */

import { readFileSync } from "node:fs";
import { isSuspended, ToolDispatcher, ToolRegistry, type ToolResult } from "../../mod.ts";
import { table } from "../../scripts/lib/table.mjs";
import { sealedTickets } from "../../src/adapters/calls/mod.ts";
import { codeTool, quickJs } from "../../src/adapters/code/mod.ts";

const CALLS = 1_000;

const wasm = readFileSync(new URL(import.meta.resolve("quickjs-wasi/quickjs.wasm")));
const registry = new ToolRegistry({
  tools: [
    {
      name: "add",
      description: "Adds one.",
      parameters: { type: "object", properties: { n: { type: "number" } } },
      execute: (input) => Number(Object(input).n) + 1,
    },
    { name: "pay", description: "Pays.", requiresApproval: true, execute: () => "paid" },
  ],
});
const options = { approve: "ask", tickets: sealedTickets({ keys: [new Uint8Array(32)] }) } as const;
const plain = new ToolDispatcher(registry, options);
const limits = { maxCalls: CALLS, cpuMs: 60_000, maxProgramsPerPrincipal: 32 };
const toolset = codeTool(registry, { executor: quickJs(wasm), limits });
const dispatcher = new ToolDispatcher(toolset, options);

async function run(code: string): Promise<ToolResult> {
  const result = await dispatcher.dispatch({ name: "run_code", arguments: { code } });
  if (!result.ok && !isSuspended(result)) throw new Error(JSON.stringify(result));
  return result;
}

/** Returns the fastest and the middle time, in milliseconds. */
async function times(rounds: number, work: () => Promise<unknown>): Promise<[number, number]> {
  const all: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    await work();
    all.push(performance.now() - from);
  }
  all.sort((a, b) => a - b);
  return [all[0] ?? NaN, all[rounds >> 1] ?? NaN];
}

/** Returns the memory that programs leave, in MiB. On Node, `--expose-gc` makes it exact. */
async function memoryOf(programs: number): Promise<number> {
  const { gc = () => {}, Bun } = globalThis as {
    readonly gc?: () => void;
    readonly Bun?: { gc(isSync: boolean): void };
  };
  const measure = async (): Promise<number> => {
    // The engines free instances of WebAssembly after a turn of the event loop.
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (Bun) Bun.gc(true);
      else gc();
    }
    return process.memoryUsage().rss;
  };
  const before = await measure();
  for (let program = 0; program < programs; program++) {
    await run("return await tools.add({ n: 1 });");
  }
  return (await measure() - before) / 2 ** 20;
}

export async function printRuns(): Promise<void> {
  const loop = (calls: number) =>
    run(`for (let n = 0; n < ${calls}; n++) await tools.add({ n }); return 1;`);
  await loop(CALLS);
  const start = await times(200, () => run("return 1;"));
  const calls = await times(30, () => loop(CALLS));
  const direct = await times(30, async () => {
    for (let n = 0; n < CALLS; n++) await plain.dispatch({ name: "add", arguments: { n } });
  });
  const inner = calls.map((ms, at) =>
    (ms - (start[at] ?? NaN) - (direct[at] ?? NaN)) * 1_000 / CALLS
  );
  const resumed = await times(30, async () => {
    const waiting = await run("return await tools.pay();");
    if (!isSuspended(waiting)) throw new Error(JSON.stringify(waiting));
    const key = waiting.questions[0]?.key ?? "";
    const ended = await dispatcher.resume(waiting.ticket, { [key]: { action: "accept" } });
    if (!ended.ok) throw new Error(JSON.stringify(ended));
  });
  const row = (name: string, values: readonly number[], unit: string): readonly string[] => [
    name,
    ...values.map((value) => `${value.toFixed(1)} ${unit}`),
  ];
  await memoryOf(200);
  console.log(table(["", "fastest", "middle"], [
    row("start of a program", start, "ms"),
    row("call of a program, above a dispatch", inner, "µs"),
    row("suspend for an approval, and resume", resumed, "ms"),
  ]));
  console.log(`200 programs leave ${(await memoryOf(200)).toFixed(1)} MiB`);
}
