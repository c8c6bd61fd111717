/** Budgets: the tokens of an export, and the choice of tools that fit into a number of tokens. */

import * as formats from "../formats/mod.ts";
import type { ExportResult, TargetLike } from "../formats/mod.ts";
import { searchToolset } from "../registry/mod.ts";
import { buildToolset, isToolset, listOf, type Toolset } from "../select/mod.ts";
import * as check from "../tool/mod.ts";
import {
  describe,
  fail,
  isListOf,
  isTool,
  isToolId,
  makeTool,
  once,
  type Tool,
  type ToolDefinition,
} from "../tool/mod.ts";
import { countTokens, type TokenCounter } from "./count_tokens.ts";
import { argumentsOf, firstSentence } from "./signature.ts";

/**
 * Measures an export: the tokens of its JSON, which are about as many as a provider counts.
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
 * @param count Counts tokens, such as a provider's tokenizer. By default, o200k is estimated.
 * @returns The total, including the text around the tools, and the tokens of each tool alone.
 * @throws {TypeError} If `exported` is not a result of `exportTools`.
 */
export function measureTokens(exported: ExportResult, count: TokenCounter = countTokens): {
  readonly total: number;
  readonly tools: readonly { readonly id: string; readonly tokens: number }[];
} {
  const tools = formats.partsOf(exported).map(({ tool, wire }) => ({
    id: tool,
    tokens: tokensOf(wire, count),
  }));
  return { total: tokensOf(exported.tools, count), tools };
}

function tokensOf(value: unknown, count: TokenCounter): number {
  const tokens: unknown = count(typeof value === "string" ? value : JSON.stringify(value));
  // Rounded up, because an estimate may be a fraction and a budget is a whole number.
  return Number.isFinite(tokens) && (tokens as number) >= 0
    ? Math.ceil(tokens as number)
    : fail("count tokens", `the counter must return a number, 0 or above, not ${describe(tokens)}`);
}

/**
 * The detail of a tool in an export:
 * - `full`: everything;
 * - `no-examples`: without examples;
 * - `signature`: the first sentence of the description, and the arguments as a TypeScript type ("in
 *   part" if the type omits a rule), with a schema that accepts any object. Calls are still checked
 *   against the tool's own schema.
 */
export type ToolDetail = "full" | "no-examples" | "signature";

/** Options for {@linkcode fitBudget}. */
export interface FitBudgetOptions<Like extends TargetLike = TargetLike> {
  /** The maximum number of tokens of the export. */
  readonly tokens: number;
  /** The target of the export. */
  readonly target: Like;
  /** The purpose of the tools. Only tools that match it are shown, and the best are preferred. */
  readonly query?: string | undefined;
  /** Instead of a query: the tools to show, best first, such as from `searchToolsetAsync`. */
  readonly ranked?: readonly Tool[] | undefined;
  /** Ids of tools that are always shown, in a detail that fits the budget. */
  readonly pinned?: readonly string[] | undefined;
  /** Counts tokens. By default, the tokens of o200k are estimated. */
  readonly count?: TokenCounter | undefined;
  readonly options?: formats.ExportOptions | undefined;
}

/** A tool that is not shown. */
export interface LeftOutTool {
  readonly id: string;
  /** The reason: no tokens are left, the query does not find the tool, or the target rejects it. */
  readonly reason: "budget" | "query" | "target";
  /** The complete message. */
  readonly message: string;
}

/** The result of {@linkcode fitBudget}. */
export interface FittedTools<Tools = unknown, Id extends string = string> {
  /** The export of the tools that are shown. */
  readonly exported: ExportResult<Tools, Id>;
  /** The number of tokens of the export. */
  readonly tokens: number;
  /** The tools that are shown, each with its own number of tokens, in the order of the export. */
  readonly tools: readonly {
    readonly id: string;
    readonly detail: ToolDetail;
    readonly tokens: number;
  }[];
  /** The tools that are not shown, in order of id. */
  readonly leftOut: readonly LeftOutTool[];
}

export const checkIds: check.Check<readonly string[]> = listOf(
  check.createCheck("the id of a tool", isToolId),
);

const CHECKS = {
  tokens: check.wholeFrom(1),
  target: (_action, value) => value as TargetLike,
  query: check.checkText,
  ranked: check.createCheck("a list of tools", (value) => isListOf(value, isTool)),
  pinned: checkIds,
  count: check.checkFunction as check.Check<unknown> as check.Check<TokenCounter>,
  options: (_action, value) => value as formats.ExportOptions,
} satisfies { readonly [Field in keyof FitBudgetOptions]-?: check.Check };

const ACTION = "fit the tools into a budget";

