/** The types of a tool (texts for models, access rules, functions) and of its definition. */

import type { JsonSchema, JsonSchemaObject } from "./json.ts";
import { assertSync, type HookLog } from "./check.ts";
import type { Issue, OutputOverflow, ToolContent, ToolResult } from "./result.ts";
import type { RiskLevel, ToolAnnotations, ToolCategory } from "./traits.ts";
import type { ToolAvailabilityQuery, ToolContext, ToolInitContext } from "./context.ts";

/** A call that shows how the tool is used. */
export interface ToolExample {
  /** The purpose of the example. */
  readonly description?: string;
  /** The arguments. */
  readonly input: unknown;
  /** The result. */
  readonly output?: unknown;
}

/** An icon for a user interface, in the form of the Model Context Protocol. */
export interface ToolIcon {
  readonly src: string;
  readonly mimeType?: string;
  readonly sizes?: readonly string[];
  readonly theme?: "light" | "dark";
}

type ToolReturn<Result> = Result | ToolResult<Result | ToolContent>;

/** The return value of `execute`: a result, or a generator that returns the result. */
export type ToolOutput<Result> =
  | ToolReturn<Result>
  | Promise<ToolReturn<Result>>
  | AsyncGenerator<unknown, ToolReturn<Result>, void>;

/** Calls run in their request, as tasks, or in either way. */
export type ToolExecution = "sync" | "task" | "either";

/** The return value of a tool's `validate`: nothing, a message, or issues. */
export type ToolRuleAnswer = void | string | readonly Issue[];

/** The reader of a tool's description. A field is absent if its value is not known. */
export interface ToolReader {
  /** The provider's name of the model. */
  readonly model?: string | undefined;
  /** The model's provider, such as `anthropic`. */
  readonly provider?: string | undefined;
  /** The language, such as `de` or `pt-BR`. */
  readonly locale?: string | undefined;
}

/** The effect of a tool on the flow of data, for `rules` of `@plue/tools/rules`. */
export interface ToolLabels {
  /** Labels of the results, such as `untrusted` for a web page. */
  readonly produces?: readonly string[];
  /** Labels of the data that the tool reads and returns, such as `private`. */
  readonly reads?: readonly string[];
  /** True if the arguments can leave the system: a mail, a request. @default {false} */
  readonly sends?: boolean;
}

/** The credentials that a tool uses, by name. The layer of `@plue/tools/credentials` gets them. */
export interface ToolCredentials {
  readonly [name: string]: {
    /** The scopes that the credential must have. */
    readonly scopes?: readonly string[];
  };
}

/** The relation of a view, a tool that `viewOf` creates, to its original tool. */
export interface ViewedTool {
  readonly tool: Tool;
  /**
   * Converts valid arguments of the view to arguments of the original tool, and validates them with
   * `issuesOf` against the schema of each tool in between. The issues use the view's names. The
   * call itself validates with the schemas of libraries.
   */
  toOriginalArguments(
    args: unknown,
    issuesOf: (schema: JsonSchemaObject, value: unknown) => readonly Issue[] | undefined,
  ): { readonly value?: unknown; readonly issues?: readonly Issue[] };
  /** Converts issues of the original tool's arguments to the view's names. */
  toViewIssue(issue: Issue): Issue;
}

