/**
 * Toolsets: what a selection keeps of a source. The one decision point: listing, search, export,
 * serving and dispatch all take a toolset, so a tool that was removed cannot be called.
 *
 * @module
 */

import {
  atOnce,
  callHook,
  checkWord,
  describedFor,
  NO_LOG,
  originalOf,
  refuse,
  type Tool,
  type ToolReader,
} from "../tool/mod.ts";
import {
  ACTION,
  inOrder,
  listSource,
  type ToolCollection,
  toolsByAlias,
  type ToolSource,
} from "./source.ts";
import { nearIds } from "./near_ids.ts";
import {
  AVAILABILITY_STEP,
  type CheckedSelection,
  checkSelection,
  type Selection,
  type SelectionStep,
  type SelectionStepName,
  selectionSteps,
} from "./selection.ts";

/** One question that a tool was asked, and its answer. */
export interface ExplainedStep {
  readonly step: SelectionStepName;
  /** Which filter, policy or flag, where there may be several. */
  readonly name?: string;
  readonly passed: boolean;
  /** Why it did not pass. */
  readonly reason?: string;
}

/**
 * Why a caller sees a tool, or does not. JSON.
 *
 * It names hidden tools, so show it to the owner of the tools, not to a caller.
 */
export interface ToolExplanation {
  readonly id: string;
  /** The tool is in the toolset. */
  readonly selected: boolean;
  /** The tool is in the toolset, and says that it is available now. */
  readonly available: boolean;
  /** Every question, in order, also those after the first that the tool did not pass. */
  readonly steps: readonly ExplainedStep[];
  /** The first question that the tool did not pass. */
  readonly removedBy?: SelectionStepName;
  /** The answer in a sentence. */
  readonly reason: string;
}

/** How a toolset stands for another one. `createToolBridge` makes such toolsets. */
export interface ToolsetBridge {
  /** The toolset whose tools are called. */
  readonly behind: Toolset;
  /**
   * The call of a tool behind the bridge that a call stands for; `undefined` if it is a call of one
   * of the bridge's own tools.
   *
   * @param maxLength How long arguments that are a JSON text may be, to be read.
   */
  lead<Call extends { readonly name: string; readonly arguments?: unknown }>(
    call: Call,
    maxLength?: number,
  ): Call | undefined;
  /**
   * What is exported to a target that loads tools when a search finds them: that search, and the
   * tools behind the bridge. `undefined`: such a target is sent what others are.
   */
  loadable(): readonly Tool[] | undefined;
}

export interface ToolsetParts {
  readonly name: string;
  readonly source: ToolSource;
  readonly revision: number;
  /** The tools to choose from: those of the source, or of a wider toolset. */
  readonly candidates: readonly Tool[];
  /** The candidates, frozen, to hand out where nothing is removed. */
  readonly all: () => readonly Tool[];
  /** All tools that the source had, for explanations. */
  readonly known: readonly Tool[];
  /** The steps to take. */
  readonly steps: readonly SelectionStep[];
  /** The steps that made `candidates`. */
  readonly earlier: readonly SelectionStep[];
  /** Who reads the descriptions; `undefined` if nothing is known. */
  readonly reader: ToolReader | undefined;
}

/**
 * Makes a toolset of what `selection` keeps of `source`.
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
 * @param selection What to keep; by default everything that is not fixed as unavailable.
 * @param name Names the toolset, for people.
 * @returns The toolset.
 * @throws {TypeError} If a field of the selection is unknown or wrong, or a list has an id twice.
 */
export function buildToolset(
  source: ToolSource | Toolset | ToolCollection | Iterable<Tool>,
  selection: Selection = {},
  name = "tools",
): Toolset {
  if (source instanceof Toolset) return source.narrow(selection, name);
  const from = isToolSource(source) ? source : listSource(listIn(source));
  const tools = inOrder(from.tools);
  return toolsetOf(from, tools, selection, name, () => tools);
}

/**
 * {@linkcode buildToolset} for a source whose tools are in order and not frozen yet. They are only
 * read. To freeze a long array is slow (JavaScriptCore: 2 ms for 10,000 tools), so `all` is asked for
 * them frozen only where the selection keeps everything.
 */
export function toolsetOf(
  source: ToolSource,
  tools: readonly Tool[],
  selection: Selection,
  name: string,
  all: () => readonly Tool[],
): Toolset {
  const checked = checkSelection(selection);
  return new Toolset({
    name,
    source,
    revision: source.revision,
    candidates: tools,
    all,
    known: tools,
    steps: [AVAILABILITY_STEP, ...selectionSteps(checked)],
    earlier: [],
    reader: readerOf(checked),
  });
}

