/**
 * The Model Context Protocol, both ways: tools served to MCP clients, and the tools of MCP servers
 * in a registry.
 *
 * @module
 */

export {
  createMcpEndpoint,
  type McpEndpoint,
  type McpExecutionContext,
  type McpHandlerContext,
} from "./endpoint.ts";
export type { McpEndpointOptions } from "./endpoint_options.ts";
export { isMcpContent, type McpContent, mcpContent } from "./mcp_content.ts";
export type {
  ImportedMcpServer,
  ImportMcpServerOptions,
  McpCommand,
  McpServerSource,
  ReconnectOptions,
} from "./import_options.ts";
export { importMcpServer } from "./import_server.ts";
