/**
 * What a tool must pass to get into a registry. Everything that can fail happens here, before the
 * registry changes.
 *
 * @module
 */

import {
  checkSchema,
  type CheckSchemaOptions,
  compileOnce,
  type SchemaEngine,
  type SchemaValidator,
} from "../schema/mod.ts";
import {
  copyJson,
  isTool,
  type JsonSchema,
  makeTool,
  type Tool,
  type ToolDefinition,
} from "../tool/mod.ts";

/** Bounds of the schemas that a registry takes; see {@linkcode CheckSchemaOptions}. */
export type SchemaLimits = Omit<CheckSchemaOptions, "what">;

/** What a registry admits by. */
export interface AdmissionRules {
  readonly engine: SchemaEngine;
  readonly limits: SchemaLimits;
  /** Configuration by tool id. */
  readonly config: ReadonlyMap<string, unknown>;
}

/** What the registry is about to do, in words, for messages. */
export type AdmissionAction = "register" | "update" | "configure";

/** The tool that `candidate` is or defines. */
export function toTool(candidate: Tool | ToolDefinition): Tool {
  return isTool(candidate) ? candidate : makeTool(candidate);
}

/**
 * Checks a tool's schemas and its configuration.
 *
 * @returns The configuration: checked, copied, frozen.
 * @throws {TypeError} If something is wrong. The message names the tool, the schema and the JSON
 * Pointer.
 */
export function admit(tool: Tool, rules: AdmissionRules, action: AdmissionAction): unknown {
  const { id } = tool;
  const wrong = (problem: string, cause?: unknown): never => {
    throw new TypeError(
      `Cannot ${action} tool "${id}": ${problem}`,
      cause === undefined ? undefined : { cause },
    );
  };
  for (const field of ["parameters", "returns", "config"] as const) {
    const schema = tool[field];
    if (schema === undefined) continue;
    try {
      checkSchema(schema, { ...rules.limits, what: `its ${field}` });
    } catch (cause) {
      wrong(reason(cause), cause);
    }
  }
  if (tool.config !== undefined) return readConfig(tool.config, rules.config.get(id), rules, wrong);
  return rules.config.has(id) ? wrong("it is given a configuration, and takes none") : undefined;
}

function readConfig(
  schema: JsonSchema,
  given: unknown,
  { engine }: AdmissionRules,
  wrong: (problem: string, cause?: unknown) => never,
): unknown {
  let config: unknown;
  let validator: SchemaValidator;
  try {
    // A tool whose configuration is optional throughout gets an empty one.
    config = copyJson(given ?? {}, "its configuration");
    validator = compileOnce(engine, schema);
  } catch (cause) {
    return wrong(reason(cause), cause);
  }
  if (validator.check(config)) return config;
  const issues = validator.issues(config).map((issue) => issue.message).join("; ");
  return wrong(`its configuration is ${given === undefined ? "missing" : "wrong"}: ${issues}`);
}

/** The message of a check, without the "Cannot do this: " that the caller's own replaces. */
function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message.replace(/^Cannot (use|copy) /, "") : String(cause);
}
