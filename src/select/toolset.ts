/**
 * Toolsets: what a selection keeps of a source. The one decision point: listing, search, export,
 * serving and dispatch all take a toolset, so a tool that was removed cannot be called.
 *
 * @module
 */

import { checkWord, type Tool } from "../tool/mod.ts";
import { explainTool, explainUnknown, type ToolExplanation } from "./explain.ts";
import { listSource } from "./list_source.ts";
import { nearIds } from "./near_ids.ts";
import { checkSelection, type Selection } from "./selection.ts";
import { type SelectionStep, selectionSteps } from "./selection_steps.ts";
import type { ToolSource } from "./tool_source.ts";

/** What a toolset is made of. */
interface ToolsetParts {
  readonly name: string;
  readonly source: ToolSource;
  readonly revision: number;
  /** What was there to choose from: the source's tools, or those of a wider toolset. */
  readonly candidates: readonly Tool[];
  /** All the source's tools then, for explanations. */
  readonly known: readonly Tool[];
  /** The questions to ask now. */
  readonly steps: readonly SelectionStep[];
  /** The questions that made `candidates`. */
  readonly earlier: readonly SelectionStep[];
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
 * @param source A registry, another toolset (which is narrowed), or a list of tools.
 * @param selection What to keep; by default everything that is not fixed as unavailable.
 * @param name Names the toolset, for people.
 * @returns The toolset.
 * @throws {TypeError} If a field of the selection is unknown or wrong, or a list has an id twice.
 */
export function buildToolset(
  source: ToolSource | Toolset | Iterable<Tool>,
  selection: Selection = {},
  name = "tools",
): Toolset {
  if (source instanceof Toolset) return source.narrow(selection, name);
  const from = isToolSource(source) ? source : listSource(source);
  return toolsetOf(from, from.tools, selection, name);
}

/**
 * {@linkcode buildToolset} for a source that has its tools at hand and has not frozen them yet: they
 * are only read. Freezing a long array is dear (JavaScriptCore: 2 ms for 10,000 tools), so
 * `source.tools` is not asked for unless the selection keeps everything.
 */
export function toolsetOf(
  source: ToolSource,
  tools: readonly Tool[],
  selection: Selection,
  name: string,
): Toolset {
  return new Toolset({
    name,
    source,
    revision: source.revision,
    candidates: tools,
    known: tools,
    steps: selectionSteps(checkSelection(selection)),
    earlier: [],
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
  /** The members whose availability must be asked. */
  readonly #asked: readonly Tool[];
  #byId: ReadonlyMap<string, Tool> | undefined;
  #ids: readonly string[] | undefined;
  /** Which of the asked members said no at the last listing. */
  #absent: ReadonlySet<Tool> = new Set();
  #listing: readonly Tool[];

  /** @ignore Use {@linkcode buildToolset} or a `ToolsetBuilder`. */
  constructor(parts: ToolsetParts) {
    const { name, source, revision, candidates, steps, earlier } = parts;
    checkWord("make a toolset", name, "its name");
    const kept = keptByAll(candidates, steps);
    const asked: Tool[] = [];
    for (const tool of kept) if (typeof tool.isAvailable === "function") asked.push(tool);
    this.name = name;
    // The same array where nothing was removed: exports are remembered per list.
    const all = (): readonly Tool[] => earlier.length === 0 ? source.tools : candidates;
    this.tools = kept.length === candidates.length ? all() : Object.freeze(kept);
    this.source = source;
    this.revision = revision;
    this.#parts = parts;
    this.#asked = asked;
    this.#listing = this.tools;
  }

  /** How many members there are. */
  get size(): number {
    return this.tools.length;
  }

  /** The members' ids, in order. Frozen. */
  get ids(): readonly string[] {
    return this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id));
  }

  /** The member with that id. */
  get(id: string): Tool | undefined {
    this.#byId ??= new Map(this.tools.map((tool) => [tool.id, tool]));
    return this.#byId.get(id);
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
    return this.get(tool.id) === tool && this.#whyUnavailable(tool) === undefined;
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
      const isAbsent = !this.source.isAvailable(tool);
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

  /** Makes a toolset of those members that `selection` keeps too. */
  narrow(selection: Selection, name: string = this.name): Toolset {
    const { earlier, steps } = this.#parts;
    return new Toolset({
      ...this.#parts,
      name,
      candidates: this.tools,
      steps: selectionSteps(checkSelection(selection)),
      earlier: [...earlier, ...steps],
    });
  }

  /**
   * Says whether a tool is seen, which step removed it if not, and which others would have.
   *
   * The answer names what is hidden: it is for the owner of the tools.
   */
  explain(id: string): ToolExplanation {
    const { known, earlier, steps } = this.#parts;
    const tool = known.find((candidate) => candidate.id === id);
    if (tool === undefined) {
      const isNew = this.source.getTool(id) !== undefined;
      return explainUnknown(id, isNew ? [] : nearIds(id, this.ids), isNew);
    }
    return explainTool(tool, [...earlier, ...steps], this.#whyUnavailable(tool));
  }

  [Symbol.iterator](): IterableIterator<Tool> {
    return this.tools.values();
  }

  #whyUnavailable(tool: Tool): string | undefined {
    if (this.source.revision !== this.revision && this.source.getTool(tool.id) !== tool) {
      return "it was replaced or removed after this toolset was made";
    }
    if (tool.isAvailable === true || this.source.isAvailable(tool)) return undefined;
    return "its isAvailable function does not say yes at the moment";
  }
}

/** Loops by index: over a frozen array, for-of takes twice as long on Bun. */
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

/** A registry may be iterable too, so it is told apart by what only sources have. */
function isToolSource(source: ToolSource | Iterable<Tool>): source is ToolSource {
  return typeof (source as Partial<ToolSource> | undefined)?.getTool === "function";
}
