/**
 * The fields of a tool beside its schemas: which of them a target has no place for.
 *
 * @module
 */

import { deriveAnnotations, pointerStep, type Tool } from "../tool/mod.ts";
import type { Feature, Profile } from "./profile.ts";
import type { ExportOptions, Loss, ProviderHints } from "./types.ts";

const NO_HINTS: ProviderHints = Object.freeze({});

/** What the tool says to providers, beside its own fields. */
export function hintsOf(tool: Tool): ProviderHints {
  const hints = tool.meta?.["provider"];
  return typeof hints === "object" && hints !== null && !Array.isArray(hints)
    ? hints as ProviderHints
    : NO_HINTS;
}

/** The hints that are features of targets. */
const HINTS = [
  "deferLoading",
  "allowedCallers",
  "async",
  "cacheControl",
  "eagerInputStreaming",
  "taskSupport",
] as const satisfies readonly (Feature & keyof ProviderHints)[];

/** The features a tool uses, each with where it stands in the tool. */
function usedFeatures(tool: Tool, hints: ProviderHints): readonly (readonly [Feature, string])[] {
  const used: (readonly [Feature, string])[] = [];
  if (tool.title !== undefined && hints.title !== null) used.push(["title", "/title"]);
  if (tool.returns !== undefined) used.push(["returns", "/returns"]);
  if (tool.examples.length > 0) used.push(["examples", "/examples"]);
  if (saysAnnotations(tool, hints)) used.push(["annotations", "/annotations"]);
  if (tool.icons.length > 0) used.push(["icons", "/icons"]);
  if (tool.deprecated !== false) used.push(["deprecated", "/deprecated"]);
  if (tool.meta === undefined) return used;
  if (Object.keys(tool.meta).some((key) => key !== "provider")) used.push(["meta", "/meta"]);
  if (hints.strict === true) used.push(["strict", "/meta/provider/strict"]);
  for (const hint of HINTS) {
    if (hints[hint] !== undefined) used.push([hint, `/meta/provider${pointerStep(hint)}`]);
  }
  return used;
}

/** Whether the annotations say more than can be told from the tool's other fields. */
function saysAnnotations(tool: Tool, hints: ProviderHints): boolean {
  if (hints.annotations !== undefined) return hints.annotations !== null;
  const derived = deriveAnnotations(tool);
  const said = tool.annotations;
  return said.readOnlyHint !== derived.readOnlyHint ||
    said.destructiveHint !== derived.destructiveHint ||
    said.idempotentHint !== derived.idempotentHint ||
    said.openWorldHint !== derived.openWorldHint;
}

const NO_EXTRA: { readonly [field: string]: unknown } = Object.freeze({});

/** Splits the fields of the source's own into those that a target takes back, and the names of the others. */
function splitExtra(
  hints: ProviderHints,
  rule: Profile["extra"],
): { readonly extra: { readonly [field: string]: unknown }; readonly lost: readonly string[] } {
  const { extra, source, surface } = hints;
  // Where all hints are carried along, these are among them.
  if (typeof extra !== "object" || extra === null || rule === "all") {
    return { extra: NO_EXTRA, lost: [] };
  }
  const back = rule !== undefined && rule.source === source && rule.surface === surface;
  const taken = back && rule.without === undefined ? extra : Object.fromEntries(
    Object.entries(extra).filter(([field]) => back && rule.without?.includes(field) === false),
  );
  return { extra: taken, lost: Object.keys(extra).filter((field) => !Object.hasOwn(taken, field)) };
}

/** The description to send, and the fields that are lost or said in it. */
export interface ToolFields {
  readonly description: string;
  /** The fields of the source's own that the target takes back. */
  readonly extra: { readonly [field: string]: unknown };
  readonly losses: readonly Loss[];
}

const NO_LOSSES: readonly Loss[] = Object.freeze([]);

/** How long an example or a result schema in a description may be. */
const MAX_DESCRIBED = 2_000;

/** Writes the description for a target, and says which fields it has no place for. */
export function describeTool(tool: Tool, profile: Profile, options: ExportOptions): ToolFields {
  const hints = hintsOf(tool);
  let description = tool.description;
  let losses: Loss[] | undefined;
  for (const [feature, path] of usedFeatures(tool, hints)) {
    if (profile.features[feature] === "native") {
      if (feature === "examples" && tool.examples.some(({ output }) => output !== undefined)) {
        (losses ??= []).push(fieldLoss(tool, "/examples", "output", false));
      }
      continue;
    }
    const words = wordsOf(tool, feature, options);
    if (words !== undefined) description = `${description.trimEnd()}\n\n${words}`;
    (losses ??= []).push(fieldLoss(tool, path, feature, words !== undefined));
  }
  const { extra, lost } = splitExtra(hints, profile.extra);
  for (const field of lost) {
    const path = `/meta/provider/extra${pointerStep(field)}`;
    (losses ??= []).push(fieldLoss(tool, path, field, false));
  }
  return { description, extra, losses: losses ?? NO_LOSSES };
}

function wordsOf(tool: Tool, feature: Feature, options: ExportOptions): string | undefined {
  switch (feature) {
    case "deprecated":
      return typeof tool.deprecated === "string" ? `Deprecated: ${tool.deprecated}` : "Deprecated.";
    case "examples":
      return options.describeExamples === true
        ? clip(
          `Examples of arguments:\n${
            tool.examples.map(({ input }) => JSON.stringify(input)).join("\n")
          }`,
        )
        : undefined;
    case "returns":
      return options.describeReturns === true
        ? clip(`The result fits this JSON Schema: ${JSON.stringify(tool.returns)}`)
        : undefined;
    default:
      return undefined;
  }
}

function clip(text: string): string {
  return text.length > MAX_DESCRIBED ? `${text.slice(0, MAX_DESCRIBED - 1)}…` : text;
}

function fieldLoss(tool: Tool, path: string, keyword: string, described: boolean): Loss {
  return Object.freeze({
    tool: tool.id,
    side: "tool",
    path,
    keyword,
    action: described ? "described" : "dropped",
    grade: described ? "moved" : "lost",
    widens: false,
    narrows: false,
    message: described
      ? `"${keyword}" is said in the description`
      : `there is no place for "${keyword}"`,
  });
}
