/**
 * The default schema engine, what uses it by default, and `defineTool` with types inferred from
 * TypeBox and JSON Schema. The folder's table of contents.
 *
 * @module
 */

export { defineTool } from "./define_tool.ts";
export type { InferConfig, InferParams, InferResult } from "./infer.ts";
export { typeboxEngine, type TypeboxEngineOptions } from "./typebox_engine.ts";
export { ToolDispatcher } from "./tool_dispatcher.ts";
export { ToolRegistry, type ToolRegistryOptions } from "./tool_registry.ts";
