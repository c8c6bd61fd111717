/**
 * The default schema engine, what uses it by default, and `defineTool` with types inferred from
 * TypeBox and JSON Schema. The folder's table of contents.
 */

export * from "./define_tool.ts";
export * from "./typebox_engine.ts";
export * from "./defaults.ts";
