/**
 * The default schema engine: it generates code where that is allowed, and interprets elsewhere. The
 * formats are TypeBox's.
 */

import * as Formats from "typebox/format";
import {
  ASSERTED_FORMATS,
  CheckGenerator,
  type Dialect,
  type Hardening,
  type NormalizedSchema,
  normalizeSchema,
  type SchemaEngine,
  SchemaInterpreter,
  type SchemaValidator,
  vagueIssue,
  withSchemaCheck,
} from "../../schema/mod.ts";
import { describeThrown, type Issue, type JsonSchema } from "../../tool/mod.ts";

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
   * takes microseconds instead of some ten nanoseconds, and has the same verdicts.
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
      const form = normalizeSchema(schema, dialect, { formats: asserted });
      let interpreter: SchemaInterpreter | undefined;
      const find = (value: unknown, maxSteps?: number): readonly Issue[] =>
        (interpreter ??= new SchemaInterpreter(form, Formats.Test, hardening))
          .issues(value, maxSteps);
      const issues = (value: unknown): readonly Issue[] => {
        const found = find(value);
        return found.length > 0 ? found : [vagueIssue()];
      };
      const caches = hardening?.repeatsParts(form) ?? false;
      const check = (codeGeneration ? compile(form, caches, hardening) : undefined) ??
        ((value) => find(value, Infinity).length === 0);
      return hardening?.boundSteps(form, caches, { check, issues }) ?? { check, issues };
    },
  });
}

/** Compiles a schema; returns `undefined` where code may not be generated. */
function compile(
  form: NormalizedSchema,
  caches: boolean,
  hardening: Hardening | undefined,
): ((value: unknown) => boolean) | undefined {
  let run: (value: unknown) => boolean;
  try {
    run = new CheckGenerator(form, Formats.Test, hardening?.compilePattern, caches).generate();
  } catch (cause) {
    // Code may not be generated, or is too deep for the stack. By name: an error of another realm is
    // not `instanceof` this one's EvalError.
    if (/^(Eval|Range)Error$/.test((cause as Error).name)) return undefined;
    throw new SyntaxError(`Cannot compile the schema: ${describeThrown(cause)}`, { cause });
  }
  return (value) => {
    try {
      return run(value);
    } catch {
      // A value that exhausts the stack does not fit.
      return false;
    }
  };
}
