/**
 * Exports a set of tools to one target. It takes the whole set, because names, limits and budgets
 * apply to a request.
 */

import { numberOf, type Tool } from "../tool/mod.ts";
import type { Refusal } from "./convert_schema.ts";
import { type ConvertedTool, convertTool } from "./convert_tool.ts";
import {
  createExportNames,
  type ExportNames,
  wireAliases,
  type WireName,
  wireNames,
} from "./export_names.ts";
import {
  checkExportOptions,
  type ExportOptions,
  type ExportWarning,
  ExportWarnings,
  type Loss,
  type RejectedTool,
  writeSettings,
} from "./export_options.ts";
import { KEYWORD_FORMS } from "./form_rules.ts";
import { RequestLimits } from "./limits.ts";
import { hintsOf, type ProviderHints } from "./provider_hints.ts";
import { LIMITS, type Target } from "./target.ts";
import {
  findTarget,
  plainModeOf,
  type RequestOf,
  strictModeOf,
  type TargetLike,
  type TargetOf,
  type ToolsOf,
} from "./targets.ts";

/** The result of an export. Its reports are frozen. */
export interface ExportResult<Tools = unknown, Id extends string = string, Request = object> {
  /** The target's id. */
  readonly target: Id;
  /**
   * The tools of a request, in the target's shape. They are a copy for this result, made at the first
   * access, because frameworks and clients modify the tools that they receive.
   */
  readonly tools: Tools;
  /**
   * The other fields of a request, which follow from the options `toolChoice` and `parallel`. Spread
   * them where the tools go; for Bedrock into `toolConfig`, for the client of Google into `config`.
   */
  readonly request: Request;
  /** The parts of tools that the target cannot express, in the order of the tools and their schemas. */
  readonly losses: readonly Loss[];
  readonly rejected: readonly RejectedTool[];
  readonly names: ExportNames;
  readonly warnings: readonly ExportWarning[];
}

/**
 * A source of tools: a toolset, whose available tools are exported, or a list. A target with tool
 * search also receives the tools that a bridge loads on demand.
 */
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

interface SentTool extends Pick<ConvertedTool, "view" | "encoding"> {
  readonly wire: unknown;
}

/** The tools of each export, ready to be assembled. By its names, which copies of it share. */
const parts = new WeakMap<ExportNames, readonly SentTool[]>();

/**
 * The tools of an export one by one, in its order.
 *
 * @throws {TypeError} If `exportTools` did not make it.
 */
export function partsOf(exported: ExportResult): readonly ExportedPart[] {
  const found = parts.get(exported?.names);
  if (found !== undefined) {
    return found.map(({ view: { tool }, wire }) => ({ tool: tool.id, wire }));
  }
  throw new TypeError("Cannot take an export apart: it must be the answer of exportTools");
}

/** The deferred tools that a search has found. Providers reject a second load of the other ones. */
export function loadFound(target: Target, names: ExportNames, ids: readonly string[]): unknown {
  const deferred = parts.get(names)?.filter(({ view }) => view.hints.deferLoading === true);
  const byId = new Map(deferred?.map((part) => [part.view.tool.id, part]));
  return target.assemble(ids.flatMap((id) => byId.get(id) ?? []));
}

/** The finished exports of frozen lists, by list, then by target and options. */
const exported = new WeakMap<readonly Tool[], Map<string, ExportResult>>();

/**
 * Exports tools to a target. The result has the tools in the target's shape, the losses, the rejected
 * tools, and the names by which calls are decoded.
 *
 * The same frozen list, target and options are exported once: a repeated export costs a look-up, and
 * a copy of the tools when they are read.
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
 * @param target The target: its name, an alias of one, or what `defineTarget` made.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If two tools have one id, an option is invalid, `toolChoice` names a tool that
 * is not sent, or `onLoss` is `throw` and a tool's input or a setting would be misrepresented.
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
    result = new Export(list, found, options).run(list);
    if (Object.isFrozen(list)) {
      if (byKey === undefined) exported.set(list, byKey = new Map());
      byKey.set(key, result);
    }
  }
  // The types follow from the same record as the tools.
  return copyExport(result, found, options) as ExportResult<
    ToolsOf<Like>,
    TargetOf<Like>["id"],
    RequestOf<Like>
  >;
}

/** Returns a stored export with its own copy of the tools, and with the settings of the request. */
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

/** Copies lists and objects, also what objects have under symbols; functions stay the same. */
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

