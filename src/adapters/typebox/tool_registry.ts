/**
 * The registry with TypeBox's engine and plue's search index, unless others are handed in.
 *
 * @module
 */

import {
  createToolIndex,
  type ToolIndex,
  ToolRegistry as CoreToolRegistry,
  type ToolRegistryOptions as CoreToolRegistryOptions,
} from "../../registry/mod.ts";
import type { SchemaEngine } from "../../schema/mod.ts";
import { refuse } from "../../tool/mod.ts";
import { defaultEngine } from "./default_engine.ts";

/** Options for {@linkcode ToolRegistry}. */
export interface ToolRegistryOptions extends Omit<CoreToolRegistryOptions, "engine"> {
  /**
   * Compiles the tools' schemas.
   *
   * @default {typeboxEngine()}
   */
  readonly engine?: SchemaEngine | undefined;
  /**
   * Makes the index that `searchTools` asks.
   *
   * @default {createToolIndex}
   */
  readonly index?: (() => ToolIndex) | undefined;
}

/**
 * The mutable set of all tools: unique ids, change events, and each tool's life from `init` to
 * `dispose`. Callers see it through toolsets, which `select` makes.
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
export class ToolRegistry extends CoreToolRegistry {
  /** @throws {TypeError | RangeError} If an option or one of the tools is wrong. */
  constructor(options: ToolRegistryOptions = {}) {
    // Its tools would be taken for nothing.
    if (Array.isArray(options)) refuse("make a registry", "its tools go into the option tools");
    const { engine = defaultEngine(), index = createToolIndex } = options;
    super({ ...options, engine, index });
  }
}