/** The maximum number of tokens by which an export is smaller than the sum of its tools. */
const SLACK = 8;

/** From this number of tools on, one export takes about 5 ms. */
const MANY = 200;

const WORTH: Readonly<Record<ToolDetail, number>> = {
  full: 1,
  "no-examples": 0.95,
  signature: 0.7,
};
export const DETAILS: readonly ToolDetail[] = ["full", "no-examples", "signature"];

/**
 * Chooses the tools of a toolset and their detail, so that the export stays within a number of
 * tokens. Without a query, every tool has the same value; with a query, the first hit has the
 * highest value. The same tools and options give the same result.
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
 * const options = { tokens: 60, query: "read a file", target: "anthropic" } as const;
 * const { tokens, tools, leftOut } = fitBudget(toolset, options);
 * assert.ok(tokens <= 60);
 * assert.deepEqual(tools.map(({ id }) => id), ["read"]);
 * assert.deepEqual(leftOut.map(({ id, reason }) => [id, reason]), [["mail", "query"]]);
 * ```
 *
 * @param source The candidates: the available tools of a toolset, or a list. A bridge's own tools
 * are always shown.
 * @throws {RangeError} If no tool fits, or not all pinned tools fit; with the minimum of tokens.
 * @throws {TypeError} If an option is unknown or invalid, or a pinned tool is not available or
 * cannot be sent to the target.
 */
export function fitBudget<const Like extends TargetLike>(
  source: Toolset | readonly Tool[],
  options: FitBudgetOptions<Like>,
): FittedTools<formats.ToolsOf<Like>, formats.TargetOf<Like>["id"]> {
  const read = check.readFields(ACTION, options, CHECKS);
  const { query, ranked, count = countTokens, options: exportOptions } = read;
  const budget = read.tokens ?? fail(ACTION, 'it needs "/tokens", a whole number, 1 or above');
  const target = (read.target ?? fail(ACTION, 'it needs "/target"')) as Like;
  const available = toolsOf(source);
  // A bridge requires its own tools.
  const { bridge } = source as Toolset;
  const own = bridge ? available.filter((tool) => bridge.target.get(tool.id) !== tool) : [];
  const pinned = [...own.map(({ id }) => id), ...read.pinned ?? []];
  if (query !== undefined && ranked !== undefined) {
    fail(ACTION, 'set "/query" or "/ranked", not both');
  }
  const fitting = query === undefined
    ? ranked
    : searchToolset(buildToolset(source), query, { limit: available.length });
  const send = (
    tools: readonly Tool[],
  ): ExportResult<formats.ToolsOf<Like>, formats.TargetOf<Like>["id"]> =>
    formats.exportTools(tools, target, exportOptions);
  const tokensOfExport = (tools: readonly Tool[]): number => tokensOf(send(tools).tools, count);

  const caches = typeof target === "string" && count === countTokens && !exportOptions;
  const { candidates, leftOut } = findCandidates(available, fitting, pinned, (tool) => {
    const make = (): Forms => formsOf(tool, send, count);
    if (!caches) return make();
    return once(once(formsByTarget, tool, () => new Map()), target as string, make);
  });
  const pins = candidates.filter((candidate) => candidate.pinned);

  // Counts each export, because its tokens differ from the sum over its tools.
  for (let limit = budget - tokensOfExport([]) + SLACK, kept = candidates;;) {
    let chosen = choose(kept, limit);
    if (chosen.length === 0 || pins.some((pin) => !chosen.some((one) => one.candidate === pin))) {
      // The minimum may still fit: an export may have fewer tokens than the sum of its tools.
      chosen = leastChoice(budget, kept, pins, tokensOfExport);
    }
    const exported = send(chosen.map(({ form }) => form.tool));
    const tokens = tokensOf(exported.tools, count);
    const tooMany = exported.rejected.length;
    if (tooMany > 0) {
      const least = leastValuable(chosen, tooMany);
      if (least.size === 0) fail(ACTION, exported.rejected[0]?.message ?? "");
      // The target limits the number of tools, and would reject a new choice among all tools, too.
      kept = chosen.map(({ candidate }) => candidate).filter((candidate) => !least.has(candidate));
    } else if (tokens > budget) {
      const taken = chosen.reduce((sum, { form }) => sum + form.tokens, 0);
      const excess = tokens - budget;
      // Reduces the space by half of the excess, because a smaller step may keep a better choice.
      // With many tools, each step is slow, so it reduces the space by the whole excess.
      limit = taken - Math.max(1, chosen.length < MANY ? excess >> 1 : excess);
    } else {
      const shown = new Set(chosen.map(({ candidate }) => candidate));
      const eligible = new Set(kept);
      const others = candidates.filter((candidate) => !shown.has(candidate))
        .map((candidate) => {
          const { tool, forms } = candidate;
          return eligible.has(candidate)
            ? leaveOut(tool, "budget", `its ${leastOf(forms)} tokens do not fit in the budget`)
            : leaveOut(tool, "target", `${exported.target} accepts no more tools`);
        });
      return {
        ...{ exported, tokens },
        tools: chosen.map(({ candidate: { tool }, form: { detail, tokens } }) => (
          { id: tool.id, detail, tokens }
        )),
        leftOut: [...leftOut, ...others].sort((a, b) => a.id < b.id ? -1 : 1),
      };
    }
  }
}