interface ProviderEntry {
  readonly tool: Tool;
  readonly wire: { readonly name?: unknown };
}

class Export {
  readonly #target: Target;
  readonly #options: ExportOptions;
  /** One of the tools is the host's search, which the target has as such. */
  readonly #searches: boolean;
  /** The results of a search are definitions, so deferred tools are not in the request. */
  readonly #omitsDeferred: boolean;
  readonly #limits: RequestLimits;
  readonly #warnings: ExportWarnings;
  readonly #losses: Loss[] = [];
  readonly #rejected: RejectedTool[] = [];
  readonly #sent: SentTool[] = [];

  constructor(list: readonly Tool[], target: Target, options: ExportOptions) {
    assertUniqueIds(list);
    this.#target = target;
    this.#options = options;
    this.#searches = target.toolSearch !== undefined &&
      list.some((tool) => hintsOf(tool).toolSearch === true);
    this.#omitsDeferred = this.#searches && target.toolSearch === "definitions";
    this.#warnings = new ExportWarnings(target.title);
    const strictMode = strictModeOf(target);
    // The limits of a strict mode concern strict tools only.
    const isStrict = list.some((tool) => hintsOf(tool).strict === true);
    const { limits } = isStrict && strictMode !== undefined ? strictMode : target;
    this.#limits = new RequestLimits(limits, strictMode === undefined, this.#omitsDeferred);
  }

