/**
 * The default schema engine, by TypeBox: it compiles if code may be generated, and interprets
 * otherwise. It works around faults of TypeBox 1.4. Two of them are its own ways of running:
 *
 * - Its answer to "may code be generated?" is cached. On Cloudflare Workers that is true while a
 *   module loads and false inside a request, where compiling would then throw.
 * - Its own fallback keeps one context for all calls, so properties that one value had evaluated
 *   are let through by `unevaluatedProperties: false` in the next value.
 *
 * It finds a `toString` in every object: `explain` checks the values of a schema that names such a
 * property. Other schemas are rewritten, with the same meaning, where TypeBox makes an error or is slow:
 *
 * - It applies `unevaluatedProperties` to arrays. Instead: only if the value is no array.
 * - It looks for additional properties with a regular expression, which takes most of the time that
 *   a check takes. Instead: all names of the object are among these.
 * - It hashes all items for `uniqueItems`, in arithmetic of big integers, and hashes may collide.
 *   Instead: `sameItems`, as for all engines.
 * - Where it interprets, it compiles a pattern for each value. Instead: a compiled pattern,
 *   whose steps a hardened engine counts.
 *
 * @module
 */

import * as Formats from "typebox/format";
import { Build, Check } from "typebox/schema";
import {
  ASSERTED_FORMATS,
  type Dialect,
  eachSchemaIn,
  explain,
  type Hardening,
  KEYWORDS,
  type NormalizedSchema,
  normalizeSchema,
  sameItems,
  type SchemaEngine,
  type SchemaSplitter,
  type SchemaValidator,
  type SplitSchema,
  vagueIssue,
  withSchemaCheck,
} from "../../schema/mod.ts";
import {
  describeThrown,
  type Issue,
  type JsonSchema,
  type JsonSchemaObject,
} from "../../tool/mod.ts";

/** Options for {@linkcode typeboxEngine}. */
export interface TypeboxEngineOptions {
  /**
   * `assert`: every format that draft-07 or 2020-12 names is checked, any other is an annotation.
   * `annotate`: all are annotations.
   *
   * @default {"assert"}
   */
  readonly formats?: "assert" | "annotate";
  /**
   * Whether to compile to JavaScript where the runtime allows it. `false` always interprets, which
   * is about 20 times slower, and the same in every verdict.
   *
   * @default {true}
   */
  readonly codeGeneration?: boolean;
}

/**
 * Creates the engine. It has no state: two engines with the same options are equal.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { typeboxEngine } from "@plue/tools";
 *
 * const days = typeboxEngine().compile({ type: "integer", minimum: 1 }, "2020-12");
 *
 * assert.equal(days.check(3), true);
 * assert.equal(days.issues(0)[0]?.message, "The value must be at least 1");
 * ```
 *
 * @param options Which formats to assert, and whether code may be generated.
 * @returns The engine.
 */
export function typeboxEngine(options: TypeboxEngineOptions = {}): SchemaEngine {
  const { formats = "assert", codeGeneration = true } = options;
  const asserted = formats === "assert" ? ASSERTED_FORMATS : new Set<string>();
  return withSchemaCheck({
    name: "typebox",
    compile(schema: JsonSchema, dialect: Dialect, hardening?: Hardening): SchemaValidator {
      const normalize = () => normalizeSchema(schema, dialect, { formats: asserted });
      const form = normalize();
      const split = hardening?.splitterFor(form);
      // Issues are about the original schema, not the schema for TypeBox.
      let kept: NormalizedSchema | undefined;
      const original = () => kept ??= normalize();
      const find = (value: unknown) => explain(original(), value, Formats.Test, hardening);
      const issues = (value: unknown): readonly Issue[] => {
        const found = find(value);
        return found.length > 0 ? found : [vagueIssue()];
      };
      const bound = hardening?.boundSteps(form, original);
      const isSlow = rewriteForTypebox(form.schema, hardening);
      const check = isSlow || form.namesInherited
        ? (value: unknown) => find(value).length === 0
        : makeCheck(form, codeGeneration, split);
      return bound?.({ check, issues }) ?? { check: orDeny(check), issues };
    },
  });
}

