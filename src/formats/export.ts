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
import { checkTarget, type Target } from "./target.ts";
import type { RequestOf, ToolsOf } from "./targets.ts";

/** A list of tools, or a toolset with its available tools and the tools that its bridge loads. */
export type Exportable = readonly Tool[] | {
  available(): readonly Tool[];
  readonly bridge?: { loadable(): readonly Tool[] | undefined } | undefined;
};

const DEFAULTS: ExportOptions = Object.freeze({});

/** Returns the id and the shape of each tool. Throws for anything but a result of `exportTools`. */
export function partsOf(
  exported: ExportResult,
): readonly { readonly tool: string; readonly wire: unknown }[] {
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

/** Exports tools with the record of a target. */
export function exportToolsTo<Of extends Target>(
  source: Exportable,
  target: Of,
  options: ExportOptions = DEFAULTS,
): ExportResult<ToolsOf<Of>, Of["id"], RequestOf<Of>> {
  const list = listOf(source, checkTarget(target));
  if (options !== DEFAULTS) checkExportOptions(options);
  const key = exportKey(target, options);
  let byKey = exported.get(list);
  let result = byKey?.get(key);
  if (result === undefined) {
    result = new RequestExport(list, target, options).run(list);
    if (Object.isFrozen(list)) {
      if (byKey === undefined) exported.set(list, byKey = new Map());
      byKey.set(key, result);
    }
  }
  // The cast is safe: the types are derived from the target that wrote the tools.
  return copyExport(result, target, options) as ExportResult<
    ToolsOf<Of>,
    Of["id"],
    RequestOf<Of>
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
      "pass registry.select() of a registry",
  );
}

/** Returns the tools of an export. Throws a `TypeError` if a tool was rejected. */
export function allTools<Tools>({ tools, rejected }: ExportResult<Tools>): Tools {
  const [first, ...others] = rejected;
  if (first === undefined) return tools;
  throw new TypeError(first.message + (others.length === 0 ? "" : ` (and ${others.length} more)`));
}
