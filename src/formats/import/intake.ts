/**
 * What all importers share: they draft tools, and the intake bounds, names and makes them, and
 * keeps the list of what there is to say.
 *
 * @module
 */

import { checkSchema, clip } from "../../schema/mod.ts";
import {
  copyJson,
  makeTool,
  type RiskLevel,
  type Tool,
  type ToolContext,
  toolId,
} from "../../tool/mod.ts";
import { suggestRisk, withDefaults } from "./annotations.ts";
import type { Draft } from "./draft.ts";
import { isMembers, type Members, messageOf } from "./fields.ts";
import { checkOptions, riskOf } from "./import_options.ts";
import { nameDrafts } from "./name_drafts.ts";
import type {
  ImportOptions,
  ImportResult,
  ImportSource,
  ImportWarning,
  RejectedImport,
} from "./types.ts";

interface Noted extends Omit<ImportWarning, "tool"> {
  readonly draft: Draft | undefined;
}

const MAX_WARNINGS = 1_000;

/** One import. */
export class Intake {
  readonly source: ImportSource;
  readonly #options: ImportOptions;
  readonly #maxTools: number;
  readonly #maxValues: number;
  readonly #drafts: Draft[] = [];
  readonly #notes: Noted[] = [];
  readonly #rejected: RejectedImport[] = [];
  #entries = 0;
  #values: number;
  /** How many values the parts have that were charged: a shared one is counted once. */
  readonly #sizes = new WeakMap<object, number>();
  #cache: ImportResult["cache"];

  /** @throws {TypeError | RangeError} If an option is wrong. */
  constructor(source: ImportSource, options: ImportOptions) {
    this.source = source;
    this.#options = options;
    const { maxTools, maxValues } = checkOptions(options);
    this.#maxTools = maxTools;
    this.#maxValues = maxValues;
    this.#values = this.#maxValues;
  }

