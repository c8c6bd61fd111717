/**
 * A server over stdio that misbehaves, for the tests of imports. Usage: `node hostile_server.ts
 * <behaviour> <file>`. The events of the server are written into the file.
 */

import { appendFileSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";

const [what = "", log = ""] = process.argv.slice(2);
const note = (line: string): void => appendFileSync(log, `${line}\n`);
const say = (message: object): void => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
};
const TOOLS = ["call", "endless", "large"].map((name) => ({
  name,
  description: `Is ${name}.`,
  inputSchema: { type: "object" },
}));

function answer(id: number, method: string, name: string | undefined): void {
  if (method === "server/discover") return say({ id, error: { code: -32601, message: "No" } });
  if (method === "initialize") {
    if (what === "exit") process.exit(3);
    if (what === "kill") process.kill(process.pid, "SIGKILL");
    return say({
      id,
      result: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "hostile", version: "1.0.0" },
      },
    });
  }
  if (method === "tools/list") {
    note("list");
    if (what === "silent") return;
    if (what === "deaf") lines.pause();
    say({ id, result: { tools: TOOLS } });
    if (what === "flood") {
      const data = { level: "info", data: "a" };
      for (let count = 0; count < 1_500; count++) {
        say({ method: "notifications/message", params: data });
      }
    }
    return;
  }
  if (name !== "endless") {
    const text = name === "large" ? "a".repeat(2_097_152) : "done";
    return say({ id, result: { content: [{ type: "text", text }] } });
  }
  const more = (): void => {
    while (process.stdout.write("a".repeat(65_536)));
    process.stdout.once("drain", more);
  };
  more();
}

note(`pid ${process.pid}`);
if (what === "deaf") {
  // A paused input does not keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  process.once("SIGUSR2", () => (clearInterval(alive), lines.resume()));
}
process.stdout.on("error", () => process.exit(1));
const lines = createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (typeof id === "number" || typeof id === "string") answer(id as number, method, params?.name);
}).on("close", () => process.exit(0));
