/** One export: converts the tools that fit into the limits of a request. */

import { isObject, type JsonSchema, type Tool } from "../tool/mod.ts";
import type { Refusal } from "./convert_schema.ts";
import { type ConvertedTool, convertTool } from "./convert_tool.ts";
import {
  createExportNames,
  type ExportNames,
  wireAliases,
  type WireName,
  wireNames,
} from "./export_names.ts";
import {
  type ExportOptions,
  type ExportResult,
  ExportWarnings,
  type Loss,
  type RejectedTool,
} from "./export_options.ts";
import { KEYWORD_FORMS } from "./form_rules.ts";
import { hintsOf, type ProviderHints } from "./provider_hints.ts";
import * as targets from "./target.ts";
import { eachChild, requiredBy } from "./transform/rewrite.ts";

interface SentTool extends Pick<ConvertedTool, "view" | "encoding"> {
  readonly wire: unknown;
}

/** The tools of an export, one by one. The key is `names`, which all copies of the export share. */
export const sentTools: WeakMap<ExportNames, readonly SentTool[]> = new WeakMap();

interface ProviderEntry {
  readonly tool: Tool;
  readonly wire: { readonly name?: unknown };
}

export class RequestExport {
  readonly #target: targets.Target;
  readonly #options: ExportOptions;
  /** True if one of the tools is a tool search, and the target supports tool search. */
  readonly #searches: boolean;
  /** True if deferred tools are not in the request, because a search returns their definitions. */
  readonly #omitsDeferred: boolean;
  readonly #limits: RequestLimits;
  readonly #warnings: ExportWarnings;
  readonly #losses: Loss[] = [];
  readonly #rejected: RejectedTool[] = [];
  readonly #sent: SentTool[] = [];

  constructor(list: readonly Tool[], target: targets.Target, options: ExportOptions) {
    assertUniqueIds(list);
    this.#target = target;
    this.#options = options;
    this.#searches = target.toolSearch !== undefined &&
      list.some((tool) => hintsOf(tool).toolSearch === true);
    this.#omitsDeferred = this.#searches && target.toolSearch === "definitions";
    this.#warnings = new ExportWarnings(target.title);
    const strictMode = targets.strictModeOf(target);
    // The limits of a strict mode concern strict tools only.
    const isStrict = list.some((tool) => hintsOf(tool).strict === true);
    const { limits } = isStrict && strictMode !== undefined ? strictMode : target;
    this.#limits = new RequestLimits(limits, strictMode === undefined, this.#omitsDeferred);
  }