  run(list: readonly Tool[]): ExportResult {
    const target = this.#target;
    const namespaces = this.#options.namespaces === false ? undefined : target.namespaces;
    const names = wireNames(list, target.names, namespaces);
    const entries: ProviderEntry[] = [];
    for (const tool of list) {
      const { definitions } = hintsOf(tool);
      // `wireNames` names every tool.
      const converted = definitions === undefined
        ? this.#admit(tool, names.get(tool) as WireName)
        : this.#providerEntry(tool, definitions);
      if ("wire" in converted) entries.push(converted);
      else if (!converted.ok) this.#reject(tool, converted.rule, converted.message);
      else {
        this.#warnOfTool(converted);
        this.#limits.add(converted.view);
        this.#losses.push(...converted.losses);
        const { view, encoding } = converted;
        this.#sent.push({ view, encoding, wire: target.wire(view) });
      }
    }
    const sent = this.#sent;
    const assembled = target.assemble(
      this.#omitsDeferred ? sent.filter(({ view }) => view.hints.deferLoading !== true) : sent,
    );
    const wire = this.#withEntries(assembled, entries);
    this.#warnOfRequest(wire);
    deepFreeze(wire);
    const exportNames = createExportNames(
      target.id,
      sent.map(({ encoding }) => encoding),
      wireAliases(sent.map(({ view }) => view.tool), target.names, namespaces),
    );
    parts.set(exportNames, sent);
    return Object.freeze({
      target: target.id,
      tools: wire,
      request: {},
      losses: Object.freeze(this.#losses),
      rejected: Object.freeze(this.#rejected),
      names: exportNames,
      warnings: this.#warnings.list(),
    });
  }

  #reject(tool: Tool, rule: string, why: string): void {
    const message = `Cannot export "${tool.id}" to ${this.#target.id}: ${why}`;
    if (rule === "onLoss" && this.#options.onLoss === "throw") throw new TypeError(message);
    this.#rejected.push(Object.freeze({ tool: tool.id, rule, message }));
  }

  /** The entry of a tool that a provider runs; a refusal if it is not defined for the target. */
  #providerEntry(
    tool: Tool,
    definitions: NonNullable<ProviderHints["definitions"]>,
  ): ProviderEntry | Refusal {
    const wire = definitions[this.#target.id] ?? definitions[plainModeOf(this.#target).id];
    if (wire !== undefined) return { tool, wire };
    const others = Object.keys(definitions).join(", ");
    const message = `a provider runs it, and it is defined for ${others} only`;
    return { ok: false, rule: "definitions", message };
  }

  /** Converts a tool that fits: in strict mode first, then without if that is allowed. */
  #admit(tool: Tool, name: WireName): ConvertedTool | Refusal {
    const strictMode = strictModeOf(this.#target);
    const plain = plainModeOf(this.#target);
    const attempt = (rules: Target, instead?: Refusal): ConvertedTool | Refusal => {
      const converted = convertTool(tool, name, rules, this.#options, instead);
      return converted.ok ? this.#refusal(converted) ?? converted : converted;
    };
    // A tool may ask for another mode than the target's.
    const wanted = hintsOf(tool).strict;
    const strict = typeof wanted === "boolean" ? wanted : strictMode === this.#target;
    if (!strict || strictMode === undefined) return attempt(plain);
    const first = attempt(strictMode);
    if (first.ok || this.#options.strictFallback === false) return first;
    // A full request cannot hold the tool in either mode.
    return first.rule === "maxTools" ? first : attempt(plain, first);
  }

  /** The reason not to send a converted tool, or `undefined`. */
  #refusal({ losses, view }: ConvertedTool): Refusal | undefined {
    const { onLoss } = this.#options;
    const wrong = onLoss === "reject-tool" || onLoss === "throw"
      ? losses.find(({ side, widens, grade }) => side === "input" && (widens || grade === "lost"))
      : undefined;
    if (wrong !== undefined) {
      const message = `at "${wrong.path}" of its parameters, ${wrong.message}`;
      return { ok: false, rule: "onLoss", message };
    }
    const excess = this.#limits.excess(view).find(({ limit }) => limit.uncertain !== true);
    return excess && { ok: false, rule: excess.limit.name, message: excess.message };
  }

  #warnOfTool({ view, uncertain }: ConvertedTool): void {
    const { tool, hints, namespace } = view;
    const warnings = this.#warnings;
    for (const { limit, message } of this.#limits.excess(view)) {
      warnings.add(limit.name, tool, message);
    }
    for (const form of uncertain) {
      warnings.add(form, tool, `whether it takes ${KEYWORD_FORMS[form]} is not documented`);
    }
    for (const { name, effect, applies, message } of this.#target.combinations ?? []) {
      // Deferred tools need a search, which the request has.
      if (effect !== "warn" || (this.#searches && name === "deferLoading")) continue;
      if (applies(hints)) warnings.add(name, tool, message);
    }
    if (namespace !== undefined && hints.namespaceDescription === undefined) {
      warnings.add(
        "namespaceDescription",
        tool,
        "a namespace needs a description; one was made up",
      );
    }
  }

  #withEntries(assembled: unknown, entries: readonly ProviderEntry[]): unknown {
    const taken = new Set<string>();
    for (const { encoding: { namespace, name } } of this.#sent) {
      if (namespace === undefined) taken.add(name);
    }
    const own = entries.filter(({ tool, wire: { name } }) => {
      if (typeof name !== "string") return true;
      if (taken.has(name)) this.#reject(tool, "definitions", `another tool is sent as "${name}"`);
      return taken.size < taken.add(name).size;
    });
    if (Array.isArray(assembled)) return [...assembled, ...own.map(({ wire }) => wire)];
    for (const { tool } of own) {
      const why =
        "this target's tools are not a list; add this provider tool with the provider's SDK";
      this.#reject(tool, "definitions", why);
    }
    return assembled;
  }

  #warnOfRequest(tools: unknown): void {
    const { limits } = this.#target;
    const most = limits.find((limit) => limit.name === "maxToolText")?.value;
    const length = most === undefined ? 0 : JSON.stringify(tools).length;
    if (most !== undefined && length > most) {
      const message = `there are ${length} ${LIMITS.maxToolText}; the limit is ${most}`;
      this.#warnings.add("maxToolText", undefined, message);
    }
    const deferred = this.#sent.filter(({ view }) => view.hints.deferLoading === true).length;
    const least = limits.find((limit) => limit.name === "minLoadedTools")?.value ?? 0;
    if (deferred > 0 && this.#sent.length - deferred < least) {
      const message = "all tools are deferred: one must not be";
      this.#warnings.add("minLoadedTools", undefined, message);
    }
  }
}

function assertUniqueIds(list: readonly Tool[]): void {
  const seen = new Set<string>();
  for (const [index, tool] of list.entries()) {
    const id: unknown = tool?.id;
    if (typeof id !== "string") {
      throw new TypeError(
        `Cannot export the tools: "/${index}" is not a tool; create it with defineTool`,
      );
    }
    if (seen.has(id)) {
      throw new TypeError(`Cannot export the tools: two tools have the id "${id}"`);
    }
    seen.add(id);
  }
}

/** Freezes a value. A part that is already frozen, such as a tool's schema, is deeply frozen. */
function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) {
    return;
  }
  Object.freeze(value);
  for (const key in value) deepFreeze((value as Record<string, unknown>)[key]);
}
