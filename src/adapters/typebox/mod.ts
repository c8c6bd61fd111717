/**
 * The default schema engine, what uses it by default, and `defineTool` with types inferred from
 * TypeBox and JSON Schema. The folder's table of contents.
 *
 * @module
 */

export {
  defineTool,
  type InferConfig,
  type InferContext,
  type InferParams,
  type InferResult,
} from "./define_tool.ts";
export { typeboxEngine, type TypeboxEngineOptions } from "./typebox_engine.ts";
export { ToolDispatcher, ToolRegistry, type ToolRegistryOptions } from "./defaults.ts";