  run(list: readonly Tool[]): ExportResult {
    const target = this.#target;
    const namespaces = this.#options.namespaces === false ? undefined : target.namespaces;
    const names = wireNames(list, target.names, namespaces);
    const entries: ProviderEntry[] = [];
    for (const tool of list) {
      const { definitions } = hintsOf(tool);
      // The cast is safe: `wireNames` returns a name for every tool.
      const converted = definitions === undefined
        ? this.#admit(tool, names.get(tool) as WireName)
        : this.#providerEntry(tool, definitions);
      if ("wire" in converted) entries.push(converted);
      else if (!converted.ok) this.#reject(tool, converted.rule, converted.message);
      else {
        this.#warnOfTool(converted);
        this.#limits.add(converted.view);
        this.#losses.push(...converted.losses);
        const { view, encoding } = converted;
        this.#sent.push({ view, encoding, wire: target.wire(view) });
      }
    }
    const sent = this.#sent;
    const assembled = target.assemble(
      this.#omitsDeferred ? sent.filter(({ view }) => view.hints.deferLoading !== true) : sent,
    );
    const wire = this.#withEntries(assembled, entries);
    this.#warnOfRequest(wire);
    deepFreeze(wire);
    const exportNames = createExportNames(
      sent.map(({ encoding }) => encoding),
      wireAliases(sent.map(({ view }) => view.tool), target.names, namespaces),
    );
    sentTools.set(exportNames, sent);
    return Object.freeze({
      target: target.id,
      tools: wire,
      request: {},
      losses: Object.freeze(this.#losses),
      rejected: Object.freeze(this.#rejected),
      names: exportNames,
      warnings: this.#warnings.list(),
    });
  }

  #reject(tool: Tool, rule: string, why: string): void {
    const message = `Cannot export "${tool.id}" to ${this.#target.id}: ${why}`;
    if (rule === "onLoss" && this.#options.onLoss === "throw") throw new TypeError(message);
    this.#rejected.push(Object.freeze({ tool: tool.id, rule, message }));
  }

  #providerEntry(
    tool: Tool,
    definitions: NonNullable<ProviderHints["definitions"]>,
  ): ProviderEntry | Refusal {
    const wire = definitions[this.#target.id] ?? definitions[targets.plainModeOf(this.#target).id];
    if (wire !== undefined) return { tool, wire };
    const others = Object.keys(definitions).join(", ");
    const message = `a provider runs it, and it is defined for ${others} only`;
    return { ok: false, rule: "definitions", message };
  }

  #admit(tool: Tool, name: WireName): ConvertedTool | Refusal {
    const strictMode = targets.strictModeOf(this.#target);
    const plain = targets.plainModeOf(this.#target);
    const attempt = (rules: targets.Target, instead?: Refusal): ConvertedTool | Refusal => {
      const converted = convertTool(tool, name, rules, this.#options, instead);
      return converted.ok ? this.#refusal(converted) ?? converted : converted;
    };
    // A tool may select another mode than the target's.
    const wanted = hintsOf(tool).strict;
    const strict = typeof wanted === "boolean" ? wanted : strictMode === this.#target;
    if (!strict || strictMode === undefined) return attempt(plain);
    const first = attempt(strictMode);
    if (first.ok || this.#options.strictFallback === false) return first;
    // A full request has no space for the tool in the other mode, either.
    return first.rule === "maxTools" ? first : attempt(plain, first);
  }

  #refusal({ losses, view }: ConvertedTool): Refusal | undefined {
    const { onLoss } = this.#options;
    const wrong = onLoss === "reject-tool" || onLoss === "throw"
      ? losses.find(({ side, widens, grade }) => side === "input" && (widens || grade === "lost"))
      : undefined;
    if (wrong !== undefined) {
      const message = `at "${wrong.path}" of its parameters, ${wrong.message}`;
      return { ok: false, rule: "onLoss", message };
    }
    const excess = this.#limits.excess(view).find(({ limit }) => limit.uncertain !== true);
    return excess && { ok: false, rule: excess.limit.name, message: excess.message };
  }

  #warnOfTool({ view, uncertain }: ConvertedTool): void {
    const { tool, hints, namespace } = view;
    const warnings = this.#warnings;
    for (const { limit, message } of this.#limits.excess(view)) {
      warnings.add(limit.name, tool, message);
    }
    for (const form of uncertain) {
      warnings.add(form, tool, `whether it takes ${KEYWORD_FORMS[form]} is not documented`);
    }
    for (const { name, effect, applies, message } of this.#target.combinations ?? []) {
      // The warning that deferred tools need a search is omitted if the request has a search.
      if (effect !== "warn" || (this.#searches && name === "deferLoading")) continue;
      if (applies(hints)) warnings.add(name, tool, message);
    }
    if (namespace !== undefined && hints.namespaceDescription === undefined) {
      const message = "a namespace needs a description; one was made up";
      warnings.add("namespaceDescription", tool, message);
    }
  }

  #withEntries(assembled: unknown, entries: readonly ProviderEntry[]): unknown {
    const taken = new Set<string>();
    for (const { encoding: { namespace, name } } of this.#sent) {
      if (namespace === undefined) taken.add(name);
    }
    const own = entries.filter(({ tool, wire: { name } }) => {
      if (typeof name !== "string") return true;
      if (taken.has(name)) this.#reject(tool, "definitions", `another tool is sent as "${name}"`);
      return taken.size < taken.add(name).size;
    });
    if (Array.isArray(assembled)) return [...assembled, ...own.map(({ wire }) => wire)];
    const why = "the target's tools are not a list; add this tool with the provider's SDK";
    for (const { tool } of own) this.#reject(tool, "definitions", why);
    return assembled;
  }

  #warnOfRequest(tools: unknown): void {
    const { limits } = this.#target;
    const most = limits.find((limit) => limit.name === "maxToolText")?.value;
    const length = most === undefined ? 0 : JSON.stringify(tools).length;
    if (most !== undefined && length > most) {
      const message = `there are ${length} ${targets.LIMITS.maxToolText}; the limit is ${most}`;
      this.#warnings.add("maxToolText", undefined, message);
    }
    const deferred = this.#sent.filter(({ view }) => view.hints.deferLoading === true).length;
    const least = limits.find((limit) => limit.name === "minLoadedTools")?.value ?? 0;
    if (deferred > 0 && this.#sent.length - deferred < least) {
      const message = "all tools are deferred: one must not be";
      this.#warnings.add("minLoadedTools", undefined, message);
    }
  }
}

function assertUniqueIds(list: readonly Tool[]): void {
  const seen = new Set<string>();
  for (const [index, tool] of list.entries()) {
    const id: unknown = tool?.id;
    if (typeof id !== "string") {
      throw new TypeError(
        `Cannot export the tools: "/${index}" is not a tool; create it with defineTool`,
      );
    }
    if (seen.has(id)) {
      throw new TypeError(`Cannot export the tools: two tools have the id "${id}"`);
    }
    seen.add(id);
  }
}

/** Freezes a value deeply. Parts that are frozen already, such as schemas, are skipped. */
function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const key in value) deepFreeze((value as Record<string, unknown>)[key]);
}

// The limits of a request

/** The count for a limit: `maxFields` is a sum over all tools, `maxDepth` is per strict tool. */
interface Count {
  /** The amount of a tool, or a field of `SchemaSize`. Tools with `undefined` do not count. */
  readonly of: keyof SchemaSize | ((tool: targets.ToolView) => number | undefined);
  /** True if only strict tools count. In a target without a strict mode, every tool counts. */
  readonly strict?: true;
  /** True if the limit applies to each tool by itself. */
  readonly each?: true;
}

const COUNTS: { readonly [Name in targets.LimitName]?: Count } = {
  maxTools: { of: () => 1 },
  maxDeferredTools: { of: ({ hints }) => hints.deferLoading === true ? 1 : undefined },
  maxStrictTools: { of: () => 1, strict: true },
  maxOptional: { of: "optional", strict: true },
  maxUnions: { of: "unions", strict: true },
  maxFields: { of: "properties" },
  maxProperties: { of: "properties", strict: true, each: true },
  maxDepth: { of: "depth", strict: true, each: true },
  maxCharacters: { of: "characters", strict: true, each: true },
  maxEnumValues: { of: "enumValues", strict: true, each: true },
  maxEnumCharacters: { of: "largeEnum", strict: true, each: true },
  maxDescription: { of: ({ description }) => description.length, each: true },
  minRequired: { of: "required", each: true },
};

class RequestLimits {
  readonly #limits: readonly targets.Limit[];
  /** True if the target has no strict mode, so that limits on schemas apply to every tool. */
  readonly #allStrict: boolean;
  /** True if deferred tools are not in the request, so that only limits per tool apply to them. */
  readonly #omitsDeferred: boolean;
  readonly #used = new Map<targets.LimitName, number>();

