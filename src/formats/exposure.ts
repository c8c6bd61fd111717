/** A toolset as one target sees it. */

import { type Exportable, type ExportResult, exportTools } from "./export.ts";
import type { ExportOptions } from "./export_options.ts";
import {
  findTarget,
  type RequestOf,
  type TargetLike,
  type TargetOf,
  type ToolsOf,
} from "./targets.ts";

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
 */
export class Exposure<Like extends TargetLike> {
  /** The tools. */
  readonly toolset: Exportable;
  /** The target that sees them. */
  readonly target: Like;
  readonly #options: ExportOptions | undefined;

  /** @throws {RangeError} If there is no such target. */
  constructor(toolset: Exportable, target: Like, options?: ExportOptions) {
    findTarget(target);
    this.toolset = toolset;
    this.target = target;
    this.#options = options;
  }

  /** Returns {@linkcode exportTools} of the current tools. */
  result(): ExportResult<ToolsOf<Like>, TargetOf<Like>["id"], RequestOf<Like>> {
    return exportTools(this.toolset, this.target, this.#options);
  }

  /**
   * The tools in the target's shape.
   *
   * @throws {TypeError} If a tool could not be exported: the list would not show that it is missing.
   */
  export(): ToolsOf<Like> {
    const { tools, rejected } = this.result();
    const first = rejected[0];
    if (first !== undefined) {
      const more = rejected.length === 1 ? "" : ` (and ${rejected.length - 1} more)`;
      throw new TypeError(first.message + more);
    }
    return tools;
  }

  /** Exports the tools, with warnings about omitted parts and errors for missing tools. */
  exportWithWarnings(): ExportedWithWarnings<ToolsOf<Like>> {
    const { tools, rejected, losses, warnings } = this.result();
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
