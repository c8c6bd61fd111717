/**
 * Exports a set of tools to one target. It takes the whole set, because names, limits and budgets
 * are those of a request.
 *
 * @module
 */

import { numberOf, type Tool } from "../tool/mod.ts";
import { type Attempt, type Candidate, convertTool, type Refusal } from "./convert_tool.ts";
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
} from "./export_options.ts";
import { writeSettings } from "./request_settings.ts";
import { KEYWORD_FORMS } from "./form_rules.ts";
import { RequestLimits } from "./limits.ts";
import { hintsOf } from "./provider_hints.ts";
import { LIMITS, type Target, type ToolView } from "./target.ts";
import {
  findTarget,
  plainModeOf,
  type RequestOf,
  strictModeOf,
  type TargetLike,
  type TargetOf,
  type ToolsOf,
} from "./targets.ts";

/** What an export gives. Its reports are frozen. */
export interface ExportResult<Tools = unknown, Id extends string = string, Request = object> {
  /** The target's id. */
  readonly target: Id;
  /**
   * What goes into a request, in the target's shape. It is this result's own copy, made when it is
   * first read, because frameworks and clients write to the tools that they are given.
   */
  readonly tools: Tools;
  /**
   * The other fields of a request, which `toolChoice` and `parallel` of the options ask for. Spread
   * them where the tools go; for Bedrock into `toolConfig`, for the client of Google into `config`.
   */
  readonly request: Request;
  /** What the target cannot express, in the order of the tools, then of their schemas. */
  readonly losses: readonly Loss[];
  readonly rejected: readonly RejectedTool[];
  readonly names: ExportNames;
  readonly warnings: readonly ExportWarning[];
}

/**
 * What can be exported: a toolset, of which the available tools are taken, or a list. Of a bridge,
 * targets that load tools when a search finds them are sent what is to be loaded, too.
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

/** The tools of each export, ready to be assembled. By its names, which copies of it share. */
const parts = new WeakMap<
  ExportNames,
  readonly { readonly view: ToolView; readonly wire: unknown }[]
>();

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

/**
 * Those of an export's deferred tools that a search has found, in the target's shape. The others are
 * with the model already, and providers refuse to load them again.
 */
export function loadFound(target: Target, names: ExportNames, ids: readonly string[]): unknown {
  const deferred = parts.get(names)?.filter(({ view }) => view.hints.deferLoading === true);
  const byId = new Map(deferred?.map((part) => [part.view.tool.id, part]));
  return target.assemble(ids.flatMap((id) => byId.get(id) ?? []));
}

/** Finished exports, by list, then by target and options. Only frozen lists are kept. */
const exported = new WeakMap<readonly Tool[], Map<string, ExportResult>>();

