/** Builds a toolset step by step. */

import { describe, fail, type RiskLevel, type Tool } from "../tool/mod.ts";
import type { ToolAvailabilityInput } from "./availability_context.ts";
import type { SelectionCriteria } from "./criteria.ts";
import type { ToolFilter, ToolPolicy } from "./filters.ts";
import { rejectUndefined, type Selection } from "./selection.ts";
import { buildToolset, isToolset, type Toolset } from "./toolset.ts";
import type { ToolCollection, ToolSource } from "./source.ts";

/** The methods that add a condition, created from the table of criteria. */
export interface ToolsetBuilder {
  /** Keeps tools of one of these namespaces. */
  withNamespace(...names: readonly string[]): this;
  /** Keeps tools with all of these tags. */
  withTags(...tags: readonly string[]): this;
  /** Keeps tools with at least one of these tags. */
  withTagsAny(...tags: readonly string[]): this;
  /** Keeps tools of these categories. */
  withCategories(...categories: readonly string[]): this;
  /** Removes tools of these categories. */
  excludeCategories(...categories: readonly string[]): this;
  /** Keeps these tools only, by id. */
  withTools(...ids: readonly string[]): this;
  /** Removes these tools, by id. */
  excludeTools(...ids: readonly string[]): this;
  /** Keeps tools that a caller with this role may use; `null` is a caller without a role. */
  withRole(role: string | null): this;
  /** Keeps tools that a caller with exactly these scopes may use. */
  withScopes(...held: readonly string[]): this;
  /** Keeps tools of this risk or lower. */
  withMaxRisk(level: RiskLevel): this;
}

const METHODS = {
  allowIds: "withTools",
  denyIds: "excludeTools",
  maxRisk: "withMaxRisk",
  categories: "withCategories",
  excludeCategories: "excludeCategories",
  tagsAny: "withTagsAny",
  tagsAll: "withTags",
  role: "withRole",
  scopes: "withScopes",
  namespace: "withNamespace",
} satisfies { readonly [Name in keyof SelectionCriteria]-?: keyof ToolsetBuilder };

/**
 * Builds a toolset step by step. Every call adds a condition, and a tool must meet all conditions.
 * They are checked in the order of the calls, policies last. `withTools("a").withTools("b")` keeps
 * no tool, and `withTools("a", "b")` keeps both.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolsetBuilder } from "@plue/tools";
 *
 * const tools = [
 *   defineTool({ namespace: "chain", name: "status", description: "Shows the chain's progress." }),
 *   defineTool({ name: "echo", description: "Returns its input." }),
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

  static {
    for (const [name, method] of Object.entries(METHODS)) {
      const isList = name !== "maxRisk" && name !== "role";
      const add = function (this: ToolsetBuilder, ...args: unknown[]): unknown {
        return this.#with({ [name]: isList ? args : args[0] });
      };
      Object.defineProperty(this.prototype, method, { value: add });
    }
  }

  /** @param name Names the toolset, for people. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Sets the source to a registry or another object with `tools`. `build` reads its tools. */
  fromRegistry(registry: ToolSource | ToolCollection): this {
    return this.#from(registry);
  }

  /** Sets the source to a list, which is read now, or to a toolset. An absent list is empty. */
  fromTools(tools: Iterable<Tool> | Toolset | ToolCollection | null | undefined): this {
    const input = tools ?? [];
    // A toolset keeps its source, so that its tools can run.
    if (isToolset(input) || !(Symbol.iterator in Object(input))) return this.#from(input);
    return this.#from([...input as Iterable<Tool>]);
  }

  /** Keeps the tools that the filter keeps. */
  withFilter(filter: ToolFilter): this {
    return this.#with({ filters: [filter] });
  }

  /** Keeps the tools that the policy allows. Policies are called after all other steps. */
  withPolicy(policy: ToolPolicy): this {
    this.#policies.push(policy);
    return this;
  }

  /** Keeps the tools that the environment offers and permits. */
  withContext(context: ToolAvailabilityInput): this {
    return this.#with({ context });
  }

  /** Makes the toolset. Throws a `TypeError` without a source, or for an invalid value. */
  build(): Toolset {
    const source = this.#source ??
      this.#refuse("the source is missing; call fromRegistry or fromTools first");
    return [...this.#conditions, { policies: this.#policies }].reduce(
      (toolset, condition) => toolset.narrow(condition),
      buildToolset(source, {}, this.#name),
    );
  }

  #from(source: ToolSource | ToolCollection | Toolset | Iterable<Tool>): this {
    if (this.#source !== undefined) this.#refuse("the source is already set");
    this.#source = source ??
      this.#refuse(`the source must be a registry or another object with tools, not ${source}`);
    return this;
  }

  #refuse(problem: string): never {
    return fail(`build toolset ${describe(this.#name)}`, problem);
  }

  #with(condition: Selection): this {
    this.#conditions.push(rejectUndefined(condition));
    return this;
  }
}
