/**
 * Budgets: how many tokens the tools of an export take, and which tools to show, in which detail,
 * within so many tokens.
 *
 * @module
 */

import {
  type ExportOptions,
  type ExportResult,
  exportTools,
  hintsOf,
  partsOf,
  type TargetLike,
  type TargetOf,
  type ToolsOf,
} from "../formats/mod.ts";
import { searchToolset } from "../registry/mod.ts";
import { buildToolset, type Toolset } from "../select/mod.ts";
import {
  type Check,
  checkFunction,
  checkText,
  describe,
  isListOf,
  isTool,
  isToolId,
  makeTool,
  must,
  once,
  readFields,
  refuse,
  type Tool,
  type ToolDefinition,
  wholeFrom,
} from "../tool/mod.ts";
import { type Choice, chooseWithin } from "./choose_within.ts";
import { countTokens, type TokenCounter } from "./count_tokens.ts";
import { argumentsOf, firstSentence } from "./signature.ts";

/** How many tokens an export takes. */
export interface TokenMeasure {
  /** The whole, with what is around the tools. */
  readonly total: number;
  /** Each tool by itself, in the order of the export. */
  readonly tools: readonly { readonly id: string; readonly tokens: number }[];
}

/**
 * Measures an export: the tokens of its JSON, which is about what a provider counts.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { measureTokens } from "@plue/tools/finding";
 * import { exportTools } from "@plue/tools/formats";
 *
 * const ping = defineTool({ name: "ping", description: "Answers." });
 * const { total, tools } = measureTokens(exportTools([ping], "anthropic"));
 * assert.equal(tools[0]?.id, "ping");
 * assert.ok(total > 10 && total < 50);
 * ```
 *
 * @param exported The answer of `exportTools`.
 * @param count Counts tokens, such as a provider's tokenizer. By default an estimate of o200k.
 * @throws {TypeError} If it is no export of `exportTools`.
 */
export function measureTokens(
  exported: ExportResult,
  count: TokenCounter = countTokens,
): TokenMeasure {
  const tools = partsOf(exported).map(({ tool, wire }) => ({
    id: tool,
    tokens: tokensOf(wire, count),
  }));
  return { total: tokensOf(exported.tools, count), tools };
}

/** Counts the tokens of a value's JSON, or of a text. */
function tokensOf(value: unknown, count: TokenCounter): number {
  const tokens: unknown = count(typeof value === "string" ? value : JSON.stringify(value));
  // Whole, because budgets are: an estimate may have a fraction.
  return Number.isFinite(tokens) && (tokens as number) >= 0
    ? Math.ceil(tokens as number)
    : refuse("count tokens", `the counter must give a number, 0 or above, not ${describe(tokens)}`);
}

/**
 * How much of a tool is shown:
 * - `full`: everything;
 * - `no-examples`: without examples;
 * - `signature`: the first sentence of the description and the arguments as a type of TypeScript,
 *   "in part" where that leaves out a rule, with a schema that takes any object. Calls are checked
 *   against the tool's own schema all the same.
 */
export type ToolDetail = "full" | "no-examples" | "signature";

/** Options for {@linkcode fitBudget}. */
export interface FitBudgetOptions<Like extends TargetLike = TargetLike> {
  /** How many tokens the export may take. */
  readonly tokens: number;
  /** The target of the export. */
  readonly target: Like;
  /** What the tools are for. Only tools that fit it are shown, and the best are preferred. */
  readonly query?: string | undefined;
  /**
   * In place of a query: the tools that fit, best first, such as the answer of
   * `searchToolsetAsync`. Others are not shown.
   */
  readonly ranked?: readonly Tool[] | undefined;
  /** Ids of tools that are always shown, in the detail for which there is room. */
  readonly pinned?: readonly string[] | undefined;
  /** Counts tokens. By default an estimate of o200k. */
  readonly count?: TokenCounter | undefined;
  /** Options of the export. */
  readonly options?: ExportOptions | undefined;
}

/** A tool that is shown. */
export interface FittedTool {
  readonly id: string;
  readonly detail: ToolDetail;
  /** What it takes by itself. */
  readonly tokens: number;
}

/** A tool that is not shown. */
export interface LeftOutTool {
  readonly id: string;
  /** There is no room, the query asks for something else, or the target cannot hold it. */
  readonly reason: "budget" | "query" | "target";
  /** The whole sentence. */
  readonly message: string;
}

