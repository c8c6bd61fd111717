import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { isSuspended, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { storedTickets } from "@plue/tools/calls";
import { migratePostgresCallStore, postgresCallStore } from "@plue/tools/postgres";
import { commandOn } from "../../../scripts/lib/runtimes.mjs";
import { projectFolder } from "../../support/program.ts";
import { maybe } from "../../support/skip.ts";
import { missing, useServer } from "./server.ts";

const CALLS = 600;
const RUNTIMES = ["bun", "deno", "node"];
const why = missing ??
  RUNTIMES.filter((name) => spawnSync(name, ["--version"]).status !== 0)
    .map((name) => `${name} is not installed`)[0];
const it = maybe(why === undefined, why ?? "");

describe("three processes over postgresCallStore()", () => {
  const server = useServer();

  /** Returns tickets of suspended calls, which processes resume by their own definition of the tool. */
  async function suspend(): Promise<readonly string[]> {
    const pool = server().pool();
    await migratePostgresCallStore(pool);
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
    const tickets = storedTickets(await postgresCallStore(pool));
    const dispatcher = new ToolDispatcher(registry, { tickets });
    return await Promise.all(Array.from({ length: CALLS }, async (_, number) => {
      if (number % 2 === 1) return "";
      const waiting = await dispatcher.dispatch({ name: "approved", arguments: { number } });
      return isSuspended(waiting) ? waiting.ticket : "";
    }));
  }

  it("run each of 600 calls once, while the server is killed twice", async () => {
    const tickets = await suspend();
    const runs: number[] = [];
    const unsettled: number[] = [];
    const unexpected: string[] = [];
    let heard = (): void => {};
    let ready = 0;
    const file = join(import.meta.dirname, "claimer.ts");
    const children = RUNTIMES.map((runtime): ChildProcess => {
      const [command = "", ...args] = commandOn(runtime);
      const child = spawn(command, [...args, file, server().url], {
        cwd: projectFolder,
        stdio: ["pipe", "pipe", "inherit"],
      });
      createInterface(child.stdout).on("line", (line) => {
        if (line === "ready") ready++;
        else if (line.startsWith("ran ")) runs.push(Number(line.slice(4)));
        else if (line.startsWith("unsettled ")) unsettled.push(Number(line.slice(10)));
        else if (line !== "end") unexpected.push(`${runtime}: ${line}`);
        heard();
      });
      return child;
    });
    const ended = Promise.all(
      children.map((child) => new Promise((resolve) => child.once("close", resolve))),
    );
    const until = async (condition: () => boolean): Promise<void> => {
      while (!condition()) await new Promise<void>((resolve) => heard = resolve);
    };
    await until(() => ready === RUNTIMES.length);
    for (const child of children) child.stdin?.end(`${JSON.stringify(tickets)}\n`);
    for (const part of [CALLS / 3, CALLS * 2 / 3]) {
      await until(() => runs.length >= part);
      await server().kill();
      await server().start();
    }
    assertEquals(await ended, [0, 0, 0]);
    assertEquals(unexpected, []);
    assertEquals(runs.filter((number, at) => runs.indexOf(number) !== at), []);
    // If the server is away for more than half a second, a claim can be stored and not be known.
    const all = Array.from({ length: CALLS }, (_, at) => at);
    assertEquals(all.filter((at) => !runs.includes(at) && !unsettled.includes(at)), []);
  });
});
