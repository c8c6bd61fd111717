/** Converts one schema for one target, by an ordered table of passes. */

import { type ArgumentRewrite, rewriteOf } from "./argument_rewrite.ts";
import { detectDialect } from "../schema/mod.ts";
import {
  describeThrown,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  once,
} from "../tool/mod.ts";
import { formOfKeyword, type FormSet, formsOf } from "./schema_forms.ts";
import { ALL_FORMS, KEYWORD_FORMS, type KeywordForm } from "./form_rules.ts";
import type { Target } from "./target.ts";
import * as keywords from "./transform/keywords.ts";
import * as properties from "./transform/properties.ts";
import * as unions from "./transform/unions.ts";
import * as merging from "./transform/merge_all_of.ts";
import { isUnchanged, normalizeDraft } from "./transform/older_dialects.ts";
import { Trace } from "./transform/rewrite.ts";
import { hoistReferences, pruneDefinitions, resolverOf } from "./transform/references.ts";
import * as reports from "./transform/report.ts";

/** The rules of a target for the arguments or the result; `input` has the rules of keywords. */
type SchemaPlan = Pick<Target, "input" | "formats" | "keys" | "typed" | "draft07" | "fallback">;

export type Conversion =
  | {
    readonly ok: true;
    readonly schema: JsonSchema;
    readonly losses: readonly reports.SchemaLoss[];
    readonly rewrite: ArgumentRewrite | undefined;
    /** The forms (see `KEYWORD_FORMS`) of the schema that the provider does not document. */
    readonly uncertain: readonly KeywordForm[];
  }
  | Refusal;

/** The reason why a schema or a tool is not sent, as the end of a sentence. */
export interface Refusal {
  readonly ok: false;
  readonly rule: string;
  readonly message: string;
}

/** Replaces one keyword form by others, for targets that transform the form. */
interface Pass extends reports.NodePass {
  readonly form: KeywordForm;
  /**
   * `found`: runs if the schema uses the form. `produced`: also if an earlier pass has changed the
   * schema, which may have produced the form.
   */
  readonly when: "found" | "produced" | "always";
  /** The pass is skipped if the target transforms this form and the schema uses it. */
  readonly unless?: KeywordForm;
  /** True if the pass moves parts of the schema, which would break references by path. */
  readonly moves?: true;
  /** True if a keyword that the pass could not replace is dropped. */
  readonly drops?: true;
  /** Rewrites the whole schema, instead of each node. */
  whole?(schema: JsonSchema, context: reports.Context): JsonSchema;
}

/** Passes whose result has the same meaning as their input, in their order. */
const RESTRUCTURING: readonly Pass[] = [
  { form: "root composition", when: "found", moves: true, drops: true, whole: unions.flattenRoot },
  { form: "$ref", when: "found", drops: true, whole: merging.inlineRefs },
  { form: "oneOf", when: "produced", drops: true, enter: unions.oneOfToAnyOf },
  { form: "allOf", when: "produced", moves: true, drops: true, whole: merging.mergeAllOf },
  { form: "$ref with siblings", when: "produced", unless: "$ref", whole: merging.wrapReferences },
  { form: "anyOf with siblings", when: "produced", moves: true, whole: unions.distributeUnions },
  { form: "tuple", when: "produced", moves: true, drops: true, leave: keywords.tuplesToLists },
  { form: "exclusive range", when: "produced", drops: true, leave: keywords.exclusiveToInclusive },
  { form: "const", when: "produced", leave: keywords.constToEnum },
  { form: "boolean schema", when: "produced", whole: keywords.booleansToObjects },
  { form: "items missing", when: "produced", leave: keywords.addItems },
];

/** Passes after which arguments must be decoded, in their order, after keywords were dropped. */
const ENCODING: readonly Pass[] = [
  { form: "open object", when: "always", leave: properties.closeObjects },
  { form: "optional property", when: "always", moves: true, leave: properties.optionalToNullable },
  { form: "type list", when: "always", enter: properties.nullToFlag },
  { form: "enum scalar", when: "always", leave: keywords.enumToText },
];

const PASSES: readonly Pass[] = [...RESTRUCTURING, ...ENCODING];

const DROPPED_IF_LEFT = new Set(PASSES.filter(({ drops }) => drops).map(({ form }) => form));

function unchanged(schema: JsonSchema): Conversion {
  return { ok: true, schema, losses: [], rewrite: undefined, uncertain: [] };
}

