/** An MCP server over stdio. The description of its tool is the text of the file in its argument. */

import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { readFileSync } from "node:fs";
import process from "node:process";

serveStdio(() => {
  const server = new McpServer({ name: "files", version: "1.0.0" });
  const description = readFileSync(process.argv[2], "utf8");
  server.registerTool(
    "read",
    { description },
    () => ({ content: [{ type: "text", text: "ran" }] }),
  );
  return server;
});
