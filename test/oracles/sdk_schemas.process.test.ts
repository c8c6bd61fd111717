/** Runtime checks of SDKs: Mistral's request, MCP's `Tool` (both SDKs), draft 2020-12. */

import { Tool$outboundSchema } from "@mistralai/mistralai/models/components";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { ToolSchema } from "@modelcontextprotocol/core";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport as OldTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server as OldServer } from "@modelcontextprotocol/sdk/server/index.js";
import {
  ListToolsRequestSchema,
  ToolSchema as OldToolSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { isSpecType, Server } from "@modelcontextprotocol/server";
import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { exportTools, type TargetName } from "../../src/formats/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";
import { aToolSchema } from "../support/arbitrary_schema.ts";
import { ALL } from "./tools.ts";

// The same cases on every runtime and in every run. To search for new ones, leave the seed out.
fc.configureGlobal({ seed: 20261120 });

/** Returns the tools as a client would serialize them. */
function sent<Tools>(tools: Tools): Tools {
  return JSON.parse(JSON.stringify(tools));
}

const anyTool = fc.tuple(aToolSchema(), aToolSchema()).map(([parameters, returns]) =>
  makeTool({ name: "any", description: "Does it.", parameters, returns })
);

/** Zod omits properties named `__proto__`, in schemas of servers and of plue. */
const mentionsProto = (tool: Tool): boolean =>
  JSON.stringify([tool.parameters, tool.returns]).includes("__proto__");

/** Checks the exports of the tools of this file, and of random tools. */
function everyExport(
  check: (tools: readonly Tool[]) => void,
  tool: fc.Arbitrary<Tool> = anyTool,
): void {
  check(ALL);
  fc.assert(fc.property(tool, (one) => check([one])), { numRuns: 200 });
}

describe("Mistral's Tool$outboundSchema", () => {
  it("rejects a function without parameters", () => {
    const tool = { type: "function", function: { name: "a" } };
    assertEquals(Tool$outboundSchema.safeParse(tool).success, false);
  });

  it("accepts every export unchanged", () => {
    everyExport((tools) => {
      for (const tool of sent(exportTools(tools, "mistral").tools)) {
        assertEquals<unknown>(Tool$outboundSchema.parse(tool), tool);
      }
    });
  });
});

describe("the MCP SDK's ToolSchema", () => {
  it("of 1.x rejects a result that is not an object", () => {
    const tool = { name: "a", inputSchema: { type: "object" }, outputSchema: { type: "array" } };
    assertEquals(OldToolSchema.safeParse(tool).success, false);
  });

  it("of 2.x rejects arguments that are not an object", () => {
    assertEquals(ToolSchema.safeParse({ name: "a", inputSchema: {} }).success, false);
    assertEquals(isSpecType.Tool({ name: "a", inputSchema: {} }), false);
  });

  for (const target of ["mcp@2025-06-18", "mcp@2025-11-25"] as const) {
    it(`of 1.x accepts every export to ${target} unchanged`, () => {
      everyExport((tools) => {
        for (const tool of sent(exportTools(tools, target).tools)) {
          assertEquals<unknown>(OldToolSchema.parse(tool), tool);
        }
      }, anyTool.filter((tool) => !mentionsProto(tool)));
    });
  }

  for (const target of ["mcp@2025-06-18", "mcp@2025-11-25", "mcp@2026-07-28"] as const) {
    it(`of 2.x accepts every export to ${target} unchanged`, () => {
      everyExport((tools) => {
        for (const tool of sent(exportTools(tools, target).tools)) {
          assertEquals<unknown>(ToolSchema.parse(tool), tool);
          assert(isSpecType.Tool(tool));
        }
      }, anyTool.filter((tool) => !mentionsProto(tool)));
    });
  }
});

describe("an MCP server", () => {
  const capabilities = { capabilities: { tools: {} } };
  const us = { name: "plue", version: "1.0.0" };

  it("of 1.x lists the export, which its client reads unchanged", async () => {
    const { tools } = sent(exportTools(ALL, "mcp@2025-11-25"));
    const server = new OldServer(us, capabilities);
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    const client = new OldClient(us);
    const [here, there] = OldTransport.createLinkedPair();
    await Promise.all([server.connect(there), client.connect(here)]);
    assertEquals<unknown>((await client.listTools()).tools, tools);
    await client.close();
  });

  it("of 2.x lists the export, which its client reads unchanged", async () => {
    const { tools } = sent(exportTools(ALL, "mcp@2025-11-25"));
    const server = new Server(us, capabilities);
    server.setRequestHandler("tools/list", () => ({ tools }));
    const client = new Client(us);
    const [here, there] = InMemoryTransport.createLinkedPair();
    await Promise.all([server.connect(there), client.connect(here)]);
    assertEquals<unknown>((await client.listTools()).tools, tools);
    await client.close();
  });
});

describe("the meta-schema of 2020-12", () => {
  const ajv = new Ajv2020({ strict: false });
  const faults = (schema: unknown): string =>
    ajv.validateSchema(schema as object) === true ? "" : ajv.errorsText(ajv.errors);

  /** The schemas in an export, with the names of their tools. */
  const SCHEMAS: Partial<Record<TargetName, (tools: readonly Tool[]) => readonly unknown[]>> = {
    "openai.chat": (tools) =>
      exportTools(tools, "openai.chat").tools.map((tool) => tool.function.parameters),
    "openai.chat.strict": (tools) =>
      exportTools(tools, "openai.chat.strict").tools.map((tool) => tool.function.parameters),
    "anthropic": (tools) => exportTools(tools, "anthropic").tools.map((tool) => tool.input_schema),
    "anthropic.strict": (tools) =>
      exportTools(tools, "anthropic.strict").tools.map((tool) => tool.input_schema),
    "bedrock": (tools) =>
      exportTools(tools, "bedrock").tools.flatMap(({ toolSpec }) =>
        toolSpec?.inputSchema.json ?? []
      ),
    "gemini": (tools) =>
      exportTools(tools, "gemini").tools.flatMap((entry) => entry.functionDeclarations)
        .flatMap((tool) => [tool.parametersJsonSchema, tool.responseJsonSchema ?? {}]),
    "mistral": (tools) =>
      exportTools(tools, "mistral").tools.map((tool) => tool.function.parameters),
    "cohere": (tools) => exportTools(tools, "cohere").tools.map((tool) => tool.function.parameters),
    "ollama": (tools) => exportTools(tools, "ollama").tools.map((tool) => tool.function.parameters),
  };

  it("rejects keywords that only draft-07 has", () => {
    assert(faults({ type: "array", items: [{ type: "string" }] }) !== "");
    assert(faults({ type: "integer", exclusiveMinimum: true }) !== "");
  });

  for (const [target, schemasOf] of Object.entries(SCHEMAS)) {
    it(`accepts every schema that is sent to ${target}`, () => {
      everyExport((tools) => {
        const schemas = sent(schemasOf(tools));
        assert(schemas.length > 0 || tools.length === 1);
        assertEquals(schemas.map(faults).filter((fault) => fault !== ""), []);
      });
    });
  }
});
