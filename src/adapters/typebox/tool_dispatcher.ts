/**
 * The dispatcher with TypeBox's engine, unless the registry or the caller brings another.
 *
 * @module
 */

import {
  type SelectableToolHost,
  ToolDispatcher as CoreToolDispatcher,
  type ToolDispatcherOptions,
} from "../../execute/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { defaultEngine } from "./default_engine.ts";

/**
 * Runs calls of the tools in a toolset: from a model's arguments to a result that is valid, or a
 * failure that the model can read. It never rejects and never throws for what a call does.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { buildToolset, defineTool, ToolDispatcher } from "@plue/tools";
 *
 * const toolset = buildToolset([
 *   defineTool({
 *     name: "add",
 *     description: "Adds two numbers.",
 *     parameters: {
 *       type: "object",
 *       properties: { a: { type: "number" }, b: { type: "number" } },
 *       required: ["a", "b"],
 *     },
 *     execute: ({ a, b }) => a + b,
 *   }),
 * ]);
 * const dispatcher = new ToolDispatcher(toolset);
 *
 * const sum = await dispatcher.dispatch({ name: "add", arguments: '{"a":2,"b":40}' });
 * assert.equal(sum.ok && sum.content, 42);
 * ```
 */
export class ToolDispatcher extends CoreToolDispatcher {
  /**
   * @param source The tools that may be called: a toolset, or a registry for all of its tools. A
   * registry is followed as it changes, and compiles with its own engine.
   * @param options What the host adds. `engine` is for a toolset that was made from a list; it is
   * TypeBox's by default.
   * @throws {TypeError | RangeError} If an option is wrong.
   */
  constructor(source: Toolset | SelectableToolHost, options: ToolDispatcherOptions = {}) {
    super(source, { ...options, engine: options.engine ?? defaultEngine() });
  }
}
