import { McpServer } from "@modelcontextprotocol/server";
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { fromMcpServer } from "../../../src/adapters/mcp/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";

describe("fromMcpServer()", () => {
  it("lists the tools of a server, and calls them", async () => {
    const server = new McpServer({ name: "clock", version: "1.0.0" });
    const text = { content: [{ type: "text" as const, text: "noon" }] };
    const annotations = { readOnlyHint: true };
    server.registerTool("now", { description: "Tells the time.", annotations }, () => text);
    server.registerTool("fail", {}, () => ({ ...text, isError: true }));
    const tools = await fromMcpServer(server);
    assertEquals(tools.map(({ id, risk }) => [id, risk]), [["now", "low"], ["fail", "medium"]]);
    const dispatcher = new ToolDispatcher(buildToolset(tools), { engine: typeboxEngine() });
    const result = await dispatcher.dispatch({ name: "now" });
    assertEquals(result.ok && result.content, "noon");
    const failed = await dispatcher.dispatch({ name: "fail" });
    assertStringIncludes(failed.ok ? "" : failed.error.message, "noon");
    await assertRejects(() => fromMcpServer(server), Error, "already connected");
  });

  it("rejects a value that is not a server, and an invalid option", async () => {
    const message = "Cannot read the tools of the MCP server: it must be an McpServer of the SDK";
    await assertRejects(() => fromMcpServer({} as never), TypeError, message);
    const server = new McpServer({ name: "clock", version: "1.0.0" });
    const options = { tags: [] } as never;
    await assertRejects(() => fromMcpServer(server, options), TypeError, "tags");
  });
});
