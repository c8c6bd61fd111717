/**
 * Which tools exist. The folder's table of contents, for the folders that build on it.
 *
 * @module
 */

export type { SchemaLimits } from "./admission.ts";
export type { ToolChange, ToolChangeListener } from "./change_feed.ts";
export type { ToolChangesOptions } from "./change_stream.ts";
export { ToolRegistry } from "./registry.ts";
export type {
  DisposeOptions,
  RegistryErrorReport,
  ToolRegistryOptions,
} from "./registry_options.ts";
export type { RegistryClock } from "../tool/mod.ts";
export {
  createToolIndex,
  searchToolset,
  type ToolHit,
  type ToolIndex,
  type ToolSearchOptions,
} from "./search/mod.ts";
export { isToolHost, type ToolHost, ToolLifecycleError, type ToolRuntime } from "./tool_host.ts";