/** What {@linkcode fitBudget} chose. */
export interface FittedTools<Tools = unknown, Id extends string = string> {
  /** The export of the tools that are shown. */
  readonly exported: ExportResult<Tools, Id>;
  /** How many tokens the export takes. */
  readonly tokens: number;
  /** The tools that are shown, in the order of the export. */
  readonly tools: readonly FittedTool[];
  /** The others, in order of id. */
  readonly leftOut: readonly LeftOutTool[];
}

const checkList = must("a list of ids of tools", (value) => Array.isArray(value));
const checkId = must("the id of a tool", isToolId);

/** The check of a list of ids, which says which of them is wrong. */
export const checkIds: Check<readonly string[]> = (action, value, place) =>
  Array.from(
    checkList(action, value, place) as readonly unknown[],
    (id, index) => checkId(action, id, `${place.slice(0, -1)}/${index}"`),
  );

const CHECKS = {
  tokens: wholeFrom(1),
  target: (_action, value) => value as TargetLike,
  query: checkText,
  ranked: must("a list of tools", (value): value is readonly Tool[] => isListOf(value, isTool)),
  pinned: checkIds,
  count: checkFunction as Check<unknown> as Check<TokenCounter>,
  options: (_action, value) => value as ExportOptions,
} satisfies { readonly [Field in keyof FitBudgetOptions]-?: Check };

const ACTION = "fit the tools into a budget";

/** By how many tokens tools may take less together than by themselves. */
const SLACK = 8;

/** What a tool in less detail is worth, next to the whole tool. */
const WORTH: Readonly<Record<ToolDetail, number>> = {
  full: 1,
  "no-examples": 0.95,
  signature: 0.7,
};
const DETAILS: readonly ToolDetail[] = ["full", "no-examples", "signature"];

/**
 * Chooses which tools of a toolset to show, and in which detail, so that their export takes at most
 * so many tokens. Without a query every tool is worth the same; with one, the first hit is worth
 * most. The same tools and options give the same answer.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { buildToolset, defineTool } from "@plue/tools";
 * import { fitBudget } from "@plue/tools/finding";
 *
 * const toolset = buildToolset([
 *   defineTool({ name: "read", description: "Reads a file." }),
 *   defineTool({ name: "mail", description: "Sends a mail." }),
 * ]);
 * const { tokens, tools, leftOut } = fitBudget(toolset, {
 *   tokens: 60,
 *   query: "read a file",
 *   target: "anthropic",
 * });
 * assert.ok(tokens <= 60);
 * assert.deepEqual(tools.map(({ id }) => id), ["read"]);
 * assert.deepEqual(leftOut.map(({ id, reason }) => [id, reason]), [["mail", "query"]]);
 * ```
 *
 * @param source The tools to choose from: those of a toolset that are available now, or a list. Of a
 * bridge, its own tools are always shown.
 * @returns The export, what is in it, and what was left out and why.
 * @throws {RangeError} If not even one tool, or not all pinned ones, fit: the message says what they
 * take at least.
 * @throws {TypeError} If an option is unknown or wrong, or a pinned tool is not available or cannot be
 * sent to the target.
 */
