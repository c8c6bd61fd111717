/**
 * Converts one schema for one target, by an ordered table of passes.
 *
 * @module
 */

import { type ArgumentRewrite, rewriteOf } from "./argument_rewrite.ts";
import { detectDialect } from "../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../tool/mod.ts";
import { formOfKeyword, type FormSet, formsOf } from "./schema_forms.ts";
import { ALL_FORMS, KEYWORD_FORMS, type KeywordForm } from "./form_rules.ts";
import type { Target } from "./target.ts";
import {
  addItems,
  asTypedSchema,
  booleansToObjects,
  constToEnum,
  dropKeywords,
  enumToText,
  exclusiveToInclusive,
  tuplesToLists,
} from "./transform/keywords.ts";
import {
  closeObjects,
  nullToFlag,
  optionalToNullable,
  renameKeys,
} from "./transform/properties.ts";
import { distributeUnions, flattenRoot, oneOfToAnyOf } from "./transform/unions.ts";
import { inlineRefs, mergeAllOf, wrapReferences } from "./transform/merge_all_of.ts";
import { normalizeDraft, readsAlike } from "./transform/older_dialects.ts";
import { Trace } from "./transform/rewrite.ts";
import { hoistReferences, pruneDefinitions, resolverOf } from "./transform/references.ts";
import {
  type Context,
  type KeywordFate,
  type NodePass,
  Report,
  runPass,
  type SchemaLoss,
} from "./transform/report.ts";

/** The rules of a target for one side of a tool; `input` has its keywords. */
type SchemaPlan = Pick<Target, "input" | "formats" | "keys" | "typed" | "draft07" | "fallback">;

export type Conversion =
  | {
    readonly ok: true;
    readonly schema: JsonSchema;
    readonly losses: readonly SchemaLoss[];
    readonly rewrite: ArgumentRewrite | undefined;
    /** The forms it uses that the provider does not document. */
    readonly uncertain: readonly KeywordForm[];
  }
  | Refusal;

/** Why a schema or a tool is not sent: the broken rule, and the end of a sentence. */
export interface Refusal {
  readonly ok: false;
  readonly rule: string;
  readonly message: string;
}

/** A schema as every target begins with it. */
interface Analysis {
  /** In 2020-12. */
  readonly schema: JsonSchema;
  readonly forms: FormSet;
  /** Its `$schema` names draft-07. */
  readonly namesDraft07: boolean;
  /** It does not name its draft, and means the same when it is read as 2020-12. */
  readonly readsAlike: boolean;
  /** The trace of the rewriting to 2020-12. */
  readonly trace: Trace | undefined;
  /** The finished conversions, by plan and by whether losses are described: a few, in a list. */
  readonly conversions: { readonly key: object; readonly conversion: Conversion }[];
}

/** Made once per schema, for all targets. Tools are frozen, so a schema never changes. */
const analyses = new WeakMap<JsonSchemaObject, Analysis>();

function analyse(schema: JsonSchema): Analysis {
  const there = isObject(schema) ? analyses.get(schema) : undefined;
  if (there !== undefined) return there;
  const dialect = detectDialect(schema);
  const trace = dialect === "2020-12" ? undefined : new Trace();
  const current = trace === undefined ? schema : normalizeDraft(trace, schema, dialect);
  const namesDraft = isObject(schema) && Object.hasOwn(schema, "$schema");
  const analysis: Analysis = {
    schema: current,
    forms: formsOf(current),
    namesDraft07: dialect === "draft-07" && namesDraft,
    readsAlike: dialect === "draft-07" && !namesDraft && readsAlike(schema),
    trace,
    conversions: [],
  };
  if (isObject(schema)) analyses.set(schema, analysis);
  return analysis;
}

/** One step of a conversion: it replaces one form by others. */
interface Pass extends NodePass {
  /** The pass belongs to the plans that transform this form. */
  readonly form: KeywordForm;
  /**
   * `found`: runs if the schema uses the form. `produced`: also if an earlier pass has changed the
   * schema, which may have produced the form. `always`: runs on every schema.
   */
  readonly when: "found" | "produced" | "always";
  /** The pass is skipped where the plan transforms this form and the schema uses it. */
  readonly unless?: KeywordForm;
  /** Rewrites the schema as a whole, instead of each node. */
  whole?(schema: JsonSchema, context: Context): JsonSchema;
}