  constructor(limits: readonly targets.Limit[], allStrict: boolean, omitsDeferred: boolean) {
    this.#limits = limits;
    this.#allStrict = allStrict;
    this.#omitsDeferred = omitsDeferred;
  }

  excess(
    tool: targets.ToolView,
  ): readonly { readonly limit: targets.Limit; readonly message: string }[] {
    return this.#amounts(tool).flatMap(([limit, adds]) => {
      const { name, value } = limit;
      if (name === "minRequired") {
        const message = `the minimum is ${value} ${targets.LIMITS[name]}, and it has ${adds}`;
        return adds < value ? [{ limit, message }] : [];
      }
      const total = (this.#used.get(name) ?? 0) + adds;
      const message = `the limit is ${value} ${targets.LIMITS[name]}, and there would be ${total}`;
      return total > value ? [{ limit, message }] : [];
    });
  }

  add(tool: targets.ToolView): void {
    for (const [{ name }, adds] of this.#amounts(tool)) {
      if (COUNTS[name]?.each !== true) this.#used.set(name, (this.#used.get(name) ?? 0) + adds);
    }
  }

  #amounts(tool: targets.ToolView): readonly (readonly [targets.Limit, number])[] {
    let size: SchemaSize | undefined;
    return this.#limits.flatMap((limit): (readonly [targets.Limit, number])[] => {
      const { of, strict, each } = COUNTS[limit.name] ?? {};
      if (of === undefined || (strict === true && !tool.strict && !this.#allStrict)) return [];
      if (this.#omitsDeferred && tool.hints.deferLoading === true && each !== true) return [];
      const adds = typeof of === "function"
        ? of(tool)
        : (size ??= measureSchema(tool.parameters))[of];
      return adds === undefined ? [] : [[limit, adds]];
    });
  }
}

