/**
 * Exports a set of tools to one target. It takes the whole set, because names, limits and budgets
 * are those of a request.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject, Tool } from "../tool/mod.ts";
import { encodeArguments } from "./argument_rewrite.ts";
import { type Conversion, schemaConverter } from "./convert_schema.ts";
import { createExportNames, wireNames } from "./export_names.ts";
import { KEYWORD_FORMS, type KeywordForm } from "./keyword_forms.ts";
import type { Profile, ToolView } from "./profile.ts";
import { type Load, RequestLimits } from "./request_limits.ts";
import { type AnyProfile, profileOf, type TargetTools } from "./targets.ts";
import { describeTool, hintsOf } from "./tool_fields.ts";
import { rebaseReferences } from "./transform/references.ts";
import type { SchemaLoss } from "./transform/report.ts";
import { isNode } from "./transform/schema_walk.ts";
import type {
  ExportOptions,
  ExportResult,
  ExportWarning,
  Loss,
  LossSide,
  OnLoss,
  RejectedTool,
  ResolveTarget,
  TargetName,
  ToolEncoding,
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
 * result is shared: its lists are frozen.
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
  const list = "available" in source ? source.available() : source;
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
  return result as ExportResult<TargetTools[ResolveTarget<Name>]>;
}

function keyOf(target: string, options: ExportOptions): string {
  if (options === DEFAULTS) return target;
  const { onLoss, strictFallback, namespaces, describeExamples, describeReturns, path } = options;
  return `${target} ${onLoss} ${strictFallback} ${namespaces} ${describeExamples} ${describeReturns} ${path}`;
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

type Convert = (schema: JsonSchema, describe: boolean) => Conversion;

/** The converters of a profile, made once. */
interface Converters {
  readonly input: Convert;
  readonly output: Convert | undefined;
}

const converters = new WeakMap<AnyProfile, Converters>();

function convertersOf(profile: AnyProfile): Converters {
  let made = converters.get(profile);
  if (made === undefined) {
    const { input, output, keys, formats, typed, draft07 } = profile;
    made = {
      input: schemaConverter({ keywords: input, keys, formats, typed, draft07 }),
      // Results are written by the tool: their keys stay as they are.
      output: output === undefined
        ? undefined
        : schemaConverter({ keywords: output.keywords, typed, draft07 }),
    };
    converters.set(profile, made);
  }
  return made;
}

/** A tool that is being exported: everything but its place in the request. */
interface Candidate {
  readonly tool: Tool;
  readonly view: ToolView;
  readonly encoding: ToolEncoding;
  readonly losses: readonly Loss[];
  readonly uncertain: readonly KeywordForm[];
  readonly load: Load;
}

