/**
 * Builds a toolset step by step.
 *
 * @module
 */

import { describe, refuse, type RiskLevel, type Tool } from "../tool/mod.ts";
import type { ToolAvailabilityInput } from "./availability_context.ts";
import type { ToolFilter } from "./filters.ts";
import type { ToolPolicy } from "./policies.ts";
import { given, type Selection } from "./selection.ts";
import { buildToolset, Toolset } from "./toolset.ts";
import type { ToolCollection, ToolSource } from "./source.ts";

/**
 * Builds a toolset step by step. Every call adds a condition, and all of them must hold: in the
 * order added, and policies last. `withTools("a").withTools("b")` keeps nothing, and
 * `withTools("a", "b")` keeps both.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolsetBuilder } from "@plue/tools";
 *
 * const tools = [
 *   defineTool({ namespace: "chain", name: "status", description: "Says how far the chain is." }),
 *   defineTool({ name: "echo", description: "Answers what it is given." }),
 * ];
 * const toolset = new ToolsetBuilder("chain").fromTools(tools).withNamespace("chain").build();
 *
 * assert.deepEqual(toolset.ids, ["chain:status"]);
 * ```
 */
export class ToolsetBuilder {
  readonly #name: string;
  #source: ToolSource | ToolCollection | Toolset | Iterable<Tool> | undefined;
  readonly #conditions: Selection[] = [];
  readonly #policies: ToolPolicy[] = [];

  /** @param name Names the toolset, for people. */
  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Takes the tools of a registry, or of anything else with `tools`, as they are when the toolset is
   * built.
   */
  fromRegistry(registry: ToolSource | ToolCollection): this {
    return this.#from(registry);
  }

  /** Takes the tools of a list, which is read at once, or of another toolset. No list is empty. */
  fromTools(tools: Iterable<Tool> | Toolset | ToolCollection | null | undefined): this {
    const given = tools ?? [];
    // A toolset keeps its own source, so that its tools can be run.
    if (given instanceof Toolset || !(Symbol.iterator in Object(given))) return this.#from(given);
    return this.#from([...given as Iterable<Tool>]);
  }

  /** Keeps tools of one of these namespaces. */
  withNamespace(...names: readonly string[]): this {
    return this.#with({ namespace: names });
  }

  /** Keeps tools with all of these tags. */
  withTags(...tags: readonly string[]): this {
    return this.#with({ tagsAll: tags });
  }

  /** Keeps tools with at least one of these tags. */
  withTagsAny(...tags: readonly string[]): this {
    return this.#with({ tagsAny: tags });
  }

  /** Keeps tools of one of these categories. */
  withCategories(...categories: readonly string[]): this {
    return this.#with({ categories });
  }

  /** Removes tools of these categories. */
  excludeCategories(...categories: readonly string[]): this {
    return this.#with({ excludeCategories: categories });
  }

  /** Keeps these tools only, by id. */
  withTools(...ids: readonly string[]): this {
    return this.#with({ allowIds: ids });
  }

  /** Removes these tools, by id. */
  excludeTools(...ids: readonly string[]): this {
    return this.#with({ denyIds: ids });
  }

  /** Keeps what the filter keeps. */
  withFilter(filter: ToolFilter): this {
    return this.#with({ filters: [filter] });
  }

  /** Keeps what the policy allows. It is asked after everything else. */
  withPolicy(policy: ToolPolicy): this {
    this.#policies.push(policy);
    return this;
  }

  /** Keeps what a caller with this role may use; `null` is a caller without one. */
  withRole(role: string | null): this {
    return this.#with({ role });
  }

  /** Keeps what a caller who holds these scopes, and no others, may use. */
  withScopes(...held: readonly string[]): this {
    return this.#with({ scopes: held });
  }

  /** Keeps tools of this risk or less. */
  withMaxRisk(level: RiskLevel): this {
    return this.#with({ maxRisk: level });
  }

  /** Keeps what the place offers and permits. */
  withContext(context: ToolAvailabilityInput): this {
    return this.#with({ context });
  }

  /**
   * Makes the toolset. The builder can go on; what was built does not change.
   *
   * @throws {TypeError} If there is no source, or something given was wrong.
   */
  build(): Toolset {
    if (this.#source === undefined) {
      return refuse(
        `build toolset ${describe(this.#name)}`,
        "it has no source; call fromRegistry or fromTools first",
      );
    }
    return [...this.#conditions, { policies: this.#policies }].reduce(
      (toolset, condition) => toolset.narrow(condition),
      buildToolset(this.#source, {}, this.#name),
    );
  }

  #from(source: ToolSource | ToolCollection | Toolset | Iterable<Tool>): this {
    if (this.#source !== undefined) {
      refuse(`build toolset ${describe(this.#name)}`, "it has a source already");
    }
    this.#source = source ??
      refuse(
        `build toolset ${describe(this.#name)}`,
        `it needs a registry, or anything else with tools, not ${source}`,
      );
    return this;
  }

  #with(condition: Selection): this {
    this.#conditions.push(given(condition));
    return this;
  }
}
