/**
 * The words of an export: targets, losses, names, and what `exportTools` answers.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import type { JsonValue } from "../tool/mod.ts";

/** A target: one provider's surface, mode and version. */
export type TargetId =
  | "openai.chat"
  | "openai.chat.strict"
  | "openai.responses"
  | "openai.responses.strict"
  | "openai.realtime"
  | "anthropic"
  | "anthropic.strict"
  | "gemini"
  | "gemini.typed"
  | "vertex"
  | "mcp@2025-06-18"
  | "mcp@2025-11-25"
  | "mcp@2026-07-28"
  | "bedrock"
  | "bedrock.strict"
  | "mistral"
  | "cohere"
  | "ollama"
  | "ai-sdk"
  | "langchain"
  | "openapi@3.1";

/** Another name for a target, which follows it to its newest version. */
export type TargetAlias = "openai" | "openai.strict" | "mcp" | "openapi";

/** What a caller may write for a target. */
export type TargetName = TargetId | TargetAlias;

/** The target that an alias stands for; a target's id is its own. */
export type ResolveTarget<Name extends TargetName> = Name extends "openai" ? "openai.chat"
  : Name extends "openai.strict" ? "openai.chat.strict"
  : Name extends "mcp" ? "mcp@2026-07-28"
  : Name extends "openapi" ? "openapi@3.1"
  : Name;

/** Which part of a tool a loss is in: its `parameters`, its `returns`, or a field of its own. */
export type LossSide = "input" | "output" | "tool";

/**
 * How much is gone.
 *
 * - `lost`: it is not sent, or the target throws it away.
 * - `weakened`: something looser (or tighter) is sent in its place, or the target ignores it.
 * - `moved`: it is sent as words, in a description.
 * - `ambiguous`: the way back is not certain: two different values look alike on the wire.
 */
export type LossGrade = "lost" | "weakened" | "moved" | "ambiguous";

/** What was done about something that a target cannot say. */
export type LossAction =
  /** Left out of what is sent. */
  | "dropped"
  /** Left out of the schema, and said in the description. */
  | "described"
  /** Something else is sent in its place. */
  | "replaced"
  /** Sent as it is, though the target ignores it. */
  | "sent";

/** One thing that a target cannot say. */
export interface Loss {
  /** The id of the tool. */
  readonly tool: string;
  readonly side: LossSide;
  /** Where, as a JSON Pointer into the tool's own `parameters`, `returns`, or the tool itself. */
  readonly path: string;
  /** The schema keyword or the tool's field. */
  readonly keyword: string;
  readonly action: LossAction;
  readonly grade: LossGrade;
  /** The exported schema accepts values that the tool's own schema refuses. */
  readonly widens: boolean;
  /** The exported schema refuses values that the tool's own schema accepts. */
  readonly narrows: boolean;
  /** The whole sentence. */
  readonly message: string;
}