/** Forms whose passes move parts of the schema, which references along a path do not survive. */
const MOVING: readonly KeywordForm[] = [
  "root composition",
  "allOf",
  "anyOf with siblings",
  "optional property",
  "tuple",
  "$ref elsewhere",
];

/** Passes that say the same with other forms, in their order. */
const RESTRUCTURING: readonly Pass[] = [
  { form: "root composition", when: "found", whole: flattenRoot },
  { form: "$ref", when: "found", whole: inlineRefs },
  { form: "oneOf", when: "produced", enter: oneOfToAnyOf },
  { form: "allOf", when: "produced", whole: mergeAllOf },
  { form: "$ref with siblings", when: "produced", unless: "$ref", whole: wrapReferences },
  { form: "anyOf with siblings", when: "produced", whole: distributeUnions },
  { form: "tuple", when: "produced", leave: tuplesToLists },
  { form: "exclusive range", when: "produced", leave: exclusiveToInclusive },
  { form: "const", when: "produced", leave: constToEnum },
  { form: "boolean schema", when: "produced", whole: booleansToObjects },
  { form: "items missing", when: "produced", leave: addItems },
];

/** Passes after which arguments must be decoded, in their order. They follow the dropped keywords. */
const ENCODING: readonly Pass[] = [
  { form: "open object", when: "always", leave: closeObjects },
  { form: "optional property", when: "always", leave: optionalToNullable },
  { form: "type list", when: "always", enter: nullToFlag },
  { form: "enum scalar", when: "always", leave: enumToText },
];

/** Forms whose keyword may be left if its pass could not replace it. */
const DROPPED_IF_LEFT: ReadonlySet<KeywordForm> = new Set<KeywordForm>([
  "root composition",
  "oneOf",
  "allOf",
  "tuple",
  "exclusive range",
  "$ref",
]);

export class SchemaConverter {
  readonly #plan: SchemaPlan;
  readonly #fateOf: Context["fateOf"];
  /** The forms of which something is dropped or reported as ignored. */
  readonly #dropped: FormSet;
  /** The forms that are sent unchanged and reported nowhere. */
  readonly #unchanged: FormSet;
  /** The keys under which schemas store the conversions of this plan. */
  readonly #described: object;
  readonly #silent: object;

