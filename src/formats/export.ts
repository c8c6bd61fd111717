/** Exports all tools of a request together, because names and limits are per request. */

import { numberOf, type Tool } from "../tool/mod.ts";
import type { ExportNames } from "./export_names.ts";
import {
  checkExportOptions,
  type ExportOptions,
  type ExportResult,
  writeSettings,
} from "./export_options.ts";
import { RequestExport, sentTools } from "./export_request.ts";
import type { Target } from "./target.ts";
import {
  findTarget,
  type RequestOf,
  type TargetLike,
  type TargetOf,
  type ToolsOf,
} from "./targets.ts";

/** A list of tools, or a toolset with its available tools and the tools that its bridge loads. */
export type Exportable = readonly Tool[] | {
  available(): readonly Tool[];
  readonly bridge?: { loadable(): readonly Tool[] | undefined } | undefined;
};

const DEFAULTS: ExportOptions = Object.freeze({});

/** One tool of an export, in the target's shape. */
export interface ExportedPart {
  /** The id of the tool. */
  readonly tool: string;
  readonly wire: unknown;
}

/** Returns one part per tool. Throws if `exported` is not a result of `exportTools`. */
export function partsOf(exported: ExportResult): readonly ExportedPart[] {
  const found = sentTools.get(exported?.names);
  if (found !== undefined) {
    return found.map(({ view: { tool }, wire }) => ({ tool: tool.id, wire }));
  }
  throw new TypeError("Cannot split an export: it must be a result of exportTools");
}

/** Returns the deferred tools among `ids`. Providers reject tools that are loaded already. */
export function loadFound(target: Target, names: ExportNames, ids: readonly string[]): unknown {
  const deferred = sentTools.get(names)?.filter(({ view }) => view.hints.deferLoading === true);
  const byId = new Map(deferred?.map((part) => [part.view.tool.id, part]));
  return target.assemble(ids.flatMap((id) => byId.get(id) ?? []));
}

/** The cached exports of frozen lists, by list, then by target and options. */
const exported = new WeakMap<readonly Tool[], Map<string, ExportResult>>();

/**
 * Exports tools to a target. The result has the tools in the target's shape, the losses, the
 * rejected tools, and the names by which calls are decoded.
 *
 * The export of a frozen list is cached by target and options: a repeated export costs a look-up,
 * and a copy of the tools when the field `tools` is read.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { exportTools } from "@plue/tools/formats";
 *
 * const status = defineTool({ namespace: "chain", name: "status", description: "Tells where it is." });
 * const { tools, losses, names } = exportTools([status], "openai.chat");
 * assert.equal(tools[0]?.function.name, "chain__status");
 * assert.equal(names.idOf("chain__status"), "chain:status");
 * assert.deepEqual(losses, []);
 * ```
 *
 * @param target The name or alias of a target, or a target that `defineTarget` returned.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If two tools have the same id, an option is invalid, `toolChoice` names a
 * tool that is not sent, or `onLoss` is `throw` and parameters or a setting cannot be expressed.
 */
export function exportTools<Like extends TargetLike>(
  source: Exportable,
  target: Like,
  options: ExportOptions = DEFAULTS,
): ExportResult<ToolsOf<Like>, TargetOf<Like>["id"], RequestOf<Like>> {
  const found = findTarget(target);
  const list = listOf(source, found);
  if (options !== DEFAULTS) checkExportOptions(options);
  const key = exportKey(found, options);
  let byKey = exported.get(list);
  let result = byKey?.get(key);
  if (result === undefined) {
    result = new RequestExport(list, found, options).run(list);
    if (Object.isFrozen(list)) {
      if (byKey === undefined) exported.set(list, byKey = new Map());
      byKey.set(key, result);
    }
  }
  // The cast is safe: the types are derived from the target that wrote the tools.
  return copyExport(result, found, options) as ExportResult<
    ToolsOf<Like>,
    TargetOf<Like>["id"],
    RequestOf<Like>
  >;
}

/** Returns a cached export with a new copy of the tools, and with the settings of the request. */
function copyExport(kept: ExportResult, to: Target, options: ExportOptions): ExportResult {
  const { target, losses, rejected, names, warnings } = kept;
  const sendsTools = Array.isArray(kept.tools) ? kept.tools.length > 0 : names.encodings.length > 0;
  const { fields, warnings: more } = writeSettings(options, to, names, sendsTools);
  if (options.onLoss === "throw" && more[0] !== undefined) {
    throw new TypeError(`Cannot export the tools to ${more[0].message}`);
  }
  let tools: unknown;
  return {
    target,
    get tools() {
      return tools ??= copyOf(kept.tools);
    },
    request: fields,
    losses,
    rejected,
    names,
    warnings: more.length === 0 ? warnings : [...warnings, ...more],
  };
}

/** Copies lists, and objects with their symbol properties. Functions are shared. */
function copyOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  const copy: Record<string, unknown> = { ...value };
  for (const key of Object.keys(copy)) copy[key] = copyOf(copy[key]);
  return copy;
}

function exportKey(target: object, options: ExportOptions): string {
  const of = `${numberOf(target)}`;
  if (options === DEFAULTS) return of;
  const { onLoss, strictFallback, namespaces, path } = options;
  return [of, onLoss, strictFallback, namespaces, path].join(" ");
}

function listOf(source: Exportable, { toolSearch }: Target): readonly Tool[] {
  if (Array.isArray(source)) return source;
  if ("available" in Object(source)) {
    const toolset = source as Exclude<Exportable, readonly Tool[]>;
    return toolSearch && toolset.bridge?.loadable() || toolset.available();
  }
  throw new TypeError(
    "Cannot export the tools: they must be a toolset or a list of tools; " +
      "a registry gives a toolset by select()",
  );
}

/** The reason why a tool could not be exported. The message names the tool. */
export interface ExportError extends Error {
  /** The tool's id. */
  readonly tool: string;
}

/** The exported tools, with warnings and errors. */
export interface ExportedWithWarnings<Tools> {
  readonly tools: Tools;
  /** The losses of the tools, then the warnings about the request, as sentences. */
  readonly warnings: readonly string[];
  /** The errors of tools that could not be exported, in the order of the tools. */
  readonly errors: readonly ExportError[];
}

/**
 * Exports a toolset, or a list of tools, to one target.
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
 * assert.deepEqual(warnings, ['"ping" at "/title": the target has no field for "title"']);
 * assert.deepEqual(errors, []);
 * ```
 */
export class Exposure<Like extends TargetLike> {
  /** The exported toolset or list of tools. */
  readonly toolset: Exportable;
  /** The target of the exports. */
  readonly target: Like;
  readonly #options: ExportOptions | undefined;

  /** @throws {RangeError} If there is no such target. */
  constructor(toolset: Exportable, target: Like, options?: ExportOptions) {
    findTarget(target);
    this.toolset = toolset;
    this.target = target;
    this.#options = options;
  }

  /** Exports the current tools with {@linkcode exportTools}. */
  result(): ExportResult<ToolsOf<Like>, TargetOf<Like>["id"], RequestOf<Like>> {
    return exportTools(this.toolset, this.target, this.#options);
  }

  /** Returns the tools in the target's shape. Throws a `TypeError` if a tool was rejected. */
  export(): ToolsOf<Like> {
    const { tools, rejected } = this.result();
    const first = rejected[0];
    if (first !== undefined) {
      const more = rejected.length === 1 ? "" : ` (and ${rejected.length - 1} more)`;
      throw new TypeError(first.message + more);
    }
    return tools;
  }

  /** Exports the tools, with warnings about losses and errors for rejected tools. */
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
