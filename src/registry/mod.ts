/**
 * Which tools exist. The folder's table of contents, for the folders that build on it.
 *
 * @module
 */

export type {
  DisposeOptions,
  RegistryErrorReport,
  RegistryOptions,
  SchemaLimits,
  UpdateOptions,
} from "./options.ts";
export { ToolChange, type ToolChangeDetails, type ToolChangeListener } from "./changes.ts";
export { Registry } from "./registry.ts";
export { ToolRegistry, type ToolRegistryOptions } from "./tool_registry.ts";
export {
  createToolIndex,
  type FoundTools,
  searchToolset,
  searchToolsetAsync,
  type ToolAnswer,
  type ToolField,
  type ToolHit,
  type ToolIndex,
  type ToolIndexOptions,
  type ToolMatch,
  type ToolSearchOptions,
  type ToolSearchScope,
} from "./search/mod.ts";
export { isToolHost, type ToolHost, ToolLifecycleError, type ToolRuntime } from "./lifecycle.ts";