function findCandidates(
  available: readonly Tool[],
  fitting: readonly Tool[] | undefined,
  pinned: readonly string[],
  formsOf: (tool: Tool) => Forms,
): { readonly candidates: readonly Candidate[]; readonly leftOut: readonly LeftOutTool[] } {
  const missing = pinned.find((id) => !available.some((tool) => tool.id === id));
  if (missing !== undefined) fail(ACTION, `the pinned tool "${missing}" is not available`);
  const ranks = new Map(fitting?.map(({ id }, rank) => [id, rank]));
  const leftOut: LeftOutTool[] = [];
  const candidates: Candidate[] = [];
  for (const tool of available) {
    const { id } = tool;
    const isPinned = pinned.includes(id);
    const rank = ranks.get(id);
    if (fitting !== undefined && rank === undefined && !isPinned) {
      leftOut.push(leaveOut(tool, "query", "the tool does not match the query"));
      continue;
    }
    const forms = formsOf(tool);
    // The value decreases with the rank, as in discounted cumulative gain.
    const value = 1 / Math.log2((rank ?? 0) + 2);
    if (typeof forms !== "string") candidates.push({ tool, value, forms, pinned: isPinned });
    else if (isPinned) fail(ACTION, `the pinned tool "${id}" cannot be sent: ${forms}`);
    else leftOut.push({ id, reason: "target", message: forms });
  }
  return { candidates, leftOut };
}

/** Returns the `count` chosen tools with the lowest value, for a target that limits the tools. */
function leastValuable(chosen: readonly Chosen[], count: number): ReadonlySet<Candidate> {
  return new Set(
    chosen.map(({ candidate }) => candidate).filter(({ pinned }) => !pinned)
      .sort((a, b) => a.value - b.value || (a.tool.id < b.tool.id ? 1 : -1)).slice(0, count),
  );
}

function toolsOf(source: Toolset | readonly Tool[]): readonly Tool[] {
  if (isListOf(source, isTool)) return source;
  return isToolset(source) ? source.available() : fail(
    ACTION,
    "the first argument must be a toolset or a list of tools; use registry.select()",
  );
}

interface Form {
  readonly detail: ToolDetail;
  readonly tool: Tool;
  readonly tokens: number;
}

interface Candidate {
  readonly tool: Tool;
  readonly value: number;
  readonly forms: readonly Form[];
  readonly pinned: boolean;
}

/** A tool in each detail, or the reason why the target cannot express the tool. */
type Forms = readonly Form[] | string;

/** A cache by tool and target, for default options: creating the forms of a tool takes 0.4 ms. */
const formsByTarget = new WeakMap<Tool, Map<string, Forms>>();

function formsOf(
  tool: Tool,
  send: (tools: readonly Tool[]) => ExportResult,
  count: TokenCounter,
): Forms {
  const forms: Form[] = [];
  let message = `Cannot export "${tool.id}"`;
  for (const detail of DETAILS) {
    const shown = atDetail(tool, detail);
    if (shown === tool && detail !== "full") continue;
    const exported = send([shown]);
    const [part] = formats.partsOf(exported);
    if (part === undefined) {
      message = exported.rejected[0]?.message ?? message;
      continue;
    }
    // Counts the tool with the comma before it.
    const tokens = Math.max(1, tokensOf(`,${JSON.stringify(part.wire)}`, count));
    const least = forms.at(-1)?.tokens ?? Infinity;
    if (tokens < least) forms.push({ detail, tool: shown, tokens });
  }
  return forms.length === 0 ? message : forms;
}

/** Returns the tool with other fields, for export only. */
export function variantOf(tool: Tool, change: Partial<ToolDefinition>): Tool {
  const { parametersStandard: _, returnsStandard: __, ...fields } = tool;
  return makeTool({ ...fields, ...change } as ToolDefinition);
}

