/**
 * Keeps a registry's share of a server's tools as the server has them.
 *
 * @module
 */

import type { ToolRegistry } from "../../registry/mod.ts";
import type { Tool } from "../../tool/mod.ts";

/** The tools of one server, and their places in a registry. */
export class RegistrySync {
  readonly #registry: ToolRegistry | undefined;
  readonly #onError: (error: unknown) => void;
  #tools: readonly Tool[] | undefined;

  constructor(registry: ToolRegistry | undefined, onError: (error: unknown) => void) {
    this.#registry = registry;
    this.#onError = onError;
  }

  get tools(): readonly Tool[] {
    return this.#tools ?? [];
  }

  /**
   * Takes in a new list. Tools that are as they were stay the same objects.
   *
   * @throws {TypeError} The first time, if the registry refuses one; then none is taken in. Later,
   * what is refused is reported, and the rest is taken in.
   */
  update(listed: readonly Tool[]): void {
    const before = new Map(this.tools.map((tool) => [tool.id, tool]));
    const next = listed.map((tool) => {
      const old = before.get(tool.id);
      return old !== undefined && JSON.stringify(old) === JSON.stringify(tool) ? old : tool;
    });
    if (this.#tools === undefined) this.#registry?.registerTools(next);
    else this.#apply(before, next);
    this.#tools = Object.freeze(next);
  }

  /** Takes all tools out of the registry. */
  clear(): void {
    for (const tool of this.tools) this.#remove(tool);
    this.#tools = Object.freeze([]);
  }

  #apply(before: ReadonlyMap<string, Tool>, next: readonly Tool[]): void {
    const registry = this.#registry;
    if (registry === undefined) return;
    const kept = new Set(next.map(({ id }) => id));
    for (const [id, tool] of before) if (!kept.has(id)) this.#remove(tool);
    for (const tool of next) {
      const old = before.get(tool.id);
      if (old === tool) continue;
      try {
        if (old !== undefined && registry.getTool(tool.id) === old) registry.updateTool(tool);
        else registry.registerTool(tool);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  /** What somebody else has put in a tool's place is not ours to take out. */
  #remove(tool: Tool): void {
    if (this.#registry?.getTool(tool.id) === tool) this.#registry.unregisterTool(tool.id);
  }
}
