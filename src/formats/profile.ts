/**
 * What a target is: one record of data, and two functions that write its wire shape. A profile has
 * the same sections in the same order as every other, so that a reader of one knows them all, and
 * adding a provider is adding a file.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject, Tool } from "../tool/mod.ts";
import type { WireExample } from "./export_examples.ts";
import type { KeywordForm } from "./keyword_forms.ts";
import type { NameRule } from "./names.ts";
import type { ExportOptions, ProviderHints, TargetId } from "./types.ts";

/** What is done with a form of schema. */
export type KeywordAction = "keep" | "drop" | "transform" | "reject";

/** What the target does with a form that is sent. */
export type KeywordEnforcement =
  /** It holds the model to it, or documents that it reads it. */
  | "enforced"
  /** The model reads it; nothing holds the model to it. */
  | "advisory"
  /** It is accepted, and neither read nor enforced. */
  | "ignored";

/** One cell of a keyword table. */
export interface KeywordRule {
  readonly action: KeywordAction;
  readonly enforcement: KeywordEnforcement;
  /** What it becomes, for `transform`. */
  readonly into?: string;
  /** The provider does not document it. It is reported as a warning, never as an error. */
  readonly uncertain?: true;
}

/** A target's rule for every form. */
export type KeywordTable = { readonly [Form in KeywordForm]: KeywordRule };

/** The fields of a tool that targets have, or not. */
export const FEATURES = {
  title: "a name for people",
  namespace: "namespaces of its own",
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

/** A field of a tool that a target has, or not. */
export type Feature = keyof typeof FEATURES;

/** How a target has a field: as its own, as words in a description, or not at all. */
export type FeatureSupport = "native" | "described" | "none";

/** A target's fields. */
export type FeatureTable = { readonly [F in Feature]: FeatureSupport };

/** What the limits of a request count. */
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

/** What a limit counts. */
export type LimitName = keyof typeof LIMITS;

/** A limit of a target. */
export interface Limit {
  readonly name: LimitName;
  readonly value: number;
  /** Not documented, or documented in two ways: a tool beyond it is sent, with a warning. */
  readonly uncertain?: true;
}

/** How a target takes result schemas. */
export interface OutputRule {
  readonly keywords: KeywordTable;
  /** `object`: a schema whose root is no object is wrapped, and so is the result. */
  readonly root: "any" | "object";
}

/** One tool, ready to be written in a target's shape. */
export interface ToolView {
  readonly tool: Tool;
  /** The name on the wire. */
  readonly name: string;
  /** The namespace on the wire, where the target has its own. */
  readonly namespace: string | undefined;
  /** The description, also where {@linkcode sendsDescription} says that it was made up. */
  readonly description: string;
  /** The tool's source had a description, or there is something else to say in it. */
  readonly sendsDescription: boolean;
  readonly parameters: JsonSchemaObject;
  readonly returns: JsonSchema | undefined;
  readonly strict: boolean;
  /** The examples that fit, as they stand on the wire. */
  readonly examples: readonly WireExample[];
  readonly hints: ProviderHints;
  /** The fields of the source's own that the target takes back. */
  readonly extra: { readonly [field: string]: unknown };
  readonly options: ExportOptions;
}

/** A rule about what a tool asks for, which a table of fields cannot say. */
export interface CombinationRule {
  /** Names it in warnings and losses. */
  readonly name: string;
  /** The whole sentence. */
  readonly message: string;
  /** `warn`: say so. `not strict`: send the tool without strict mode. */
  readonly effect: "warn" | "not strict";
  /** Whether it concerns a tool. */
  applies(hints: ProviderHints, tool: Tool): boolean;
}

/** Which of the fields that plue has no words for a target takes: those that it wrote itself. */
export interface ExtraRule {
  /** As {@linkcode ProviderHints.source} has it. */
  readonly source: string;
  /** As {@linkcode ProviderHints.surface} has it; absent: the source has one way only. */
  readonly surface?: string;
  /** Fields that another version of it had. */
  readonly without?: readonly string[];
}

/**
 * A target.
 *
 * @typeParam Wire One tool in its shape.
 * @typeParam Tools What goes into a request.
 */
export interface Profile<Wire = unknown, Tools = unknown> {
  readonly id: TargetId;
  /** The provider and the surface, for people. */
  readonly title: string;
  /** Where the facts come from, and how old they are. */
  readonly source: string;
  /** The tool names that are allowed. */
  readonly names: NameRule;
  /** The names of its own namespaces that are allowed, and of the tools inside one. */
  readonly namespaces?: { readonly names: NameRule; readonly tools: NameRule };
  /** The property keys that are allowed; absent: all. */
  readonly keys?: NameRule;
  readonly features: FeatureTable;
  /** What it takes back of what it said itself; `all`: it carries along all hints. */
  readonly extra?: ExtraRule | "all";
  /** The rules for `parameters`. */
  readonly input: KeywordTable;
  /** The rules for `returns`; absent: there is no field for it. */
  readonly output?: OutputRule;
  /** The values of `format` that are allowed; absent: all. */
  readonly formats?: readonly string[];
  /** A draft-07 schema that says so in `$schema` is sent word for word. */
  readonly draft07?: true;
  /** Gemini's typed schema: type names in capitals, lengths as texts. */
  readonly typed?: true;
  readonly limits: readonly Limit[];
  readonly combinations?: readonly CombinationRule[];
  /** The target that a tool is sent to when this strict mode cannot hold it. */
  readonly fallback?: TargetId;
  /** One tool in the target's shape. */
  wire(view: ToolView): Wire;
  /** For a target whose client writes to what it is given: the tools, with a copy of that part. */
  lend?(tools: Tools): Tools;
  /** All tools in the target's shape. */
  assemble(tools: readonly { readonly view: ToolView; readonly wire: Wire }[]): Tools;
}