/** The tools that one caller sees: a snapshot, in order of id. Made by {@linkcode buildToolset}. */
export class Toolset implements Iterable<Tool> {
  /** Names the toolset, for people. */
  readonly name: string;
  /** The members, in code-unit order of id. Frozen. */
  readonly tools: readonly Tool[];
  /** Where the tools come from. */
  readonly source: ToolSource;
  /** The source's revision when the toolset was made. */
  readonly revision: number;
  readonly #parts: ToolsetParts;
  /** The members as they are registered: `tools`, unless a reader is told something else. */
  readonly #kept: readonly Tool[];
  /** The members whose availability must be asked. */
  readonly #asked: readonly Tool[];
  /** The steps of policies that want calls approved. */
  readonly #asking: readonly SelectionStep[];
  #byId: ReadonlyMap<string, Tool> | undefined;
  #byAlias: ReadonlyMap<string, Tool> | undefined;
  /** All tools that the source had, for explanations. */
  #known: ReadonlyMap<string, Tool> | undefined;
  #ids: readonly string[] | undefined;
  /** Which of the asked members said no at the last listing. */
  #absent: ReadonlySet<Tool> = new Set();
  #listing: readonly Tool[];

  /** @ignore Use {@linkcode buildToolset} or a `ToolsetBuilder`. */
  constructor(parts: ToolsetParts) {
    const { name, source, revision, candidates, all, steps, reader } = parts;
    checkWord(ACTION, name, "its name");
    const kept = keptByAll(candidates, steps);
    this.name = name;
    // The same array where nothing was removed: exports are remembered per list.
    this.#kept = kept.length === candidates.length ? all() : Object.freeze(kept);
    this.tools = reader === undefined ? this.#kept : readBy(this.#kept, reader, source);
    const asked: Tool[] = [];
    for (const tool of this.tools) if (typeof tool.isAvailable === "function") asked.push(tool);
    this.source = source;
    this.revision = revision;
    this.#parts = parts;
    this.#asked = asked;
    this.#asking = [...parts.earlier, ...steps].filter((step) => step.asks !== undefined);
    this.#listing = this.tools;
  }

  /** What it stands for, if it is a bridge. Calls are led to the tools behind it. */
  get bridge(): ToolsetBridge | undefined {
    return undefined;
  }

  /** How many members there are. */
  get size(): number {
    return this.tools.length;
  }

