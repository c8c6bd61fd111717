/** Converts one tool for one target: its schemas, its fields, and the losses. */

import { checkWithoutEngine } from "../schema/mod.ts";
import {
  attemptOr,
  defined,
  deriveAnnotations,
  HINTS,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  once,
  pointerStep,
  type Tool,
} from "../tool/mod.ts";
import { type ArgumentRewrite, encodeArguments } from "./argument_rewrite.ts";
import { type Refusal, SchemaConverter } from "./convert_schema.ts";
import type { ToolEncoding, WireName } from "./export_names.ts";
import type { ExportOptions, Loss, LossSide } from "./export_options.ts";
import type { KeywordForm } from "./form_rules.ts";
import { hintsOf, type ProviderHints } from "./provider_hints.ts";
import {
  type Feature,
  HINT_FEATURES,
  type ObjectSchema,
  type Target,
  type ToolView,
  type WireExample,
} from "./target.ts";
import { rebaseReferences } from "./transform/references.ts";
import type { SchemaLoss } from "./transform/report.ts";

interface Converters {
  readonly input: SchemaConverter;
  readonly output: SchemaConverter | undefined;
}

const converters = new WeakMap<Target, Converters>();

function convertersOf(target: Target): Converters {
  return once(converters, target, () => {
    const { output, typed, draft07 } = target;
    // Keys are not renamed in results, because the tool writes them.
    const results = output && { input: output.keywords, ...defined({ typed, draft07 }) };
    return { input: new SchemaConverter(target), output: results && new SchemaConverter(results) };
  });
}

export interface ConvertedTool {
  readonly ok: true;
  readonly view: ToolView;
  readonly encoding: ToolEncoding;
  readonly losses: readonly Loss[];
  /** The forms (see `KEYWORD_FORMS`) of the schemas that the provider does not document. */
  readonly uncertain: readonly KeywordForm[];
}

export function convertTool(
  tool: Tool,
  name: WireName,
  rules: Target,
  options: ExportOptions,
  instead?: Refusal,
): ConvertedTool | Refusal {
  const hints = hintsOf(tool);
  const describe = (options.onLoss ?? "describe") === "describe";
  const strict = rules.fallback !== undefined;
  const combination = strict
    ? rules.combinations?.find((rule) => rule.effect === "not strict" && rule.applies(hints))
    : undefined;
  if (combination !== undefined) {
    return { ok: false, rule: combination.name, message: combination.message };
  }
  const converted = convertersOf(rules).input.convert(tool.parameters, describe);
  if (!converted.ok) return converted;
  const parameters = converted.schema;
  if (!isObject(parameters)) {
    return { ok: false, rule: "schema", message: "no arguments can satisfy its parameters" };
  }
  const losses: Loss[] = [];
  if (instead !== undefined) {
    const path = hints.strict === true ? "/meta/provider/strict" : "";
    const message = `it is sent without strict mode: ${instead.message}`;
    losses.push({ ...fieldLoss(tool, path, "strict", message), grade: "weakened" });
  }
  const add = (side: LossSide, found: readonly SchemaLoss[]): void => {
    for (const loss of found) losses.push({ tool: tool.id, side, ...loss });
  };
  add("input", converted.losses);
  const result = convertReturns(tool, rules, describe);
  add("output", result.losses);
  const fields = describeTool(tool, rules);
  losses.push(...fields.losses);

  const { rewrite } = converted;
  const view: ToolView = {
    tool,
    name: name.name,
    namespace: name.namespace,
    description: fields.description,
    sendsDescription: hints.description !== null || fields.description !== tool.description,
    // `defineTool` requires an object root.
    parameters: parameters as ObjectSchema,
    returns: result.schema,
    strict,
    examples: rules.features.includes("examples")
      ? exportExamples(tool, parameters, rewrite, losses)
      : [],
    hints,
    extra: fields.extra,
    options,
  };
  const searches = hints.toolSearch === true && rules.toolSearch !== undefined;
  const encoding: ToolEncoding = Object.freeze({
    id: tool.id,
    ...name,
    strict,
    ...(rewrite && { input: rewrite }),
    sendsReturns: result.schema !== undefined,
    wrapsResult: result.wraps,
    ...(searches && { searches }),
  });
  return {
    ...{ ok: true, view, encoding },
    losses: losses.map((loss) => Object.freeze(loss)),
    uncertain: [...converted.uncertain, ...result.uncertain],
  };
}

function fieldLoss(tool: Tool, path: string, keyword: string, message: string): Loss {
  const kind = { action: "dropped", grade: "lost", widens: false, narrows: false } as const;
  return { tool: tool.id, side: "tool", path, keyword, ...kind, message };
}

interface ConvertedReturns extends Pick<ConvertedTool, "uncertain"> {
  /** The converted result schema. Absent if the target receives no result schema. */
  readonly schema?: JsonSchema;
  /** True if the schema was wrapped in an object, as results must be. */
  readonly wraps: boolean;
  readonly losses: readonly SchemaLoss[];
}

