/**
 * The default schema engine, by TypeBox: compiles where code may be generated, interprets where
 * not. It wraps TypeBox so that none of three traps of TypeBox 1.4 can be stepped into:
 *
 * - Its answer to "may code be generated?" is cached. On Cloudflare Workers that is true while a
 *   module loads and false inside a request, where compiling would then throw.
 * - Its own fallback keeps one context for all calls, so properties that one value had evaluated
 *   are let through by `unevaluatedProperties: false` in the next value.
 * - It finds a `toString` in every object, and judges arrays as if they were objects
 *   (`other_words.ts`).
 *
 * @module
 */

import { Build, Check } from "typebox/schema";
import { explain } from "../../schema/explain.ts";
import { ASSERTED_FORMATS } from "../../schema/formats.ts";
import { vagueIssue } from "../../schema/issues.ts";
import type { Dialect, SchemaEngine, SchemaValidator } from "../../schema/mod.ts";
import { type NormalizedSchema, normalizeSchema } from "../../schema/normalize.ts";
import { repeatsParts, takeApart } from "../../schema/repeated_parts.ts";
import type { JsonSchema } from "../../tool/mod.ts";
import { testFormat } from "./formats.ts";
import { needsOtherWords, putInOtherWords } from "./other_words.ts";

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

const NO_FORMATS: ReadonlySet<string> = new Set();

/**
 * Makes the engine. It keeps nothing: two engines with the same options are alike.
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
  const asserted = formats === "assert" ? ASSERTED_FORMATS : NO_FORMATS;
  return Object.freeze({
    name: "typebox",
    compile(schema: JsonSchema, dialect: Dialect): SchemaValidator {
      const normalized = normalizeSchema(schema, dialect, { formats: asserted });
      const inOtherWords = normalized.flat && needsOtherWords(normalized.schema);
      const inParts = repeatsParts(normalized);
      // A second copy: what is wrong is explained by the schema as it was.
      const form = inOtherWords || inParts
        ? normalizeSchema(schema, dialect, { formats: asserted })
        : normalized;
      if (inOtherWords) putInOtherWords(form.schema);
      return {
        check: inParts ? makeCheckInParts(form, codeGeneration) : makeCheck(form, codeGeneration),
        issues(value) {
          const found = explain(normalized, value, testFormat);
          return found.length > 0 ? found : [vagueIssue()];
        },
      };
    },
  });
}

function makeCheck(
  { schema, targets, mayExhaustStack }: NormalizedSchema,
  codeGeneration: boolean,
): (value: unknown) => boolean {
  // References are found in the context by their text, without a search through the schema.
  const context = Object.fromEntries(targets);
  const interpret = (value: unknown): boolean => Check(context, schema, value);
  const compiled = codeGeneration ? compile(context, schema) : undefined;
  if (compiled === undefined) return mayExhaustStack ? orElse(interpret, deny) : interpret;
  return mayExhaustStack ? orElse(compiled, orElse(interpret, deny)) : compiled;
}

/** The check of a schema that must not look at a part of the value more than once. */
function makeCheckInParts(
  form: NormalizedSchema,
  codeGeneration: boolean,
): (value: unknown) => boolean {
  const { parts, whole } = takeApart(
    form,
    // TypeBox's keyword for a check of one's own.
    (check) => ({ "~refine": [{ check, error: () => "It does not fit" }] }),
  );
  const context = Object.fromEntries(form.targets);
  const make = (schema: JsonSchema): (value: unknown) => boolean =>
    (codeGeneration ? compile(context, schema) : undefined) ??
      ((value) => Check(context, schema, value));
  for (const part of parts) part.compiled = make(part.schema);
  return orElse(whole(make(form.schema)), deny);
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
    const name = cause instanceof Error ? cause.name : "";
    if (name === "EvalError" || name === "RangeError") return undefined;
    throw new SyntaxError(
      `Cannot compile the schema: ${cause instanceof Error ? cause.message : "TypeBox failed"}`,
      { cause },
    );
  }
}

/** What has no answer does not fit: a value nested deep enough to exhaust the stack. */
function deny(): boolean {
  return false;
}

/** `check`, and where it exhausts the stack `other`. */
function orElse(
  check: (value: unknown) => boolean,
  other: (value: unknown) => boolean,
): (value: unknown) => boolean {
  return (value) => {
    try {
      return check(value);
    } catch {
      return other(value);
    }
  };
}
