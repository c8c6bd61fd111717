/**
 * One schema for one target: which transforms it needs, and in which order.
 *
 * @module
 */

import { detectDialect } from "../schema/mod.ts";
import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { rewriteOf } from "./argument_rewrite.ts";
import { formOfKeyword, formsOf, KEYWORD_FORMS, type KeywordForm } from "./keyword_forms.ts";
import type { NameRule } from "./names.ts";
import type { KeywordRule, KeywordTable } from "./profile.ts";
import { includeBounds } from "./transform/bounds.ts";
import { writeBooleans } from "./transform/booleans.ts";
import { closeAll } from "./transform/close_objects.ts";
import { enumerateConstants, writeEnums } from "./transform/constants.ts";
import { dropKeywords, type KeywordFate } from "./transform/describe_constraints.ts";
import { plainRoot } from "./transform/flatten_root.ts";
import { inlineReferences, wrapReferences } from "./transform/inline_refs.ts";
import { mergeEveryAllOf } from "./transform/merge_all_of.ts";
import { asDraft2020 } from "./transform/normalize_draft07.ts";
import { flagNulls, requireAll } from "./transform/nullable.ts";
import { hoistReferences, pruneDefinitions } from "./transform/references.ts";
import { renameEveryKey } from "./transform/rename_keys.ts";
import { Report, type SchemaLoss } from "./transform/report.ts";
import { isNode } from "./transform/schema_walk.ts";
import { addItems, listTuples } from "./transform/tuples.ts";
import { asTypedSchema } from "./transform/typed_schema.ts";
import { distributeUnions, loosenOneOf } from "./transform/unions.ts";
import type { ArgumentRewrite } from "./types.ts";

/** What a profile says about one side of a tool. */
export interface SchemaPlan {
  readonly keywords: KeywordTable;
  readonly formats?: readonly string[] | undefined;
  readonly keys?: NameRule | undefined;
  readonly typed?: boolean | undefined;
  readonly draft07?: boolean | undefined;
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
  readonly forms: ReadonlySet<KeywordForm>;
  /** Its `$schema` says that it is draft-07. */
  readonly saysDraft07: boolean;
}

/** Made once per schema, for all targets. Tools are frozen, so a schema never changes. */
const analyses = new WeakMap<JsonSchemaObject, Analysis>();

