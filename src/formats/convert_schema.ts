/**
 * One schema for one target: which transforms it needs, and in which order.
 *
 * @module
 */

import { type ArgumentRewrite, rewriteOf } from "./argument_rewrite.ts";
import { detectDialect } from "../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../tool/mod.ts";
import { formOfKeyword, type FormSet, formsOf } from "./schema_forms.ts";
import {
  ALL_FORMS,
  KEYWORD_FORMS,
  type KeywordForm,
  type KeywordRule,
  type KeywordTable,
} from "./form_rules.ts";
import type { NameRule } from "../select/mod.ts";
import {
  addItems,
  asTypedSchema,
  booleansToObjectsIn,
  constToEnumIn,
  enumToTextIn,
  exclusiveToInclusiveIn,
  tuplesToListsIn,
} from "./transform/replace_keywords.ts";
import { closeObjectsIn, renameKeysIn } from "./transform/objects.ts";
import { dropKeywords, type KeywordFate } from "./transform/describe_constraints.ts";
import { distributeUnions, oneOfToAnyOfIn } from "./transform/unions.ts";
import { flattenRootIn } from "./transform/flatten_root.ts";
import { inlineRefsIn, wrapReferences } from "./transform/inline_refs.ts";
import { mergeAllOfIn } from "./transform/merge_all_of.ts";
import { normalizeDraftIn, readsAlike } from "./transform/older_dialects.ts";
import { nullToFlagIn, optionalToNullableIn } from "./transform/nullable.ts";
import { type Trace, traced } from "./transform/origin.ts";
import { hoistReferences, pruneDefinitions } from "./transform/definitions.ts";
import { Report, type SchemaLoss } from "./transform/report.ts";

/** What a target says about one side of a tool. */
export interface SchemaPlan {
  readonly keywords: KeywordTable;
  readonly formats?: readonly string[] | undefined;
  readonly keys?: NameRule | undefined;
  readonly typed?: boolean | undefined;
  readonly draft07?: boolean | undefined;
  /** A schema that cannot be expressed is sent in another field, so nothing is weakened here. */
  readonly fallsBack?: boolean | undefined;
}

export type Conversion =
  | {
    readonly ok: true;
    readonly schema: JsonSchema;
    readonly losses: readonly SchemaLoss[];
    readonly rewrite: ArgumentRewrite | undefined;
    /** The forms it uses that the provider does not document. */
    readonly uncertain: readonly KeywordForm[];
  }
  | { readonly ok: false; readonly rule: string; readonly message: string };

/** A schema as every target begins with it. */
interface Analysis {
  /** In 2020-12. */
  readonly schema: JsonSchema;
  readonly forms: FormSet;
  /** Its `$schema` says that it is draft-07. */
  readonly saysDraft07: boolean;
  /** It does not name its draft, and means the same when it is read as 2020-12. */
  readonly readsAlike: boolean;
  /** Where its parts were before it was rewritten in 2020-12. */
  readonly trace: Trace | undefined;
  /** What became of it, by plan and by whether losses are described: a few, in a list. */
  readonly conversions: { readonly key: object; readonly conversion: Conversion }[];
}

/** Made once per schema, for all targets. Tools are frozen, so a schema never changes. */
const analyses = new WeakMap<JsonSchemaObject, Analysis>();

function analyse(schema: JsonSchema): Analysis {
  const there = isObject(schema) ? analyses.get(schema) : undefined;
  if (there !== undefined) return there;
  const dialect = detectDialect(schema);
  const rewritten = dialect === "2020-12"
    ? undefined
    : traced(() => normalizeDraftIn(schema, dialect));
  const current = rewritten?.result ?? schema;
  const saysDraft = isObject(schema) && Object.hasOwn(schema, "$schema");
  const analysis: Analysis = {
    schema: current,
    forms: formsOf(current),
    saysDraft07: dialect === "draft-07" && saysDraft,
    readsAlike: dialect === "draft-07" && !saysDraft && readsAlike(schema),
    trace: rewritten?.trace,
    conversions: [],
  };
  if (isObject(schema)) analyses.set(schema, analysis);
  return analysis;
}

/** Forms whose keyword may be left if its transform could not replace it. */
const DROPPED_IF_LEFT: ReadonlySet<KeywordForm> = new Set<KeywordForm>([
  "root composition",
  "oneOf",
  "allOf",
  "tuple",
  "exclusive range",
  "$ref",
]);

/**
 * Makes the function that converts schemas by a plan. It remembers what it made, for as long as
 * the schema lives.
 */
