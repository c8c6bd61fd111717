/**
 * One schema for one target: which transforms it needs, and in which order.
 *
 * @module
 */

import { detectDialect } from "../schema/mod.ts";
import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { rewriteOf } from "./argument_rewrite.ts";
import { FormSet } from "./form_set.ts";
import { formOfKeyword, KEYWORD_FORMS, type KeywordForm } from "./keyword_forms.ts";
import type { NameRule } from "./names.ts";
import type { KeywordRule, KeywordTable } from "./profile.ts";
import { formsOf } from "./schema_forms.ts";
import { includeBounds } from "./transform/bounds.ts";
import { writeBooleans } from "./transform/booleans.ts";
import { closeAll } from "./transform/close_objects.ts";
import { enumerateConstants, writeEnums } from "./transform/constants.ts";
import { dropKeywords, type KeywordFate } from "./transform/describe_constraints.ts";
import { distributeUnions } from "./transform/distribute_unions.ts";
import { plainRoot } from "./transform/flatten_root.ts";
import { inlineReferences, wrapReferences } from "./transform/inline_refs.ts";
import { mergeEveryAllOf } from "./transform/merge_all_of.ts";
import { asDraft2020, readsAlike } from "./transform/normalize_draft07.ts";
import { flagNulls, requireAll } from "./transform/nullable.ts";
import { type Trace, traced } from "./transform/origin.ts";
import { hoistReferences, pruneDefinitions } from "./transform/references.ts";
import { renameEveryKey } from "./transform/rename_keys.ts";
import { Report, type SchemaLoss } from "./transform/report.ts";
import { isNode } from "./transform/schema_walk.ts";
import { addItems, listTuples } from "./transform/tuples.ts";
import { asTypedSchema } from "./transform/typed_schema.ts";
import { loosenOneOf } from "./transform/unions.ts";
import type { ArgumentRewrite } from "./types.ts";

/** What a profile says about one side of a tool. */
export interface SchemaPlan {
  readonly keywords: KeywordTable;
  readonly formats?: readonly string[] | undefined;
  readonly keys?: NameRule | undefined;
  readonly typed?: boolean | undefined;
  readonly draft07?: boolean | undefined;
  /** A schema that it cannot hold is sent elsewhere: better no schema than half a one. */
  readonly fallsBack?: boolean | undefined;
}

/** What became of a schema. */
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
  /** It is draft-07 by its looks only, and who takes it for 2020-12 reads the same. */
  readonly readsAlike: boolean;
  /** Where its parts were before it was rewritten in 2020-12. */
  readonly trace: Trace | undefined;
  /** What became of it, by plan and by whether losses are described: a few, in a list. */
  readonly conversions: { readonly key: object; readonly conversion: Conversion }[];
}

/** Made once per schema, for all targets. Tools are frozen, so a schema never changes. */
const analyses = new WeakMap<JsonSchemaObject, Analysis>();

function analyse(schema: JsonSchema): Analysis {
  const there = isNode(schema) ? analyses.get(schema) : undefined;
  if (there !== undefined) return there;
  const old = detectDialect(schema) === "draft-07";
  const rewritten = old ? traced(() => asDraft2020(schema)) : undefined;
  const current = rewritten?.result ?? schema;
  const saysDraft = isNode(schema) && Object.hasOwn(schema, "$schema");
  const analysis: Analysis = {
    schema: current,
    forms: formsOf(current),
    saysDraft07: old && saysDraft,
    readsAlike: old && !saysDraft && readsAlike(schema),
    trace: rewritten?.trace,
    conversions: [],
  };
  if (isNode(schema)) analyses.set(schema, analysis);
  return analysis;
}

const NO_LOSSES: readonly SchemaLoss[] = Object.freeze([]);
const NO_FORMS: readonly KeywordForm[] = Object.freeze([]);

