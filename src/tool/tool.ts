/**
 * A tool: what a model is told about it, what decides who sees it, and how it runs; and the
 * definition that its author writes.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "./json.ts";
import { atOnce, type HookLog } from "./hook.ts";
import type { Issue, OutputOverflow, ToolContent, ToolResult } from "./result.ts";
import type { RiskLevel, ToolAnnotations, ToolCategory } from "./traits.ts";
import type { StandardSchema } from "./standard_schema.ts";
import type { ToolAvailabilityQuery, ToolContext, ToolInitContext } from "./context.ts";

/** A call that shows how the tool is used. */
export interface ToolExample {
  /** What it shows. */
  readonly description?: string;
  /** The arguments. */
  readonly input: unknown;
  /** What the tool answers. */
  readonly output?: unknown;
}

/** An icon for a user interface, as the Model Context Protocol has it. */
export interface ToolIcon {
  readonly src: string;
  readonly mimeType?: string;
  readonly sizes?: readonly string[];
  readonly theme?: "light" | "dark";
}

/** What a tool may answer: a value, or a result that it made itself. */
type ToolReturn<Result> = Result | ToolResult<Result | ToolContent>;

/** What `execute` may give: an answer, or a generator whose `return` is the answer. */
export type ToolOutput<Result> =
  | ToolReturn<Result>
  | Promise<ToolReturn<Result>>
  | AsyncGenerator<unknown, ToolReturn<Result>, void>;

/** Whether calls run in their request, as tasks, or both. */
export type ToolExecution = "sync" | "task" | "either";

/** What a tool's own rule answers: nothing, a sentence, or issues. */
export type ToolRuleAnswer = void | string | readonly Issue[];

/** Who reads a tool's description. A field is absent where nothing is known. */
export interface ToolReader {
  /** The model, as its provider names it. */
  readonly model?: string | undefined;
  /** The model's provider, such as `anthropic`. */
  readonly provider?: string | undefined;
  /** The language, such as `de` or `pt-BR`. */
  readonly locale?: string | undefined;
}

/** What a view shows of a tool, and how a call of the view becomes a call of that tool. */
export interface ViewedTool {
  /** The tool that the view shows; it may be a view itself. */
  readonly tool: Tool;
  /**
   * Makes arguments of the tool behind all views out of arguments that fit the view, and checks them
   * against the schema of each tool on the way. The schema of a library is left to the call.
   *
   * @param issuesOf Checks a value against a schema.
   * @returns The arguments, or what is wrong with them in the view's words.
   */
  lead(
    args: unknown,
    issuesOf: (schema: JsonSchemaObject, value: unknown) => readonly Issue[] | undefined,
  ): { readonly value?: unknown; readonly issues?: readonly Issue[] };
  /** Says what is wrong with arguments of the tool behind all views, in the view's words. */
  tell(issue: Issue): Issue;
}

/**
 * A tool, made by `defineTool`. Immutable: its fields, lists and schemas are frozen.
 *
 * @typeParam Params What `execute` is given.
 * @typeParam Result What `execute` answers.
 */