interface SchemaSize {
  properties: number;
  /** The number of properties that are not required. */
  optional: number;
  /** Subschemas with an `anyOf` or a list of types. */
  unions: number;
  /** The levels of nested objects and arrays. */
  depth: number;
  enumValues: number;
  /** Characters of property names, definition names, enum texts and constants. */
  characters: number;
  /** Characters of the texts of the largest enum that has more than 250 values. */
  largeEnum: number;
  /** Required properties at the root. */
  required: number;
}

/** The characters of an enum are limited only if the enum has more than this number of values. */
const LARGE_ENUM = 250;

function measureSchema(schema: JsonSchema): SchemaSize {
  const required = isObject(schema) && Array.isArray(schema["required"])
    ? schema["required"].length
    : 0;
  const zero = { properties: 0, optional: 0, unions: 0, depth: 0, enumValues: 0, characters: 0 };
  const size: SchemaSize = { ...zero, largeEnum: 0, required };

  function step(part: JsonSchema, depth: number): void {
    if (!isObject(part)) return;
    const { type, enum: values, properties: own } = part;
    const nests = type === "object" || type === "array" || own !== undefined ||
      (Array.isArray(type) && (type.includes("object") || type.includes("array")));
    const inner = nests ? depth + 1 : depth;
    size.depth = Math.max(size.depth, inner);
    if (isObject(own)) {
      const named = requiredBy(part);
      for (const name of Object.keys(own)) {
        size.properties++;
        size.characters += name.length;
        if (!named.has(name)) size.optional++;
      }
    }
    if (Array.isArray(part["anyOf"]) || (Array.isArray(type) && type.length > 1)) size.unions++;
    if (Array.isArray(values)) {
      size.enumValues += values.length;
      const texts = values.reduce<number>((sum, value) => sum + textLength(value), 0);
      size.characters += texts;
      if (values.length > LARGE_ENUM) size.largeEnum = Math.max(size.largeEnum, texts);
    }
    if (Object.hasOwn(part, "const")) size.characters += textLength(part["const"]);
    if (isObject(part["$defs"])) {
      for (const name of Object.keys(part["$defs"])) size.characters += name.length;
    }
    eachChild(part, (child, keyword) => step(child, keyword === "$defs" ? 0 : inner));
  }
  step(schema, 0);
  return size;
}

function textLength(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}
