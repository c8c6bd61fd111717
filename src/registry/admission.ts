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
} from "../schema/mod.ts";
import {
  copyJson,
  isTool,
  type JsonSchema,
  makeTool,
  refuse,
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
  const { id, config } = tool;
  const doing = `${action} tool "${id}"`;
  for (const field of ["parameters", "returns", "config"] as const) {
    const schema = tool[field];
    if (schema === undefined) continue;
    attempt(doing, () => checkSchema(schema, { ...rules.limits, what: `its ${field}` }));
  }
  const given = rules.config.get(id);
  if (config !== undefined) return readConfig(doing, config, given, rules.engine);
  return rules.config.has(id)
    ? refuse(doing, "it is given a configuration, and takes none")
    : undefined;
}

function readConfig(
  doing: string,
  schema: JsonSchema,
  given: unknown,
  engine: SchemaEngine,
): unknown {
  // A tool whose configuration is optional throughout gets an empty one.
  const config = attempt(doing, () => copyJson(given ?? {}, "its configuration"));
  const validator = attempt(doing, () => compileOnce(engine, schema));
  if (validator.check(config)) return config;
  const issues = validator.issues(config).map((issue) => issue.message).join("; ");
  const how = given === undefined ? "missing" : "wrong";
  refuse(doing, `its configuration is ${how}: ${issues}`);
}

/** Does it. What a check says of its own action, "Cannot use …", is said of this one. */
function attempt<T>(doing: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    refuse(doing, reason.replace(/^Cannot (use|copy) /, ""), cause);
  }
}