/**
 * Exports tools to a target: the tools in its shape, what is lost, which tools cannot be sent, and
 * the names by which calls are decoded.
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
 * @typeParam Like The target.
 * @param source A toolset, or a list of tools.
 * @param target The target: its name, an alias of one, or what `defineTarget` made.
 * @param options What to do about losses, and what to add to descriptions.
 * @returns The export.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If two tools have one id, an option is wrong, `toolChoice` names a tool that is
 * not sent, or `onLoss` is `throw` and a tool's input or a setting would be misrepresented.
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
    result = exportList(list, found, options);
    if (Object.isFrozen(list)) {
      if (byKey === undefined) exported.set(list, byKey = new Map());
      byKey.set(key, result);
    }
  }
  // The types follow from the same record as the tools.
  return lend(result, found, options) as ExportResult<
    ToolsOf<Like>,
    TargetOf<Like>["id"],
    RequestOf<Like>
  >;
}

/** The export with tools of its own: the kept ones stay as they are. */
function lend(kept: ExportResult, to: Target, options: ExportOptions): ExportResult {
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

/** The key of an export among those of one list. */
function exportKey(target: object, options: ExportOptions): string {
  const of = `${numberOf(target)}`;
  if (options === DEFAULTS) return of;
  const { onLoss, strictFallback, namespaces, describeExamples, describeReturns, path, engine } =
    options;
  return `${of} ${onLoss} ${strictFallback} ${namespaces} ${describeExamples} ${describeReturns} ${
    engine === undefined ? "" : numberOf(engine)
  } ${path}`;
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

function exportList(
  list: readonly Tool[],
  target: Target,
  options: ExportOptions,
): ExportResult {
  refuseTwins(list);
  const namespaces = options.namespaces === false ? undefined : target.namespaces;
  const names = wireNames(list, target.names, namespaces);
  const strictMode = strictModeOf(target);
  const searches = target.toolSearch !== undefined &&
    list.some((tool) => hintsOf(tool).toolSearch === true);
  const omitsDeferred = searches && target.toolSearch === "definitions";
  const limits = new RequestLimits(
    // The limits of a strict mode concern strict tools only.
    (strictMode !== undefined && list.some((tool) => hintsOf(tool).strict === true)
      ? strictMode
      : target).limits,
    omitsDeferred,
  );
  const warnings = new ExportWarnings(target.title);
  const losses: Loss[] = [];
  const rejected: RejectedTool[] = [];
  const sent: Candidate[] = [];
  const providers: { readonly tool: Tool; readonly wire: { readonly name?: unknown } }[] = [];
  /** The names on the wire, which no provider's own tool may have as well. */
  const taken = new Set<string>();
  const reject = (tool: Tool, rule: string, why: string): void => {
    const message = `Cannot export "${tool.id}" to ${target.id}: ${why}`;
    if (rule === "onLoss" && options.onLoss === "throw") throw new TypeError(message);
    rejected.push(Object.freeze({ tool: tool.id, rule, message }));
  };
  for (const tool of list) {
    const { definitions } = hintsOf(tool);
    if (definitions !== undefined) {
      const wire = definitions[target.id] ?? definitions[plainModeOf(target).id];
      if (wire !== undefined) providers.push({ tool, wire });
      else {
        const others = Object.keys(definitions).join(", ");
        reject(tool, "definitions", `a provider runs it, and it is defined for ${others} only`);
      }
      continue;
    }
    // `wireNames` names every tool.
    const attempt = admit(tool, names.get(tool) as WireName, target, limits, options);
    if (!attempt.ok) {
      reject(tool, attempt.rule, attempt.message);
      continue;
    }
    const { candidate } = attempt;
    warnOfTool(warnings, candidate, target, limits, searches);
    limits.add(candidate.load);
    losses.push(...candidate.losses);
    sent.push(candidate);
    if (candidate.encoding.namespace === undefined) taken.add(candidate.encoding.name);
  }
  const own = providers.filter(({ tool, wire: { name } }) => {
    if (typeof name !== "string") return true;
    if (taken.has(name)) reject(tool, "definitions", `another tool is sent as "${name}"`);
    return taken.size < taken.add(name).size;
  });
  const wires = sent.map(({ view }) => ({ view, wire: target.wire(view) }));
  // What a search answers as definitions is not in the request.
  const assembled = target.assemble(
    omitsDeferred ? wires.filter(({ view }) => view.hints.deferLoading !== true) : wires,
  );
  const isList = Array.isArray(assembled);
  const tools = isList ? [...assembled, ...own.map(({ wire }) => wire)] : assembled;
  for (const { tool } of isList ? [] : own) {
    reject(tool, "definitions", "its tools are no list; give the tool of the SDK beside them");
  }
  warnOfRequest(warnings, sent, tools, target);
  deepFreeze(tools);
  const exportNames = createExportNames(
    target.id,
    sent.map(({ encoding }) => encoding),
    wireAliases(sent.map(({ tool }) => tool), target.names, namespaces),
  );
  parts.set(exportNames, wires);
  return Object.freeze({
    target: target.id,
    tools,
    request: {},
    losses: Object.freeze(losses),
    rejected: Object.freeze(rejected),
    names: exportNames,
    warnings: warnings.list(),
  });
}

/**
 * Converts a tool and checks whether it fits: in strict mode first, then without if that is
 * allowed.
 */
function admit(
  tool: Tool,
  name: WireName,
  target: Target,
  limits: RequestLimits,
  options: ExportOptions,
): Attempt {
  const strictMode = strictModeOf(target);
  const plain = plainModeOf(target);
  const attempt = (rules: Target, instead?: Refusal): Attempt => {
    const converted = convertTool(tool, name, rules, options, instead);
    return converted.ok ? refusal(converted.candidate, limits, options) ?? converted : converted;
  };
  // A tool may ask for another mode than the target's.
  const wanted = hintsOf(tool).strict;
  const strict = typeof wanted === "boolean" ? wanted : strictMode === target;
  if (!strict || strictMode === undefined) return attempt(plain);
  const first = attempt(strictMode);
  if (first.ok || options.strictFallback === false) return first;
  // A full request has no room for the tool in either mode.
  return first.rule === "maxTools" ? first : attempt(plain, first);
}

/** Why a converted tool is not sent, or `undefined`. */
function refusal(
  { losses, load }: Candidate,
  limits: RequestLimits,
  options: ExportOptions,
): Refusal | undefined {
  if (options.onLoss === "reject-tool" || options.onLoss === "throw") {
    const wrong = losses.find((loss) =>
      loss.side === "input" && (loss.widens || loss.grade === "lost")
    );
    if (wrong !== undefined) {
      const message = `at "${wrong.path}" of its parameters, ${wrong.message}`;
      return { ok: false, rule: "onLoss", message };
    }
  }
  const excess = limits.excess(load).find(({ limit }) => limit.uncertain !== true);
  return excess === undefined
    ? undefined
    : { ok: false, rule: excess.limit.name, message: excess.message };
}

function warnOfTool(
  warnings: ExportWarnings,
  { tool, view, load, uncertain }: Candidate,
  target: Target,
  limits: RequestLimits,
  searches: boolean,
): void {
  for (const { limit, message } of limits.excess(load)) warnings.add(limit.name, tool, message);
  for (const form of uncertain) {
    warnings.add(form, tool, `whether it takes ${KEYWORD_FORMS[form]} is not documented`);
  }
  for (const { name, effect, applies, message } of target.combinations ?? []) {
    // Deferred tools need a search, which is there.
    if (effect !== "warn" || (searches && name === "deferLoading")) continue;
    if (applies(view.hints, tool)) warnings.add(name, tool, message);
  }
  if (view.namespace !== undefined && view.hints.namespaceDescription === undefined) {
    warnings.add("namespaceDescription", tool, "a namespace needs a description; one was made up");
  }
}

function warnOfRequest(
  warnings: ExportWarnings,
  sent: readonly Candidate[],
  tools: unknown,
  target: Target,
): void {
  const most = target.limits.find((limit) => limit.name === "maxToolText")?.value;
  const length = most === undefined ? 0 : JSON.stringify(tools).length;
  if (most !== undefined && length > most) {
    warnings.add(
      "maxToolText",
      undefined,
      `the tools have ${length} of at most ${most} ${LIMITS.maxToolText}`,
    );
  }
  const deferred = sent.filter(({ load }) => load.deferred).length;
  const least = target.limits.find((limit) => limit.name === "minLoadedTools")?.value ?? 0;
  if (deferred > 0 && sent.length - deferred < least) {
    warnings.add("minLoadedTools", undefined, "all tools are deferred: one must not be");
  }
}

function refuseTwins(list: readonly Tool[]): void {
  const seen = new Set<string>();
  for (const [index, tool] of list.entries()) {
    const id: unknown = tool?.id;
    if (typeof id !== "string") {
      throw new TypeError(`Cannot export the tools: "/${index}" is no tool; defineTool makes one`);
    }
    if (seen.has(id)) {
      throw new TypeError(`Cannot export the tools: "${id}" is there twice`);
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
