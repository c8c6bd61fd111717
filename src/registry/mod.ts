/**
 * Which tools exist. The folder's table of contents, for the folders that build on it.
 *
 * @module
 */

export type {
  DisposeOptions,
  RegistryErrorReport,
  SchemaLimits,
  ToolRegistryOptions,
} from "./options.ts";
export {
  ToolChange,
  type ToolChangeDetails,
  type ToolChangeListener,
  type ToolChangesOptions,
} from "./changes.ts";
export { ToolRegistry } from "./registry.ts";
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
