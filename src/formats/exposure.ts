/**
 * A toolset as one target sees it.
 *
 * @module
 */

import { type Exportable, type ExportResult, exportTools } from "./export.ts";
import type { ExportOptions } from "./export_options.ts";
import {
  findTarget,
  infoOf,
  type RequestOf,
  type TargetInfo,
  type TargetLike,
  type TargetName,
  type TargetOf,
  type ToolsOf,
} from "./targets.ts";

/**
 * A target with chosen options, for code that exports to any target.
 *
 * @typeParam Like The target.
 */
export interface Adapter<Like extends TargetLike = TargetName> {
  /** The target's id. */
  readonly target: TargetOf<Like>["id"];
  /** The target's rules as data. */
  readonly info: TargetInfo<TargetOf<Like>["id"]>;
  /** {@linkcode exportTools} to this target. */
  export(source: Exportable): ExportResult<ToolsOf<Like>, TargetOf<Like>["id"], RequestOf<Like>>;
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
export function createAdapter<Like extends TargetLike>(
  target: Like,
  options?: ExportOptions,
): Adapter<Like> {
  const info: TargetInfo<TargetOf<Like>["id"]> = infoOf(findTarget(target));
  return Object.freeze({
    target: info.id,
    info,
    export: (source: Exportable) => exportTools(source, target, options),
  });
}

/** Why a tool could not be exported. Its message names the tool. */
export interface ExportError extends Error {
  /** The tool's id. */
  readonly tool: string;
}

/** The export, with remarks about it. */
export interface ExportedWithWarnings<Tools> {
  readonly tools: Tools;
  /** The parts of tools that are not sent, then remarks about the request, as sentences. */
  readonly warnings: readonly string[];
  /** The tools that are missing, in their order. */
  readonly errors: readonly ExportError[];
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
 * const { warnings, errors } = exposure.exportWithWarnings();
 * assert.deepEqual(warnings, ['"ping" at "/title": there is no place for "title"']);
 * assert.deepEqual(errors, []);
 * ```
 *
 * @typeParam Like The target.
 */
export class Exposure<Like extends TargetLike = TargetName> {
  /** The tools. */
  readonly toolset: Exportable;
  /** The target that sees them. */
  readonly adapter: Adapter<Like>;

  /** @throws {RangeError} If there is no such target. */
  constructor(toolset: Exportable, target: Like | Adapter<Like>, options?: ExportOptions) {
    this.toolset = toolset;
    this.adapter = isAdapter(target) ? target : createAdapter(target, options);
  }

  /**
   * The tools in the target's shape.
   *
   * @throws {TypeError} If a tool could not be exported: the list would not show that it is missing.
   */
  export(): ToolsOf<Like> {
    const { tools, rejected } = this.adapter.export(this.toolset);
    const first = rejected[0];
    if (first !== undefined) {
      const more = rejected.length === 1 ? "" : ` (and ${rejected.length - 1} more)`;
      throw new TypeError(first.message + more);
    }
    return tools;
  }

  /** Exports the tools, with warnings about omitted parts and errors for missing tools. */
  exportWithWarnings(): ExportedWithWarnings<ToolsOf<Like>> {
    const { tools, rejected, losses, warnings } = this.adapter.export(this.toolset);
    return {
      tools,
      warnings: [
        ...losses.map(({ tool, path, message }) => `"${tool}" at "${path}": ${message}`),
        ...warnings.map(({ message }) => message),
      ],
      errors: rejected.map(({ tool, message }) => Object.assign(new TypeError(message), { tool })),
    };
  }
}

function isAdapter<Like extends TargetLike>(
  target: Like | Adapter<Like>,
): target is Adapter<Like> {
  return typeof target === "object" && "export" in target;
}
