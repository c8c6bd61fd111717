/** Tools: the table of contents of this folder, for the folders that build on it. */

export * from "./tool.ts";
export * from "./context.ts";
export * from "./result.ts";
export * from "./traits.ts";
export * from "./define_tool.ts";
export * from "./check.ts";
export * from "./json.ts";
export * from "./text.ts";
export * from "./clock.ts";
export * from "./memo.ts";
