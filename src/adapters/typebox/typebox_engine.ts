/**
 * The default schema engine, by TypeBox: it compiles if code may be generated, and interprets
 * otherwise, with the walk that explains failures: TypeBox's own interpreter would be a second one,
 * of 3.6 kB. Of TypeBox it uses the generator of code and the formats.
 *
 * It works around faults of TypeBox 1.4. It finds a `toString` in every object: schemas that name
 * such a property are interpreted. Other schemas are rewritten, with the same meaning, where TypeBox
 * makes an error or is slow:
 *
 * - It applies `unevaluatedProperties` to arrays. Instead: only if the value is no array.
 * - It looks for additional properties with a regular expression, which takes most of the time that
 *   a check takes. Instead: all names of the object are among these.
 * - It hashes all items for `uniqueItems`, in arithmetic of big integers, and hashes may collide.
 *   Instead: `sameItems`, as for all engines.
 *
 * @module
 */

import * as Formats from "typebox/format";
import { Guard } from "typebox/guard";
import {
  BuildContext,
  CheckContext,
  CreateFunction,
  GetExternal,
  GetFunctions,
  HasUnevaluated,
  ResetExternal,
  ResetFunctions,
  ResetUnique,
  Stack,
} from "typebox/schema";
import {
  ASSERTED_FORMATS,
  type Dialect,
  eachSchemaIn,
  type Hardening,
  isMultipleOf,
  KEYWORDS,
  type NormalizedSchema,
  normalizeSchema,
  sameItems,
  type SchemaEngine,
  SchemaInterpreter,
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
      // Of the original schema, not of the schema for TypeBox.
      let original: NormalizedSchema | undefined;
      let walk: SchemaInterpreter | undefined;
      const readOriginal = () => original ??= normalize();
      const find = (value: unknown, maxSteps?: number): readonly Issue[] =>
        (walk ??= new SchemaInterpreter(readOriginal(), Formats.Test, hardening))
          .issues(value, maxSteps);
      const issues = (value: unknown): readonly Issue[] => {
        const found = find(value);
        return found.length > 0 ? found : [vagueIssue()];
      };
      const bound = hardening?.boundSteps(form, readOriginal);
      const isSlow = rewriteForTypebox(form.schema, hardening) || form.namesInherited;
      const interpret = (value: unknown) => find(value, isSlow ? undefined : Infinity).length === 0;
      const check = isSlow || !codeGeneration
        ? interpret
        : compile(form, split, interpret) ?? interpret;
      return bound?.({ check, issues }) ?? { check, issues };
    },
  });
}

/** Compiles a schema, and its parts; nothing where code may not be generated. */
function compile(
  form: NormalizedSchema,
  split: SchemaSplitter | undefined,
  interpret: (value: unknown) => boolean,
): ((value: unknown) => boolean) | undefined {
  const { parts = [], whole }: Partial<SplitSchema> = split?.(form, customCheck) ?? {};
  // References are found in the context by their text, without a search through the schema.
  const context = Object.fromEntries(form.targets);
  let check: (value: unknown) => boolean;
  try {
    for (const part of parts) part.compiled = generate(context, part.schema);
    check = generate(context, form.schema);
  } catch (cause) {
    // Code may not be generated, or is too deep for the stack. By name: an error of another realm is
    // not `instanceof` this one's EvalError.
    if (/^(Eval|Range)Error$/.test((cause as Error).name)) return undefined;
    throw new SyntaxError(`Cannot compile the schema: ${describeThrown(cause)}`, { cause });
  }
  const isRetried = form.mayExhaustStack && whole === undefined;
  return orElse(whole?.(check) ?? check, isRetried ? interpret : () => false);
}

/** A check by another function if the first one throws: it exhausts the stack. */
function orElse(
  check: (value: unknown) => boolean,
  otherwise: (value: unknown) => boolean,
): (value: unknown) => boolean {
  return (value) => {
    try {
      return check(value);
    } catch {
      return otherwise(value);
    }
  };
}

/** TypeBox's keyword for a custom check. `SchemaInterpreter` writes the messages, not TypeBox. */
function customCheck(check: (value: unknown) => boolean): JsonSchemaObject {
  return { "~refine": [{ check, error: () => "" }] };
}

/** The functions that the generated code calls. */
const GUARD = {
  CodePointCount: Guard.CodePointCount,
  IsDeepEqual: Guard.IsDeepEqual,
  IsMultipleOf: isMultipleOf,
};

/** TypeBox's `Build`, without its interpreter. */
function generate(
  context: Record<string, JsonSchema>,
  schema: JsonSchema,
): (value: unknown) => boolean {
  ResetUnique();
  ResetExternal();
  ResetFunctions();
  const build = new BuildContext(HasUnevaluated(context, schema));
  const entry = CreateFunction(Stack(context, schema), build, schema, "value");
  const state = build.UseUnevaluated() ? "const context = new CheckContext(); " : "";
  const code = `${GetFunctions().join(";\n")}; return (value) => { ${state}return ${entry} }`;
  return new globalThis.Function("CheckContext", "Guard", "External", code)(
    CheckContext,
    GUARD,
    GetExternal().variables,
  );
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
  if (typeof pattern === "string" && hardening) {
    schema["pattern"] = hardening.compilePattern(pattern);
  }
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
