/**
 * Exports a set of tools to one target. It takes the whole set, because names, limits and budgets
 * are those of a request.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import type { Tool } from "../tool/mod.ts";
import { type Attempt, type Candidate, convertTool, type Refusal } from "./convert_tool.ts";
import { createExportNames, wireNames } from "./export_names.ts";
import { ExportWarnings } from "./export_warnings.ts";
import { KEYWORD_FORMS } from "./keyword_forms.ts";
import { LIMITS } from "./profile.ts";
import { RequestLimits } from "./request_limits.ts";
import { type AnyProfile, profileOf, strictModeOf, type TargetTools } from "./targets.ts";
import { hintsOf } from "./tool_fields.ts";
import type {
  ExportOptions,
  ExportResult,
  Loss,
  OnLoss,
  RejectedTool,
  ResolveTarget,
  TargetName,
  WireName,
} from "./types.ts";

/** What can be exported: a toolset, as its listing is now, or a list. */
export type Exportable = readonly Tool[] | { available(): readonly Tool[] };

const ON_LOSS: ReadonlySet<OnLoss> = new Set(["warn", "describe", "reject-tool", "throw"]);
const DEFAULTS: ExportOptions = Object.freeze({});

/** Exports by list, then by target and options. A list that can change is not remembered. */
const exported = new WeakMap<readonly Tool[], Map<string, ExportResult>>();

/**
 * Exports tools to a target: the tools in its shape, what it cannot say, what could not be sent,
 * and the names that lead calls back.
 *
 * The same frozen list, target and options give the same object, at the cost of a look-up. The
 * result is shared, and therefore frozen all the way down. Google's client writes to the typed
 * declarations that it is given, so each export of those has declarations of its own.
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
 * @typeParam Name The target.
 * @param source A toolset, or a list of tools.
 * @param target The target, or an alias of one.
 * @param options What to do about losses, and what to add to descriptions.
 * @returns The export.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If two tools have one id, an option is wrong, or `onLoss` is `throw` and a
 * tool's input would be misrepresented.
 */
export function exportTools<Name extends TargetName>(
  source: Exportable,
  target: Name,
  options: ExportOptions = DEFAULTS,
): ExportResult<TargetTools[ResolveTarget<Name>]> {
  const list = listOf(source);
  const key = keyOf(target, options);
  let byKey = exported.get(list);
  let result = byKey?.get(key);
  if (result === undefined) {
    result = exportList(list, profileOf(target), checkOptions(options));
    if (Object.isFrozen(list)) {
      if (byKey === undefined) exported.set(list, byKey = new Map());
      byKey.set(key, result);
    }
  }
  // `TargetTools` names what the profile of this target makes; `targets.ts` checks that.
  return lend(result) as ExportResult<TargetTools[ResolveTarget<Name>]>;
}

function listOf(source: Exportable): readonly Tool[] {
  if (Array.isArray(source)) return source;
  if ("available" in Object(source)) {
    return (source as Exclude<Exportable, readonly Tool[]>).available();
  }
  throw new TypeError(
    "Cannot export the tools: they must be a toolset or a list of tools; " +
      "a registry gives a toolset by select()",
  );
}

/** The result, or for a target whose client writes to the tools, the result with a copy of them. */
function lend(result: ExportResult): ExportResult {
  const profile = profileOf(result.target);
  if (profile.lend === undefined) return result;
  return Object.freeze({ ...result, tools: profile.lend(result.tools) });
}

function keyOf(target: string, options: ExportOptions): string {
  if (options === DEFAULTS) return target;
  const { onLoss, strictFallback, namespaces, describeExamples, describeReturns, path, engine } =
    options;
  return `${target} ${onLoss} ${strictFallback} ${namespaces} ${describeExamples} ${describeReturns} ${
    engine === undefined ? "" : numberOf(engine)
  } ${path}`;
}

/** A number for each engine, to remember exports by. */
const engineNumbers = new WeakMap<SchemaEngine, number>();
let engines = 0;

function numberOf(engine: SchemaEngine): number {
  let number = engineNumbers.get(engine);
  if (number === undefined) engineNumbers.set(engine, number = ++engines);
  return number;
}

function checkOptions(options: ExportOptions): ExportOptions {
  const { onLoss, path } = options;
  if (onLoss !== undefined && !ON_LOSS.has(onLoss)) {
    throw new TypeError(
      `Cannot export the tools: onLoss is "${String(onLoss)}", and must be one of ${
        [...ON_LOSS].map((choice) => `"${choice}"`).join(", ")
      }`,
    );
  }
  if (path !== undefined && !(path.startsWith("/") && path.includes("{id}"))) {
    throw new TypeError(
      `Cannot export the tools: path is "${path}", and must begin with "/" and contain "{id}"`,
    );
  }
  return options;
}

