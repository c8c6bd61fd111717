/**
 * Toolsets: the tools of a source that a selection keeps. A toolset is the only access decision:
 * listing, search, export, serving and dispatch all take a toolset, so a removed tool cannot be
 * called.
 */

import {
  assertSync,
  attemptOr,
  callHook,
  checkWord,
  describedFor,
  fail,
  isFunction,
  noop,
  originalOf,
  type Tool,
  type ToolReader,
} from "../tool/mod.ts";
import {
  ACTION,
  freezeInOrder,
  inOrder,
  listSource,
  type ToolCollection,
  type ToolSource,
} from "./source.ts";
import { READER_FIELDS } from "./criteria.ts";
import { type Explainer, explainTool, type ToolExplanation } from "./explain.ts";
import {
  AVAILABILITY_STEP,
  type CheckedSelection,
  checkSelection,
  type Selection,
  type SelectionStep,
  selectionSteps,
} from "./selection.ts";

/** The relation of a bridge to its target toolset. `createToolBridge` creates it. */
export interface ToolsetBridge {
  /** The target toolset, whose tools are called. */
  readonly target: Toolset;
  /**
   * Returns the call of a target tool, or `undefined` if the call is for one of the bridge's own
   * tools.
   *
   * @param maxLength The maximum length of arguments that are JSON text.
   */
  resolveTarget<Call extends { readonly name: string; readonly arguments?: unknown }>(
    call: Call,
    maxLength?: number,
  ): Call | undefined;
  /** The tools to export to a provider that loads found tools; `undefined` for the usual export. */
  loadable(): readonly Tool[] | undefined;
}

/**
 * Creates a toolset with the tools of `source` that `selection` keeps.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { buildToolset, defineTool } from "@plue/tools";
 *
 * const tools = [
 *   defineTool({ name: "echo", description: "Answers what it is given.", risk: "safe" }),
 *   defineTool({ name: "rm", description: "Deletes a file.", risk: "high" }),
 * ];
 * const toolset = buildToolset(tools, { maxRisk: "low" });
 *
 * assert.deepEqual(toolset.ids, ["echo"]);
 * assert.equal(toolset.explain("rm").reason, '"rm" is removed by risk: risk high is above the limit low');
 * ```
 *
 * @param source A registry, another toolset (which is narrowed), anything else with `tools`, or a
 * list of tools.
 * @param selection The selection; by default all tools except permanently unavailable ones.
 * @throws {TypeError} If a field of the selection is unknown or invalid, or a list has a duplicate
 * id.
 */
export function buildToolset(
  source: ToolSource | Toolset | ToolCollection | Iterable<Tool>,
  selection: Selection = {},
  name = "tools",
): Toolset {
  if (isToolset(source)) return source.narrow(selection, name);
  const from = isToolSource(source) ? source : listSource(listIn(source));
  return new Toolset(from, inOrder(from.tools), selection, name, undefined, explainTool);
}

/**
 * The tools of one caller: an immutable list, in order of id. Made by {@linkcode buildToolset}.
 *
 * Filters and policies whose results may have changed since (see `ToolPolicy.revision`) are called
 * again by `get`, `has`, `resolve`, `isAvailable`, `available` and `explain`. So a tool that such a
 * function denies now is not described, exported or called, although `tools` still has the tool. To
 * get a current list, select again.
 */
export class Toolset implements Iterable<Tool> {
  /** Names the toolset, for people. */
  readonly name: string;
  /** The members, in code-unit order of id. Frozen. */
  readonly tools: readonly Tool[];
  readonly source: ToolSource;
  /** The revision of the source when the toolset was made. */
  readonly revision: number;
  /** Set if this toolset is a bridge: its calls are forwarded to the target's tools. */
  readonly bridge: ToolsetBridge | undefined = undefined;
  readonly #explainer: Explainer | undefined;
  /** All tools that the source had when the toolset was made. */
  readonly #all: readonly Tool[];
  /** The reader of the descriptions; `undefined` if the selection names none. */
  readonly #reader: ToolReader | undefined;
  /** The members as registered. `tools` has other descriptions if there is a reader. */
  readonly #kept: readonly Tool[];
  /** The members with an availability function. */
  readonly #uncertain: readonly Tool[];
  /** All steps. The steps of wider toolsets come first. */
  readonly #steps: readonly SelectionStep[];
  /** The steps with filters and policies, whose results may change. */
  readonly #functions: readonly SelectionStep[];
  /** The revisions of the functions when they were last applied. */
  #revisions: readonly unknown[];
  /** The tools that all steps without functions keep. */
  #keptByData: readonly Tool[] | undefined;
  #byName: ReadonlyMap<string, Tool> | undefined;
  #allByName: ReadonlyMap<string, Tool> | undefined;
  #ids: readonly string[] | undefined;
  /** The members that were unavailable at the last listing. */
  #absent: readonly Tool[] = [];
  #listing: readonly Tool[];

