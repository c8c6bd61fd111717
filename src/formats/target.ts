/** The record of a target: its rules as data, and functions that write tools and read calls. */

import { type NameRule, OPENAI_NAME_RULE } from "../select/mod.ts";
import { describe, isFunction, isObject, type JsonSchema, type Tool } from "../tool/mod.ts";
import type { ExportOptions, LoseSetting, WireSettings } from "./export_options.ts";
import type { CallFormat } from "./call_format.ts";
import { type KeywordTable, READ_BY_THE_MODEL } from "./form_rules.ts";
import type { ProviderHints } from "./provider_hints.ts";

/** The fields of a tool that a target may have, each with a description. */
export const FEATURES = {
  title: "a name for people",
  namespace: "its own namespaces",
  returns: "the result's schema",
  examples: "examples of arguments",
  annotations: "hints about behaviour",
  icons: "icons",
  deprecated: "a mark that it is deprecated",
  meta: "data to carry along",
  strict: "a strict mode per tool",
  deferLoading: "loading through tool search",
  allowedCallers: "who may call it",
  async: "calls that run long",
  cacheControl: "a cache hint",
  eagerInputStreaming: "arguments streamed unchecked",
  taskSupport: "calls as tasks",
} as const;

/** The features that are hints of a tool. */
export const HINT_FEATURES: readonly (Feature & keyof ProviderHints)[] = [
  "deferLoading",
  "allowedCallers",
  "async",
  "cacheControl",
  "eagerInputStreaming",
  "taskSupport",
];

/** A field of a tool that a target may have. */
export type Feature = keyof typeof FEATURES;

/** The limits of a request, each with the counted unit. */
export const LIMITS = {
  maxTools: "tools in one request",
  maxDeferredTools: "tools that are loaded through tool search",
  maxStrictTools: "strict tools in one request",
  maxOptional: "optional properties over all strict tools",
  maxUnions: "unions over all strict tools",
  maxFields: "properties over all tools",
  maxProperties: "properties in one schema",
  maxDepth: "levels of objects and lists in one schema",
  maxCharacters: "characters of names and constants in one schema",
  maxEnumValues: "enum values in one schema",
  maxEnumCharacters: "characters of one enum with more than 250 values",
  maxDescription: "characters of a description",
  maxToolText: "characters of all tools together",
  minRequired: "required properties of each tool, in a strict request",
  minLoadedTools: "tools that are not deferred, where any is",
} as const;

/** The name of a limit. */
export type LimitName = keyof typeof LIMITS;

/** A limit of a target. */
export interface Limit {
  readonly name: LimitName;
  readonly value: number;
  /** True if the limit is not clearly documented. A tool above the limit is sent with a warning. */
  readonly uncertain?: true;
}

/** The rules of a target for result schemas. */
export interface OutputRule {
  readonly keywords: KeywordTable;
  /** `object`: a schema with another root is wrapped in an object, and so is the result. */
  readonly root: "any" | "object";
}

/** An exported example of arguments. */
export interface WireExample {
  /** The arguments in the form of the exported schema. */
  readonly input: { readonly [key: string]: unknown };
  readonly description: string | undefined;
}

/** A schema of arguments, whose root is an object. */
export interface ObjectSchema extends WireSchema {
  type: "object";
}

/** A schema in a target's shape. */
export interface WireSchema {
  [keyword: string]: unknown;
}

/** One tool, ready to be written in a target's shape. */
export interface ToolView {
  readonly tool: Tool;
  /** The name on the wire. */
  readonly name: string;
  /** The namespace on the wire, if the target supports namespaces. */
  readonly namespace: string | undefined;
  readonly description: string;
  /** False if the description was generated. */
  readonly sendsDescription: boolean;
  readonly parameters: ObjectSchema;
  readonly returns: JsonSchema | undefined;
  readonly strict: boolean;
  /** The examples that fit the exported schema. */
  readonly examples: readonly WireExample[];
  readonly hints: ProviderHints;
  /** The extra fields of the tool's source that the target accepts. */
  readonly extra: { readonly [field: string]: unknown };
  readonly options: ExportOptions;
}

/** A rule about a combination of hints. */
export interface CombinationRule {
  /** The name of the rule in warnings and losses. */
  readonly name: string;
  readonly message: string;
  /** `not strict`: the tool is sent without strict mode. */
  readonly effect: "warn" | "not strict";
  applies(hints: ProviderHints): boolean;
}

/** The extra fields of imported tools that a target accepts: fields of the target's provider. */
export interface ExtraRule {
  /** The {@linkcode ProviderHints.source} of the tools. */
  readonly source: string;
  /** The {@linkcode ProviderHints.surface} of the tools; absent if the source has only one API. */
  readonly surface?: string;
  /** Fields that are not accepted, because only other versions have them. */
  readonly without?: readonly string[];
}

