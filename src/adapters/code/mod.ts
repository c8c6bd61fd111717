/**
 * Code mode: a program calls the tools (`@plue/tools/code`).
 *
 * @module
 */

export { codeTool, type CodeToolOptions } from "./code_tool.ts";
export type { CodeLimits, Executor, Program, ProgramCall, ProgramEnd } from "./executor.ts";
export { meterModule } from "./meter.ts";
export { quickJs } from "./quick_js.ts";
export { stripTypes, type TypeStripper } from "./strip.ts";
export { toolsAsTypeScript, type ToolTypesOptions } from "./types.ts";
export { workerLoader, type WorkerLoaderBinding } from "./worker_loader.ts";