/** The fields that are the same in a tool and in its definition. */
export interface ToolTraits {
  /** Earlier ids, accepted in calls and never listed. No other tool may have one of them. */
  readonly aliases: readonly string[];
  /** A name for people. */
  readonly title: string | undefined;
  /** Semantic version, such as `1.2.0`. */
  readonly version: string | undefined;
  readonly category: ToolCategory | undefined;
  /** @default {"medium"} */
  readonly risk: RiskLevel;
  readonly tags: readonly string[];
  /** The roles that may use the tool; `undefined` means everyone. */
  readonly roles: readonly string[] | undefined;
  /** A synonym of `roles`. Not enumerable. */
  readonly allowedRoles: readonly string[] | undefined;
  /** The required scopes: a caller must have all of them. */
  readonly scopes: readonly string[];
  readonly requiresTransaction: boolean;
  readonly requiresApproval: boolean;
  /** A constant, or a function that is called at each listing and at dispatch. @default {true} */
  readonly isAvailable: boolean | ((query: ToolAvailabilityQuery) => boolean);
  /** The reason while the tool is not available, for explanations. */
  readonly unavailableReason: string | undefined;
  /** Hints for clients. Missing hints are derived: only the tag `read-only` sets `readOnlyHint`. */
  readonly annotations: ToolAnnotations;
  readonly examples: readonly ToolExample[];
  readonly icons: readonly ToolIcon[];
  /** `true`, or a text that names a replacement. */
  readonly deprecated: boolean | string;
  /** The timeout of a call in milliseconds. By default, the dispatcher's timeout. */
  readonly timeoutMs: number | undefined;
  /** The treatment of a result above the size limit. By default, the dispatcher's setting. */
  readonly outputOverflow: OutputOverflow | undefined;
  /** True if a repeated call with the same arguments has no further effect. */
  readonly idempotent: boolean;
  /**
   * True if the tool calls other tools of its dispatcher. Only the calls that it makes count in the
   * limits of concurrent calls.
   */
  readonly callsTools: boolean;
  /**
   * Controls whether calls run as tasks, which outlive their requests: never (`sync`), always
   * (`task`), or by choice of caller and host (`either`). Only a host with tasks uses it.
   *
   * @default {"either"}
   */
  readonly execution: ToolExecution;
  /** Additional JSON data, such as a provider's own fields. */
  readonly meta: { readonly [key: string]: unknown } | undefined;
  /** The effect on the flow of data. Only `rules` checks and uses it. */
  readonly labels: ToolLabels | undefined;
  /**
   * The caller's credentials that `context.credential` returns, such as
   * `{ github: { scopes: ["repo"] } }`. Without a layer of credentials, calls fail.
   */
  readonly credentials: ToolCredentials | undefined;
}

/**
 * A tool, created by `defineTool`. Immutable: its fields, lists and schemas are frozen.
 *
 * @typeParam Params The arguments of `execute`.
 * @typeParam Result The result of `execute`.
 */
export interface Tool<Params = unknown, Result = unknown> extends ToolTraits {
  /** `namespace:name`, or `name`. Unique in a registry. */
  readonly id: string;
  readonly name: string;
  readonly namespace: string | undefined;
  /** The original of a view; `undefined` for other tools. */
  readonly view: ViewedTool | undefined;
  /** The text for a model. If the tool has `describe`, the text for the toolset's reader. */
  readonly description: string;
  /** Returns the description for a reader. Absent if the definition has a constant description. */
  readonly describe: ((reader: ToolReader) => string) | undefined;
  /** JSON Schema of the arguments. Its root is an object schema. */
  readonly parameters: JsonSchemaObject;
  /** JSON Schema of the result. */
  readonly returns: JsonSchema | undefined;
  /** The library schema that `parameters` came from; it validates, and may transform. */
  readonly parametersStandard: StandardSchema | undefined;
  /** The library schema that `returns` came from. */
  readonly returnsStandard: StandardSchema | undefined;
  /** JSON Schema of the tool's configuration. */
  readonly config: JsonSchema | undefined;
  /** Schema of the host's context for each call: JSON Schema, or a library's. */
  readonly context: JsonSchema | StandardSchema | undefined;
  /** Runs once, before the first call. It returns `state`. */
  readonly init: ((context: ToolInitContext<never>) => unknown) | undefined;
  /** Runs once, after the last call, with the result of `init`. */
  readonly dispose: ((state: never) => void | Promise<void>) | undefined;
  /** Checks rules that a schema cannot express, after the schema has accepted the arguments. */
  validate?(
    params: Params,
    context: ToolContext<never, never, never>,
  ): ToolRuleAnswer | Promise<ToolRuleAnswer>;
  /** The tool's function. If absent, the tool is a definition only. */
  execute?(params: Params, context: ToolContext<never, never, never>): ToolOutput<Result>;
}

/** A schema in a definition: JSON Schema (also from TypeBox), or a Standard Schema. */
export type SchemaInput = boolean | object;

/** The output type of a Standard Schema; `unknown` for every other schema. */
export type InferStandardOutput<Schema> = Schema extends StandardSchema<infer _Input, infer Output>
  ? Output
  : unknown;

/** The input type of a Standard Schema; `unknown` for every other schema. */
export type InferStandardInput<Schema> = Schema extends StandardSchema<infer Input, infer _Output>
  ? Input
  : unknown;