export function fitBudget<const Like extends TargetLike>(
  source: Toolset | readonly Tool[],
  options: FitBudgetOptions<Like>,
): FittedTools<ToolsOf<Like>, TargetOf<Like>["id"]> {
  const read = readFields(ACTION, options, CHECKS);
  const { query, ranked, count = countTokens, options: exportOptions } = read;
  const budget = read.tokens ?? refuse(ACTION, 'it needs "/tokens", a whole number, 1 or above');
  const target = (read.target ?? refuse(ACTION, 'it needs "/target"')) as Like;
  const available = toolsOf(source);
  // A bridge is nothing without its own tools.
  const { bridge } = source as Toolset;
  const own = bridge ? available.filter((tool) => bridge.behind.get(tool.id) !== tool) : [];
  const pinned = [...own.map(({ id }) => id), ...read.pinned ?? []];
  if (query !== undefined && ranked !== undefined) {
    refuse(ACTION, '"/query" and "/ranked" both say what the tools are for: give one of them');
  }
  const fitting = query === undefined
    ? ranked
    : searchToolset(buildToolset(source), query, { limit: available.length });
  const send = (tools: readonly Tool[]): ExportResult<ToolsOf<Like>, TargetOf<Like>["id"]> =>
    exportTools(tools, target, exportOptions);

  const remembers = typeof target === "string" && count === countTokens && !exportOptions;
  const worth = worthOf(available, fitting, pinned);
  const leftOut: LeftOutTool[] = [];
  const candidates: Candidate[] = [];
  for (const tool of available) {
    const value = worth.get(tool.id);
    if (value === undefined) {
      leftOut.push(left(tool, "query", "it does not fit the query"));
      continue;
    }
    const forms = remembers
      ? rememberedForms(tool, target as string, () => formsOf(tool, send, count))
      : formsOf(tool, send, count);
    const isPinned = pinned.includes(tool.id);
    if (typeof forms !== "string") candidates.push({ tool, value, forms, pinned: isPinned });
    else if (isPinned) refuse(ACTION, `the pinned tool "${tool.id}" cannot be sent: ${forms}`);
    else leftOut.push({ id: tool.id, reason: "target", message: forms });
  }
  /** What these tools take together, each in the least detail. */
  const measure = (of: readonly Candidate[]): number =>
    tokensOf(send(of.flatMap(({ forms }) => forms.at(-1)?.tool ?? [])).tools, count);
  const around = measure([]);
  const pins = candidates.filter((candidate) => candidate.pinned);

  // The tools by themselves do not take quite what they take together, so the whole is counted.
  for (let room = budget - around + SLACK, kept = candidates;;) {
    let chosen = choose(kept, room);
    if (chosen.length === 0 || pins.some((pin) => !chosen.some((one) => one.candidate === pin))) {
      // By themselves they may take more than they do together.
      chosen = leastChoice(budget, kept, pins, measure);
    }
    const exported = send(chosen.map(({ form }) => form.tool));
    const tokens = tokensOf(exported.tools, count);
    const tooMany = exported.rejected.length;
    if (tokens <= budget && tooMany === 0) {
      const shown = new Set(chosen.map(({ candidate }) => candidate.tool));
      for (const { tool, forms } of candidates) {
        if (shown.has(tool)) continue;
        leftOut.push(
          kept.some((candidate) => candidate.tool === tool)
            ? left(tool, "budget", `there is no room for its ${leastOf(forms)} tokens`)
            : left(tool, "target", `${exported.target} takes no more tools`),
        );
      }
      return {
        exported,
        tokens,
        tools: chosen.map(({ candidate: { tool: { id } }, form: { detail, tokens } }) => ({
          id,
          detail,
          tokens,
        })),
        leftOut: leftOut.sort((a, b) => a.id < b.id ? -1 : 1),
      };
    }
    if (tooMany > 0) {
      // The target has a limit of its own: the tools that are worth least go.
      const least = chosen.map(({ candidate }) => candidate).filter(({ pinned }) => !pinned)
        .sort((a, b) => a.value - b.value || (a.tool.id < b.tool.id ? 1 : -1)).slice(0, tooMany);
      if (least.length === 0) refuse(ACTION, exported.rejected[0]?.message ?? "");
      const gone = new Set(least);
      kept = kept.filter((candidate) => !gone.has(candidate));
    } else {
      const taken = chosen.reduce((sum, { form }) => sum + form.tokens, 0);
      // By half of what is too much: a smaller step may keep a better choice.
      room = taken - Math.max(1, (tokens - budget) >> 1);
    }
  }
}

function toolsOf(source: Toolset | readonly Tool[]): readonly Tool[] {
  if (isListOf(source, isTool)) return source;
  // Not `instanceof`: the module of a native host may have another copy of plue.
  return typeof (source as Toolset)?.available === "function"
    ? (source as Toolset).available()
    : refuse(
      ACTION,
      "it needs a toolset or a list of tools; a registry gives a toolset by select()",
    );
}

interface Form extends Choice {
  readonly detail: ToolDetail;
  /** The tool as it is exported. */
  readonly tool: Tool;
  readonly tokens: number;
}

interface Candidate {
  readonly tool: Tool;
  readonly value: number;
  readonly forms: readonly Form[];
  readonly pinned: boolean;
}

/** What each tool is worth. A tool that is absent does not fit the query. */
function worthOf(
  available: readonly Tool[],
  fitting: readonly Tool[] | undefined,
  pinned: readonly string[],
): ReadonlyMap<string, number> {
  const worth = new Map<string, number>();
  for (const id of pinned) {
    if (!available.some((tool) => tool.id === id)) {
      refuse(ACTION, `the pinned tool "${id}" is not available`);
    }
    worth.set(id, 1);
  }
  (fitting ?? available).forEach(({ id }, rank) => {
    // Each place in the ranking is worth less, as in discounted cumulative gain.
    worth.set(id, fitting === undefined ? 1 : 1 / Math.log2(rank + 2));
  });
  return worth;
}

/** The forms of each tool by target, under the default options. Tools do not change. */
const remembered = new WeakMap<Tool, Map<string, readonly Form[] | string>>();

