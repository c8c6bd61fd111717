import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { createToolBridge } from "@plue/tools/finding";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { askModern, connect } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

function registryOfTools(): ToolRegistry {
  return new ToolRegistry({
    tools: [
      defineTool({
        namespace: "math",
        name: "double",
        description: "Doubles a number.",
        risk: "safe",
        parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
        execute: ({ n }, { progress }) => {
          progress(1, 1, "doubled");
          return n * 2;
        },
      }),
      toolOf("wipe", () => "wiped", { risk: "critical", requiresApproval: true }),
      toolOf("audit", () => [], { roles: ["auditor"] }),
    ],
  });
}

function endpoint(options: McpEndpointOptions = {}, registry = registryOfTools()): McpEndpoint {
  return createMcpEndpoint(registry, { tools: "bridge", openExecution: true, ...options });
}

function textOf(result: { readonly content: unknown }): string {
  return (result.content as readonly { readonly text: string }[])[0]?.text ?? "";
}

describe('createMcpEndpoint({ tools: "bridge" })', () => {
  it("applies the host's policies and limits, and counts for the tool", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => release = resolve);
    const registry = registryOfTools();
    registry.registerTool({ name: "hold", description: "Holds.", execute: () => held });
    const dispatcher = new ToolDispatcher(registry, {
      limits: { maxConcurrentPerTool: 1, maxQueued: 0 },
    });
    const mcp = endpoint({
      dispatcher,
      selection: { policies: [{ name: "no wipe", allow: (tool) => tool?.id !== "wipe" }] },
    }, registry);
    const call = async (name: string): Promise<string> => {
      const params = { name: "call_tool", arguments: { name } };
      const { result } = await askModern(mcp, "tools/call", params);
      return textOf(result as { content: unknown });
    };
    assertEquals(await call("wipe"), 'Cannot call "wipe": there is no such tool');
    const first = call("hold");
    assertStringIncludes(await call("hold"), 'Cannot call "hold": too many calls');
    release();
    await first;
    assertEquals(dispatcher.metrics().tools.map(({ id, calls, failed }) => [id, calls, failed]), [
      ["hold", 2, 1],
    ]);
  });

  it("passes on what the tool sends meanwhile", async () => {
    const client = await connect(endpoint());
    const steps: unknown[] = [];
    await client.callTool(
      { name: "call_tool", arguments: { name: "math:double", arguments: { n: 1 } } },
      { onprogress: ({ progress, message }) => steps.push([progress, message]) },
    );
    assertEquals(steps, [[1, "doubled"]]);
    await client.close();
  });

  it("accepts a bridge with options", async () => {
    const client = await connect(endpoint({
      tools: (toolset) => createToolBridge(toolset, { pinned: ["math:double"] }),
    }));
    const { tools } = await client.listTools();
    assertEquals(tools.map(({ name }) => name), [
      "call_tool",
      "describe_tools",
      "math.double",
      "search_tools",
    ]);
    const direct = await client.callTool({ name: "math.double", arguments: { n: 4 } });
    assertEquals(textOf(direct), "8");
    await client.close();
  });

  it("rejects other values", () => {
    assertThrows(
      () => endpoint({ tools: "brigde" as "bridge" }),
      TypeError,
      '"all", "bridge" or a function',
    );
  });
});