  /** The members' ids, in order. Frozen. */
  get ids(): readonly string[] {
    return this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id));
  }

  /** The member with that id, described for the reader. */
  get(id: string): Tool | undefined {
    return (this.#byId ??= byId(this.tools)).get(id);
  }

  /**
   * The member that a call with this name means: by its id, or by one of its aliases. It is the tool
   * as it is registered, whoever reads its description.
   */
  resolve(name: string): Tool | undefined {
    const tool = this.get(name) ?? (this.#byAlias ??= toolsByAlias(this.tools)).get(name);
    return tool && originalOf(tool);
  }

  /** Whether a member has that id. */
  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  /**
   * Whether `tool` is a member, still belongs to the source, and says now that it is available.
   * Never throws.
   */
  isAvailable(tool: Tool): boolean {
    const original = originalOf(tool);
    return this.resolve(tool.id) === original && this.#whyUnavailable(original) === undefined;
  }

  /**
   * The members that are available now: what to list, search and export. Availability functions
   * are asked once each; the answer is the same array until one of them changes its mind.
   */
  available(): readonly Tool[] {
    if (this.#asked.length === 0) return this.tools;
    let changed = false;
    let absent: Set<Tool> | undefined;
    for (const tool of this.#asked) {
      const isAbsent = !this.#asks(tool);
      if (isAbsent) (absent ??= new Set()).add(tool);
      if (isAbsent !== this.#absent.has(tool)) changed = true;
    }
    if (changed) {
      const gone = this.#absent = absent ?? new Set();
      this.#listing = gone.size === 0
        ? this.tools
        : Object.freeze(this.tools.filter((tool) => !gone.has(tool)));
    }
    return this.#listing;
  }

  /** Whether a policy wants calls of a tool, or of one that it is a view of, approved. */
  asks(tool: Tool): boolean {
    if (this.#asking.length === 0) return false;
    for (let asked: Tool | undefined = tool; asked; asked = asked.view?.tool) {
      for (const { asks } of this.#asking) if (asks?.(asked)) return true;
    }
    return false;
  }

  /** Makes a toolset of those members that `selection` keeps too. */
  narrow(selection: Selection, name: string = this.name): Toolset {
    const { earlier, steps, reader } = this.#parts;
    const checked = checkSelection(selection);
    return new Toolset({
      ...this.#parts,
      name,
      candidates: this.#kept,
      all: () => this.#kept,
      steps: selectionSteps(checked),
      earlier: [...earlier, ...steps],
      reader: readerOf(checked, reader),
    });
  }

  /**
   * Says whether a tool is seen, which step removed it if not, and which others would have.
   *
   * The answer names hidden tools: show it to the owner of the tools, not to a caller.
   */
  explain(id: string): ToolExplanation {
    const { known, earlier, steps } = this.#parts;
    const tool = (this.#known ??= byId(known)).get(id);
    if (tool === undefined) {
      const isNew = this.source.getTool(id) !== undefined;
      return explainUnknown(id, isNew ? [] : nearIds(id, this.ids), isNew);
    }
    return explainTool(tool, [...earlier, ...steps], this.#whyUnavailable(tool));
  }

  [Symbol.iterator](): IterableIterator<Tool> {
    return this.tools.values();
  }

  /** Asks the source, which may be the owner's own. Only `true` is a yes. */
  #asks(tool: Tool): boolean {
    try {
      return atOnce(this.source.isAvailable(originalOf(tool))) === true;
    } catch {
      return false;
    }
  }

  #whyUnavailable(tool: Tool): string | undefined {
    if (this.source.revision !== this.revision && this.source.getTool(tool.id) !== tool) {
      return "it was replaced or removed after this toolset was made";
    }
    if (tool.isAvailable === true || this.#asks(tool)) return undefined;
    return "its isAvailable function does not say yes at the moment";
  }
}

/** Who reads, by a selection's context and by the reader of a wider toolset. */
function readerOf({ context }: CheckedSelection, wider?: ToolReader): ToolReader | undefined {
  const { model, provider, locale } = context ?? {};
  if (model === undefined && provider === undefined && locale === undefined) return wider;
  return {
    model: model ?? wider?.model,
    provider: provider ?? wider?.provider,
    locale: locale ?? wider?.locale,
  };
}

/** The tools as a reader sees them: the same list, if all are the same to everyone. */
function readBy(tools: readonly Tool[], reader: ToolReader, source: ToolSource): readonly Tool[] {
  if (!tools.some((tool) => tool.describe !== undefined)) return tools;
  const log = (tool: Tool, error: unknown): void =>
    callHook(() => source.onDescribeError?.(tool, error), NO_LOG);
  return Object.freeze(tools.map((tool) => describedFor(tool, reader, log)));
}

function byId(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  return new Map(tools.map((tool) => [tool.id, tool]));
}

/** The tools that pass every step. By index: for-of over a frozen array takes Bun twice as long. */
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

/** Whether it is a source. A registry may be iterable too, so the methods of a source decide. */
function isToolSource(source: object): source is ToolSource {
  const { getTool, isAvailable, tools } = (source ?? {}) as Partial<ToolSource>;
  return typeof getTool === "function" && typeof isAvailable === "function" && Array.isArray(tools);
}

/** The list that a collection has, or that it is. */
function listIn(source: ToolCollection | Iterable<Tool>): Iterable<Tool> {
  if (typeof source !== "object" || source === null || !("tools" in source)) return source;
  const tools = typeof source.tools === "function" ? source.tools() : source.tools;
  if (tools && "isAvailable" in source) {
    refuse(ACTION, "a source with isAvailable must have getTool and a list of tools, too");
  }
  return tools ?? [];
}

/** Asks a tool every question of `steps`; `unavailable` is why it cannot be used at the moment. */
function explainTool(
  tool: Tool,
  steps: readonly SelectionStep[],
  unavailable: string | undefined,
): ToolExplanation {
  let selected = true;
  const answers = steps.map(({ keeps, reason, asks: _asks, ...names }): ExplainedStep => {
    if (!keeps(tool)) {
      selected = false;
      return { ...names, passed: false, reason: reason(tool) };
    }
    return names.step === "availability" && unavailable !== undefined
      ? { ...names, passed: false, reason: unavailable }
      : { ...names, passed: true };
  });
  const removed = answers.find((answer) => !answer.passed);
  const why = removed === undefined
    ? "is in the toolset and available"
    : selected
    ? `is in the toolset, but not available now: ${removed.reason}`
    : `is removed by ${removed.step}: ${removed.reason}`;
  return {
    id: tool.id,
    selected,
    available: removed === undefined,
    steps: answers,
    ...(removed && { removedBy: removed.step }),
    reason: `"${tool.id}" ${why}`,
  };
}

/** Explains an id that no tool had; `near` are ids that the caller sees. */
function explainUnknown(
  id: string,
  near: readonly string[],
  isNew: boolean,
): ToolExplanation {
  const shown = JSON.stringify(id.slice(0, 257));
  const nearest = near.length === 0
    ? ""
    : `. Near it: ${near.map((other) => `"${other}"`).join(", ")}`;
  return {
    id: id.slice(0, 257),
    selected: false,
    available: false,
    steps: [],
    reason: isNew
      ? `Tool ${shown} was added after this toolset was made`
      : `There is no tool ${shown}${nearest}`,
  };
}
