/**
 * The Ajv schema engine, for its custom keywords, its plugins, or its speed:
 * `new ToolRegistry({ engine: ajvEngine() })`. It needs a runtime that allows code generation.
 *
 * Schemas reach Ajv normalised to 2020-12, so one kind of Ajv instance serves both drafts. It has
 * the formats of the default engine, so that both accept the same dates; a plugin such as
 * `ajv-formats` may replace them.
 *
 * The two engines differ in two keywords of 2020-12, which few tools use: the items that `contains`
 * evaluates, and `unevaluatedProperties`, for which Ajv ignores properties with a name that every
 * object inherits (`constructor`).
 *
 * @module
 */

import { Ajv2020, type Format, type ValidateFunction } from "ajv/dist/2020.js";
import * as Formats from "typebox/format";
import * as schemas from "../../schema/mod.ts";
import type { Hardening } from "../../schema/mod.ts";
import {
  attemptOr,
  clip,
  type Issue,
  type JsonSchema,
  type JsonSchemaObject,
} from "../../tool/mod.ts";

/** The number of schemas per Ajv instance. An instance keeps parts of each schema in memory. */
const SCHEMAS_PER_INSTANCE = 500;
const MAX_MESSAGE = 200;
const NAME = "plue:schema";

/** Options for {@linkcode ajvEngine}. */
export interface AjvEngineOptions {
  /**
   * `assert` checks every format of draft-07, 2020-12 and the plugins. `annotate` checks no format.
   *
   * @default {"assert"}
   */
  readonly formats?: "assert" | "annotate";
  /** Called with each new Ajv instance, to add keywords and formats: `(ajv) => addFormats(ajv)`. */
  readonly plugins?: readonly ((ajv: Ajv2020) => unknown)[];
}

/** An Ajv instance, and the keywords and formats that were added to it. */
interface Instance {
  readonly ajv: Ajv2020;
  readonly keywords: readonly string[];
  readonly formats: { has(name: string): boolean };
  readonly test: (format: string, value: string) => boolean;
  readonly hardening: Hardening | undefined;
  left: number;
}

/**
 * Creates the engine.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ajvEngine } from "@plue/tools/ajv";
 *
 * const engine = ajvEngine({
 *   plugins: [(ajv) => ajv.addKeyword({ keyword: "even", validate: (_: true, n: number) => n % 2 === 0 })],
 * });
 * const pairs = engine.compile({ type: "integer", even: true }, "2020-12");
 *
 * assert.equal(pairs.check(4), true);
 * assert.equal(pairs.check(3), false);
 * ```
 */
export function ajvEngine(options: AjvEngineOptions = {}): schemas.SchemaEngine {
  // The instances with and without protections. Making one takes milliseconds.
  const instances = new Map<Hardening | undefined, Instance>();
  return schemas.withSchemaCheck({
    name: "ajv",
    compile(
      schema: JsonSchema,
      dialect: schemas.Dialect,
      hardening?: Hardening,
    ): schemas.SchemaValidator {
      try {
        let instance = instances.get(hardening);
        if (instance === undefined || instance.left-- <= 0) {
          instances.set(hardening, instance = makeInstance(options, hardening));
        }
        return compile(instance, schema, dialect);
      } catch (cause) {
        throw cannotCompile(cause);
      }
    },
  });
}

function makeInstance(
  { formats = "assert", plugins = [] }: AjvEngineOptions,
  hardening: Hardening | undefined,
): Instance {
  const code = hardening && {
    regExp: Object.assign((source: string) => hardening.compilePattern(source), {
      code: "compilePattern",
    }),
  };
  const ajv = new Ajv2020({
    strict: false,
    strictNumbers: true,
    logger: false,
    // Without this option, a tool's "constructor" or "toString" would always count as present.
    ownProperties: true,
    ...(code && { code }),
    // The registry has checked the schema already.
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
  });
  replaceKeywords(ajv);
  const before = new Set(Object.keys(ajv.RULES.keywords));
  if (formats === "assert") {
    for (const name of schemas.ASSERTED_FORMATS) {
      ajv.addFormat(name, (value: string) => Formats.Test(name, value));
    }
  }
  for (const plugin of plugins) plugin(ajv);
  const known = new Map(formats === "assert" ? Object.entries(ajv.formats) : []);
  return {
    ajv,
    // Omits the keywords that Ajv itself adds to the drafts, such as `nullable`.
    keywords: Object.keys(ajv.RULES.keywords).filter((name) => !before.has(name)),
    formats: known,
    test: (name, value) => fitsFormat(known.get(name), value, hardening),
    hardening,
    left: SCHEMAS_PER_INSTANCE,
  };
}