export interface Tool<Params = unknown, Result = unknown> {
  /** `namespace:name`, or `name`. Unique in a registry. */
  readonly id: string;
  readonly name: string;
  readonly namespace: string | undefined;
  /** Earlier ids: calls may use them, and no listing shows them. */
  readonly aliases: readonly string[];
  /** What it is a view of; `undefined` for a tool that is no view. */
  readonly view: ViewedTool | undefined;
  /** A name for people. */
  readonly title: string | undefined;
  /**
   * What it does, written for a model. Of a tool with `describe`: for the reader of the toolset that
   * the tool was taken from, and otherwise for one of whom nothing is known.
   */
  readonly description: string;
  /** Describes it for a reader, if its author gave a function as the description. */
  readonly describe: ((reader: ToolReader) => string) | undefined;
  /** Semantic version of the tool. */
  readonly version: string | undefined;
  /** JSON Schema of the arguments. Its root is an object schema. */
  readonly parameters: JsonSchemaObject;
  /** JSON Schema of the result. */
  readonly returns: JsonSchema | undefined;
  /** The library schema that `parameters` came from; it validates, and may transform. */
  readonly parametersStandard: StandardSchema | undefined;
  /** The library schema that `returns` came from. */
  readonly returnsStandard: StandardSchema | undefined;
  readonly category: ToolCategory | undefined;
  readonly risk: RiskLevel;
  readonly tags: readonly string[];
  /** Who may use it; `undefined` is everyone. */
  readonly roles: readonly string[] | undefined;
  /** The same as `roles`. Not enumerable. */
  readonly allowedRoles: readonly string[] | undefined;
  /** What a caller must hold, all of it. */
  readonly scopes: readonly string[];
  readonly requiresTransaction: boolean;
  readonly requiresApproval: boolean;
  /** A fixed answer, or a function that is asked at each listing and again at dispatch. */
  readonly isAvailable: boolean | ((query: ToolAvailabilityQuery) => boolean);
  /** Why a tool with `isAvailable: false` is not available, for explanations. */
  readonly unavailableReason: string | undefined;
  readonly annotations: ToolAnnotations;
  readonly examples: readonly ToolExample[];
  readonly icons: readonly ToolIcon[];
  /** `true`, or a sentence that says what to use instead. */
  readonly deprecated: boolean | string;
  /** How long one call may take, in milliseconds; `undefined` leaves it to the dispatcher. */
  readonly timeoutMs: number | undefined;
  /** What is done with a result over the limit; `undefined` leaves it to the dispatcher. */
  readonly outputOverflow: OutputOverflow | undefined;
  /** A second call with the same arguments changes nothing more. */
  readonly idempotent: boolean;
  /** Whether its calls run as tasks, which outlive their requests. */
  readonly execution: ToolExecution;
  /** JSON Schema of the tool's configuration. */
  readonly config: JsonSchema | undefined;
  /** Schema of what the host gives each call: JSON Schema, or a library's. */
  readonly context: JsonSchema | StandardSchema | undefined;
  /** Anything else to carry along, such as a provider's own fields. JSON. */
  readonly meta: { readonly [key: string]: unknown } | undefined;
  /** Runs once, before the first call. What it returns is `state`. */
  readonly init: ((context: ToolInitContext<never>) => unknown) | undefined;
  /** Runs once, after the last call, with what `init` returned. */
  readonly dispose: ((state: never) => void | Promise<void>) | undefined;
  /** Rules that a schema cannot say. Runs after the schema accepted the arguments. */
  validate?(
    params: Params,
    context: ToolContext<never, never, never>,
  ): ToolRuleAnswer | Promise<ToolRuleAnswer>;
  /** Does the work. Absent: the tool is a definition only. */
  execute?(params: Params, context: ToolContext<never, never, never>): ToolOutput<Result>;
}

/** What a definition takes as a schema: JSON Schema (TypeBox makes it), or a Standard Schema. */
export type SchemaInput = boolean | object;

/** What a Standard Schema gives after validation; `unknown` for every other schema. */
export type InferStandardOutput<Schema> = Schema extends StandardSchema<infer _Input, infer Output>
  ? Output
  : unknown;

/** What a Standard Schema accepts; `unknown` for every other schema. */
export type InferStandardInput<Schema> = Schema extends StandardSchema<infer Input, infer _Output>
  ? Input
  : unknown;

/** The fields of a tool, as its author writes them. */
export interface ToolDefinition<
  ParamsSchema = SchemaInput,
  ReturnsSchema = SchemaInput,
  ConfigSchema = SchemaInput,
  Params = unknown,
  Result = unknown,
  Config = unknown,
  State = unknown,
  ContextSchema = SchemaInput,
  HostContext = unknown,