/** Forms whose keyword may be left after its transform, where that found no way. */
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
  const plain = new FormSet();
  for (const form of Object.keys(KEYWORD_FORMS) as KeywordForm[]) {
    const { action, enforcement, uncertain } = rule(form);
    const unchanged = action === "keep" && enforcement !== "ignored" && uncertain !== true;
    if (unchanged && !(form === "format" && plan.formats !== undefined)) plain.add(form);
  }
  const described = {};
  const silent = {};

  const fateOf = (keyword: string, node: JsonSchemaObject, isRoot: boolean): KeywordFate => {
    const form = formOfKeyword(keyword, node, isRoot);
    const { action, enforcement, uncertain } = rule(form);
    if (action === "drop") return "drop";
    if (action === "transform" && DROPPED_IF_LEFT.has(form)) return "drop";
    if (form === "format" && plan.formats?.includes(String(node["format"])) === false) {
      return "drop";
    }
    return action === "keep" && enforcement === "ignored" && uncertain !== true
      ? "ignored"
      : "keep";
  };

  const transforms = (form: KeywordForm): boolean => rule(form).action === "transform";
  /** The forms of which something is dropped or reported as ignored. */
  const dropping = new FormSet();
  for (const form of Object.keys(KEYWORD_FORMS) as KeywordForm[]) {
    const { action, enforcement, uncertain } = rule(form);
    if (
      action === "drop" || (transforms(form) && DROPPED_IF_LEFT.has(form)) ||
      (action === "keep" && enforcement === "ignored" && uncertain !== true) ||
      (form === "format" && plan.formats !== undefined)
    ) dropping.add(form);
  }

  /** Says the same with other forms. Each transform runs only where its form is. */
  function restructure(
    first: JsonSchema,
    forms: FormSet,
    report: Report,
    describe: boolean,
  ): JsonSchema {
    let schema = first;
    const needs = (form: KeywordForm): boolean => transforms(form) && forms.has(form);
    // A transform that merges schemas may bring forth what others are there to do away with.
    const mayNeed = (form: KeywordForm): boolean =>
      transforms(form) && (forms.has(form) || schema !== first);
    const moves = needs("root composition") || needs("allOf") || needs("anyOf with siblings") ||
      needs("optional property") || needs("tuple");
    if (forms.has("$ref elsewhere") && (moves || needs("$ref elsewhere"))) {
      schema = hoistReferences(schema);
    }
    if (needs("root composition")) schema = plainRoot(schema, report, describe);
    if (needs("$ref")) schema = inlineReferences(schema, report);
    if (mayNeed("oneOf")) schema = loosenOneOf(schema, report);
    if (mayNeed("allOf")) schema = mergeEveryAllOf(schema);
    if (mayNeed("$ref with siblings") && !needs("$ref")) schema = wrapReferences(schema);
    if (mayNeed("anyOf with siblings")) {
      schema = distributeUnions(schema, report, {
        willDrop: (keyword, node) => fateOf(keyword, node, false) === "drop",
        otherwise: plan.fallsBack === true ? "refuse" : describe ? "describe" : "drop",
      });
    }
    if (mayNeed("tuple")) schema = listTuples(schema, report);
    if (mayNeed("exclusive range")) schema = includeBounds(schema, report);
    if (mayNeed("const")) schema = enumerateConstants(schema);
    if (mayNeed("boolean schema")) schema = writeBooleans(schema);
    if (mayNeed("items missing")) schema = addItems(schema);
    return schema;
  }

  function change(analysis: Analysis, first: JsonSchema, describe: boolean): Conversion {
    const report = new Report();
    let schema = restructure(analysis.schema, analysis.forms, report, describe);
    let left = schema === analysis.schema ? analysis.forms : formsOf(schema);
    if (left.intersects(dropping)) {
      schema = dropKeywords(schema, report, describe, fateOf);
      left = formsOf(schema);
    }
    // What the transforms did away with is no reason to refuse a tool any more.
    const uncertain: KeywordForm[] = [];
    for (const form of new Set([...analysis.forms, ...left])) {
      const { action, uncertain: unsure } = rule(form);
      if (action === "reject" && left.has(form)) {
        return { ok: false, rule: form, message: `it uses ${KEYWORD_FORMS[form]}` };
      }
      if (unsure === true && (left.has(form) || action === "transform")) uncertain.push(form);
    }
    if (transforms("open object")) schema = closeAll(schema, report);
    const beforeMarks = schema;
    if (transforms("optional property")) schema = requireAll(schema, report);
    if (transforms("type list")) schema = flagNulls(schema, report);
    if (transforms("enum scalar")) schema = writeEnums(schema, report, describe);
    if (plan.keys !== undefined && left.has("odd property key")) {
      schema = renameEveryKey(schema, plan.keys, report);
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
    if (verbatim || (!spells && analysis.forms.isSubsetOf(plain))) {
      const asWritten = verbatim || (plan.draft07 === true && analysis.readsAlike);
      const written = asWritten ? schema : analysis.schema;
      const hasBooleans = transforms("boolean schema") && analysis.forms.has("boolean schema");
      return {
        ok: true,
        // Whoever refuses these refuses them in every draft, and an object says the same there.
        schema: verbatim && hasBooleans ? writeBooleans(written) : written,
        losses: NO_LOSSES,
        rewrite: undefined,
        uncertain: NO_FORMS,
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
