import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { createToolBridge } from "@plue/tools/finding";
import type { AccessEntry } from "@plue/tools/hono";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { askModern, connect, messageIn, modernRequest } from "./support.ts";
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

const OWN = ["call_tool", "describe_tools", "search_tools"];

function endpoint(options: McpEndpointOptions = {}, registry = registryOfTools()): McpEndpoint {
  return createMcpEndpoint(registry, { tools: "bridge", openExecution: true, ...options });
}

function textOf(result: { readonly content: unknown }): string {
  return (result.content as readonly { readonly text: string }[])[0]?.text ?? "";
}

describe('createMcpEndpoint({ tools: "bridge" })', () => {
  for (const mode of ["auto", "legacy"] as const) {
    it(`gives ${mode === "auto" ? "new" : "older"} clients the bridge`, async () => {
      const client = await connect(endpoint(), mode);
      const { tools } = await client.listTools();
      assertEquals(tools.map(({ name }) => name), OWN);
      assertEquals(tools.map(({ annotations }) => annotations?.readOnlyHint), [false, true, true]);

      const found = await client.callTool({
        name: "search_tools",
        arguments: { query: "double a number" },
      });
      assertEquals(JSON.parse(textOf(found)), {
        tools: ["math:double({ n: number }): Doubles a number."],
      });
      const described = await client.callTool({
        name: "describe_tools",
        arguments: { names: ["math:double", "audit"] },
      });
      assertEquals(JSON.parse(textOf(described)).missing, ['There is no tool "audit"']);
      const done = await client.callTool({
        name: "call_tool",
        arguments: { name: "math:double", arguments: { n: 21 } },
      });
      assertEquals([done.isError ?? false, textOf(done)], [false, "42"]);
      await client.close();
    });
  }

  it("returns the failure of the target tool to the model, under the tool's name", async () => {
    const client = await connect(endpoint());
    const fail = async (name: string, args: unknown = {}): Promise<string> => {
      const result = await client.callTool({
        name: "call_tool",
        arguments: { name, arguments: args },
      });
      assertEquals(result.isError, true);
      return textOf(result);
    };
    assertStringIncludes(await fail("math:double", { n: "x" }), 'Cannot call "math:double"');
    assertStringIncludes(await fail("math:duble"), 'Did you mean "math:double"?');
    assertStringIncludes(await fail("wipe"), 'Cannot call "wipe": it needs approval');
    for (const name of ["audit", "call_tool", "search_tools", "nothing"]) {
      assertEquals(await fail(name), `Cannot call "${name}": there is no such tool`);
    }
    // Bridged tools have no names in MCP.
    await assertRejects(
      () => client.callTool({ name: "wipe", arguments: {} }),
      Error,
      "Unknown tool",
    );
    await client.close();
  });

  it("shows each caller what is the caller's, and counts and logs each call for its tool", async () => {
    const entries: AccessEntry[] = [];
    const asked: string[] = [];
    const mcp = endpoint({
      authorize: (request) => ({ role: request.headers.get("x-role") ?? undefined }),
      dispatch: {
        approve: ({ tool }) => {
          asked.push(tool.id);
          return true;
        },
      },
      observe: { access: (entry) => void entries.push(entry) },
    });
    const call = async (name: string, role: string): Promise<unknown> => {
      const params = { name: "call_tool", arguments: { name } };
      const response = await mcp.fetch(modernRequest("tools/call", params, { "x-role": role }));
      return (await messageIn(response)).result?.["isError"] ?? false;
    };
    assertEquals(await call("audit", "auditor"), false);
    assertEquals(await call("audit", "other"), true);
    assertEquals(await call("wipe", "other"), false);
    assertEquals(asked, ["wipe"]);
    assertEquals(
      entries.flatMap(({ calls = [] }) => calls.map(({ toolId, outcome }) => [toolId, outcome])),
      [["audit", "ok"], ["audit", "unknown_tool"], ["wipe", "ok"]],
    );
  });

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

  it("shows the same list while tools come and go", async () => {
    const registry = registryOfTools();
    const mcp = endpoint({}, registry);
    const list = async (): Promise<string> =>
      await (await mcp.fetch(modernRequest("tools/list"))).text();
    const before = await list();
    registry.registerTool({ name: "triple", description: "Triples.", execute: () => 3 });
    assertEquals(await list(), before);
    const params = { name: "call_tool", arguments: { name: "triple" } };
    const { result } = await askModern(mcp, "tools/call", params);
    assertEquals(textOf(result as { content: unknown }), "3");
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