/** A target: one API of a provider, in one mode and version. `defineTarget` creates a target. */
export interface Target<
  Id extends string = string,
  Wire = unknown,
  Tools = unknown,
  Part = unknown,
  Message = unknown,
  Settings extends object = object,
> {
  readonly id: Id;
  /** The name of the provider and the API, for people. */
  readonly title: string;
  /** The sources of the rules, with their date. */
  readonly source: string;
  /** The legal names of tools. */
  readonly names: NameRule;
  /** The legal names of namespaces, and of tools in a namespace, if the target supports them. */
  readonly namespaces?: { readonly names: NameRule; readonly tools: NameRule };
  /** The legal property keys. If absent, every key is legal. */
  readonly keys?: NameRule;
  /** The accepted fields of a tool. Without `deprecated`, deprecation is in the description. */
  readonly features: readonly Feature[];
  /** The accepted extra fields of imported tools; `all` if the target has a field for all hints. */
  readonly extra?: ExtraRule | "all";
  /** The rules for `parameters`. */
  readonly input: KeywordTable;
  /** The rules for `returns`. Absent if the target has no field for a result schema. */
  readonly output?: OutputRule;
  /** The legal values of `format`. If absent, every value is legal. */
  readonly formats?: readonly string[];
  /**
   * The results of a tool search that the host runs: `references` to deferred tools of the request,
   * or `definitions` of tools that are not in the request. Absent if there is no such search.
   */
  readonly toolSearch?: "references" | "definitions";
  /** True if a schema whose `$schema` is draft-07 is sent unchanged. */
  readonly draft07?: true;
  /** True for Gemini's typed schema, with type names in capitals and lengths as texts. */
  readonly typed?: true;
  readonly limits: readonly Limit[];
  readonly combinations?: readonly CombinationRule[];
  /** Returns the target with the rules of the strict mode. */
  readonly strictMode?: () => Target;
  /** For a strict mode: the target for tools that the mode cannot express. */
  readonly fallback?: Target;
  /** Writes one tool. */
  wire(view: ToolView): Wire;
  /** Combines the tools of a request. */
  assemble(tools: readonly { readonly view: ToolView; readonly wire: Wire }[]): Tools;
  readonly calls: CallFormat<Part, Message>;
  /** Writes the settings of a request. Absent if a request has no settings. */
  choose?(settings: WireSettings, lose: LoseSetting): Settings;
}

/** A target whose request has a list of its tools. */
export type ListTarget<
  Id extends string,
  Tool,
  Part,
  Settings extends object = object,
  Message = Part,
> = Target<Id, Tool, Tool[], Part, Message, Settings>;

/** The argument of `defineTarget`, in which only `id`, `wire` and `calls` are required. */
export type TargetDefinition<
  Id extends string = string,
  Wire = unknown,
  Tools = unknown,
  Part = unknown,
  Message = unknown,
  Settings extends object = object,
> =
  & Pick<Target<Id, Wire, Tools, Part, Message, Settings>, "id" | "wire" | "calls">
  & Partial<Omit<Target<Id, Wire, Tools, Part, Message, Settings>, "input">>
  & {
    /** The rules for some forms. By default, a form is text for the model. */
    readonly input?: Partial<KeywordTable>;
  };

/** Adds the defaults to a definition, without a check. */
export function makeTarget<
  const Id extends string,
  Wire,
  Part,
  Tools = Wire[],
  Message = Part,
  Settings extends object = object,
>(
  definition: TargetDefinition<Id, Wire, Tools, Part, Message, Settings>,
): Target<Id, Wire, Tools, Part, Message, Settings> {
  const { id, input } = definition;
  const target: Target<Id, Wire, unknown, Part, Message, Settings> = {
    title: id,
    source: "",
    names: OPENAI_NAME_RULE,
    limits: [],
    features: [],
    assemble: (tools) => tools.map(({ wire }) => wire),
    ...definition,
    input: Object.freeze({ ...READ_BY_THE_MODEL, ...input }),
  };
  // The cast is safe: the default of `assemble` returns a list, which is the default of `Tools`.
  return Object.freeze(target) as Target<Id, Wire, Tools, Part, Message, Settings>;
}

/** Returns a record of a target unchanged. @throws {RangeError} If the value is not one. */
export function checkTarget<T>(value: T, wanted = (): string => "a target's record"): T & Target {
  if (isTarget(value)) return value;
  throw new RangeError(
    `Cannot find the target ${describe(value)}: it must be ${wanted()}, or made by defineTarget`,
  );
}

/** Returns true for the record of a target. */
export function isTarget(value: unknown): value is Target {
  return isObject(value) && isFunction(Object(value["calls"]).read) && isFunction(value["wire"]);
}

/** Returns the strict mode of a target, which is the target itself for a strict mode. */
export function strictModeOf(target: Target): Target | undefined {
  return target.fallback === undefined ? target.strictMode?.() : target;
}

/** Returns the plain target of a strict mode. For other targets, returns the target. */
export function plainModeOf(target: Target): Target {
  return target.fallback ?? target;
}
