/**
 * Builds a toolset step by step.
 *
 * @module
 */

import { describe, refuse, type RiskLevel, type Tool } from "../tool/mod.ts";
import type { ToolAvailabilityInput } from "./availability_context.ts";
import type { ToolFilter } from "./filters.ts";
import type { ToolPolicy } from "./policies.ts";
import type { Selection } from "./selection.ts";
import { buildToolset, Toolset } from "./toolset.ts";
import type { ToolSource } from "./tool_source.ts";

/** The fields of a selection that are lists. */
type ListField =
  | "allowIds"
  | "categories"
  | "denyIds"
  | "excludeCategories"
  | "filters"
  | "namespace"
  | "policies"
  | "scopes"
  | "tagsAll"
  | "tagsAny";

/**
 * Builds a toolset step by step. What takes several values adds them to those of earlier calls;
 * what takes one value replaces it.
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
  #source: ToolSource | readonly Tool[] | Toolset | undefined;
  #selection: Selection & { readonly namespace?: readonly string[] } = {};

  /** @param name Names the toolset, for people. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Takes the tools of a registry, as they are when the toolset is built. */
  fromRegistry(registry: ToolSource): this {
    return this.#from(registry);
  }

  /** Takes the tools of a list, or of another toolset. */
  fromTools(tools: Iterable<Tool> | Toolset): this {
    // A toolset keeps its own source, so that its tools can be run.
    return this.#from(tools instanceof Toolset ? tools : [...tools]);
  }

  /** Keeps tools of one of these namespaces. */
  withNamespace(...names: readonly string[]): this {
    return this.#add("namespace", names);
  }

  /** Keeps tools with at least one of these tags. */
  withTags(...tags: readonly string[]): this {
    return this.#add("tagsAny", tags);
  }

  /** Keeps tools with all of these tags. */
  withAllTags(...tags: readonly string[]): this {
    return this.#add("tagsAll", tags);
  }

  /** Keeps tools of one of these categories. */
  withCategories(...categories: readonly string[]): this {
    return this.#add("categories", categories);
  }

  /** Removes tools of these categories. */
  excludeCategories(...categories: readonly string[]): this {
    return this.#add("excludeCategories", categories);
  }

  /** Keeps these tools only, by id. */
  withTools(...ids: readonly string[]): this {
    return this.#add("allowIds", ids);
  }

  /** Removes these tools, by id. */
  excludeTools(...ids: readonly string[]): this {
    return this.#add("denyIds", ids);
  }

  /** Keeps what the filter keeps. */
  withFilter(filter: ToolFilter): this {
    return this.#add("filters", [filter]);
  }

  /** Keeps what the policy allows. */
  withPolicy(policy: ToolPolicy): this {
    return this.#add("policies", [policy]);
  }

  /** Keeps what a caller with this role may use; `null` is a caller without one. */
  withRole(role: string | null): this {
    return this.#set({ role });
  }

  /** Keeps what a caller who holds these scopes may use. */
  withScopes(...held: readonly string[]): this {
    return this.#add("scopes", held);
  }

  /** Keeps tools of this risk or less. */
  withMaxRisk(level: RiskLevel): this {
    return this.#set({ maxRisk: level });
  }

  /** Keeps what the place offers and permits. */
  withContext(context: ToolAvailabilityInput): this {
    return this.#set({ context });
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
    return buildToolset(this.#source, this.#selection, this.#name);
  }

  #from(source: ToolSource | readonly Tool[] | Toolset): this {
    if (this.#source !== undefined) {
      refuse(`build toolset ${describe(this.#name)}`, "it has a source already");
    }
    this.#source = source;
    return this;
  }

  #set(fields: Omit<Selection, "namespace">): this {
    this.#selection = { ...this.#selection, ...fields };
    return this;
  }

  #add(field: ListField, items: readonly unknown[]): this {
    return this.#set({ [field]: [...this.#selection[field] ?? [], ...items] });
  }
}