/** A tool that could not be exported. The others were. */
export interface RejectedTool {
  /** The id of the tool. */
  readonly tool: string;
  /** The rule that it broke: a keyword, a limit (`maxTools`), or `onLoss`. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/** Something to know that is no loss: an uncertain fact, or a rule about the whole request. */
export interface ExportWarning {
  /** The first tool it concerns; absent if it concerns the whole request. */
  readonly tool?: string;
  /** The keyword or the limit that it is about. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/**
 * What to undo in a value that was written for the exported schema, as a tree beside that schema.
 * A part that is absent needs nothing undone. A recursive schema makes a cyclic tree, which is
 * followed along the value, and therefore ends. `decodeArguments` reads it.
 */
export interface ArgumentRewrite {
  /** Values that were written as text: the text, and what it stands for. */
  readonly values?: ReadonlyMap<string, JsonValue>;
  /** The properties (as sent) in which a `null` stands for "left out". */
  readonly nulls?: ReadonlySet<string>;
  /** The property keys as sent that differ from the tool's own, with the tool's own. */
  readonly keys?: ReadonlyMap<string, string>;
  /** What to undo in a property, by its key as sent. */
  readonly properties?: ReadonlyMap<string, ArgumentRewrite>;
  /** What to undo in the properties that the schema does not declare. */
  readonly additionalProperties?: ArgumentRewrite;
  /** The properties (as sent) that the schema declares, where `additionalProperties` is here. */
  readonly declared?: ReadonlySet<string>;
  /** What to undo in the first items of an array. */
  readonly prefixItems?: readonly (ArgumentRewrite | undefined)[];
  /** What to undo in the (other) items of an array. */
  readonly items?: ArgumentRewrite;
  /** The branches of a union, each with how to tell a value of it. The first that fits applies. */
  readonly choices?: readonly ArgumentChoice[];
  /** What applies as well: `allOf`, and what a reference leads to. */
  readonly also?: readonly ArgumentRewrite[];
}

/** One branch of a union. */
export interface ArgumentChoice {
  /**
   * Whether a value (as sent) looks like this branch, judged by its type, keys and constants, down
   * to `depth` levels; four, unless told.
   */
  accepts(value: unknown, depth?: number): boolean;
  readonly rewrite: ArgumentRewrite;
}

/** A tool's name on the wire. */
export interface WireName {
  readonly name: string;
  /** The namespace, where the target has namespaces of its own (OpenAI Responses). */
  readonly namespace?: string;
}

/** How one tool was exported: what is needed to read a call of it, and to write its result. */
export interface ToolEncoding extends WireName {
  /** The id of the tool. */
  readonly id: string;
  /** Whether the provider was told to follow the schema strictly. */
  readonly strict: boolean;
  /** What to undo in the arguments of a call; absent if nothing was changed. */
  readonly input?: ArgumentRewrite;
  /** The result schema was sent: what it says holds for results on the wire. */
  readonly sendsReturns: boolean;
  /** The result schema was wrapped: a result `v` is sent as `{ "result": v }`. */
  readonly wrapsResult: boolean;
}

/**
 * The way between a tool's id and its name on the wire, for one export. A name is looked up whole:
 * it is never taken apart.
 */
export interface ExportNames {
  readonly target: TargetId;
  /** The exported tools, in the order in which they were exported. */
  readonly encodings: readonly ToolEncoding[];
  /** The id of the tool that has this name on the wire; `undefined` if none was exported so. */
  idOf(name: string, namespace?: string): string | undefined;
  /** The name on the wire of the tool with this id; `undefined` if it was not exported. */
  nameOf(id: string): string | undefined;
  /** How the tool with this id was exported; `undefined` if it was not. */
  encodingOf(id: string): ToolEncoding | undefined;
}

/** What to do about a loss. See {@linkcode ExportOptions.onLoss}. */
export type OnLoss = "warn" | "describe" | "reject-tool" | "throw";

/** Options for `exportTools`. */
export interface ExportOptions {
  /**
   * What to do about what a target cannot say. Every choice reports all losses.
   *
   * - `describe`: say lost constraints in the description of the schema that had them.
   * - `warn`: leave them out.
   * - `reject-tool`: reject a tool whose input is *misrepresented*: a loss there widens what is
   *   accepted, or is graded `lost`. Fields of the tool and its result schema do not count. What a
   *   strict mode misrepresents is sent without it, where `strictFallback` allows that.
   * - `throw`: as `reject-tool`, but throw a `TypeError` that names the first such tool.
   *
   * @default {"describe"}
   */
  readonly onLoss?: OnLoss;
  /**
   * In a strict mode, send a tool that the mode cannot hold (an open map, no room in the budget)
   * without `strict`, and report that. Otherwise it is rejected.
   *
   * @default {true}
   */
  readonly strictFallback?: boolean;
  /**
   * Use the target's own namespaces where it has them (OpenAI Responses). Otherwise, and
   * everywhere else, the namespace becomes part of the name.
   *
   * @default {true}
   */
  readonly namespaces?: boolean;
  /**
   * Add the examples to the description where the target has no field for them.
   *
   * @default {false}
   */
  readonly describeExamples?: boolean;
  /**
   * Add the result schema to the description where the target has no field for it.
   *
   * @default {false}
   */
  readonly describeReturns?: boolean;
  /**
   * Where a call of a tool is sent, for OpenAPI; `{id}` stands for the id.
   *
   * @default {"/tools/{id}/execute"}
   */
  readonly path?: string;
  /**
   * Checks the examples against the schema that is sent: those that do not fit are left out, since
   * a provider refuses the whole request for one. Absent: their structure is checked (types, keys,
   * constants, lengths, ranges), but no `pattern`, `format` or condition.
   */
  readonly engine?: SchemaEngine;
}

/** What an export answers. Frozen; `exportTools` says when it is the same object. */
export interface ExportResult<Tools = unknown> {
  readonly target: TargetId;
  /** What goes on the wire, in the target's own shape. */
  readonly tools: Tools;
  /** What the target cannot say, in the order of the tools, then of their schemas. */
  readonly losses: readonly Loss[];
  readonly rejected: readonly RejectedTool[];
  readonly names: ExportNames;
  readonly warnings: readonly ExportWarning[];
}

/**
 * What a tool says to providers beside its own fields. It stands in the tool's `meta`, under
 * `provider`; importers put there what they found. The rest of `meta` is MCP's `_meta`.
 */
export interface ProviderHints {
  /**
   * `true`: use the strict mode for this tool, also in the target beside it, which has none of its
   * own; where a target has no strict mode at all, that is a loss. `false`: do not use it.
   */
  readonly strict?: boolean;
  /** Load the tool only when a tool search finds it (OpenAI Responses, Anthropic). */
  readonly deferLoading?: boolean;
  /** Who may call it: `direct`, `programmatic`, or a version of Anthropic's code execution. */
  readonly allowedCallers?: readonly string[];
  /** It runs long; the model need not wait (OpenAI Responses, Gemini Live). */
  readonly async?: boolean;
  /** Anthropic's `cache_control`; a `cachePoint` behind the tool for Bedrock. */
  readonly cacheControl?: { readonly type: "ephemeral"; readonly ttl?: "5m" | "1h" };
  /** Anthropic's `eager_input_streaming`. */
  readonly eagerInputStreaming?: boolean;
  /** MCP 2025-11-25's `execution.taskSupport`. */
  readonly taskSupport?: "forbidden" | "optional" | "required";
  /** MCP's annotations word for word as a server gave them; `null`: it gave none. */
  readonly annotations?: { readonly [hint: string]: unknown } | null;
  /** `null`: the source had no description; the tool's own is made up and not sent back. */
  readonly description?: null;
  /** `null`: the source had no title; the tool's own is taken from elsewhere and not sent back. */
  readonly title?: null;
  /** Where the tool was imported from: `mcp`, `openapi`, `openai`, `anthropic`, `gemini`, `bedrock`. */
  readonly source?: string;
  /** How it was written there, where a source has several ways: OpenAI's `chat`, `responses` or `realtime`. */
  readonly surface?: string;
  /** The name that the source knows it by, where the tool's own name differs. */
  readonly name?: string;
  /** In the source, what is optional here was required and could be `null` (OpenAI's strict mode). */
  readonly unstrict?: boolean;
  /** Fields that plue has no words for. They go back to where they came from; elsewhere each is a loss. */
  readonly extra?: { readonly [field: string]: unknown };
  /** How a call becomes an HTTP request, for a tool that was imported from OpenAPI. */
  readonly operation?: { readonly [field: string]: unknown };
  /** A namespace's description (OpenAI Responses requires one). */
  readonly namespaceDescription?: string;
}
