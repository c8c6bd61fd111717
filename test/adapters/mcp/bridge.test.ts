import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, ToolRegistry } from "@plue/tools";
import { createToolBridge } from "@plue/tools/finding";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { connect } from "./support.ts";
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
  it("forwards the progress and metadata of the tool", async () => {
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
});
