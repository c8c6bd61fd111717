/**
 * Loads a service for a long time as clients do, 30 % of which leave before the answer: calls as
 * JSON and as streams, calls over MCP, turns, idempotency keys, aborts, lists and subscriptions.
 * Prints the service's heap, descriptors and running calls over time, and the number of answers
 * that belonged to another call or caller. `npm run soak` runs it on Bun, on Linux.
 */

import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { table } from "../../scripts/lib/table.mjs";
import { CALLERS, tokenOf } from "./callers.ts";
import type { SoakState } from "./service.ts";

const USAGE = `npm run soak -- [minutes]

Loads the service for so many minutes: 60 unless given.`;
const CONNECTIONS = 100;
/** The number of callers that disconnect early, and their delay: about 30 % of all. */
const LEAVING = 0.37;
const PATIENCE_MS = 15;
const SAMPLES = 12;
/** The maximum pause of a connection between two requests. */
const REST_MS = 400;
/** The maximum duration of a call in the soak. */
const CALL_MS = 60;

const minutes = Number(process.argv[2] ?? 60);
if (!(minutes > 0) || process.argv.length > 3) {
  console.error(`Cannot read the minutes: a number above 0 is needed\n\n${USAGE}`);
  process.exit(2);
}

const child = spawn("bun", [join(import.meta.dirname, "service.ts")], {
  stdio: ["pipe", "pipe", "inherit"],
});
const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
const line = async (): Promise<string> => String((await lines.next()).value);
const url = (await line()).replace(/\/$/, "");
async function state(): Promise<SoakState> {
  child.stdin.write("\n");
  return JSON.parse(await line());
}

const NEVER = new AbortController().signal;
const counts = { requests: 0, left: 0, crossed: 0, wrong: 0 };
const crossed = (): void => void counts.crossed++;
const between = (most: number): number => Math.floor(Math.random() * most);
const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
let last = 0;