function analyse(schema: JsonSchema): Analysis {
  if (!isNode(schema)) return { schema, forms: formsOf(schema), saysDraft07: false };
  let analysis = analyses.get(schema);
  if (analysis === undefined) {
    const old = detectDialect(schema) === "draft-07";
    const current = old ? asDraft2020(schema) : schema;
    analysis = {
      schema: current,
      forms: formsOf(current),
      saysDraft07: old && Object.hasOwn(schema, "$schema"),
    };
    analyses.set(schema, analysis);
  }
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
  const plain = new Set<KeywordForm>();
  for (const form of Object.keys(KEYWORD_FORMS) as KeywordForm[]) {
    const { action, enforcement, uncertain } = rule(form);
    const unchanged = action === "keep" && enforcement !== "ignored" && uncertain !== true;
    if (unchanged && !(form === "format" && plan.formats !== undefined)) plain.add(form);
  }
  const described = new WeakMap<JsonSchemaObject, Conversion>();
  const silent = new WeakMap<JsonSchemaObject, Conversion>();

  const fateOf = (keyword: string, node: JsonSchemaObject, isRoot: boolean): KeywordFate => {
    const form = formOfKeyword(keyword, node, isRoot);
    const { action, enforcement, uncertain } = rule(form);
    if (action === "drop") return "drop";
    if (action === "transform" && DROPPED_IF_LEFT.has(form)) return "drop";
    if (form === "format" && plan.formats?.includes(String(node["format"])) === false) return "drop";
    return action === "keep" && enforcement === "ignored" && uncertain !== true
      ? "ignored"
      : "keep";
  };

  function restructure(
    first: JsonSchema,
    forms: ReadonlySet<KeywordForm>,
    report: Report,
    describe: boolean,
  ): JsonSchema {
    const needs = (form: KeywordForm): boolean =>
      forms.has(form) && rule(form).action === "transform";
    let schema = first;
    const moves = needs("root composition") || needs("allOf") || needs("anyOf with siblings") ||
      needs("optional property") || needs("tuple");
    if (forms.has("$ref elsewhere") && (moves || needs("$ref elsewhere"))) {
      schema = hoistReferences(schema);
    }
    if (needs("root composition")) schema = plainRoot(schema, report, describe);
    if (needs("$ref")) schema = inlineReferences(schema, report);
    if (needs("oneOf") || (needs("root composition") && rule("oneOf").action === "transform")) {
      schema = loosenOneOf(schema, report);
    }
    if (needs("allOf") || (rule("allOf").action === "transform" && schema !== first)) {
      schema = mergeEveryAllOf(schema);
    }
    if (needs("$ref with siblings") && !needs("$ref")) schema = wrapReferences(schema);
    if (rule("anyOf with siblings").action === "transform") {
      schema = distributeUnions(schema, report);
    }
    if (needs("tuple")) schema = listTuples(schema, report);
    if (needs("exclusive range")) schema = includeBounds(schema, report);
    if (needs("const") || (schema !== first && rule("const").action === "transform")) {
      schema = enumerateConstants(schema);
    }
    if (rule("boolean schema").action === "transform") schema = writeBooleans(schema);
    if (rule("items missing").action === "transform") schema = addItems(schema);
    return schema;
  }

  function change(analysis: Analysis, first: JsonSchema, describe: boolean): Conversion {
    const report = new Report();
    let schema = restructure(analysis.schema, analysis.forms, report, describe);
    schema = dropKeywords(schema, report, describe, fateOf);
    // What the transforms did away with is no reason to refuse a tool any more.
    const left = schema === analysis.schema ? analysis.forms : formsOf(schema);
    const uncertain: KeywordForm[] = [];
    for (const form of new Set([...analysis.forms, ...left])) {
      const { action, uncertain: unsure } = rule(form);
      if (action === "reject" && left.has(form)) {
        return { ok: false, rule: form, message: `it uses ${KEYWORD_FORMS[form]}` };
      }
      if (unsure === true && (left.has(form) || action === "transform")) uncertain.push(form);
    }
    if (rule("open object").action === "transform") schema = closeAll(schema, report);
    if (rule("optional property").action === "transform") schema = requireAll(schema, report);
    if (rule("type list").action === "transform") schema = flagNulls(schema, report);
    if (rule("enum scalar").action === "transform") schema = writeEnums(schema, report);
    if (plan.keys !== undefined && analysis.forms.has("odd property key")) {
      schema = renameEveryKey(schema, plan.keys, report);
    }
    if (schema !== analysis.schema) schema = pruneDefinitions(schema);
    const rewrite = rewriteOf(schema);
    if (plan.typed === true) schema = asTypedSchema(schema);
    return { ok: true, schema, losses: report.losses(first), rewrite, uncertain };
  }

  function convert(schema: JsonSchema, describe: boolean): Conversion {
    const analysis = analyse(schema);
    const verbatim = plan.draft07 === true && analysis.saysDraft07;
    if (verbatim || (plan.typed !== true && [...analysis.forms].every((form) => plain.has(form)))) {
      return {
        ok: true,
        schema: verbatim ? schema : analysis.schema,
        losses: NO_LOSSES,
        rewrite: undefined,
        uncertain: NO_FORMS,
      };
    }
    return change(analysis, schema, describe);
  }

  return (schema, describe) => {
    if (!isNode(schema)) return convert(schema, describe);
    const cache = describe ? described : silent;
    let conversion = cache.get(schema);
    if (conversion === undefined) {
      try {
        conversion = convert(schema, describe);
      } catch (error) {
        // A schema too large to inline, or of an unknown dialect: the other tools are exported.
        const message = error instanceof Error ? error.message : String(error);
        conversion = { ok: false, rule: "schema", message };
      }
      cache.set(schema, conversion);
    }
    return conversion;
  };
}