  constructor(plan: SchemaPlan) {
    this.#plan = plan;
    this.#fateOf = (keyword, node, isRoot) => {
      const form = formOfKeyword(keyword, node, isRoot);
      return form === "format" && plan.formats?.includes(String(node["format"])) === false
        ? "drop"
        : this.#fateOfForm(form);
    };
    this.#described = {};
    this.#silent = {};
    const { input, formats } = plan;
    this.#dropped = new Set(
      ALL_FORMS.filter((form) =>
        this.#fateOfForm(form) !== "keep" || (form === "format" && formats !== undefined)
      ),
    );
    this.#unchanged = new Set(
      ALL_FORMS.filter((form) =>
        input[form].action === "keep" && input[form].uncertain !== true &&
        !this.#dropped.has(form)
      ),
    );
  }

  /**
   * Converts a schema. The conversion is stored for as long as the schema lives.
   *
   * @param describe Write lost constraints into descriptions.
   */
  convert(schema: JsonSchema, describe: boolean): Conversion {
    const key = describe ? this.#described : this.#silent;
    try {
      const analysis = analyse(schema);
      const there = analysis.conversions.find((made) => made.key === key);
      if (there !== undefined) return there.conversion;
      const conversion = this.#asWritten(analysis, schema) ??
        this.#rewrite(analysis, schema, describe);
      analysis.conversions.push({ key, conversion });
      return conversion;
    } catch (error) {
      // A schema too large to inline, or of an unknown dialect: the other tools are exported.
      const message = error instanceof Error ? error.message : String(error);
      return { ok: false, rule: "schema", message };
    }
  }

  /** The conversion of a schema that needs no pass. */
  #asWritten(analysis: Analysis, schema: JsonSchema): Conversion | undefined {
    const { draft07, typed } = this.#plan;
    const verbatim = draft07 === true && analysis.namesDraft07;
    // Strict modes require every object to be spelled out, even if it uses no rejected form.
    const spellsOut = typed === true || this.#transforms("open object");
    if (
      !verbatim && (spellsOut || ![...analysis.forms].every((form) => this.#unchanged.has(form)))
    ) {
      return undefined;
    }
    const written = verbatim || (draft07 === true && analysis.readsAlike)
      ? schema
      : analysis.schema;
    const hasBooleans = this.#transforms("boolean schema") && analysis.forms.has("boolean schema");
    return {
      ok: true,
      // Such a target rejects boolean schemas in every draft, and objects mean the same.
      schema: verbatim && hasBooleans
        ? booleansToObjects(written, { trace: new Trace() })
        : written,
      losses: [],
      rewrite: undefined,
      uncertain: [],
    };
  }

  #rewrite(analysis: Analysis, first: JsonSchema, describe: boolean): Conversion {
    const { keys, typed, fallback } = this.#plan;
    const trace = new Trace(analysis.trace);
    const context: Context = {
      trace,
      resolve: resolverOf(analysis.schema),
      report: new Report(trace),
      describe,
      // The tool can be sent without strict mode, so nothing is weakened.
      refuses: fallback !== undefined,
      keys,
      fateOf: this.#fateOf,
    };
    const { forms } = analysis;
    let schema = analysis.schema;
    if (
      forms.has("$ref elsewhere") &&
      MOVING.some((form) => forms.has(form) && this.#transforms(form))
    ) {
      schema = hoistReferences(trace, schema);
    }
    schema = this.#run(RESTRUCTURING, schema, forms, context, analysis.schema);
    let left = schema === analysis.schema ? forms : formsOf(schema, trace);
    if ([...left].some((form) => this.#dropped.has(form))) {
      schema = runPass({ enter: dropKeywords }, schema, context);
      left = formsOf(schema, trace);
    }
    const uncertain = this.#uncertainForms(forms, left);
    if (!Array.isArray(uncertain)) return uncertain;
    schema = this.#run(ENCODING, schema, left, context, schema);
    // The legal keys of a target hold whatever its rule for the form says.
    if (left.has("odd property key")) schema = renameKeys(schema, context);
    if (schema !== analysis.schema) schema = pruneDefinitions(trace, schema);
    const rewrite = trace.hasMarks ? rewriteOf(schema, trace) : undefined;
    const losses = context.report.losses(first);
    if (typed === true) schema = runPass({ leave: asTypedSchema }, schema, context);
    return { ok: true, schema, losses, rewrite, uncertain };
  }

  /** Runs the passes of the plan whose form the schema uses, or may use by now. */
  #run(
    passes: readonly Pass[],
    schema: JsonSchema,
    forms: FormSet,
    context: Context,
    before: JsonSchema,
  ): JsonSchema {
    let current = schema;
    for (const { form, when, unless, whole, ...pass } of passes) {
      if (
        !this.#transforms(form) ||
        (unless !== undefined && forms.has(unless) && this.#transforms(unless))
      ) continue;
      const runs = when === "always" || forms.has(form) ||
        (when === "produced" && current !== before);
      if (runs) current = whole?.(current, context) ?? runPass(pass, current, context);
    }
    return current;
  }

  /**
   * Returns the forms that the provider does not document, or a refusal if a form is left that it
   * rejects. A form that a pass has replaced does not count as left.
   */
  #uncertainForms(forms: FormSet, left: FormSet): KeywordForm[] | Refusal {
    const found: KeywordForm[] = [];
    for (const form of ALL_FORMS) {
      if (!forms.has(form) && !left.has(form)) continue;
      const { action, uncertain } = this.#plan.input[form];
      if (action === "reject" && left.has(form)) {
        return { ok: false, rule: form, message: `it uses ${KEYWORD_FORMS[form]}` };
      }
      if (uncertain === true && (left.has(form) || action === "transform")) found.push(form);
    }
    return found;
  }

  #transforms(form: KeywordForm): boolean {
    return this.#plan.input[form].action === "transform";
  }

  #fateOfForm(form: KeywordForm): KeywordFate {
    const { action, enforcement, uncertain } = this.#plan.input[form];
    if (action === "drop" || (action === "transform" && DROPPED_IF_LEFT.has(form))) return "drop";
    return action === "keep" && enforcement === "ignored" && uncertain !== true
      ? "ignored"
      : "keep";
  }
}
