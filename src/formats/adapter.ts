/**
 * One target, ready to export to.
 *
 * @module
 */

import { type Exportable, exportTools } from "./export_tools.ts";
import { listTargets, resolveTarget, type TargetInfo, type TargetTools } from "./targets.ts";
import type { ExportOptions, ExportResult, ResolveTarget, TargetId, TargetName } from "./types.ts";

/**
 * A target with its options chosen: what a program hands around that does not care which target.
 *
 * @typeParam Name The target.
 */
export interface Adapter<Name extends TargetName = TargetName> {
  readonly target: TargetId;
  /** The target's rules as data. */
  readonly info: TargetInfo;
  /** {@linkcode exportTools} to this target. */
  export(source: Exportable): ExportResult<TargetTools[ResolveTarget<Name>]>;
}

/**
 * Makes the adapter of a target.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { createAdapter } from "@plue/tools/formats";
 *
 * const adapter = createAdapter("anthropic");
 * const { tools } = adapter.export([defineTool({ name: "ping", description: "Answers." })]);
 * assert.equal(tools[0]?.name, "ping");
 * ```
 *
 * @param target The target, or an alias of one.
 * @param options The options of every export.
 * @throws {RangeError} If there is no such target.
 */
export function createAdapter<Name extends TargetName>(
  target: Name,
  options?: ExportOptions,
): Adapter<Name> {
  const id = resolveTarget(target);
  const info = listTargets().find((one) => one.id === id) as TargetInfo;
  return Object.freeze({
    target: id,
    info,
    export: (source: Exportable) => exportTools(source, target, options),
  });
}