type Attempt =
  | { readonly ok: true; readonly candidate: Candidate }
  | { readonly ok: false; readonly rule: string; readonly message: string };

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
  const limits = new RequestLimits(profile.limits);
  const warnings = new Warnings(profile);
  const losses: Loss[] = [];
  const rejected: RejectedTool[] = [];
  const sent: Candidate[] = [];

  for (const tool of list) {
    // Every tool of the list has a name.
    const name = names.get(tool) as WireName;
    const strict = profile.fallback !== undefined && hintsOf(tool).strict !== false;
    let attempt = attemptTool(tool, name, profile, strict, options);
    let reason = attempt.ok ? refusal(attempt.candidate, profile, limits, options) : attempt;
    if (reason !== undefined && strict && reason.rule !== "maxTools") {
      const why = reason;
      if (options.strictFallback !== false && why.rule !== "onLoss") {
        attempt = attemptTool(tool, name, profile, false, options, why);
        reason = attempt.ok ? refusal(attempt.candidate, profile, limits, options) : attempt;
      }
    }
    if (!attempt.ok || reason !== undefined) {
      const { rule, message } = reason ?? (attempt as { rule: string; message: string });
      rejected.push(Object.freeze({
        tool: tool.id,
        rule,
        message: `Cannot export "${tool.id}" to ${profile.id}: ${message}`,
      }));
      continue;
    }
    const { candidate } = attempt;
    for (const { limit, message } of limits.excess(candidate.load)) {
      warnings.add(limit.name, tool, message);
    }
    limits.add(candidate.load);
    for (const form of candidate.uncertain) {
      warnings.add(form, tool, `whether it takes ${KEYWORD_FORMS[form]} is not documented`);
    }
    for (const rule of profile.combinations ?? []) {
      if (rule.effect === "warn" && rule.applies(candidate.view.hints, tool)) {
        warnings.add(rule.name, tool, rule.message);
      }
    }
    losses.push(...candidate.losses);
    sent.push(candidate);
  }

  const deferred = sent.filter(({ load }) => load.deferred).length;
  const least = profile.limits.find((limit) => limit.name === "minLoadedTools")?.value ?? 0;
  if (deferred > 0 && sent.length - deferred < least) {
    warnings.add("minLoadedTools", undefined, "all tools are deferred: one must not be");
  }
  for (const { view } of sent) {
    if (view.namespace !== undefined && view.hints.namespaceDescription === undefined) {
      warnings.add(
        "namespaceDescription",
        view.tool,
        "a namespace needs a description; one was made up",
      );
    }
  }

  const wires = sent.map(({ view }) => ({ view, wire: profile.wire(view) }));
  const tools = profile.assemble(wires);
  // @google/genai rewrites typed declarations in place; only their list is frozen.
  if (profile.typed === true) Object.freeze(tools);
  else deepFreeze(tools);
  return Object.freeze({
    target: profile.id,
    tools,
    losses: Object.freeze(losses),
    rejected: Object.freeze(rejected),
    names: createExportNames(profile.id, sent.map(({ encoding }) => encoding)),
    warnings: warnings.list(),
  });
}

function refuseTwins(list: readonly Tool[]): void {
  const seen = new Set<string>();
  for (const { id } of list) {
    if (seen.has(id)) throw new TypeError(`Cannot export the tools: "${id}" is there twice`);
    seen.add(id);
  }
}

/** Converts one tool, in the strict mode of the profile or without it. */
function attemptTool(
  tool: Tool,
  name: WireName,
  profile: AnyProfile,
  strict: boolean,
  options: ExportOptions,
  instead?: { readonly rule: string; readonly message: string },
): Attempt {
  const hints = hintsOf(tool);
  const describe = (options.onLoss ?? "describe") === "describe";
  const rules: Profile = strict || profile.fallback === undefined
    ? profile
    : profileOf(profile.fallback);
  const { input, output } = convertersOf(rules);
  const combination = strict
    ? profile.combinations?.find((rule) =>
      rule.effect === "not strict" && rule.applies(hints, tool)
    )
    : undefined;
  if (combination !== undefined) {
    return { ok: false, rule: combination.name, message: combination.message };
  }
  const converted = input(tool.parameters, describe);
  if (!converted.ok) return converted;
  const parameters = converted.schema;
  if (!isNode(parameters)) {
    return { ok: false, rule: "schema", message: "no arguments can satisfy its parameters" };
  }
  const losses: Loss[] = [];
  if (instead !== undefined) {
    losses.push(Object.freeze({
      tool: tool.id,
      side: "tool",
      path: "",
      keyword: "strict",
      action: "dropped",
      grade: "weakened",
      widens: false,
      narrows: false,
      message: `it is sent without strict mode: ${instead.message}`,
    }));
  }
  addLosses(losses, tool, "input", converted.losses);
  const uncertain = [...converted.uncertain];

  let returns: JsonSchema | undefined;
  let wrapsResult = false;
  if (tool.returns !== undefined && output !== undefined) {
    const result = output(tool.returns, describe);
    if (result.ok) {
      returns = result.schema;
      addLosses(losses, tool, "output", result.losses);
      uncertain.push(...result.uncertain);
      wrapsResult = rules.output?.root === "object" && !describesOneObject(returns);
      if (wrapsResult) returns = wrapSchema(returns);
    } else {
      addLosses(losses, tool, "output", [outputLoss(result.message)]);
    }
  }
  const fields = describeTool(tool, rules, options);
  losses.push(...fields.losses);

  const { rewrite } = converted;
  const view: ToolView = {
    tool,
    name: name.name,
    namespace: name.namespace,
    description: fields.description,
    sendsDescription: hints.description !== null || fields.description !== tool.description,
    parameters,
    returns,
    strict,
    examples: rules.features.examples === "native"
      ? tool.examples.map((example) => encodeArguments(example.input, rewrite))
      : [],
    hints,
    options,
  };
  const encoding: ToolEncoding = Object.freeze({
    id: tool.id,
    ...name,
    strict,
    ...(rewrite === undefined ? {} : { input: rewrite }),
    sendsReturns: returns !== undefined,
    wrapsResult,
  });
  const load: Load = {
    parameters,
    description: fields.description,
    // A limit on each schema of a target without a strict mode is a limit on all of them.
    strict: strict || profile.fallback === undefined,
    deferred: hints.deferLoading === true,
  };
  return { ok: true, candidate: { tool, view, encoding, losses, uncertain, load } };
}