/** Exporting and counting is most of the work: 0.4 ms a tool. */
function rememberedForms(
  tool: Tool,
  target: string,
  make: () => readonly Form[] | string,
): readonly Form[] | string {
  return once(once(remembered, tool, () => new Map()), target, make);
}

/** The ways to show a tool; or why the target cannot hold it. */
function formsOf(
  tool: Tool,
  send: (tools: readonly Tool[]) => ExportResult,
  count: TokenCounter,
): readonly Form[] | string {
  const forms: Form[] = [];
  let message = `Cannot export "${tool.id}"`;
  for (const detail of DETAILS) {
    const shown = atDetail(tool, detail);
    if (shown === tool && detail !== "full") continue;
    const exported = send([shown]);
    const [part] = partsOf(exported);
    if (part === undefined) {
      message = exported.rejected[0]?.message ?? message;
      continue;
    }
    // With the comma that stands before it.
    const tokens = Math.max(1, tokensOf(`,${JSON.stringify(part.wire)}`, count));
    const least = forms.at(-1)?.tokens ?? Infinity;
    if (tokens < least) forms.push({ detail, tool: shown, tokens, weight: tokens, worth: 0 });
  }
  return forms.length === 0 ? message : forms;
}

/** The variants of each tool, which all targets share. */
const variants = new WeakMap<Tool, Map<ToolDetail, Tool>>();

/** The tool in less detail: to be exported, not to be called. */
export function atDetail(tool: Tool, detail: ToolDetail): Tool {
  if (detail === "full" || (detail === "no-examples" && tool.examples.length === 0)) return tool;
  return once(once(variants, tool, () => new Map()), detail, () => variantOf(tool, detail));
}

function variantOf(tool: Tool, detail: "no-examples" | "signature"): Tool {
  const { parametersStandard: _, returnsStandard: __, ...fields } = tool;
  if (detail === "no-examples") return makeTool({ ...fields, examples: [] } as ToolDefinition);
  const { text, lossy } = argumentsOf(tool);
  const shown: Partial<ToolDefinition> = {
    examples: [],
    description: `${firstSentence(tool)}\nArguments${lossy ? ", in part" : ""}: ${text}`,
    parameters: { type: "object" },
    returns: undefined,
    icons: [],
    // A strict mode would make of any object one without properties.
    meta: { ...tool.meta, provider: { ...hintsOf(tool), strict: false } },
  };
  return makeTool({ ...fields, ...shown } as ToolDefinition);
}

interface Chosen {
  readonly candidate: Candidate;
  readonly form: Form;
}

/**
 * The least that can be shown: the pinned tools, or else the smallest one.
 *
 * @throws {RangeError} If the budget does not fit it.
 */
function leastChoice(
  budget: number,
  candidates: readonly Candidate[],
  pins: readonly Candidate[],
  measure: (of: readonly Candidate[]) => number,
): readonly Chosen[] {
  let shown = pins;
  let least = measure(pins);
  let what = pins.length === 0 ? "no tools at all take" : "the pinned tools take";
  if (pins.length === 0 && candidates.length > 0) {
    least = Infinity;
    for (const candidate of candidates) {
      const tokens = measure([candidate]);
      if (tokens >= least) continue;
      [shown, least] = [[candidate], tokens];
      what = `the smallest tool, "${candidate.tool.id}", takes`;
    }
  }
  if (least > budget) {
    throw new RangeError(`Cannot ${ACTION} of ${budget} tokens: ${what} ${least}`);
  }
  return shown.flatMap((candidate) => {
    const form = candidate.forms.at(-1);
    return form === undefined ? [] : [{ candidate, form }];
  });
}

/** Which form of which candidates to show: the pinned ones at least, in their order. */
function choose(candidates: readonly Candidate[], room: number): readonly Chosen[] {
  const most = candidates.length;
  const groups = candidates.map(({ forms, value, pinned }) =>
    forms.map((form): Form => ({
      ...form,
      // A pinned tool is worth more than all others together.
      worth: value * WORTH[form.detail] + (pinned ? most + 1 : 0),
    }))
  );
  const picks = chooseWithin(groups, room);
  return candidates.flatMap((candidate, index) => {
    const form = groups[index]?.[picks[index] ?? -1];
    return form === undefined ? [] : [{ candidate, form }];
  });
}

function leastOf(forms: readonly Form[]): number {
  return forms.at(-1)?.tokens ?? 0;
}

function left({ id }: Tool, reason: LeftOutTool["reason"], why: string): LeftOutTool {
  return { id, reason, message: `"${id}" is left out: ${why}` };
}