export class SchemaConverter {
  readonly #plan: SchemaPlan;
  readonly #fateOf: reports.Context["fateOf"];
  /** The forms with dropped or ignored keywords. */
  readonly #dropped: FormSet;
  /** The forms that are sent unchanged, without a report. */
  readonly #unchanged: FormSet;
  /** The finished conversions, with and without the losses in descriptions. */
  readonly #described: WeakMap<JsonSchemaObject, Conversion> = new WeakMap();
  readonly #silent: WeakMap<JsonSchemaObject, Conversion> = new WeakMap();

  constructor(plan: SchemaPlan) {
    this.#plan = plan;
    this.#fateOf = (keyword, node, isRoot) => {
      const form = formOfKeyword(keyword, node, isRoot);
      return form === "format" && plan.formats?.includes(String(node["format"])) === false
        ? "drop"
        : this.#fateOfForm(form);
    };
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

  /** @param describe True to add lost constraints to descriptions. */
  convert(schema: JsonSchema, describe: boolean): Conversion {
    const convert = (): Conversion => {
      try {
        return this.#convert(schema, describe);
      } catch (error) {
        // The schema is too large, or of an unknown dialect. The other tools are exported.
        return { ok: false, rule: "schema", message: describeThrown(error) };
      }
    };
    return isObject(schema)
      ? once(describe ? this.#described : this.#silent, schema, convert)
      : convert();
  }

  #convert(first: JsonSchema, describe: boolean): Conversion {
    const trace = new Trace();
    const dialect = detectDialect(first);
    const schema = dialect === "2020-12" ? first : normalizeDraft(trace, first, dialect);
    const forms = formsOf(schema);
    const { draft07, typed } = this.#plan;
    const isDraft07 = draft07 === true && dialect === "draft-07";
    if (isDraft07 && isObject(first) && Object.hasOwn(first, "$schema")) {
      const hasBooleans = this.#transforms("boolean schema") && forms.has("boolean schema");
      return unchanged(hasBooleans ? keywords.booleansToObjects(first, { trace }) : first);
    }
    // Strict modes rewrite every object, even without a rejected form.
    const spellsOut = typed === true || this.#transforms("open object");
    return !spellsOut && [...forms].every((form) => this.#unchanged.has(form))
      ? unchanged(isDraft07 && isUnchanged(first) ? first : schema)
      : this.#rewrite(trace, first, schema, forms, describe);
  }

  #rewrite(
    trace: Trace,
    first: JsonSchema,
    start: JsonSchema,
    forms: FormSet,
    describe: boolean,
  ): Conversion {
    const { keys, typed, fallback } = this.#plan;
    const context: reports.Context = {
      trace,
      resolve: resolverOf(start),
      report: new reports.Report(trace),
      describe,
      // A schema that would be weakened is rejected, and its tool is sent without strict mode.
      refuses: fallback !== undefined,
      keys,
      fateOf: this.#fateOf,
    };
    let schema = start;
    const moves = this.#transforms("$ref elsewhere") ||
      PASSES.some(({ moves, form }) => moves && forms.has(form) && this.#transforms(form));
    if (moves && forms.has("$ref elsewhere")) schema = hoistReferences(trace, schema);
    schema = this.#run(RESTRUCTURING, schema, forms, context, start);
    let left = schema === start ? forms : formsOf(schema, trace);
    if ([...left].some((form) => this.#dropped.has(form))) {
      schema = reports.runPass({ enter: keywords.dropKeywords }, schema, context);
      left = formsOf(schema, trace);
    }
    const uncertain = this.#uncertainForms(forms, left);
    if (!Array.isArray(uncertain)) return uncertain;
    schema = this.#run(ENCODING, schema, left, context, schema);
    // Keys are renamed even if the target has no rule for this form.
    if (left.has("odd property key")) schema = properties.renameKeys(schema, context);
    if (schema !== start) schema = pruneDefinitions(trace, schema);
    const rewrite = trace.hasMarks ? rewriteOf(schema, trace) : undefined;
    const losses = context.report.losses(first);
    if (typed === true) {
      schema = reports.runPass({ leave: keywords.asTypedSchema }, schema, context);
    }
    return { ok: true, schema, losses, rewrite, uncertain };
  }

  #run(
    passes: readonly Pass[],
    schema: JsonSchema,
    forms: FormSet,
    context: reports.Context,
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
      if (runs) current = whole?.(current, context) ?? reports.runPass(pass, current, context);
    }
    return current;
  }

  /** Returns the undocumented forms; a refusal if a rejected form is left. */
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

  #fateOfForm(form: KeywordForm): reports.KeywordFate {
    const { action, enforcement, uncertain } = this.#plan.input[form];
    if (action === "drop" || (action === "transform" && DROPPED_IF_LEFT.has(form))) return "drop";
    return action === "keep" && enforcement === "ignored" && uncertain !== true
      ? "ignored"
      : "keep";
  }
}
