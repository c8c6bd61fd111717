/** A race of processes on three runtimes for the calls of one store, whose server is killed. */

import { assertEquals, assertLessOrEqual } from "@std/assert";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isSuspended, ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { commandOn } from "../../scripts/lib/runtimes.mjs";
import { openStore } from "../../src/cli/store.ts";
import { type CallStore, storedTickets } from "../../src/execute/durable/mod.ts";
import { maybe } from "../support/skip.ts";
import { projectFolder } from "../support/program.ts";

const CALLS = 600;
const RUNTIMES = ["bun", "deno", "node"];
/** The number of calls that a process of racer.ts makes concurrently. */
const LANES = 4;
/** The numbers of runs after which the server is killed. */
const KILLS = [CALLS / 3, CALLS * 2 / 3];
const missingRuntime = RUNTIMES.find((name) => spawnSync(name, ["--version"]).status !== 0);

export interface RacedServer {
  readonly url: string;
  /** Kills the server, as `kill -9` does. */
  kill(): Promise<unknown>;
  start(): Promise<unknown>;
}

/**
 * Declares the test that three processes run 600 calls while their server is killed twice. Every
 * second call resumes a ticket, the others have an idempotency key. No call runs twice. A call may
 * be missing only if a process received the error that its claim may be lost.
 *
 * @param missing The reason why the server is not installed.
 */
export function itRaces(missing: string | undefined, open: () => Promise<RacedServer>): void {
  const why = missing ?? (missingRuntime && `${missingRuntime} is not installed`);
  maybe(why === undefined, why ?? "")(
    "lets three processes run each of 600 calls once, while the server is killed twice",
    async () => await race(await open()),
  );
}

async function race(server: RacedServer): Promise<void> {
  await using opened = await openStore("open the store", server.url);
  const tickets = await suspend(opened.store);
  const runs: number[] = [];
  const unsettled = new Set<number>();
  const unexpected: string[] = [];
  let heard = (): void => {};
  let ready = 0;
  const children = RUNTIMES.map((runtime): ChildProcess => {
    const [command = "", ...args] = commandOn(runtime);
    const file = join(import.meta.dirname, "racer.ts");
    const child = spawn(command, [...args, file, server.url], {
      cwd: projectFolder,
      stdio: ["pipe", "pipe", "inherit"],
    });
    createInterface(child.stdout).on("line", (line) => {
      if (line === "ready") ready++;
      else if (line.startsWith("ran ")) runs.push(Number(line.slice(4)));
      else if (line.startsWith("unsettled ")) unsettled.add(Number(line.slice(10)));
      else unexpected.push(`${runtime}: ${line}`);
      heard();
    });
    return child;
  });
  const ended = Promise.all(
    children.map((child) =>
      new Promise((resolve) =>
        child.once("close", (code) => {
          if (code !== 0) unexpected.push(`It ended with ${code}`);
          heard();
          resolve(code);
        })
      )
    ),
  );
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition() && unexpected.length === 0) {
      await new Promise<void>((resolve) => heard = resolve);
    }
  };
  await until(() => ready === RUNTIMES.length);
  for (const child of children) child.stdin?.end(`${JSON.stringify(tickets)}\n`);
  for (const count of KILLS) {
    await until(() => runs.length >= count);
    await server.kill();
    await server.start();
  }
  await ended;
  assertEquals(unexpected, []);
  assertEquals(runs.length, new Set(runs).size);
  const lost = tickets.flatMap((_, number) => runs.includes(number) ? [] : [number]);
  assertEquals(lost.filter((number) => !unsettled.has(number)), []);
  // Only the calls that were in flight when the server was killed.
  assertLessOrEqual(lost.length, KILLS.length * RUNTIMES.length * LANES);
}

/** Returns tickets of suspended calls, which processes resume by their own definition of the tool. */
async function suspend(store: CallStore): Promise<readonly string[]> {
  const registry = new ToolRegistry({
    tools: [{
      name: "approved",
      description: "Pays after an approval.",
      parameters: {
        type: "object",
        properties: { number: { type: "integer" } },
        required: ["number"],
      },
      execute: (_, { ask }) => ask("sure", { message: "?" }),
    }],
  });
  const dispatcher = new ToolDispatcher(registry, { tickets: storedTickets(store) });
  return await Promise.all(Array.from({ length: CALLS }, async (_, number) => {
    if (number % 2 === 1) return "";
    const waiting = await dispatcher.dispatch({ name: "approved", arguments: { number } });
    return isSuspended(waiting) ? waiting.ticket : "";
  }));
}
