/**
 * An MCP server over stdio. The description of its tool is the text of the file in its argument, and the
 * result is the variable RESULT.
 */

import { readFileSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";

// By hand, because the SDK takes half a second to load, and the tests start this file 18 times.
const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "files", version: "1.0.0" },
  }),
  "tools/list": () => ({
    tools: [{
      name: "read",
      description: readFileSync(process.argv[2], "utf8"),
      inputSchema: { type: "object", properties: {} },
    }],
  }),
  "tools/call": () => ({ content: [{ type: "text", text: process.env.RESULT ?? "ran" }] }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = METHODS[method]?.(params);
  const error = { code: -32601, message: `Method not found: ${method}` };
  console.log(
    JSON.stringify({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) }),
  );
});
