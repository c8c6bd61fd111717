/**
 * A process that writes a journal until it is killed. It prints the number of the last record that is
 * on the disk, and `refused` if another process has the journal.
 */

import process from "node:process";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { journal, jsonLines } from "../../../src/adapters/journal/mod.ts";

const [, , file = ""] = process.argv;
const kept = journal({ sink: jsonLines(file), onFailure: "refuse-calls", flushMs: 1 });
const registry = new ToolRegistry({
  tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
});
const dispatcher = new ToolDispatcher(registry, { layers: [kept] });
try {
  await kept.flush();
  for (;;) {
    for (let times = 0; times < 500; times++) await dispatcher.dispatch({ name: "ping" });
    await kept.flush();
    process.stdout.write(`${kept.stats().head.sequence}\n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
} catch (error) {
  process.stdout.write(`refused: ${(error as Error).message}\n`);
}
