/**
 * One tool for one target: its schemas converted, its fields written, and what that lost.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject, Tool } from "../tool/mod.ts";
import { type Conversion, schemaConverter } from "./convert_schema.ts";
import { exportExamples } from "./export_examples.ts";
import type { KeywordForm } from "./keyword_forms.ts";
import type { ToolView } from "./profile.ts";
import type { Load } from "./request_limits.ts";
import { type AnyProfile, strictModeOf } from "./targets.ts";
import { describeTool, hintsOf } from "./tool_fields.ts";
import { rebaseReferences } from "./transform/references.ts";
import type { SchemaLoss } from "./transform/report.ts";
import { isNode } from "./transform/schema_walk.ts";
import type { ExportOptions, Loss, LossSide, ToolEncoding, WireName } from "./types.ts";

type Convert = (schema: JsonSchema, describe: boolean) => Conversion;

/** The converters of a profile, made once. */
interface Converters {
  readonly input: Convert;
  readonly output: Convert | undefined;
}

const converters = new WeakMap<AnyProfile, Converters>();

function convertersOf(profile: AnyProfile): Converters {
  let made = converters.get(profile);
  if (made === undefined) {
    const { input, output, keys, formats, typed, draft07, fallback } = profile;
    made = {
      input: schemaConverter({
        keywords: input,
        keys,
        formats,
        typed,
        draft07,
        fallsBack: fallback !== undefined,
      }),
      // Results are written by the tool: their keys stay as they are.
      output: output === undefined
        ? undefined
        : schemaConverter({ keywords: output.keywords, typed, draft07 }),
    };
    converters.set(profile, made);
  }
  return made;
}

/** A tool that is being exported: everything but its place in the request. */
export interface Candidate {
  readonly tool: Tool;
  readonly view: ToolView;
  readonly encoding: ToolEncoding;
  readonly losses: readonly Loss[];
  readonly uncertain: readonly KeywordForm[];
  readonly load: Load;
}

/** Why a tool is not sent: the rule, and the rest of a sentence. */
export interface Refusal {
  readonly ok: false;
  readonly rule: string;
  readonly message: string;
}

/** A tool that can be sent, or why not. */
export type Attempt = { readonly ok: true; readonly candidate: Candidate } | Refusal;

/**
 * Converts one tool by the rules of a target, or of its strict mode.
 *
 * @param instead Why the strict mode could not hold it, if it was tried.
 */
export function convertTool(
  tool: Tool,
  name: WireName,
  rules: AnyProfile,
  options: ExportOptions,
  instead?: Refusal,
): Attempt {
  const hints = hintsOf(tool);
  const describe = (options.onLoss ?? "describe") === "describe";
  const strict = rules.fallback !== undefined;
  const { input, output } = convertersOf(rules);
  const combination = strict
    ? rules.combinations?.find((rule) => rule.effect === "not strict" && rule.applies(hints, tool))
    : undefined;
  if (combination !== undefined) {
    return { ok: false, rule: combination.name, message: combination.message };
  }
  const converted = input(tool.parameters, describe);
  if (!converted.ok) return converted;
  const parameters = converted.schema;
  if (!isNode(parameters)) {
    return {
      ok: false,
      rule: "schema",
      message: "no arguments can satisfy its parameters",
    };
  }
  const losses: Loss[] = [];
  if (instead !== undefined) {
    losses.push(Object.freeze({
      tool: tool.id,
      side: "tool",
      path: hints.strict === true ? "/meta/provider/strict" : "",
      keyword: "strict",
      action: "dropped",
      grade: "weakened",
      widens: false,
      narrows: false,
      message: `it is sent without strict mode: ${instead.message}`,
    }));
  }
  addLosses(losses, tool, "input", converted.losses);
  const uncertain = [...converted.uncertain];

  let returns: JsonSchema | undefined;
  let wrapsResult = false;
  if (tool.returns !== undefined && output !== undefined) {
    const result = output(tool.returns, describe);
    if (result.ok) {
      returns = result.schema;
      addLosses(losses, tool, "output", result.losses);
      uncertain.push(...result.uncertain);
      wrapsResult = rules.output?.root === "object" &&
        !describesOneObject(returns);
      if (wrapsResult) returns = wrapSchema(returns);
    } else {
      addLosses(losses, tool, "output", [outputLoss(result.message)]);
    }
  }
  const fields = describeTool(tool, rules, options);
  losses.push(...fields.losses);

  const { rewrite } = converted;
  const view: ToolView = {
    tool,
    name: name.name,
    namespace: name.namespace,
    description: fields.description,
    sendsDescription: hints.description !== null ||
      fields.description !== tool.description,
    parameters,
    returns,
    strict,
    examples: rules.features.examples === "native"
      ? exportExamples(tool, parameters, rewrite, options.engine, losses)
      : [],
    hints,
    extra: fields.extra,
    options,
  };
  const encoding: ToolEncoding = Object.freeze({
    id: tool.id,
    ...name,
    strict,
    ...(rewrite === undefined ? {} : { input: rewrite }),
    sendsReturns: returns !== undefined,
    wrapsResult,
  });
  const load: Load = {
    parameters,
    description: fields.description,
    // A limit on each schema of a target without a strict mode is a limit on all of them.
    strict: strict || strictModeOf(rules) === undefined,
    deferred: hints.deferLoading === true,
  };
  return {
    ok: true,
    candidate: { tool, view, encoding, losses, uncertain, load },
  };
}

function addLosses(
  losses: Loss[],
  tool: Tool,
  side: LossSide,
  found: readonly SchemaLoss[],
): void {
  for (const loss of found) {
    losses.push(Object.freeze({ tool: tool.id, side, ...loss }));
  }
}

function outputLoss(message: string): SchemaLoss {
  return {
    path: "",
    keyword: "returns",
    action: "dropped",
    grade: "lost",
    widens: true,
    narrows: false,
    message: `the result schema cannot be sent: ${message}`,
  };
}

function describesOneObject(schema: JsonSchema): boolean {
  return isNode(schema) && schema["type"] === "object";
}

/** What MCP's own SDK makes of a result that is no object, for clients that want one. */
function wrapSchema(schema: JsonSchema): JsonSchemaObject {
  return {
    type: "object",
    properties: { result: rebaseReferences(schema, ["properties", "result"]) },
    required: ["result"],
  };
}
