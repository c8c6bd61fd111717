/** The registry of tools: the contents of this folder for other folders. */

export * from "./changes.ts";
export * from "./lifecycle.ts";
export * from "./options.ts";
export * from "./registry.ts";
export * from "./search/mod.ts";
export * from "./tool_registry.ts";
