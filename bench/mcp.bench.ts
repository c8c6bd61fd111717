/**
 * The cost of an MCP `tools/call` with 10 and with 1,000 tools, compared with the SDK's own
 * `McpServer` with `registerTool`: both get the same requests, in turns. The servers run in this
 * process, without a socket, and on Bun also in workerd, over a socket.
 */

import process from "node:process";
import { type Handler, type Method, nameOf, plue, request, sdk } from "./mcp_handlers.ts";

const COUNTS = [10, 1_000] as const;
const METHODS: readonly Method[] = ["tools/call", "tools/list"];
const ROUNDS = 15;
/** For the compilers. */
const WARM_UP = 5;
const NAMES = ["plue", "sdk"] as const;

type Both = Readonly<Record<(typeof NAMES)[number], Handler>>;

/** Microseconds per request. */
async function time(handler: Handler, ask: () => Request, times: number): Promise<number> {
  const start = performance.now();
  for (let turn = 0; turn < times; turn++) await (await handler(ask())).text();
  return (performance.now() - start) * 1_000 / times;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** @param bareUs The time of a round trip without a server's work, in microseconds. */
async function compare(
  where: string,
  both: Both,
  method: Method,
  count: number,
  bareUs = 0,
): Promise<void> {
  const ask = (): Request => request(method);
  const expected = method === "tools/call" ? '"text":"42"' : `"${nameOf(count - 1)}"`;
  for (const name of NAMES) {
    const answer = await (await both[name](ask())).text();
    if (!answer.includes(expected)) throw new Error(`${name} answers ${answer.slice(0, 500)}`);
  }
  const times = method === "tools/list" || count > 100 ? 20 : 100;
  const took = { plue: [] as number[], sdk: [] as number[] };
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const name of NAMES) {
      const each = await time(both[name], ask, times);
      if (round >= 0) took[name].push(each);
    }
  }
  const [own, theirs] = [median(took.plue), median(took.sdk)];
  console.log(
    `${where.padEnd(10)} ${method} of ${String(count).padStart(4)} tools: ` +
      `plue ${own.toFixed(0).padStart(5)} us, McpServer ${theirs.toFixed(0).padStart(5)} us, ` +
      `${(theirs / own).toFixed(1)} times as long` +
      (bareUs === 0 ? "" : `; ${((theirs - bareUs) / (own - bareUs)).toFixed(1)} without the way`),
  );
}

for (const method of METHODS) {
  for (const count of COUNTS) {
    await compare("in process", { plue: plue(count), sdk: sdk(count) }, method, count);
  }
}

if (process.versions["bun"] !== undefined) {
  const { serveWorker } = await import("../test/runtime/workerd.ts");
  const worker = await serveWorker(`${import.meta.dirname}/mcp_worker.ts`);
  const bare: number[] = [];
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const ask = (): Request => new Request(`${worker.url}/bare`, request("tools/call"));
    const each = await time((request) => fetch(request), ask, 100);
    if (round >= 0) bare.push(each);
  }
  const bareUs = median(bare);
  console.log(`workerd    the way there and back: ${bareUs.toFixed(0)} us`);
  for (const method of METHODS) {
    for (const count of COUNTS) {
      const to = (name: string): Handler => (request) =>
        fetch(new Request(`${worker.url}/${name}/${count}`, request));
      await compare("workerd", { plue: to("plue"), sdk: to("sdk") }, method, count, bareUs);
    }
  }
  await worker.stop();
}