> {
  /** 1 to 128 letters, digits, `_`, `.` or `-`; or `namespace:name`, where no namespace is given. */
  readonly name: string;
  /** Where the name lives; the same rule. The id is then `namespace:name`. */
  readonly namespace?: string | undefined;
  /**
   * Earlier ids, `name` or `namespace:name`: calls may use them, and no listing shows them. In a
   * registry no other tool may have one of them as its id or alias.
   */
  readonly aliases?: readonly string[] | undefined;
  readonly title?: string | undefined;
  /**
   * What it does, written for a model; or a function that says it for a reader, who is known by the
   * selection's `context`. The function must always say the same to the same reader. It is called
   * with `{}` at once: that is the text to search in, and the one where no reader is known.
   */
  readonly description: string | ((reader: ToolReader) => string);
  /** Semantic version, such as `1.2.0`. */
  readonly version?: string | undefined;
  /**
   * The arguments: TypeBox, JSON Schema with `type: "object"`, Zod 4, Valibot or ArkType.
   *
   * @default {{ type: "object", properties: {}, additionalProperties: false }}
   */
  readonly parameters?: ParamsSchema | undefined;
  /** The result, by the same means. Absent: any JSON. */
  readonly returns?: ReturnsSchema | undefined;
  readonly category?: ToolCategory | undefined;
  /** @default {"medium"} */
  readonly risk?: RiskLevel | undefined;
  readonly tags?: readonly string[] | undefined;
  /** Who may use it. Absent: everyone. */
  readonly roles?: readonly string[] | undefined;
  /** Another word for `roles`. */
  readonly allowedRoles?: readonly string[] | undefined;
  /** What a caller must hold, all of it. */
  readonly scopes?: readonly string[] | undefined;
  readonly requiresTransaction?: boolean | undefined;
  readonly requiresApproval?: boolean | undefined;
  /** @default {true} */
  readonly isAvailable?: boolean | ((query: ToolAvailabilityQuery) => boolean) | undefined;
  /** Why a tool with `isAvailable: false` is not available, for explanations. */
  readonly unavailableReason?: string | undefined;
  /**
   * Hints for clients. Others are derived with care: without a word here, only the tag `read-only`
   * makes `readOnlyHint` true.
   */
  readonly annotations?: ToolAnnotations | undefined;
  readonly examples?: readonly ToolExample[] | undefined;
  readonly icons?: readonly ToolIcon[] | undefined;
  /** `true`, or a sentence that says what to use instead. */
  readonly deprecated?: boolean | string | undefined;
  /** How long one call may take, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** What is done with a result over the limit. Absent: what the dispatcher was told. */
  readonly outputOverflow?: OutputOverflow | undefined;
  readonly idempotent?: boolean | undefined;
  /**
   * Whether its calls run as tasks, which outlive their requests: never, always, or as the caller and
   * the host choose. Counts where a host offers tasks.
   *
   * @default {"either"}
   */
  readonly execution?: ToolExecution | undefined;
  /** Schema of the tool's configuration, which the registry is given per tool. */
  readonly config?: ConfigSchema | undefined;
  /**
   * Schema of what the host gives each call beside the arguments, such as the caller's tenant. It is
   * checked before the tool runs, and never shown to a model. The tool gets it as
   * `context.context`. Absent: the tool gets none.
   */
  readonly context?: ContextSchema | undefined;
  readonly meta?: { readonly [key: string]: unknown } | undefined;
  /** Runs once, before the first call. What it returns is `context.state`. */
  init?(context: ToolInitContext<Config>): State | Promise<State>;
  /** Runs once, after the last call. */
  dispose?(state: State): void | Promise<void>;
  /** Rules that a schema cannot say: return what is wrong, as a sentence or as issues. */
  validate?(
    params: Params,
    context: ToolContext<Config, State, HostContext>,
  ): ToolRuleAnswer | Promise<ToolRuleAnswer>;
  /** Does the work. An async generator streams what it yields, and returns the result. */
  execute?(
    params: Params,
    context: ToolContext<Config, State, HostContext>,
  ): ToolOutput<Result>;
}

/**
 * Asks a tool whether it is available now. Only `true` is a yes; a function that throws says no, and
 * so does one that answers a promise.
 */
export function askAvailable(
  tool: Tool,
  { services, config }: ToolAvailabilityQuery,
  log: HookLog,
): boolean {
  if (typeof tool.isAvailable === "boolean") return tool.isAvailable;
  try {
    return atOnce(tool.isAvailable({ services, config })) === true;
  } catch (error) {
    log(error);
    return false;
  }
}

/**
 * What a caller is told of a tool: without its roles and scopes, which concern the owner alone. JSON
 * leaves out what is `undefined`.
 */
export function describeTool(tool: Tool): Record<string, unknown> {
  const { id, name, namespace, title, description, version, parameters, returns } = tool;
  const { category, risk, tags, annotations, examples, icons, timeoutMs, idempotent, execution } =
    tool;
  return {
    ...{ id, name, namespace, title, description, version, parameters, returns },
    ...{ category, risk, tags, annotations },
    examples: examples.length === 0 ? undefined : examples,
    icons: icons.length === 0 ? undefined : icons,
    deprecated: tool.deprecated === false ? undefined : tool.deprecated,
    requiresApproval: tool.requiresApproval || undefined,
    timeoutMs,
    idempotent,
    execution: execution === "either" ? undefined : execution,
    executable: tool.execute !== undefined,
  };
}