  /**
   * @ignore Use {@linkcode buildToolset} or a `ToolsetBuilder`.
   *
   * @param candidates The tools of the source or of the wider toolset, in order of id. If the
   * selection keeps them all, this list is frozen, because freezing a copy is slow (JavaScriptCore:
   * 2 ms for 10,000 tools).
   */
  constructor(
    source: ToolSource,
    candidates: readonly Tool[],
    selection: Selection,
    name: string,
    wider?: Toolset,
    explainer: Explainer | undefined = wider && wider.#explainer,
  ) {
    checkWord(ACTION, name, "the name");
    const checked = checkSelection(selection);
    this.name = name;
    this.source = source;
    this.#explainer = explainer;
    // Reads the revision before the steps run, so that a change meanwhile is noticed.
    this.revision = wider?.revision ?? source.revision;
    this.#all = wider ? wider.#all : candidates;
    const steps = selectionSteps(checked);
    this.#steps = [...(wider ? wider.#steps : [AVAILABILITY_STEP]), ...steps];
    this.#functions = this.#steps.filter(({ revision }) => revision);
    const known = wider ? wider.#revisions : [];
    this.#revisions = this.#functions.map((step, at) =>
      at in known ? known[at] : step.revision?.()
    );
    const kept = keptByAll(candidates, wider ? steps : this.#steps);
    // Reuses the array if nothing was removed, because exports are cached by list.
    this.#kept = freezeInOrder(kept.length === candidates.length ? candidates : kept);
    this.#reader = readerOf(checked, wider ? wider.#reader : undefined);
    this.tools = this.#reader ? readBy(this.#kept, this.#reader, source) : this.#kept;
    this.#uncertain = this.#kept.filter(hasAvailabilityFunction);
    this.#listing = this.tools;
  }

  /** The number of members. */
  get size(): number {
    return this.tools.length;
  }