/** Returns the tool in less detail, for export only. */
export function atDetail(tool: Tool, detail: ToolDetail): Tool {
  if (detail === "full" || (detail === "no-examples" && tool.examples.length === 0)) return tool;
  if (detail === "no-examples") return variantOf(tool, { examples: [] });
  const { text, lossy } = argumentsOf(tool);
  return variantOf(tool, {
    examples: [],
    description: `${firstSentence(tool)}\nArguments${lossy ? ", in part" : ""}: ${text}`,
    parameters: { type: "object" },
    returns: undefined,
    icons: [],
    // Strict mode is off, because it would turn "any object" into an object without properties.
    meta: { ...tool.meta, provider: { ...formats.hintsOf(tool), strict: false } },
  });
}

interface Chosen {
  readonly candidate: Candidate;
  readonly form: Form;
}

/** Returns the pinned tools, or else the smallest one. Throws a `RangeError` above the budget. */
function leastChoice(
  budget: number,
  candidates: readonly Candidate[],
  pins: readonly Candidate[],
  tokensOfExport: (tools: readonly Tool[]) => number,
): readonly Chosen[] {
  const smallest = candidates.toSorted((a, b) => leastOf(a.forms) - leastOf(b.forms)).slice(0, 1);
  const shown = (pins.length > 0 ? pins : smallest).flatMap((candidate) =>
    candidate.forms.slice(-1).map((form) => ({ candidate, form }))
  );
  const least = tokensOfExport(shown.map(({ form }) => form.tool));
  if (least <= budget) return shown;
  const what = pins.length > 0
    ? "the pinned tools take"
    : smallest[0] === undefined
    ? "no tools at all take"
    : `the smallest tool, "${smallest[0].tool.id}", takes`;
  throw new RangeError(`Cannot ${ACTION} of ${budget} tokens: ${what} ${least}`);
}

/** The maximum number of steps of {@linkcode choose}: about 10 ms. */
const MAX_STEPS = 1_000_000;

/**
 * Chooses candidates within `limit` tokens, each in one form (a tool in one detail). Adds forms in
 * order of value per token. Then tries the same again after each form that is added first, because
 * that may use remaining tokens better. With many tools, only the best forms are tried first.
 */
function choose(candidates: readonly Candidate[], limit: number): readonly Chosen[] {
  const steps = candidates.flatMap((candidate, index) => {
    let last = { tokens: 0, score: 0 };
    return candidate.forms.toReversed().map((form): Step => {
      const score = valueOfForm(candidate, form);
      const gain = (score - last.score) / Math.max(1, form.tokens - last.tokens);
      last = { tokens: form.tokens, score };
      return { candidate, index, form, score, gain };
    });
  }).sort((a, b) => b.gain - a.gain);
  const chosen: (Step | undefined)[] = new Array(candidates.length);
  let most = take(steps, limit, chosen);
  let best: Step | undefined;
  for (const fixed of steps.slice(0, Math.floor(MAX_STEPS / Math.max(1, steps.length)))) {
    const score = take(steps, limit, chosen, fixed);
    if (score > most) [most, best] = [score, fixed];
  }
  take(steps, limit, chosen, best);
  return chosen.filter((step) => step !== undefined);
}

/** A form of a candidate, with the gain per token over the candidate's next smaller form. */
interface Step extends Chosen {
  readonly index: number;
  readonly score: number;
  readonly gain: number;
}

/** A pinned tool has a higher value than all other tools together. */
function valueOfForm({ value, pinned }: Candidate, { detail }: Form): number {
  return value * WORTH[detail] + (pinned ? PINNED : 0);
}
const PINNED = 1_000_000;

/** Adds the steps that fit into `limit`, `fixed` first. Returns the sum of their values. */
function take(
  steps: readonly Step[],
  limit: number,
  chosen: (Step | undefined)[],
  fixed?: Step,
): number {
  chosen.fill(undefined);
  let left = limit;
  let sum = 0;
  const add = (step: Step): void => {
    const now = chosen[step.index];
    const tokens = step.form.tokens - (now?.form.tokens ?? 0);
    const score = step.score - (now?.score ?? 0);
    if (tokens > left || score <= 0) return;
    chosen[step.index] = step;
    left -= tokens;
    sum += score;
  };
  if (fixed !== undefined) add(fixed);
  for (const step of steps) if (step.index !== fixed?.index) add(step);
  return sum;
}

function leastOf(forms: readonly Form[]): number {
  return forms.at(-1)?.tokens ?? 0;
}

function leaveOut({ id }: Tool, reason: LeftOutTool["reason"], why: string): LeftOutTool {
  return { id, reason, message: `"${id}" is omitted: ${why}` };
}
