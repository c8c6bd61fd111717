/**
 * Code mode: a program calls the tools (`@plue/tools/code`).
 *
 * @module
 */

export { stripTypes, type TypeStripper } from "./strip.ts";
export { toolsAsTypeScript, type ToolTypesOptions } from "./types.ts";
