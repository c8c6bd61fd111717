// Prints the files and functions of src that a dispatch, an HTTP call, an MCP call, an export and a
// registration enter, as counted by V8: `node test/architecture/walk.mjs`, one line of JSON.

import { Session } from "node:inspector/promises";
import { createToolHandler } from "../../src/adapters/hono/mod.ts";
import { createMcpEndpoint } from "../../src/adapters/mcp/mod.ts";
import { exportTools } from "../../src/formats/mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../mod.ts";

const SRC = new URL("../../src/", import.meta.url).href;

const tool = (name) => ({
  name,
  description: "Repeats a text.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  execute: async ({ text }) => {
    await undefined;
    return text;
  },
});
const registry = new ToolRegistry({ tools: [tool("echo")] });
const dispatcher = new ToolDispatcher(registry);
const handler = createToolHandler(registry, { openExecution: true });
const mcp = createMcpEndpoint(registry, { openExecution: true });
const json = { "content-type": "application/json" };
let number = 0;

const WALKS = {
  async dispatch() {
    await dispatcher.dispatch({ name: "echo", arguments: '{"text":"hello"}' });
  },
  async execute() {
    const body = '{"arguments":{"text":"hello"}}';
    const headers = { ...json, "content-length": String(body.length) };
    const url = "http://127.0.0.1/tools/echo/execute";
    const response = await handler.fetch(new Request(url, { method: "POST", headers, body }));
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
    await response.text();
  },
  async mcp() {
    const version = "2026-07-28";
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: ++number,
      method: "tools/call",
      params: {
        name: "echo",
        arguments: { text: "hello" },
        _meta: {
          "io.modelcontextprotocol/protocolVersion": version,
          "io.modelcontextprotocol/clientInfo": { name: "walk", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    });
    const headers = {
      ...json,
      accept: "application/json, text/event-stream",
      "content-length": String(body.length),
      "mcp-protocol-version": version,
      "mcp-method": "tools/call",
      "mcp-name": "echo",
    };
    const response = await mcp.fetch(
      new Request("http://127.0.0.1/mcp", { method: "POST", headers, body }),
    );
    const text = await response.text();
    if (!text.includes("hello")) throw new Error(`MCP ${response.status}: ${text}`);
  },
  export() {
    const fresh = new ToolRegistry({ tools: [tool(`export_${++number}`)] });
    return () => exportTools(fresh.select(), "openai.strict");
  },
  register() {
    const fresh = new ToolRegistry();
    const definition = tool(`register_${++number}`);
    return () => fresh.registerTool(definition);
  },
};

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** The functions of src that were entered since the last time, by file. */
async function entered() {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const files = {};
  for (const { url, functions } of result) {
    if (!url.startsWith(SRC)) continue;
    const names = functions.filter(({ ranges }) => ranges[0].count > 0)
      .map(({ functionName }) => functionName || "(anonymous)");
    if (names.length > 0) files[url.slice(SRC.length)] = names;
  }
  return files;
}

const walks = {};
for (const [name, walk] of Object.entries(WALKS)) {
  // Repeated, so that caches are filled as in a process that has run for a while.
  for (let turn = 0; turn < 3; turn++) await (await walk())?.();
  const run = await walk() ?? walk;
  await entered();
  await run();
  walks[name] = await entered();
}
console.log(JSON.stringify(walks));
