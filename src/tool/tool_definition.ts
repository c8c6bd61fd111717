/**
 * What the author of a tool writes.
 *
 * @module
 */

import type { OutputOverflow } from "./output_overflow.ts";
import type { RiskLevel } from "./risk_level.ts";
import type { StandardSchema } from "./standard_schema.ts";
import type { ToolAnnotations } from "./tool_annotations.ts";
import type { ToolCategory } from "./tool_category.ts";
import type { ToolAvailabilityQuery, ToolContext, ToolInitContext } from "./tool_context.ts";
import type { ToolExample, ToolIcon, ToolOutput, ToolRuleAnswer } from "./tool.ts";

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
> {
  /** 1 to 128 letters, digits, `_`, `.` or `-`. */
  readonly name: string;
  /** Where the name lives; the same rule. The id is then `namespace:name`. */
  readonly namespace?: string | undefined;
  readonly title?: string | undefined;
  /** What it does, written for a model. */
  readonly description: string;
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
  /** What a caller must hold, all of it. */
  readonly scopes?: readonly string[] | undefined;
  readonly requiresTransaction?: boolean | undefined;
  readonly requiresApproval?: boolean | undefined;
  /** @default {true} */
  readonly isAvailable?: boolean | ((query: ToolAvailabilityQuery) => boolean) | undefined;
  /** Hints for clients. What is absent is derived from risk, category, tags and `idempotent`. */
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
  /** Schema of the tool's configuration, which the registry is given per tool. */
  readonly config?: ConfigSchema | undefined;
  readonly meta?: { readonly [key: string]: unknown } | undefined;
  /** Runs once, before the first call. What it returns is `context.state`. */
  init?(context: ToolInitContext<Config>): State | Promise<State>;
  /** Runs once, after the last call. */
  dispose?(state: State): void | Promise<void>;
  /** Rules that a schema cannot say: return what is wrong, as a sentence or as issues. */
  validate?(
    params: Params,
    context: ToolContext<Config, State>,
  ): ToolRuleAnswer | Promise<ToolRuleAnswer>;
  /** Does the work. An async generator streams what it yields, and returns the result. */
  execute?(params: Params, context: ToolContext<Config, State>): ToolOutput<Result>;
}
