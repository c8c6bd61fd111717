/** The alternatives to exports for `bench/formats_rivals.bench.ts`, with the same tools. */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { asSchema } from "ai";
import { zodFunction } from "openai/helpers/zod";
import { z } from "zod";

/** A tool in the form of both SDKs. */
export interface ZodTool {
  readonly name: string;
  readonly description: string;
  readonly schema: z.ZodObject;
}

/**
 * Typical tools: optional properties, an enum, a nested object, a list. New ones every time.
 *
 * @param strict True to make optional properties nullable, as the OpenAI SDK requires for its
 * strict mode. An export does this itself.
 */
export function makeZodTools(count: number, strict = false): readonly ZodTool[] {
  const maybe = (schema: z.ZodType): z.ZodType => strict ? schema.nullable() : schema.optional();
  return Array.from({ length: count }, (_, number) => ({
    name: `tool_${number}`,
    description: `Does thing number ${number}, and says how it went.`,
    schema: z.object({
      path: z.string().min(1).describe("Where to do it."),
      limit: maybe(z.int().min(1).max(100)),
      mode: maybe(z.enum(["fast", "exact"])),
      filter: maybe(z.strictObject({ since: maybe(z.iso.datetime()) })),
      labels: maybe(z.array(z.string()).max(10)),
    }),
  }));
}

/** The same parameters as JSON Schema. */
export function jsonSchemaOf(tool: ZodTool): Record<string, unknown> {
  return z.toJSONSchema(tool.schema);
}

/** The JSON Schemas that the AI SDK makes of the tools, as a request needs them. */
export async function listWithAiSdk(tools: readonly ZodTool[]): Promise<readonly unknown[]> {
  const schemas: unknown[] = [];
  for (const { schema } of tools) schemas.push(await asSchema(schema).jsonSchema);
  return schemas;
}

/** The strict definitions that the OpenAI SDK makes of the tools. */
export function listWithOpenAi(tools: readonly ZodTool[]): readonly unknown[] {
  return tools.map(({ name, description, schema }) =>
    zodFunction({ name, description, parameters: schema })
  );
}

/** A server with the tools, and a function that requests its list of tools. */
export async function serveWithMcpSdk(
  tools: readonly ZodTool[],
): Promise<() => Promise<readonly unknown[]>> {
  const server = new McpServer({ name: "rival", version: "1.0.0" });
  for (const { name, description, schema } of tools) {
    server.registerTool(name, { description, inputSchema: schema.shape }, () => ({ content: [] }));
  }
  let receive: (message: { readonly result?: unknown }) => void = () => {};
  const transport: Transport = {
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
    send: (message) => Promise.resolve(receive(message as { readonly result?: unknown })),
  };
  await server.connect(transport);
  let id = 0;
  const request = (method: string, params: Record<string, unknown>): Promise<unknown> => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    receive = ({ result }) => resolve(result);
    transport.onmessage?.({ jsonrpc: "2.0", id: id++, method, params });
    return promise;
  };
  await request("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1.0.0" },
  });
  return async () => {
    const { tools: list } = await request("tools/list", {}) as { readonly tools: unknown[] };
    return list;
  };
}
