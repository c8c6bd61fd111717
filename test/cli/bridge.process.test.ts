import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import process from "node:process";
import { startProgram } from "../support/program.ts";

const RUN = "Deno" in globalThis
  ? ["run", "--allow-all", "--no-config", "--import-map=deno.json", "--node-modules-dir=manual"]
  : [];

describe("plue serve --bridge", () => {
  it("shows MCP clients the bridge, and HTTP clients that ask for it", async () => {
    await using program = startProgram(process.execPath, [
      ...[...RUN, "src/cli/main.ts", "serve", "test/cli/tools.mjs"],
      ...["--no-watch", "--port", "0", "--bridge"],
    ]);
    const [, url = ""] = await program.printed(/ on (http:\S+)\n/);
    const ask = async (place: string, body: unknown): Promise<string> => {
      const response = await fetch(url + place, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: place === "/mcp" ? "application/json, text/event-stream" : "application/json",
        },
        body: JSON.stringify(body),
      });
      return await response.text();
    };
    const bridge = ["search_tools", "describe_tools", "call_tool"];
    const listed = await ask("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" });
    const names = [...listed.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name);
    assertEquals(names.toSorted(), bridge.toSorted());
    const { tools } = await (await fetch(`${url}/tools?bridge=1`)).json();
    assertEquals(tools.map(({ id }: { id: string }) => id).toSorted(), bridge.toSorted());
    const call = { name: "search", arguments: { query: "hills" } };
    const answer = await ask("/tools/call_tool/execute?bridge=1", { arguments: call });
    assertEquals(JSON.parse(answer).content, { query: "hills" });
  });
});