  /** Notes how long a page may be kept: the list as long as the page that is kept shortest. */
  narrowCache(page: NonNullable<ImportResult["cache"]>): void {
    const { ttlMs = page.ttlMs, scope = page.scope } = this.#cache ?? {};
    if (ttlMs === undefined && scope === undefined) return;
    this.#cache = {
      ...(ttlMs === undefined ? {} : { ttlMs: Math.min(ttlMs, page.ttlMs ?? ttlMs) }),
      ...(scope === undefined ? {} : { scope: page.scope === "private" ? "private" : scope }),
    };
  }

  /** Counts an entry of the document; `false` if there were too many, which is said once. */
  count(path: string): boolean {
    this.#entries++;
    if (this.#entries === this.#maxTools + 1) {
      this.reject(
        undefined,
        path,
        "maxTools",
        `Cannot import what follows: the document has more than ${this.#maxTools} tools, which is the limit`,
      );
    }
    return this.#entries <= this.#maxTools;
  }

  /** Notes something about a tool, or about the document. */
  warn(draft: Draft | undefined, path: string, rule: string, message: string): void {
    if (this.#notes.length <= MAX_WARNINGS) this.#notes.push({ draft, path, rule, message });
  }

  /** Notes something that does not become a tool. */
  reject(name: unknown, path: string, rule: string, message: string): void {
    this.#rejected.push(
      Object.freeze({
        name: typeof name === "string" ? clip(name, 200) : undefined,
        path,
        rule,
        message,
      }),
    );
  }

  /** A frozen copy of an entry, so that nobody can change it while it is read; or a rejection. */
  copy(entry: unknown, path: string): Members | undefined {
    if (!isMembers(entry)) {
      this.reject(undefined, path, "type", "Cannot import the tool: it must be an object");
      return undefined;
    }
    try {
      return copyJson(entry, "the tool");
    } catch (cause) {
      this.reject(
        undefined,
        path,
        "type",
        messageOf(cause).replace("Cannot copy the tool", "Cannot import the tool"),
      );
      return undefined;
    }
  }

  /** Checks the schemas of a draft and keeps it; or a rejection. */
  add(draft: Draft): void {
    const { parameters, returns, path, sourceName } = draft;
    for (const part of [parameters, returns, draft.meta, draft.provider, draft.examples]) {
      this.charge(part);
    }
    if (this.isFull) {
      this.reject(
        sourceName,
        path,
        "maxValues",
        `Cannot import "${
          clip(sourceName)
        }": the tools have more than ${this.#maxValues} values together, which is the limit`,
      );
      return;
    }
    try {
      if (parameters !== undefined) {
        checkSchema(parameters, { what: `the parameters of "${clip(sourceName)}"` });
      }
    } catch (cause) {
      return this.reject(sourceName, path, "parameters", messageOf(cause));
    }
    try {
      if (returns !== undefined) {
        checkSchema(returns, { what: `the result schema of "${clip(sourceName)}"` });
      }
    } catch (cause) {
      draft.returns = undefined;
      this.warn(draft, path, "returns", `${messageOf(cause)}; results are not checked`);
    }
    this.#drafts.push(draft);
  }

  /** Takes the values of a part of the document from what there is room for. */
  charge(part: unknown): void {
    if (part === undefined || this.isFull) return;
    const known = typeof part === "object" && part !== null ? this.#sizes.get(part) : 1;
    const size = known ?? countValues(part, this.#values);
    if (known === undefined) this.#sizes.set(part as object, size);
    this.#values -= size;
  }

  /** Whether there is no room for more values. */
  get isFull(): boolean {
    return this.#values < 0;
  }

  /** Names and makes the tools. */
  finish(): ImportResult {
    const names = nameDrafts(this.#drafts, this);
    const ids = new Map<Draft, string>();
    const tools: Tool[] = [];
    for (const draft of this.#drafts) {
      const name = names.get(draft);
      if (name === undefined) continue;
      const { namespace, sourceName, hints } = draft;
      // Outside of what is caught: that a risk is wrong is no fault of the document.
      const risk = riskOf(this.#options, {
        id: toolId(name, namespace),
        sourceName,
        annotations: hints,
        suggested: suggestRisk(hints),
      });
      try {
        const tool = this.#make(draft, name, risk);
        ids.set(draft, tool.id);
        tools.push(tool);
      } catch (cause) {
        this.reject(sourceName, draft.path, "tool", messageOf(cause));
      }
    }
    const warnings: ImportWarning[] = [];
    for (const { draft, path, rule, message } of this.#notes) {
      const tool = draft === undefined ? undefined : ids.get(draft);
      // What is wrong with a rejected tool is said where it is rejected.
      if (draft !== undefined && tool === undefined) continue;
      warnings.push(
        Object.freeze({ ...(tool === undefined ? {} : { tool }), path, rule, message }),
      );
    }
    if (warnings.length > MAX_WARNINGS) {
      warnings[MAX_WARNINGS] = Object.freeze({
        path: "",
        rule: "maxWarnings",
        message: `There is more to know: these are the first ${MAX_WARNINGS} warnings`,
      });
    }
    return Object.freeze({
      source: this.source,
      tools: Object.freeze(tools),
      warnings: Object.freeze(warnings),
      rejected: Object.freeze(this.#rejected),
      ...(this.#cache === undefined ? {} : { cache: Object.freeze(this.#cache) }),
    });
  }

  #make(draft: Draft, name: string, risk: RiskLevel): Tool {
    const {
      sourceName,
      namespace,
      title,
      hints,
      provider,
      meta,
      readResult,
      writeArguments,
      execute,
    } = draft;
    const { execute: run, tags = [] } = this.#options;
    const described = draft.description !== undefined && draft.description.trim() !== "";
    if (!described) provider.description = null;
    return makeTool({
      name,
      namespace,
      title,
      description: described ? draft.description as string : title ?? sourceName,
      parameters: draft.parameters,
      returns: draft.returns,
      risk,
      tags: [...tags, ...draft.tags ?? []],
      annotations: withDefaults(hints),
      idempotent: hints.idempotentHint === true,
      icons: draft.icons,
      examples: draft.examples,
      deprecated: draft.deprecated,
      meta: { ...meta, provider: { source: this.source, ...provider } },
      ...(run === undefined
        ? execute === undefined ? {} : {
          execute: (args, context) => execute(args as Members, context as ToolContext),
        }
        : {
          // The dispatcher has checked the arguments against an object schema.
          execute: (args, context) => {
            const given = writeArguments?.(args as Members) ?? args as Members;
            const output = run(sourceName, given, context as ToolContext);
            return readResult === undefined ? output : Promise.resolve(output).then(readResult);
          },
        }),
    });
  }
}

/** How many values JSON holds, itself included; it stops counting above `limit`. */
function countValues(value: unknown, limit: number): number {
  if (value === undefined) return 0;
  let count = 1;
  if (typeof value !== "object" || value === null) return count;
  for (const item of Object.values(value)) {
    count += countValues(item, limit - count);
    if (count > limit) break;
  }
  return count;
}
