/** The selection of the tools that a caller sees: the contents of this folder for other folders. */

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
