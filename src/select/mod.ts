/** Which tools a caller sees. The folder's table of contents, for the folders that build on it. */

export * from "./availability_context.ts";
export * from "./criteria.ts";
export * from "./explain.ts";
export * from "./filters.ts";
export * from "./function_definition.ts";
export * from "./selection.ts";
export * from "./source.ts";
export * from "./toolset.ts";
export * from "./toolset_builder.ts";
export * from "./vocabulary.ts";
export * from "./wire_names.ts";