/** One request, or a few related ones, by a caller that disconnects when `signal` aborts. */
interface Turn {
  readonly principal: string;
  readonly nonce: string;
  readonly signal: AbortSignal;
  send(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
}

const call = (nonce: string, more: object = {}): object => ({
  arguments: { nonce, ms: between(CALL_MS) },
  ...more,
});

/** Each function checks that the answer is for its caller. */
const KINDS: readonly ((turn: Turn) => Promise<unknown>)[] = [
  async function json({ send, nonce, principal }) {
    const { content } = await (await send("/tools/wait/execute", call(nonce))).json();
    if (content.nonce !== nonce || content.principal !== principal) crossed();
  },
  async function fails({ send, nonce }) {
    const arguments_ = { nonce, ms: between(CALL_MS), fails: true };
    const text = await (await send("/tools/wait/execute", { arguments: arguments_ })).text();
    if (!text.includes(nonce)) crossed();
  },
  async function stream({ send, nonce, principal }) {
    const answer = await send("/tools/wait/execute", call(nonce), { accept: "text/event-stream" });
    const text = await answer.text();
    const nonces = [...text.matchAll(/"nonce":"([^"]*)"/g)].map((match) => match[1]);
    if (nonces.length !== 4 || nonces.some((one) => one !== nonce)) crossed();
    if (!text.includes(`"principal":"${principal}"`)) crossed();
  },
  async function mcp({ send, nonce, principal }) {
    const body = {
      jsonrpc: "2.0",
      id: nonce,
      method: "tools/call",
      params: {
        name: "wait",
        arguments: { nonce, ms: between(CALL_MS) },
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "soak", version: "1.0.0" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    };
    const text = await (await send("/mcp", body, {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "wait",
    })).text();
    if (!text.includes(`"id":"${nonce}"`) || !text.includes(principal)) crossed();
  },
  async function turn({ send, nonce }) {
    const ids = [`${nonce}-a`, `${nonce}-b`];
    const toolCalls = ids.map((id) => ({
      id,
      type: "function",
      function: { name: "wait", arguments: JSON.stringify({ nonce: id, ms: between(CALL_MS) }) },
    }));
    const response = { choices: [{ message: { role: "assistant", tool_calls: toolCalls } }] };
    const text = await (await send("/dispatch/openai", response)).text();
    if (ids.some((id) => !text.includes(`\\"nonce\\":\\"${id}\\"`))) crossed();
  },
  async function keys({ send, nonce }) {
    const headers = { "idempotency-key": nonce };
    const body = call(nonce);
    const answers = [1, 2].map(() => send("/tools/wait/execute", body, headers));
    const [one, two] = await Promise.all(
      answers.map(async (answer) => (await (await answer).json()).content),
    );
    if (one.nonce !== nonce || one.run !== two.run) crossed();
  },
  async function aborted({ send, nonce }) {
    const answer = send("/tools/wait/execute", {
      arguments: { nonce, ms: 10_000 },
      callId: nonce,
    });
    for (let status = 0; status !== 202; await rest(5)) {
      const abort = await send(`/executions/${nonce}/abort`, {});
      status = abort.status;
      await abort.text();
    }
    const { error, code } = await (await answer).json();
    if ((error?.code ?? code) !== "aborted") counts.wrong++;
  },
  async function list({ send }) {
    const { tools } = await (await send(`/tools?q=tool%20${between(100)}&limit=5`)).json();
    if (!Array.isArray(tools)) counts.wrong++;
  },
  async function follow({ send }) {
    const answer = await send("/events");
    const reader = answer.body?.getReader();
    await reader?.read();
    await reader?.cancel();
  },
];

async function connection(until: number): Promise<void> {
  while (Date.now() < until) {
    const principal = CALLERS[between(CALLERS.length)] as string;
    const nonce = `n${++last}`;
    const leaves = Math.random() < LEAVING;
    const signal = leaves ? AbortSignal.timeout(between(PATIENCE_MS)) : NEVER;
    const send: Turn["send"] = (path, body, headers = {}) => {
      const answer = fetch(url + path, {
        signal,
        headers: {
          authorization: `Bearer ${tokenOf(principal)}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      });
      // A caller that disconnects may not read its second answer.
      answer.catch(() => {});
      return answer;
    };
    counts.requests++;
    const kind = KINDS[between(KINDS.length)] as (typeof KINDS)[number];
    try {
      await kind({ principal, nonce, signal, send });
    } catch (error) {
      if (leaves) counts.left++;
      else {
        if (counts.wrong++ < 10) console.error(`${kind.name}: ${String(error)}`);
      }
    }
    await rest(between(REST_MS));
  }
}

const began = Date.now();
const until = began + minutes * 60_000;
const rows: string[][] = [];
async function sample(): Promise<SoakState> {
  const now = await state();
  const { heap, rss, descriptors, running, begun, reported } = now;
  const at = ((Date.now() - began) / 60_000).toFixed(1);
  const figures = [heap, rss, descriptors, running, begun, counts.left, counts.crossed, reported];
  rows.push([at, ...figures.map(String)]);
  console.log(rows.at(-1)?.join("\t"));
  return now;
}
const HEAD = [
  "minutes",
  "heap MiB",
  "rss MiB",
  "descriptors",
  "running",
  "begun",
  "left",
  "crossed",
  "reported",
];
console.log(HEAD.join("\t"));
await sample();
const load = Promise.all(Array.from({ length: CONNECTIONS }, () => connection(until)));
for (let left = SAMPLES; left > 0; left--) {
  await rest((until - Date.now()) / left);
  await sample();
}
await load;

// The calls of disconnected clients end when the server notices. Waits for the last of them.
let end = await sample();
for (let tries = 0; tries < 50 && (end.running > 0 || end.begun !== end.cleaned); tries++) {
  await rest(200);
  end = await state();
}
end = await sample();
child.stdin.end();

console.log(`\n${table(HEAD, rows)}`);
const { requests, left, wrong } = counts;
console.log(
  `\n${requests} requests, ${left} left, ${counts.crossed} crossed, ${wrong} wrong, ` +
    `${end.running} still running, ${end.begun - end.cleaned} without cleanup, ` +
    `${end.unhandled.length} unhandled`,
);
for (const error of end.unhandled.slice(0, 10)) console.log(`unhandled: ${error}`);
const clean = counts.crossed + wrong + end.running + (end.begun - end.cleaned) +
    end.unhandled.length === 0;
process.exitCode = clean ? 0 : 1;
