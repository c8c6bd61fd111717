/**
 * Code mode: a program calls the tools (`@plue/tools/code`).
 *
 * @module
 */

export { toolsAsTypeScript, type ToolTypesOptions } from "./types.ts";