  /** The members' ids, in order. Frozen. */
  get ids(): readonly string[] {
    return this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id));
  }

  /** True if `available()` may change while the source does not. */
  get mayChange(): boolean {
    return this.#functions.length > 0 || this.#uncertain.length > 0;
  }

  /** True if the same selection would now have these members. May call filters and policies. */
  isCurrent(): boolean {
    if (this.source.revision !== this.revision) return false;
    if (this.#functions.length === 0 || this.#changedSteps().length === 0) return true;
    const now = this.#functions.map(({ revision }) => revision?.());
    this.#keptByData ??= keptByAll(this.#all, this.#steps.filter(({ revision }) => !revision));
    const isSame = areSame(keptByAll(this.#keptByData, this.#functions), this.#kept);
    if (isSame) this.#revisions = now;
    return isSame;
  }

  /** Returns the member with this id, with its description for this model, provider and locale. */
  get(id: string): Tool | undefined {
    const tool = this.resolve(id);
    if (tool?.id !== id) return undefined;
    return this.tools === this.#kept ? tool : this.tools[this.#kept.indexOf(tool)];
  }

  /** Returns the registered member with this id or alias. */
  resolve(name: string): Tool | undefined {
    const tool = (this.#byName ??= byName(this.#kept)).get(name);
    // Most toolsets have no such functions, and every call runs this line.
    const isAllowed = this.#functions.length === 0 || tool && passes(tool, this.#changedSteps());
    return isAllowed ? tool : undefined;
  }

  /** True if a member has this id. */
  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  /** True if `tool` is a member, still in the source, and currently available. Never throws. */
  isAvailable(tool: Tool): boolean {
    const original = originalOf(tool);
    return this.resolve(tool.id) === original && !this.#isReplaced(original) &&
      (original.isAvailable === true || this.#isAvailableInSource(original));
  }

  /**
   * Returns the available members, for listings, search and exports. Calls availability functions,
   * and filters and policies that may have changed, once for each member. Returns the same array
   * until one of the results changes.
   */
  available(): readonly Tool[] {
    const steps = this.#changedSteps();
    const members = steps.length === 0 ? this.#uncertain : this.#kept;
    const absent = members.filter((tool) =>
      !passes(tool, steps) ||
      hasAvailabilityFunction(tool) && !this.#isAvailableInSource(tool)
    );
    if (!areSame(absent, this.#absent)) {
      this.#absent = absent;
      const hidden = new Set(absent);
      this.#listing = absent.length === 0
        ? this.tools
        : Object.freeze(this.tools.filter((_, at) => !hidden.has(this.#kept[at] as Tool)));
    }
    return this.#listing;
  }

  /** True if a policy requires approval for calls of a tool, or of the original of a view. */
  requiresApproval(tool: Tool): boolean {
    for (let shown: Tool | undefined = tool; shown; shown = shown.view?.tool) {
      for (const { requiresApproval } of this.#steps) if (requiresApproval?.(shown)) return true;
    }
    return false;
  }

  /** Creates a toolset with the members that `selection` also keeps. */
  narrow(selection: Selection, name: string = this.name): Toolset {
    return new Toolset(this.source, this.#kept, selection, name, this);
  }

  /**
   * Explains whether the toolset contains a tool, which step removed the tool, and which further
   * steps would have removed it. Filters and policies are called again.
   *
   * Explanations name hidden tools: show them to the operator, not to a caller.
   *
   * @throws {TypeError} If the toolset comes from a `Registry` of the core, which has no
   * explanations.
   */
  explain(id: string, explainer: Explainer | undefined = this.#explainer): ToolExplanation {
    // A map, because each tool of a long list may be explained.
    const named = (this.#allByName ??= byName(this.#all)).get(id);
    const tool = named?.id === id ? named : undefined;
    if (explainer === undefined) fail("explain a tool", "the source must be a ToolRegistry");
    return explainer({
      id,
      tool,
      exists: this.source.getTool(id) !== undefined,
      steps: this.#steps,
      isMember: (this.#byName ??= byName(this.#kept)).get(id) === tool,
      isReplaced: tool !== undefined && this.#isReplaced(tool),
      isAvailable: tool?.isAvailable === true || this.#isAvailableInSource(tool as Tool),
    });
  }

  [Symbol.iterator](): IterableIterator<Tool> {
    return this.tools.values();
  }

  /** Returns the filters and policies whose results may have changed since the toolset was made. */
  #changedSteps(): readonly SelectionStep[] {
    return this.#functions.filter(({ revision }, at) =>
      !Object.is(revision?.(), this.#revisions[at])
    );
  }

  /** Calls the source, which the host may have written. Only `true` counts as available. */
  #isAvailableInSource(tool: Tool): boolean {
    return attemptOr(false, () => assertSync(this.source.isAvailable(tool)) === true);
  }

  /** True if the source has replaced or removed this tool. */
  #isReplaced(tool: Tool): boolean {
    return this.source.revision !== this.revision && this.source.getTool(tool.id) !== tool;
  }
}

function hasAvailabilityFunction({ isAvailable }: Tool): boolean {
  return isFunction(isAvailable);
}

function passes(tool: Tool, steps: readonly SelectionStep[]): boolean {
  return steps.every((step) => step.keeps(tool));
}

function readerOf({ context }: CheckedSelection, wider?: ToolReader): ToolReader | undefined {
  const reader = { ...wider };
  for (const field of READER_FIELDS) reader[field] = context?.[field] ?? reader[field];
  return READER_FIELDS.some((field) => reader[field]) ? reader : undefined;
}

function readBy(tools: readonly Tool[], reader: ToolReader, source: ToolSource): readonly Tool[] {
  if (!tools.some((tool) => tool.describe !== undefined)) return tools;
  const log = (tool: Tool, error: unknown): void =>
    callHook(() => source.onDescribeError?.(tool, error), noop);
  return Object.freeze(tools.map((tool) => describedFor(tool, reader, log)));
}

function byName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  const byName = new Map<string, Tool>();
  for (const tool of tools) for (const alias of tool.aliases) byName.set(alias, tool);
  for (const tool of tools) byName.set(tool.id, tool);
  return byName;
}

function areSame(some: readonly Tool[], others: readonly Tool[]): boolean {
  return some.length === others.length && some.every((tool, index) => tool === others[index]);
}

/** Returns the tools that pass every step. By index: for-of over a frozen array is slow in Bun. */
function keptByAll(candidates: readonly Tool[], steps: readonly SelectionStep[]): Tool[] {
  const kept: Tool[] = [];
  next:
  for (let index = 0; index < candidates.length; index++) {
    const tool = candidates[index] as Tool;
    for (let step = 0; step < steps.length; step++) {
      if (!(steps[step] as SelectionStep).keeps(tool)) continue next;
    }
    kept.push(tool);
  }
  return kept;
}

/** True for a toolset of any copy of plue. The module of a native host may have another copy. */
export function isToolset(value: unknown): value is Toolset {
  const { available, narrow }: Partial<Toolset> = Object(value);
  return isFunction(available) && isFunction(narrow);
}

/** True for a source. Its methods decide, because a registry may also be iterable. */
function isToolSource(source: object): source is ToolSource {
  const { getTool, isAvailable, tools } = (source ?? {}) as Partial<ToolSource>;
  return isFunction(getTool) && isFunction(isAvailable) && Array.isArray(tools);
}

function listIn(source: ToolCollection | Iterable<Tool>): Iterable<Tool> {
  if (typeof source !== "object" || source === null || !("tools" in source)) return source;
  const tools = typeof source.tools === "function" ? source.tools() : source.tools;
  if (tools && "isAvailable" in source) {
    fail(ACTION, "a source with isAvailable must have getTool and a list of tools, too");
  }
  return tools ?? [];
}
