/**
 * A toolset as one target sees it.
 *
 * @module
 */

import { type Adapter, createAdapter } from "./adapter.ts";
import type { Exportable } from "./export_tools.ts";
import type { TargetTools } from "./targets.ts";
import type { ExportOptions, ResolveTarget, TargetName } from "./types.ts";

/** What is exported, and what there is to know about it. */
export interface ExportedWithWarnings<Tools> {
  readonly tools: Tools;
  /** Rejected tools, losses and warnings, as sentences, in this order. */
  readonly warnings: readonly string[];
}

/**
 * A toolset and a target.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { Exposure } from "@plue/tools/formats";
 *
 * const ping = defineTool({ name: "ping", title: "Ping", description: "Answers." });
 * const exposure = new Exposure([ping], "mistral");
 * assert.equal(exposure.export()[0]?.function.name, "ping");
 * assert.deepEqual(exposure.exportWithWarnings().warnings, [
 *   '"ping" at "/title": there is no place for "title"',
 * ]);
 * ```
 *
 * @typeParam Name The target.
 */
export class Exposure<Name extends TargetName = TargetName> {
  /** What is exposed. */
  readonly toolset: Exportable;
  /** To whom. */
  readonly adapter: Adapter<Name>;

  /** @throws {RangeError} If there is no such target. */
  constructor(toolset: Exportable, target: Name | Adapter<Name>, options?: ExportOptions) {
    this.toolset = toolset;
    this.adapter = typeof target === "string" ? createAdapter<Name>(target, options) : target;
  }

  /**
   * The tools in the target's shape.
   *
   * @throws {TypeError} If a tool could not be exported: nobody would see that it is missing.
   */
  export(): TargetTools[ResolveTarget<Name>] {
    const { tools, rejected } = this.adapter.export(this.toolset);
    const first = rejected[0];
    if (first !== undefined) {
      const more = rejected.length === 1 ? "" : ` (and ${rejected.length - 1} more)`;
      throw new TypeError(first.message + more);
    }
    return tools;
  }

  /** The tools in the target's shape that could be exported, and all there is to know. */
  exportWithWarnings(): ExportedWithWarnings<TargetTools[ResolveTarget<Name>]> {
    const { tools, rejected, losses, warnings } = this.adapter.export(this.toolset);
    return {
      tools,
      warnings: [
        ...rejected.map(({ message }) => message),
        ...losses.map(({ tool, path, message }) => `"${tool}" at "${path}": ${message}`),
        ...warnings.map(({ message }) => message),
      ],
    };
  }
}