/** Replaces four keywords: Ajv's own differ from the default engine's, or take too long. */
function replaceKeywords(ajv: Ajv2020): void {
  for (const keyword of ["const", "enum", "uniqueItems", "multipleOf"]) ajv.removeKeyword(keyword);
  // Ajv's equality calls the `toString` of a value, and throws if it is not a function.
  ajv.addKeyword({ keyword: "const", compile: (wanted: unknown) => schemas.isOneOf([wanted]) });
  ajv.addKeyword({
    keyword: "enum",
    schemaType: "array",
    compile: (choices: unknown[]) => schemas.isOneOf(choices),
  });
  // Ajv compares all pairs of items: a list of 200,000 objects would take minutes.
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    validate: (on: boolean, items: readonly unknown[]) =>
      !on || schemas.sameItems(items) === undefined,
  });
  // To Ajv, 0.3 is not a multiple of 0.1.
  ajv.addKeyword({
    keyword: "multipleOf",
    type: "number",
    schemaType: "number",
    validate: (step: number, value: number) => schemas.isMultipleOf(value, step),
  });
}

function compile(
  instance: Instance,
  schema: JsonSchema,
  dialect: schemas.Dialect,
): schemas.SchemaValidator {
  const { ajv, keywords, formats, test, hardening } = instance;
  const form = nameByPattern(schemas.normalizeSchema(schema, dialect, { formats, keywords }));
  const interpreter = new schemas.SchemaInterpreter(form, test, hardening);
  // The interpreter caches verdicts, but does not support keywords of plugins.
  const caches = keywords.length === 0 && hardening?.repeatsParts(form) === true;
  const validate = caches
    ? (value: unknown) => interpreter.issues(value, Infinity).length === 0
    : compileWhole(ajv, form);
  const check = guarded(validate);
  const validator: schemas.SchemaValidator = {
    check,
    issues(value) {
      const found = interpreter.issues(value);
      return found.length > 0 ? found : ajvIssues(validate, check, value);
    },
  };
  return hardening?.boundSteps(form, caches, validator) ?? validator;
}

/**
 * Rewrites properties whose names every object inherits as patterns, in place: Ajv ignores
 * `__proto__`, and with patterns it checks only an object's own properties.
 */
function nameByPattern(form: schemas.NormalizedSchema): schemas.NormalizedSchema {
  rename(form.schema);
  return form;

  function rename(schema: JsonSchema): void {
    if (typeof schema === "boolean") return;
    schemas.eachSchemaIn(schema, schemas.KEYWORDS["2020-12"], rename);
    const { properties, patternProperties } = schema;
    if (!Object.keys(properties ?? {}).some((name) => name in Object.prototype)) return;
    const patterns: Record<string, unknown> = { ...patternProperties as JsonSchemaObject };
    const others: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(properties ?? {})) {
      const pattern = `^${name}$`;
      if (!(name in Object.prototype)) others[name] = member;
      else if (pattern in patterns) patterns[pattern] = { allOf: [patterns[pattern], member] };
      else patterns[pattern] = member;
    }
    Object.assign(schema, { properties: others, patternProperties: patterns });
  }
}

type Validate = ((value: unknown) => boolean) & Partial<Pick<ValidateFunction, "errors">>;

function compileWhole(ajv: Ajv2020, { schema }: schemas.NormalizedSchema): Validate {
  // Ajv resolves "#" only in a schema that has a name.
  const named = typeof schema === "object" ? { ...schema, $id: NAME } : schema;
  try {
    return ajv.compile(named);
  } finally {
    if (typeof named === "object") ajv.removeSchema(named);
  }
}

function cannotCompile(cause: unknown): SyntaxError {
  if (cause instanceof SyntaxError && cause.message.startsWith("Cannot ")) return cause;
  const reason = !(cause instanceof Error)
    ? "Ajv failed"
    : cause.name === "EvalError"
    ? "this runtime forbids code generation here, which Ajv needs; where it allows it while a " +
      "module loads, call the registry's compile() there, or use the default engine"
    : clip(cause.message, MAX_MESSAGE);
  return new SyntaxError(`Cannot compile the schema: ${reason}`, { cause });
}

function ajvIssues(
  validate: Validate,
  check: (value: unknown) => boolean,
  value: unknown,
): readonly Issue[] {
  const errors = check(value) ? [] : validate.errors ?? [];
  const found = errors.slice(0, schemas.MAX_ISSUES).map((error) => {
    const words = clip((error.message ?? "fit its schema").replace(/^must /, ""), MAX_MESSAGE);
    const path = error.instancePath;
    const message = `${path === "" ? "The value" : path} must ${words}`;
    return { path, keyword: error.keyword, expected: words, message };
  });
  return found.length > 0 ? found : [schemas.vagueIssue()];
}

/** A value that exhausts the stack or the steps, or makes a custom keyword throw, is invalid. */
function guarded(validate: Validate): (value: unknown) => boolean {
  return (value) => attemptOr(false, () => validate(value) === true);
}

function fitsFormat(
  format: Format | undefined,
  value: string,
  hardening: Hardening | undefined,
): boolean {
  if (format === undefined || format === true) return true;
  if (typeof format === "string") {
    return (hardening?.compilePattern(format) ?? new RegExp(format, "u")).test(value);
  }
  if (format instanceof RegExp) return format.test(value);
  if (typeof format === "function") return format(value) === true;
  const { type, validate } = format as { readonly type?: string; readonly validate?: unknown };
  // Formats of numbers do not apply to strings.
  return type === "number" || fitsFormat(validate as Format | undefined, value, hardening);
}