/** Why a converted tool is not sent as it is, or `undefined`. */
function refusal(
  candidate: Candidate,
  profile: AnyProfile,
  limits: RequestLimits,
  options: ExportOptions,
): { readonly rule: string; readonly message: string } | undefined {
  const { tool, losses, load } = candidate;
  if (options.onLoss === "reject-tool" || options.onLoss === "throw") {
    const wrong = losses.find((loss) =>
      loss.side === "input" && (loss.widens || loss.grade === "lost")
    );
    if (wrong !== undefined) {
      const message = `at "${wrong.path}" of its parameters, ${wrong.message}`;
      if (options.onLoss === "throw") {
        throw new TypeError(`Cannot export "${tool.id}" to ${profile.id}: ${message}`);
      }
      return { rule: "onLoss", message };
    }
  }
  const excess = limits.excess(load).find(({ limit }) => limit.uncertain !== true);
  return excess === undefined ? undefined : { rule: excess.limit.name, message: excess.message };
}

function addLosses(
  losses: Loss[],
  tool: Tool,
  side: LossSide,
  found: readonly SchemaLoss[],
): void {
  for (const loss of found) losses.push(Object.freeze({ tool: tool.id, side, ...loss }));
}

function outputLoss(message: string): SchemaLoss {
  return {
    path: "",
    keyword: "returns",
    action: "dropped",
    grade: "lost",
    widens: true,
    narrows: false,
    message: `the result schema cannot be sent: ${message}`,
  };
}

function describesOneObject(schema: JsonSchema): boolean {
  return isNode(schema) && schema["type"] === "object";
}

/** What MCP's own SDK makes of a result that is no object, for clients that want one. */
function wrapSchema(schema: JsonSchema): JsonSchemaObject {
  return {
    type: "object",
    properties: { result: rebaseReferences(schema, ["properties", "result"]) },
    required: ["result"],
  };
}

/** Warnings, each rule once with the first tool and the number of tools. */
class Warnings {
  readonly #profile: AnyProfile;
  readonly #found = new Map<
    string,
    { readonly tool: string | undefined; readonly text: string; count: number }
  >();

  constructor(profile: AnyProfile) {
    this.#profile = profile;
  }

  add(rule: string, tool: Tool | undefined, text: string): void {
    const there = this.#found.get(rule);
    if (there === undefined) this.#found.set(rule, { tool: tool?.id, text, count: 1 });
    else there.count++;
  }

  list(): readonly ExportWarning[] {
    return Object.freeze(
      [...this.#found].map(([rule, { tool, text, count }]): ExportWarning => {
        const who = tool === undefined
          ? ""
          : ` ("${tool}"${count === 1 ? "" : ` and ${count - 1} more`})`;
        return Object.freeze({
          ...(tool === undefined ? {} : { tool }),
          rule,
          message: `${this.#profile.title}: ${text}${who}`,
        });
      }),
    );
  }
}

/** Freezes what was made for this export. What is frozen already was frozen all the way down. */
function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const key in value) deepFreeze((value as Record<string, unknown>)[key]);
}