function makeCheck(
  form: NormalizedSchema,
  codeGeneration: boolean,
  split: SchemaSplitter | undefined,
): (value: unknown) => boolean {
  const { parts = [], whole }: Partial<SplitSchema> = split?.(form, customCheck) ?? {};
  // References are found in the context by their text, without a search through the schema.
  const context = Object.fromEntries(form.targets);
  const make = (schema: JsonSchema): (value: unknown) => boolean => {
    const interpret = (value: unknown): boolean => Check(context, schema, value);
    const compiled = codeGeneration ? compile(context, schema) : undefined;
    // A part is checked once: interpreted after all, it would be so at each level.
    if (compiled === undefined || !form.mayExhaustStack || whole !== undefined) {
      return compiled ?? interpret;
    }
    return (value) => {
      try {
        return compiled(value);
      } catch {
        return interpret(value);
      }
    };
  };
  for (const part of parts) part.compiled = make(part.schema);
  const check = make(form.schema);
  return whole?.(check) ?? check;
}

/** TypeBox's keyword for a custom check. `explain` writes the messages, not TypeBox. */
function customCheck(check: (value: unknown) => boolean): JsonSchemaObject {
  return { "~refine": [{ check, error: () => "" }] };
}

/** The compiled check; nothing where code may not be generated, or is too deep for the stack. */
function compile(
  context: Record<string, JsonSchema>,
  schema: JsonSchema,
): ((value: unknown) => boolean) | undefined {
  try {
    const built = Build(context, schema).Evaluate();
    return built.IsAccelerated() ? (value) => built.Check(value) : undefined;
  } catch (cause) {
    // By name: an error of another realm is not `instanceof` this one's EvalError.
    if (/^(Eval|Range)Error$/.test((cause as Error).name)) return undefined;
    throw new SyntaxError(`Cannot compile the schema: ${describeThrown(cause)}`, { cause });
  }
}

/** A value that exhausts the stack does not fit. */
function orDeny(check: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => {
    try {
      return check(value);
    } catch {
      return false;
    }
  };
}

/** The number of names from which a regular expression is no slower than a comparison of each. */
const MANY_NAMES = 32;

/**
 * Rewrites a normalised schema, in place.
 *
 * @param hardening The protections of a hardened engine.
 * @returns Whether there is a name in `patternProperties`, which TypeBox compiles itself, whose
 * steps depend on the text.
 */
function rewriteForTypebox(schema: JsonSchema, hardening: Hardening | undefined): boolean {
  if (typeof schema === "boolean") return false;
  let hasSlowNames = replacePatterns(schema, hardening);
  eachSchemaIn(schema, KEYWORDS["2020-12"], (part) => {
    hasSlowNames = rewriteForTypebox(part, hardening) || hasSlowNames;
  });
  closeByNames(schema);
  compareItems(schema);
  exemptArrays(schema);
  return hasSlowNames;
}

function replacePatterns(
  schema: Record<string, unknown>,
  hardening: Hardening | undefined,
): boolean {
  const { pattern, patternProperties } = schema;
  const compile = hardening?.compilePattern ?? ((source) => new RegExp(source, "u"));
  if (typeof pattern === "string") schema["pattern"] = compile(pattern);
  return Object.keys(patternProperties ?? {})
    .some((name) => hardening?.compilePattern(name).looks === Infinity);
}

function closeByNames(schema: Record<string, unknown>): void {
  const { patternProperties, additionalProperties, propertyNames } = schema;
  const known = Object.keys(schema["properties"] ?? {});
  const closed = additionalProperties === false && patternProperties === undefined &&
    propertyNames === undefined;
  if (!closed || known.length > MANY_NAMES) return;
  const required = schema["required"] as readonly string[] | undefined ?? [];
  // TypeBox only counts the properties if all of them are required.
  if (known.length === required.length && known.every((name) => required.includes(name))) return;
  delete schema["additionalProperties"];
  schema["propertyNames"] = known.length === 0 ? false : { enum: known };
}

function compareItems(schema: Record<string, unknown>): void {
  if (schema["uniqueItems"] !== true) return;
  delete schema["uniqueItems"];
  Object.assign(
    schema,
    customCheck((value) => !Array.isArray(value) || sameItems(value) === undefined),
  );
}

function exemptArrays(schema: Record<string, unknown>): void {
  const { type, unevaluatedProperties } = schema;
  if (unevaluatedProperties === undefined || type === "object") return;
  const moved: Record<string, unknown> = {};
  for (const keyword of Object.keys(schema)) {
    // References point to "#/$defs/…", so definitions stay in place.
    if (keyword === "$schema" || keyword === "$defs") continue;
    moved[keyword] = schema[keyword];
    delete schema[keyword];
  }
  const { unevaluatedProperties: _, ...rest } = moved;
  Object.assign(schema, { if: { type: "array" }, then: rest, else: moved });
}