/** The fields of a definition. */
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
> extends Optional<ToolTraits> {
  /** 1 to 128 letters, digits, `_`, `.` or `-`. Without `namespace`, also `namespace:name`. */
  readonly name: string;
  /** The namespace, with the same characters as the name. The id is then `namespace:name`. */
  readonly namespace?: string | undefined;
  /**
   * The description for a model; or a function that returns it for a reader. The reader comes from
   * the selection's `context`. The function must always return the same text for the same reader.
   * At definition it is called with `{}`, for the text that search and unknown readers use.
   */
  readonly description: string | ((reader: ToolReader) => string);
  /**
   * The schema of the arguments: TypeBox, Zod 4, Valibot, ArkType, or a JSON Schema of an object.
   *
   * @default {{ type: "object", properties: {}, additionalProperties: false }}
   */
  readonly parameters?: ParamsSchema | undefined;
  /** The schema of the result, in the same forms. Without a schema, any JSON is valid. */
  readonly returns?: ReturnsSchema | undefined;
  /** Schema of the tool's configuration, which is an option of the registry. */
  readonly config?: ConfigSchema | undefined;
  /**
   * Schema of the host's context for each call, in addition to the arguments, such as the caller's
   * tenant. The context is validated before the tool runs, and never shown to a model. The tool
   * reads it as `context.context`, which is `undefined` without a schema.
   */
  readonly context?: ContextSchema | undefined;
  /** Runs once, before the first call. It returns `context.state`. */
  init?(context: ToolInitContext<Config>): State | Promise<State>;
  /** Runs once, after the last call. */
  dispose?(state: State): void | Promise<void>;
  /** Checks rules that a schema cannot express. Returns the problem as a message or as issues. */
  validate?(
    params: Params,
    context: ToolContext<Config, State, HostContext>,
  ): ToolRuleAnswer | Promise<ToolRuleAnswer>;
  /** The tool's function. An async generator streams the yielded values, and returns the result. */
  execute?(params: Params, context: ToolContext<Config, State, HostContext>): ToolOutput<Result>;
}

type Optional<Fields> = { readonly [Field in keyof Fields]?: Fields[Field] | undefined };

const pinned = /* @__PURE__ */ new WeakSet<Tool>();

/** Records that the definition of an imported tool was approved. */
export function markPinned(tool: Tool): void {
  pinned.add(tool);
}

export function isPinned(tool: Tool): boolean {
  return pinned.has(tool);
}

/** Returns a tool and, for a view, the tools behind the view. The original comes last. */
export function toolsBehind(tool: Tool): readonly Tool[] {
  return tool.view === undefined ? [tool] : [tool, ...toolsBehind(tool.view.tool)];
}

/** Returns true if a tool is available now. A function must return `true`, without an error. */
export function askAvailable(
  tool: Tool,
  { services, config }: ToolAvailabilityQuery,
  log: HookLog,
): boolean {
  if (typeof tool.isAvailable === "boolean") return tool.isAvailable;
  try {
    return assertSync(tool.isAvailable({ services, config })) === true;
  } catch (error) {
    log(error);
    return false;
  }
}

/** Returns the fields of a tool for callers, without roles and scopes, which concern the host. */
export function describeTool(tool: Tool): Record<string, unknown> {
  const { id, name, namespace, title, description, version, parameters, returns } = tool;
  const { category, risk, tags, annotations, examples, icons, timeoutMs, idempotent } = tool;
  return {
    ...{ id, name, namespace, title, description, version, parameters, returns },
    ...{ category, risk, tags, annotations },
    examples: examples.length === 0 ? undefined : examples,
    icons: icons.length === 0 ? undefined : icons,
    deprecated: tool.deprecated || undefined,
    requiresApproval: tool.requiresApproval || undefined,
    timeoutMs,
    idempotent,
    execution: tool.execution === "either" ? undefined : tool.execution,
    executable: tool.execute !== undefined,
  };
}

// Standard Schema and Standard JSON Schema (https://standardschema.dev) as structural types: Zod 4,
// Valibot and ArkType satisfy them, and plue depends on none of them.

/** An issue that a Standard Schema reports. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The result of a Standard Schema's `validate`. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardJsonSchemaConverter {
  readonly input: (options: { readonly target: string }) => Record<string, unknown>;
  readonly output: (options: { readonly target: string }) => Record<string, unknown>;
}

/** A schema of a library that follows Standard Schema, version 1, and converts to JSON Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: StandardJsonSchemaConverter | undefined;
  };
}

/** Returns true for a Standard Schema. ArkType's schemas are functions, not objects. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  const standard: unknown = (value as { readonly "~standard"?: unknown })["~standard"];
  return typeof standard === "object" && standard !== null &&
    typeof (standard as { readonly validate?: unknown }).validate === "function";
}
