/**
 * A server over stdio for the tests of imports: its tools wait, grow and crash. Usage: `node
 * crashing_server.ts <file>`. The events of calls are written into the file.
 */

import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import process from "node:process";

const [log = ""] = process.argv.slice(2);
const note = (line: string): void => appendFileSync(log, `${line}\n`);
const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });

serveStdio(() => {
  const server = new McpServer({ name: "crashing", version: "1.0.0" }, {
    capabilities: { tools: { listChanged: true } },
  });
  note("started");
  server.registerTool(
    "pid",
    { description: "Tells which process this is." },
    () => text(String(process.pid)),
  );
  server.registerTool("crash", { description: "Ends the process." }, () => process.exit(1));
  server.registerTool("leave", { description: "Leaves a child with its output, and ends." }, () => {
    spawn("sleep", ["60"], { stdio: ["ignore", "inherit", "ignore"], detached: true });
    process.exit(1);
  });
  server.registerTool("wait", { description: "Waits until it is cancelled." }, ({ mcpReq }) => {
    note("waiting");
    return new Promise((resolve) => {
      mcpReq.signal.addEventListener("abort", () => {
        note("cancelled");
        resolve(text("cancelled"));
      });
    });
  });
  server.registerTool(
    "step",
    { description: "Says that it has come to the end, and is there." },
    async ({ mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken ?? "";
      await mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken, progress: 1 },
      });
      return text("there");
    },
  );
  server.registerTool("grow", { description: "Adds a tool." }, () => {
    server.registerTool("grown", { description: "Is new." }, () => text("new"));
    return text("grew");
  });
  return server;
});