function exportList(
  list: readonly Tool[],
  profile: AnyProfile,
  options: ExportOptions,
): ExportResult {
  refuseTwins(list);
  const names = wireNames(
    list,
    profile.names,
    options.namespaces === false ? undefined : profile.namespaces,
  );
  const strictMode = strictModeOf(profile);
  const limits = new RequestLimits(
    // Without a strict tool its limits need no measuring.
    (strictMode !== undefined && list.some((tool) => hintsOf(tool).strict === true)
      ? strictMode
      : profile).limits,
  );
  const warnings = new ExportWarnings(profile.title);
  const losses: Loss[] = [];
  const rejected: RejectedTool[] = [];
  const sent: Candidate[] = [];
  for (const tool of list) {
    // Every tool of the list has a name.
    const attempt = admit(tool, names.get(tool) as WireName, profile, limits, options);
    if (!attempt.ok) {
      const message = `Cannot export "${tool.id}" to ${profile.id}: ${attempt.message}`;
      if (attempt.rule === "onLoss" && options.onLoss === "throw") throw new TypeError(message);
      rejected.push(Object.freeze({ tool: tool.id, rule: attempt.rule, message }));
      continue;
    }
    const { candidate } = attempt;
    warnOfTool(warnings, candidate, profile, limits);
    limits.add(candidate.load);
    losses.push(...candidate.losses);
    sent.push(candidate);
  }
  const wires = sent.map(({ view }) => ({ view, wire: profile.wire(view) }));
  const tools = profile.assemble(wires);
  warnOfRequest(warnings, sent, tools, profile);
  deepFreeze(tools);
  return Object.freeze({
    target: profile.id,
    tools,
    losses: Object.freeze(losses),
    rejected: Object.freeze(rejected),
    names: createExportNames(profile.id, sent.map(({ encoding }) => encoding)),
    warnings: warnings.list(),
  });
}

/** Converts a tool and sees whether it fits: in strict mode first, then without, if that is allowed. */
function admit(
  tool: Tool,
  name: WireName,
  profile: AnyProfile,
  limits: RequestLimits,
  options: ExportOptions,
): Attempt {
  const strictMode = strictModeOf(profile);
  const plain = profile.fallback === undefined ? profile : profileOf(profile.fallback);
  const attempt = (rules: AnyProfile, instead?: Refusal): Attempt => {
    const converted = convertTool(tool, name, rules, options, instead);
    return converted.ok ? refusal(converted.candidate, limits, options) ?? converted : converted;
  };
  // A tool may ask for the other mode than the target's.
  const wanted = hintsOf(tool).strict;
  const strict = typeof wanted === "boolean" ? wanted : strictMode === profile;
  if (!strict || strictMode === undefined) return attempt(plain);
  const first = attempt(strictMode);
  if (first.ok || options.strictFallback === false) return first;
  // Without strict mode there is no more room in the request.
  return first.rule === "maxTools" ? first : attempt(plain, first);
}

/** Why a converted tool is not sent as it is, or `undefined`. */
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
  profile: AnyProfile,
  limits: RequestLimits,
): void {
  for (const { limit, message } of limits.excess(load)) warnings.add(limit.name, tool, message);
  for (const form of uncertain) {
    warnings.add(form, tool, `whether it takes ${KEYWORD_FORMS[form]} is not documented`);
  }
  for (const { name, effect, applies, message } of profile.combinations ?? []) {
    if (effect === "warn" && applies(view.hints, tool)) warnings.add(name, tool, message);
  }
  if (view.namespace !== undefined && view.hints.namespaceDescription === undefined) {
    warnings.add("namespaceDescription", tool, "a namespace needs a description; one was made up");
  }
}

function warnOfRequest(
  warnings: ExportWarnings,
  sent: readonly Candidate[],
  tools: unknown,
  profile: AnyProfile,
): void {
  const most = profile.limits.find((limit) => limit.name === "maxToolText")?.value;
  const length = most === undefined ? 0 : JSON.stringify(tools).length;
  if (most !== undefined && length > most) {
    warnings.add(
      "maxToolText",
      undefined,
      `the tools have ${length} of at most ${most} ${LIMITS.maxToolText}`,
    );
  }
  const deferred = sent.filter(({ load }) => load.deferred).length;
  const least = profile.limits.find((limit) => limit.name === "minLoadedTools")?.value ?? 0;
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

/** Freezes what was made for this export. What is frozen already was frozen all the way down. */
function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) {
    return;
  }
  Object.freeze(value);
  for (const key in value) deepFreeze((value as Record<string, unknown>)[key]);
}
