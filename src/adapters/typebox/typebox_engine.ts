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
      const check = makeCheck(
        normalized.flat && needsOtherWords(normalized.schema)
          ? inOtherWords(normalizeSchema(schema, dialect, { formats: asserted }))
          : normalized,
        codeGeneration,
      );
      return {
        check: normalized.unbounded ? guarded(check) : check,
        issues(value) {
          const found = explain(normalized, value, testFormat);
          return found.length > 0 ? found : [vagueIssue()];
        },
      };
    },
  });
}

/** A copy for TypeBox's eyes; what is wrong is explained by the schema as it was. */
function inOtherWords(normalized: NormalizedSchema): NormalizedSchema {
  putInOtherWords(normalized.schema);
  return normalized;
}

function makeCheck(
  { schema, targets }: NormalizedSchema,
  codeGeneration: boolean,
): (value: unknown) => boolean {
  // References are found in the context by their text, without a search through the schema.
  const context = Object.fromEntries(targets);
  if (codeGeneration) {
    try {
      const built = Build(context, schema).Evaluate();
      if (built.IsAccelerated()) return (value) => built.Check(value);
    } catch (cause) {
      // By name: an error of another realm is not `instanceof` this one's EvalError.
      if (!(cause instanceof Error && cause.name === "EvalError")) {
        throw new SyntaxError(
          `Cannot compile the schema: ${cause instanceof Error ? cause.message : "TypeBox failed"}`,
          { cause },
        );
      }
    }
  }
  return (value) => Check(context, schema, value);
}

/** A value nested deep enough to exhaust the stack does not fit. */
function guarded(check: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => {
    try {
      return check(value);
    } catch {
      return false;
    }
  };
}