export function schemaConverter(
  plan: SchemaPlan,
): (schema: JsonSchema, describe: boolean) => Conversion {
  const rule = (form: KeywordForm): KeywordRule => plan.keywords[form];
  const transforms = (form: KeywordForm): boolean => rule(form).action === "transform";
  const fateOfForm = (form: KeywordForm): KeywordFate => {
    const { action, enforcement, uncertain } = rule(form);
    if (action === "drop" || (action === "transform" && DROPPED_IF_LEFT.has(form))) return "drop";
    return action === "keep" && enforcement === "ignored" && uncertain !== true
      ? "ignored"
      : "keep";
  };
  const fateOf = (keyword: string, node: JsonSchemaObject, isRoot: boolean): KeywordFate => {
    const form = formOfKeyword(keyword, node, isRoot);
    return form === "format" && plan.formats?.includes(String(node["format"])) === false
      ? "drop"
      : fateOfForm(form);
  };
  /** The forms of which something is dropped or reported as ignored. */
  const dropping = new Set(
    ALL_FORMS.filter((form) =>
      fateOfForm(form) !== "keep" || (form === "format" && plan.formats !== undefined)
    ),
  );
  /** The forms that are sent unchanged and reported nowhere. */
  const plain = new Set(
    ALL_FORMS.filter((form) =>
      rule(form).action === "keep" && rule(form).uncertain !== true && !dropping.has(form)
    ),
  );
  // The keys of the conversions that are remembered.
  const described = {};
  const silent = {};

  /** Says the same with other forms. Each transform runs only where its form is. */
  function restructure(
    first: JsonSchema,
    forms: FormSet,
    report: Report,
    describe: boolean,
  ): JsonSchema {
    let schema = first;
    const needs = (form: KeywordForm): boolean => transforms(form) && forms.has(form);
    // A transform that merges schemas may produce forms that another one replaces.
    const mayNeed = (form: KeywordForm): boolean =>
      transforms(form) && (forms.has(form) || schema !== first);
    const moves = needs("root composition") || needs("allOf") || needs("anyOf with siblings") ||
      needs("optional property") || needs("tuple");
    if (forms.has("$ref elsewhere") && (moves || needs("$ref elsewhere"))) {
      schema = hoistReferences(schema);
    }
    if (needs("root composition")) schema = flattenRootIn(schema, report, describe);
    if (needs("$ref")) schema = inlineRefsIn(schema, report);
    if (mayNeed("oneOf")) schema = oneOfToAnyOfIn(schema, report);
    if (mayNeed("allOf")) schema = mergeAllOfIn(schema);
    if (mayNeed("$ref with siblings") && !needs("$ref")) schema = wrapReferences(schema);
    if (mayNeed("anyOf with siblings")) {
      schema = distributeUnions(schema, report, {
        willDrop: (keyword, node) => fateOf(keyword, node, false) === "drop",
        otherwise: plan.fallsBack === true ? "refuse" : describe ? "describe" : "drop",
      });
    }
    if (mayNeed("tuple")) schema = tuplesToListsIn(schema, report);
    if (mayNeed("exclusive range")) schema = exclusiveToInclusiveIn(schema, report);
    if (mayNeed("const")) schema = constToEnumIn(schema);
    if (mayNeed("boolean schema")) schema = booleansToObjectsIn(schema);
    if (mayNeed("items missing")) schema = addItems(schema);
    return schema;
  }

  function change(analysis: Analysis, first: JsonSchema, describe: boolean): Conversion {
    const report = new Report();
    let schema = restructure(analysis.schema, analysis.forms, report, describe);
    let left = schema === analysis.schema ? analysis.forms : formsOf(schema);
    if ([...left].some((form) => dropping.has(form))) {
      schema = dropKeywords(schema, report, describe, fateOf);
      left = formsOf(schema);
    }
    // Forms that the transforms have replaced are no reason to refuse a tool.
    const uncertain: KeywordForm[] = [];
    for (const form of ALL_FORMS) {
      if (!analysis.forms.has(form) && !left.has(form)) continue;
      const { action, uncertain: unsure } = rule(form);
      if (action === "reject" && left.has(form)) {
        return { ok: false, rule: form, message: `it uses ${KEYWORD_FORMS[form]}` };
      }
      if (unsure === true && (left.has(form) || action === "transform")) uncertain.push(form);
    }
    if (transforms("open object")) schema = closeObjectsIn(schema, report);
    const beforeMarks = schema;
    if (transforms("optional property")) schema = optionalToNullableIn(schema, report);
    if (transforms("type list")) schema = nullToFlagIn(schema, report);
    if (transforms("enum scalar")) schema = enumToTextIn(schema, report, describe);
    if (plan.keys !== undefined && left.has("odd property key")) {
      schema = renameKeysIn(schema, plan.keys, report);
    }
    if (schema !== analysis.schema) schema = pruneDefinitions(schema);
    const rewrite = schema === beforeMarks ? undefined : rewriteOf(schema);
    if (plan.typed === true) schema = asTypedSchema(schema);
    return { ok: true, schema, losses: report.losses(first), rewrite, uncertain };
  }

  function convert(analysis: Analysis, schema: JsonSchema, describe: boolean): Conversion {
    const verbatim = plan.draft07 === true && analysis.saysDraft07;
    // Strict modes want every object spelled out, also one that uses nothing they refuse.
    const spells = plan.typed === true || transforms("open object");
    if (verbatim || (!spells && [...analysis.forms].every((form) => plain.has(form)))) {
      const asWritten = verbatim || (plan.draft07 === true && analysis.readsAlike);
      const written = asWritten ? schema : analysis.schema;
      const hasBooleans = transforms("boolean schema") && analysis.forms.has("boolean schema");
      return {
        ok: true,
        // A target refuses booleans in every draft, and objects mean the same.
        schema: verbatim && hasBooleans ? booleansToObjectsIn(written) : written,
        losses: [],
        rewrite: undefined,
        uncertain: [],
      };
    }
    return traced(() => change(analysis, schema, describe), analysis.trace).result;
  }

  return (schema, describe) => {
    const key = describe ? described : silent;
    try {
      const analysis = analyse(schema);
      const there = analysis.conversions.find((made) => made.key === key);
      if (there !== undefined) return there.conversion;
      const conversion = convert(analysis, schema, describe);
      analysis.conversions.push({ key, conversion });
      return conversion;
    } catch (error) {
      // A schema too large to inline, or of an unknown dialect: the other tools are exported.
      const message = error instanceof Error ? error.message : String(error);
      return { ok: false, rule: "schema", message };
    }
  };
}
