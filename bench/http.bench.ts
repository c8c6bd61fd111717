/**
 * How many requests the HTTP handler answers per second, and how long the slowest hundredth waits,
 * beside bare Hono routes that answer the same bytes: the servers in processes of their own on Bun,
 * Deno, Node and workerd, the client here. Runs on Bun.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { serveWorker } from "../test/runtime/workerd.ts";
import { CALL, MCP_HEADERS, MCP_LIST } from "./http/app.ts";
import { load, type LoadResult } from "./http/load.ts";
import { table } from "../scripts/lib/table.mjs";

const ROUNDS = 5;
const MS_PER_ROUND = 600;

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
      post("/mcp", MCP_LIST, MCP_HEADERS),
      post("/bare/mcp", MCP_LIST, MCP_HEADERS),
      "200",
    ],
    ["POST execute, small tool", post("/tools/double/execute"), post("/bare/execute"), "200"],
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

const only = process.env["RUNTIMES"]?.split(",");
const rows: string[][] = [];
for (const runtime of ["bun", "deno", "node", "workerd"]) {
  if (only !== undefined && !only.includes(runtime)) continue;
  const server = await start(runtime);
  try {
    const { headers } = await fetch(`http://127.0.0.1:${server.port}/tools`);
    for (const [name, ours, bare, status] of samplesFor(headers.get("etag") ?? "")) {
      const results: { ours: LoadResult[]; bare: LoadResult[] } = { ours: [], bare: [] };
      // In turns, so that a busy machine affects both. The first round only warms up.
      for (let round = 0; round <= ROUNDS; round++) {
        const pair = {
          bare: await load(server.port, bare, status, MS_PER_ROUND),
          ours: await load(server.port, ours, status, MS_PER_ROUND),
        };
        if (round > 0) {
          for (const key of ["ours", "bare"] as const) results[key].push(pair[key]);
        }
      }
      const rate = (list: readonly LoadResult[]): number =>
        median(list.map(({ perSecond }) => perSecond));
      const late = (list: readonly LoadResult[]): string =>
        median(list.map(({ p99Ms }) => p99Ms)).toFixed(2);
      rows.push([
        runtime,
        name,
        rate(results.ours).toFixed(0),
        rate(results.bare).toFixed(0),
        (rate(results.ours) / rate(results.bare)).toFixed(2),
        late(results.ours),
        late(results.bare),
      ]);
    }
  } finally {
    await server.stop();
  }
}
console.log(
  table(["runtime", "request", "per s", "bare", "ratio", "p99 ms", "bare p99"], rows),
);