/** Converts the result schema. If it cannot be sent, that is a loss. */
function convertReturns(tool: Tool, rules: Target, describe: boolean): ConvertedReturns {
  const { output } = convertersOf(rules);
  if (tool.returns === undefined || output === undefined) {
    return { wraps: false, losses: [], uncertain: [] };
  }
  const result = output.convert(tool.returns, describe);
  if (!result.ok) {
    const message = `the result schema cannot be sent: ${result.message}`;
    const { tool: _tool, side: _side, ...loss } = fieldLoss(tool, "", "returns", message);
    return { wraps: false, losses: [{ ...loss, widens: true }], uncertain: [] };
  }
  const { schema, losses, uncertain } = result;
  const wraps = rules.output?.root === "object" &&
    !(isObject(schema) && schema["type"] === "object");
  return { schema: wraps ? wrapSchema(schema) : schema, wraps, losses, uncertain };
}

/** Wraps a result schema as MCP's SDK does, for clients that accept objects only. */
function wrapSchema(schema: JsonSchema): JsonSchemaObject {
  return {
    type: "object",
    properties: { result: rebaseReferences(schema, ["properties", "result"]) },
    required: ["result"],
  };
}

function exportExamples(
  tool: Tool,
  schema: JsonSchemaObject,
  rewrite: ArgumentRewrite | undefined,
  losses: Loss[],
): readonly WireExample[] {
  if (tool.examples.length === 0) return [];
  // Providers reject the whole request for an invalid example. A schema with external references
  // cannot be checked.
  const fits = attemptOr(() => true, () => checkWithoutEngine(schema));
  const sent: WireExample[] = [];
  for (const [index, { input: own, description }] of tool.examples.entries()) {
    const input = encodeArguments(own, rewrite);
    if (isObject(input) && fits(input)) {
      sent.push({ input, description });
      continue;
    }
    const message =
      "the example does not fit the schema that is sent: the request would be rejected";
    losses.push(fieldLoss(tool, `/examples/${index}`, "examples", message));
  }
  return sent;
}

function usedFeatures(tool: Tool, hints: ProviderHints): readonly (readonly [Feature, string])[] {
  const used: (readonly [Feature, string])[] = [];
  if (tool.title !== undefined && hints.title !== null) used.push(["title", "/title"]);
  if (tool.returns !== undefined) used.push(["returns", "/returns"]);
  if (tool.examples.length > 0) used.push(["examples", "/examples"]);
  if (hasOwnAnnotations(tool, hints)) used.push(["annotations", "/annotations"]);
  if (tool.icons.length > 0) used.push(["icons", "/icons"]);
  if (tool.deprecated !== false) used.push(["deprecated", "/deprecated"]);
  if (tool.meta === undefined) return used;
  if (Object.keys(tool.meta).some((key) => key !== "provider")) used.push(["meta", "/meta"]);
  if (hints.strict === true) used.push(["strict", "/meta/provider/strict"]);
  for (const hint of HINT_FEATURES) {
    if (hints[hint] !== undefined) used.push([hint, `/meta/provider${pointerStep(hint)}`]);
  }
  return used;
}

/** True if the annotations cannot be derived from other fields of the tool. */
function hasOwnAnnotations(tool: Tool, hints: ProviderHints): boolean {
  if (hints.annotations !== undefined) return hints.annotations !== null;
  const derived = deriveAnnotations(tool);
  return HINTS.some((hint) => tool.annotations[hint] !== derived[hint]);
}

function splitExtra(
  hints: ProviderHints,
  rule: Target["extra"],
): Pick<ToolView, "extra"> & { readonly lost: readonly string[] } {
  const { extra, source, surface } = hints;
  // A target with one field for all hints receives the extra fields in that field, too.
  if (typeof extra !== "object" || extra === null || rule === "all") {
    return { extra: {}, lost: [] };
  }
  const back = rule !== undefined && rule.source === source && rule.surface === surface;
  const taken = back && rule.without === undefined ? extra : Object.fromEntries(
    Object.entries(extra).filter(([field]) => back && rule.without?.includes(field) === false),
  );
  return { extra: taken, lost: Object.keys(extra).filter((field) => !Object.hasOwn(taken, field)) };
}

/** Writes the description, and reports the fields that the target lacks. */
function describeTool(
  tool: Tool,
  target: Target,
): Pick<ToolView, "description" | "extra"> & { readonly losses: readonly Loss[] } {
  const hints = hintsOf(tool);
  let description = tool.description;
  const losses: Loss[] = [];
  const lose = (path: string, field: string): void => {
    losses.push(fieldLoss(tool, path, field, `the target has no field for "${field}"`));
  };
  for (const [feature, path] of usedFeatures(tool, hints)) {
    if (target.features.includes(feature)) {
      const hasOutput = feature === "examples" &&
        tool.examples.some(({ output }) => output !== undefined);
      if (hasOutput) lose("/examples", "output");
    } else if (feature === "deprecated") {
      const reason = typeof tool.deprecated === "string" ? `: ${tool.deprecated}` : ".";
      description = `${description.trimEnd()}\n\nDeprecated${reason}`;
      const moved = { action: "described", grade: "moved" } as const;
      const message = `"${feature}" is stated in the description`;
      losses.push({ ...fieldLoss(tool, path, feature, message), ...moved });
    } else lose(path, feature);
  }
  const { extra, lost } = splitExtra(hints, target.extra);
  for (const field of lost) lose(`/meta/provider/extra${pointerStep(field)}`, field);
  return { description, extra, losses };
}
