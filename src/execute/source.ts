/**
 * What a dispatcher can be made for.
 *
 * @module
 */

import type { ToolHost } from "../registry/mod.ts";
import type { Selection, Toolset } from "../select/mod.ts";

/** A registry, as the dispatcher needs it: tools that it can run and select from. */
export interface SelectableToolHost extends ToolHost {
  select(selection?: Selection): Toolset;
}

/** Whether `source` is a registry. */
export function isSelectable(source: unknown): source is SelectableToolHost {
  const { select, acquire } = (source ?? {}) as Partial<SelectableToolHost>;
  return typeof select === "function" && typeof acquire === "function";
}

/** Whether `source` is a toolset. Not `instanceof`: another copy of plue may have made it. */
export function isToolset(source: unknown): source is Toolset {
  const { get, isAvailable, tools } = (source ?? {}) as Partial<Toolset>;
  return typeof get === "function" && typeof isAvailable === "function" && Array.isArray(tools);
}
