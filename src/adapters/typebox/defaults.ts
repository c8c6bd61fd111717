/**
 * The registry and the dispatcher with the default engine and plue's search index, unless others are
 * passed.
 */

import {
  type SelectableToolHost,
  ToolDispatcher as CoreToolDispatcher,
  type ToolDispatcherOptions,
} from "../../execute/mod.ts";
import {
  createToolIndex,
  type ToolAnswer,
  type ToolIndex,
  ToolRegistry as FullRegistry,
  type ToolRegistryOptions as FullRegistryOptions,
} from "../../registry/mod.ts";
import { hardened, isSchemaEngine, type SchemaEngine } from "../../schema/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { fail } from "../../tool/mod.ts";
import { typeboxEngine } from "./typebox_engine.ts";

let engine: SchemaEngine | undefined;

/** One hardened engine for all, so that a schema in two registries is compiled once. */
export function defaultEngine(): SchemaEngine {
  return engine ??= hardened(typeboxEngine());
}

/** Returns the hardened engine; other values unchanged, so that the core rejects them. */
function harden(engine: SchemaEngine): SchemaEngine {
  return isSchemaEngine(engine) ? hardened(engine) : engine;
}

/** Options for {@linkcode ToolRegistry}. */
export interface ToolRegistryOptions extends Omit<FullRegistryOptions, "engine"> {
  /**
   * Checks the tools' schemas when they are registered, and compiles them. It is hardened: see
   * `hardened`.
   *
   * @default {typeboxEngine()}
   */
  readonly engine?: SchemaEngine | undefined;
  /**
   * Creates the index for `searchTools`.
   *
   * @default {createToolIndex}
   */
  readonly index?: (() => ToolIndex<ToolAnswer>) | undefined;
}

/**
 * The mutable set of all tools: unique ids, change events, and each tool's life from `init` to
 * `dispose`. Callers use it through toolsets, which `select` creates.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 *
 * await using registry = new ToolRegistry({
 *   tools: [{ name: "echo", description: "Says it again.", risk: "safe" }],
 * });
 * const changes: string[] = [];
 * registry.subscribe(({ type, tool }) => changes.push(`${type} ${tool.id}`));
 * registry.registerTool({ name: "rm", description: "Deletes a file.", risk: "high" });
 *
 * assert.deepEqual(registry.ids, ["echo", "rm"]);
 * assert.deepEqual(changes, ["added rm"]);
 * assert.deepEqual(registry.getToolsByRiskLevel("low").map((tool) => tool.id), ["echo"]);
 * assert.equal(registry.searchTools("delete files")[0]?.id, "rm");
 * ```
 */
export class ToolRegistry extends FullRegistry {
  /** @throws {TypeError | RangeError} If an option or one of the tools is invalid. */
  constructor(options: ToolRegistryOptions = {}) {
    // Every option is optional, so a list of tools would pass for options without tools.
    if (Array.isArray(options)) fail("make a registry", "its tools go into the option tools");
    const { engine = defaultEngine(), index = createToolIndex } = options;
    super({ ...options, engine: harden(engine), index });
  }
}

/**
 * Runs calls of the tools in a toolset: from a model's arguments to a valid result, or a failure
 * for the model. It never rejects or throws because of a call.
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
   * @param options The layers, limits and clock. `engine` is for a toolset that was created from a
   * list; by default {@linkcode typeboxEngine}.
   * @throws {TypeError | RangeError} If an option is invalid.
   */
  constructor(source: Toolset | SelectableToolHost, options: ToolDispatcherOptions = {}) {
    super(source, { ...options, engine: harden(options.engine ?? defaultEngine()) });
  }
}
