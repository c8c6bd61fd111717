/**
 * A tool: what a model is told about it, what decides who sees it, and how it runs.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "./json.ts";
import type { OutputOverflow } from "./output_overflow.ts";
import type { RiskLevel } from "./risk_level.ts";
import type { StandardSchema } from "./standard_schema.ts";
import type { ToolAnnotations } from "./tool_annotations.ts";
import type { ToolCategory } from "./tool_category.ts";
import type { ToolAvailabilityQuery, ToolContext, ToolInitContext } from "./tool_context.ts";
import type { Issue, ToolResult } from "./tool_result.ts";

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

/** What `execute` may give: a value, or a generator whose `return` is the result. */
export type ToolOutput<Result> =
  | Result
  | ToolResult<Result>
  | Promise<Result | ToolResult<Result>>
  | AsyncGenerator<unknown, Result | ToolResult<Result>, void>;

/** What a tool's own rule answers: nothing, a sentence, or issues. */
export type ToolRuleAnswer = void | string | readonly Issue[];

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
  /** A name for people. */
  readonly title: string | undefined;
  /** What it does, written for a model. */
  readonly description: string;
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
  /** What a caller must hold, all of it. */
  readonly scopes: readonly string[];
  readonly requiresTransaction: boolean;
  readonly requiresApproval: boolean;
  /** A fixed answer, or a function that is asked at each listing and again at dispatch. */
  readonly isAvailable: boolean | ((query: ToolAvailabilityQuery) => boolean);
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
  /** JSON Schema of the tool's configuration. */
  readonly config: JsonSchema | undefined;
  /** Anything else to carry along, such as a provider's own fields. JSON. */
  readonly meta: { readonly [key: string]: unknown } | undefined;
  /** Runs once, before the first call. What it returns is `state`. */
  readonly init: ((context: ToolInitContext<never>) => unknown) | undefined;
  /** Runs once, after the last call, with what `init` returned. */
  readonly dispose: ((state: never) => void | Promise<void>) | undefined;
  /** Rules that a schema cannot say. Runs after the schema accepted the arguments. */
  validate?(
    params: Params,
    context: ToolContext<never, never>,
  ): ToolRuleAnswer | Promise<ToolRuleAnswer>;
  /** Does the work. Absent: the tool is a definition only. */
  execute?(params: Params, context: ToolContext<never, never>): ToolOutput<Result>;
}
