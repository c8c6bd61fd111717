/**
 * The requests per second of the HTTP handler and the 99th percentile of its latency, relative to
 * bare Hono routes that return the same bytes: each server is a process on Bun, Deno, Node or
 * workerd, and this process is the client. The ratio is the median of the rounds. Runs on Bun.
 * `RUNTIMES=node,bun` and `SAMPLES=execute` select what is measured, and `PROCESSES=1` is quicker.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { serveWorker } from "../test/runtime/workerd.ts";
import { CALL, MCP_CALL, MCP_LIST } from "./http/app.ts";
import { load, type LoadResult } from "./http/load.ts";
import { table } from "../scripts/lib/table.mjs";

/** The duration of the warm-up of each request, in which the runtime compiles its code. */
const WARM_MS = 2_000;
const ROUNDS = 20;
/** The bursts are short, so that a busy machine affects both bursts of a round. */
const MS_PER_BURST = 150;

const SERVE = join(import.meta.dirname, "http/serve.ts");
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  bun: ["bun", SERVE],
  deno: ["deno", "run", "-A", "--no-check", "--node-modules-dir=manual", SERVE],
  node: [
    "node",
    "--disable-warning=ExperimentalWarning",
    "--import=./test/support/node_hook.mjs",
    SERVE,
  ],
};

const get = (path: string, headers = ""): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
const post = (
  path: string,
  body = CALL,
  headers: Readonly<Record<string, string>> = { "content-type": "application/json" },
): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n` +
  Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("") +
  `\r\n${body}`;

const AUTHORIZED = { "content-type": "application/json", authorization: "Bearer sesame" };

/** A comparison: its name, the handler's request, the bare route's, and the status of both. */
function samplesFor(etag: string): readonly (readonly [string, string, string, string])[] {
  const current = `If-None-Match: ${etag}\r\n`;
  return [
    ["GET /tools, 1,000 tools", get("/tools"), get("/bare/tools"), "200"],
    [
      "GET /tools, client's copy current",
      get("/tools", current),
      get("/bare/current", current),
      "304",
    ],
    [
      "MCP tools/list, 1,000 tools",
      post("/mcp", MCP_LIST.body, MCP_LIST.headers),
      post("/bare/mcp", MCP_LIST.body, MCP_LIST.headers),
      "200",
    ],
    [
      "MCP tools/call, small tool",
      post("/mcp", MCP_CALL.body, MCP_CALL.headers),
      post("/bare/mcp-call", MCP_CALL.body, MCP_CALL.headers),
      "200",
    ],
    ["POST execute, small tool", post("/tools/double/execute"), post("/bare/execute"), "200"],
    [
      "POST execute, with authorize",
      post("/tools/double/execute", CALL, AUTHORIZED),
      post("/bare/execute", CALL, AUTHORIZED),
      "200",
    ],
  ];
}

interface Server {
  readonly port: number;
  stop(): Promise<void>;
}

async function start(runtime: string): Promise<Server> {
  if (runtime === "workerd") {
    const { url, stop } = await serveWorker(join(import.meta.dirname, "http/worker.ts"));
    return { port: Number(new URL(url).port), stop };
  }
  const [command = "", ...args] = COMMANDS[runtime] ?? [];
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  return { port: await portOf(child), stop: () => ended(child) };
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`The server ended with ${code}`)));
    child.stdout?.once(
      "data",
      (text: Uint8Array) => resolve(Number(new URL(new TextDecoder().decode(text).trim()).port)),
    );
  });
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.removeAllListeners("exit").once("exit", () => resolve());
    child.kill();
  });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
}

type Sample = ReturnType<typeof samplesFor>[number];

/** The handler's results and those of its bare route, in turns. */
async function compare({ port }: Server, [, ours, bare, status]: Sample): Promise<LoadResult[][]> {
  const results: LoadResult[][] = [[], []];
  for (const request of [ours, bare]) await load(port, request, status, WARM_MS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, request] of [ours, bare].entries()) {
      results[index]?.push(await load(port, request, status, MS_PER_BURST));
    }
  }
  return results;
}

const only = process.env["RUNTIMES"]?.split(",");
const part = process.env["SAMPLES"] ?? "";
const processes = Number(process.env["PROCESSES"] ?? 5);
const rows: string[][] = [];
for (const runtime of ["bun", "deno", "node", "workerd"]) {
  if (only !== undefined && !only.includes(runtime)) continue;
  const figures = new Map<
    string,
    Record<"ours" | "bare" | "ratio" | "p99" | "bareP99", number>[]
  >();
  for (let count = 0; count < processes; count++) {
    const server = await start(runtime);
    try {
      const { headers } = await fetch(`http://127.0.0.1:${server.port}/tools`);
      for (const sample of samplesFor(headers.get("etag") ?? "")) {
        const [name] = sample;
        if (!name.includes(part)) continue;
        const [ours = [], bare = []] = await compare(server, sample);
        const rates = [ours, bare].map((list) => median(list.map(({ perSecond }) => perSecond)));
        const late = [ours, bare].map((list) => median(list.map(({ p99Ms }) => p99Ms)));
        const list = figures.get(name) ?? [];
        const ratios = ours.map(({ perSecond }, round) =>
          perSecond / (bare[round]?.perSecond ?? NaN)
        );
        list.push({
          ours: rates[0] ?? NaN,
          bare: rates[1] ?? NaN,
          ratio: median(ratios),
          p99: late[0] ?? NaN,
          bareP99: late[1] ?? NaN,
        });
        figures.set(name, list);
      }
    } finally {
      await server.stop();
    }
  }
  for (const [name, list] of figures) {
    const ratios = list.map(({ ratio }) => ratio);
    rows.push([
      runtime,
      name,
      median(list.map(({ ours }) => ours)).toFixed(0),
      median(list.map(({ bare }) => bare)).toFixed(0),
      median(ratios).toFixed(2),
      `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
      median(list.map(({ p99 }) => p99)).toFixed(2),
      median(list.map(({ bareP99 }) => bareP99)).toFixed(2),
    ]);
  }
}
console.log(`Medians of ${processes} processes of each runtime`);
console.log(
  table(["runtime", "request", "per s", "bare", "ratio", "ratios", "p99 ms", "bare p99"], rows),
);
