/** Names of tools in a file that no tool has: a misspelt rule or filter would have no effect. */

import { hintsOf } from "../../formats/mod.ts";
import { readRules, type RuleDocument } from "../../adapters/rules/mod.ts";
import { clip, isObject, isText, nearText, pointerStep, type Tool } from "../../tool/mod.ts";
import type { NamedSource, PlueSettings } from "./file.ts";

/** A problem of a file, and its position in the file if it has one. */
export interface Problem {
  readonly pointer?: string;
  readonly message: string;
}

/** Returns the name of a tool in its source, which need not be a valid one, and its name in plue. */
export function namesOf(tool: Tool): readonly [inSource: string, here: string] {
  return [hintsOf(tool).name ?? tool.name, tool.name];
}

/** @param offered The names of all tools that the source has. */
export function unknownNames(
  { pointer: start, settings: { include = [], exclude = [], views = [], risk } }: NamedSource,
  tools: readonly Tool[],
  offered: ReadonlySet<string>,
): readonly Problem[] {
  const inSource = new Set(tools.map((tool) => namesOf(tool)[0]));
  const either = new Set(tools.flatMap(namesOf));
  const named = [
    ...include.map((name, index) => [`/include/${index}`, name, offered] as const),
    ...exclude.map((name, index) => [`/exclude/${index}`, name, offered] as const),
    ...views.map(({ tool }, index) => [`/views/${index}/tool`, tool, either] as const),
    ...(isObject(risk) ? Object.keys(risk) : []).filter((name) => name !== "*")
      .map((name) => [`/risk${pointerStep(name)}`, name, inSource] as const),
  ];
  return named.filter(([, name, known]) => !known.has(name)).map(([pointer, name, known]) => ({
    pointer: start + pointer,
    message: `The source has no tool "${clip(name)}"${didYouMean(name, known)}`,
  }));
}

/** Returns the patterns of rules that fit none of the tools. */
export function unknownTools(
  documents: readonly RuleDocument[],
  tools: readonly Tool[],
): readonly Problem[] {
  const ids = new Set(tools.map(({ id }) => id));
  return documents.flatMap(({ tool: pattern }, index) => {
    const isList = Array.isArray(pattern);
    return [pattern].flat().flatMap((one, at) => {
      const [rule] = readRules([{ tool: one }]);
      if (tools.some((tool) => rule?.appliesTo?.(tool))) return [];
      const pointer = `/rules/${index}/tool${isList ? `/${at}` : ""}`;
      const what = isText(one) ? `"${clip(one)}"${didYouMean(one, ids)}` : "these criteria";
      return [{ pointer, message: `The rule has no effect: no tool fits ${what}` }];
    });
  });
}

/** Returns the ids in the selections of a file that no tool has. */
export function unknownIds(
  { selection, tenants = {} }: PlueSettings,
  tools: readonly Tool[],
): readonly Problem[] {
  const known = new Set(tools.flatMap(({ id, aliases }) => [id, ...aliases]));
  const selections = [
    ["/selection", selection] as const,
    ...Object.entries(tenants)
      .map(([name, own]) => [`/tenants/${name}/selection`, own.selection] as const),
  ];
  return selections.flatMap(([pointer, criteria]) =>
    (["allowIds", "denyIds"] as const).flatMap((field) =>
      [...criteria?.[field] ?? []].flatMap((id, index) => {
        const message = `No tool has the id "${clip(id)}"${didYouMean(id, known)}`;
        return known.has(id) ? [] : [{ pointer: `${pointer}/${field}/${index}`, message }];
      })
    )
  );
}

function didYouMean(name: string, names: Iterable<string>): string {
  const near = nearText(name, names);
  return near && `; did you mean ${near}?`;
}
