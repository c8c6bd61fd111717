/**
 * The Model Context Protocol, both ways: tools served to MCP clients, and the tools of MCP servers
 * in a registry.
 *
 * @module
 */

export { createMcpEndpoint, type McpEndpoint, type McpHandlerContext } from "./endpoint.ts";
export type { McpNotify } from "./sessions.ts";
export type { McpEndpointOptions, McpExtensionContext } from "./server.ts";
export type { ReconnectOptions } from "./connection.ts";
export type { McpCommand, McpServerSource } from "./open_client.ts";
export { fromMcpServer } from "./from_server.ts";
export { type ImportedMcpServer, importMcpServer, type ImportMcpServerOptions } from "./import.ts";
export { type SkillCatalog, skillCatalog, type SkillCatalogOptions } from "./skills.ts";
