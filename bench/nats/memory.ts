/**
 * The start time and memory of a worker with many tools and of its caller, each in its own process.
 *
 *     npm run cluster -- memory [tools]
 */

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import process from "node:process";
import { connect } from "@nats-io/transport-node";
import { ToolRegistry } from "@plue/tools";
import { remoteTools, serveTools } from "@plue/tools/nats";
import { Cluster, SECRET } from "../../examples/cluster/cluster.ts";

const [, self = "", count = "40000", role, url = ""] = process.argv;
const COUNT = Number(count);

/** Returns the memory that is in use once all garbage is collected. */
function memoryInUse(): number {
  const { Bun, gc } = globalThis as {
    readonly Bun?: { gc(isNow: boolean): void };
    readonly gc?: () => void;
  };
  for (let times = 0; times < 3; times++) Bun === undefined ? gc?.() : Bun.gc(true);
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Starts something, and prints the heap per tool and the growth of the process. */
async function measure(what: string, start: () => Promise<unknown>): Promise<void> {
  const { rss } = process.memoryUsage();
  const before = memoryInUse();
  const cpu = process.cpuUsage();
  const begun = performance.now();
  await start();
  const seconds = (performance.now() - begun) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const heap = memoryInUse() - before;
  const figures = [
    `${seconds.toFixed(1)} s`,
    `${((user + system) / 1e6).toFixed(1)} s of the processor`,
    `${(heap / COUNT / 1_000).toFixed(1)} kB a tool`,
    `${((process.memoryUsage().rss - rss) / COUNT / 1_000).toFixed(1)} kB resident`,
  ];
  console.log(`${what.padEnd(36)} ${figures.map((figure) => figure.padStart(14)).join("  ")}`);
}

if (role === undefined) {
  await using cluster = await Cluster.start();
  console.log(`${COUNT} tools`);
  const children: ChildProcess[] = [];
  for (const one of ["worker", "caller"]) {
    const child = spawn(process.execPath, [...process.execArgv, self, count, one, cluster.url], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    for await (const line of createInterface({ input: child.stdout })) {
      if (line === "ready") break;
      console.log(line);
    }
  }
  for (const child of children) child.kill("SIGKILL");
} else {
  const registry = new ToolRegistry();
  const connection = await connect({ servers: url });
  if (role === "worker") {
    await measure("worker: the tools in their registry", () => {
      for (let at = 0; at < COUNT; at++) registry.registerTool(toolAt(at));
      return Promise.resolve();
    });
    await measure("worker: serveTools", () => serveTools(registry, connection, { secret: SECRET }));
  } else {
    await measure(
      "caller: remoteTools, with registry",
      () => remoteTools(connection, { registry, secret: SECRET }),
    );
  }
  console.log("ready");
}

function toolAt(at: number): Parameters<ToolRegistry["registerTool"]>[0] {
  return {
    ...{ namespace: `ns${at % 50}`, name: `tool_${at}` },
    description:
      `Does the thing number ${at} with care, and returns what came of it in a few words.`,
    parameters: {
      type: "object",
      properties: {
        id: { type: "string", description: "The id of the thing" },
        count: { type: "integer", minimum: 0 },
        mode: { enum: ["fast", "slow"] },
      },
      required: ["id"],
    },
    execute: () => at,
  };
}
