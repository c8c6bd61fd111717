/**
 * The names of imported tools.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { mapNames, type NameRule } from "../names.ts";
import type { Draft } from "./draft.ts";
import type { Intake } from "./intake.ts";

/** What a tool's name may be, for the mapping of names. */
const TOOL_NAMES: NameRule = { also: ".-", max: 128, separator: "_" };

/** A legal name for each draft, different in its namespace; drafts of one name are rejected. */
export function nameDrafts(
  drafts: readonly Draft[],
  intake: Intake,
): ReadonlyMap<Draft, string> {
  const names = new Map<Draft, string>();
  const byNamespace = new Map<string | undefined, Map<string, Draft>>();
  for (const draft of drafts) {
    const { namespace, path, sourceName, wantedName = sourceName } = draft;
    let wanted = byNamespace.get(namespace);
    if (wanted === undefined) byNamespace.set(namespace, wanted = new Map());
    const other = wanted.get(wantedName);
    if (other === undefined) wanted.set(wantedName, draft);
    else {
      intake.reject(
        sourceName,
        path,
        "name",
        `Cannot import "${clip(sourceName)}": the name is taken by the tool at "${other.path}"`,
      );
    }
  }
  for (const wanted of byNamespace.values()) {
    const legal = mapNames([...wanted.keys()], TOOL_NAMES);
    for (const [name, draft] of wanted) {
      const given = legal.get(name) ?? name;
      names.set(draft, given);
      if (given === draft.sourceName) continue;
      draft.provider.name = draft.sourceName;
      if (draft.wantedName !== undefined) continue;
      intake.warn(
        draft,
        draft.path,
        "name",
        `"${clip(draft.sourceName)}" is no name for a tool; it is called "${given}" here`,
      );
    }
  }
  return names;
}
