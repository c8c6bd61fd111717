/**
 * The costs of a registry with 10,000 tools: registration, a repeated listing, a listing after one
 * change, and the memory per tool.
 */

import { bench, do_not_optimize, run } from "mitata";
import { defineTool, type Tool, ToolAvailabilityContext, ToolRegistry } from "../mod.ts";

const COUNT = 10_000;
const RISKS = ["safe", "low", "medium", "high", "critical"] as const;
const CATEGORIES = ["filesystem", "terminal", "git", "network"] as const;

/** Every tool has its own schema object, like tools that people write. */
function makeOne(number: number, description = `Does thing number ${number}.`): Tool {
  return defineTool({
    name: `tool-${number}`,
    namespace: `space-${number % 100}`,
    description,
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "Where to do it." },
        limit: { type: "integer", minimum: 1, maximum: 100 },
      },
      required: ["path"],
    },
    risk: RISKS[number % 5] ?? "safe",
    category: CATEGORIES[number % 4] ?? "git",
    tags: [`tag-${number % 20}`],
    execute: ({ path }) => path,
  });
}

function registerAll(): ToolRegistry {
  const registry = new ToolRegistry();
  for (let number = 0; number < COUNT; number++) registry.registerTool(makeOne(number));
  return registry;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** The durations of several runs in milliseconds. The first run is the cold one. */
function time(rounds: number, run: (round: number) => unknown): number[] {
  return Array.from({ length: rounds }, (_, round) => {
    const start = performance.now();
    do_not_optimize(run(round));
    return performance.now() - start;
  });
}

function print(what: string, figure: string, limit?: string): void {
  console.log(`${what.padEnd(58)} ${figure.padStart(12)}${limit ? `  (limit ${limit})` : ""}`);
}

const registering = time(5, registerAll);
print(
  `define and register ${COUNT} tools, cold`,
  `${(registering[0] ?? 0).toFixed(0)} ms`,
  "500 ms",
);
print(
  `define and register ${COUNT} tools, median of 5`,
  `${median(registering).toFixed(0)} ms`,
  "500 ms",
);

const registry = registerAll();
const context = ToolAvailabilityContext.create().withMaxRiskLevel("medium").withTerminal(false)
  .build();

const first = time(1, () => registry.getAvailableTools(context));
print("getAvailableTools(context), the first listing of all", `${median(first).toFixed(2)} ms`);

const changing = time(60, (round) => {
  registry.updateTool(makeOne(round, `Changed in round ${round}.`));
  return registry.getAvailableTools(context);
});
print(
  "getAvailableTools(context) after one change, first",
  `${(changing[0] ?? 0).toFixed(2)} ms`,
  "5 ms",
);
print(
  "getAvailableTools(context) after one change, median of 60",
  `${median(changing).toFixed(2)} ms`,
  "5 ms",
);
print(
  "getAvailableTools(context) after one change, slowest",
  `${Math.max(...changing).toFixed(2)} ms`,
);

const runtime = globalThis as {
  readonly Bun?: { gc(force: boolean): void };
  readonly process?: { memoryUsage(): { readonly heapUsed: number } };
  readonly gc?: () => void;
};
const collect = runtime.Bun ? () => runtime.Bun?.gc(true) : runtime.gc;
if (collect !== undefined && runtime.process !== undefined) {
  const used = () => {
    collect();
    return runtime.process?.memoryUsage().heapUsed ?? 0;
  };
  const tools = Array.from({ length: COUNT }, (_, number) => makeOne(number));
  const before = used();
  const kept = new ToolRegistry({ tools });
  const registered = used();
  kept.getAvailableTools(context);
  const listed = used();
  kept.searchTools("thing", { limit: 10 });
  const indexed = used();
  const perTool = (bytes: number) => `${(bytes / COUNT).toFixed(0)} B`;
  print("memory per registered tool, besides the tool", perTool(registered - before));
  print("  and once all are listed", perTool(listed - before));
  print("  and once all are searched", perTool(indexed - before));
  do_not_optimize(kept);
} else console.log("memory per registered tool: skipped (run Node with --expose-gc)");

bench("getAvailableTools(context), nothing changed", () => registry.getAvailableTools(context));
bench("getAvailableTools(), nothing changed", () => registry.getAvailableTools());
bench("getTool(id)", () => registry.getTool("space-42:tool-4242"));
bench("select(), data from a request", () => registry.select({ maxRisk: "low", role: "impl" }));
await run();
