/** Maps tool ids to the names in one export, and back. */

import { clip, once, parseToolId, type Tool } from "../tool/mod.ts";
import type { ArgumentRewrite } from "./argument_rewrite.ts";
import { isLegalName, legalName, mapNames, type NameRule } from "../select/mod.ts";
import { hintsOf } from "./provider_hints.ts";

/** A tool's name on the wire. */
export interface WireName {
  readonly name: string;
  /** The namespace, if the target supports namespaces (OpenAI Responses). */
  readonly namespace?: string;
}

export function quoted(
  { name, namespace }: { readonly name: string; readonly namespace?: string | undefined },
): string {
  const text = JSON.stringify(clip(name));
  return namespace === undefined ? text : `${text} in namespace ${JSON.stringify(clip(namespace))}`;
}

/** The form of one exported tool, by which its calls are decoded and results are encoded. */
export interface ToolEncoding extends WireName {
  /** The id of the tool. */
  readonly id: string;
  /** True if the tool was sent in strict mode. */
  readonly strict: boolean;
  /** The changes to undo in the arguments of a call. Absent if the arguments need no changes. */
  readonly input?: ArgumentRewrite;
  /** True if the result schema was sent, so that results on the wire must match the schema. */
  readonly sendsReturns: boolean;
  /** True if the result schema was wrapped: a result `v` is sent as `{ "result": v }`. */
  readonly wrapsResult: boolean;
  /** True if the tool was sent as the tool search of the target. */
  readonly searches?: true;
}

/** Maps ids to wire names in one export, and back. Ids are looked up, not parsed from names. */
export interface ExportNames {
  /** The forms of the exported tools, in the order of the export. */
  readonly encodings: readonly ToolEncoding[];
  /** Returns the id or the alias of the tool with this name on the wire. */
  idOf(name: string, namespace?: string): string | undefined;
  /** Returns the name on the wire of the tool with this id. */
  nameOf(id: string): string | undefined;
  /** Returns the form of the exported tool with this id or alias. */
  encodingOf(id: string): ToolEncoding | undefined;
}

export function createExportNames(
  encodings: readonly ToolEncoding[],
  aliases: readonly WireAlias[],
): ExportNames {
  const byId = new Map(encodings.map((encoding) => [encoding.id, encoding]));
  const byAlias = new Map<string, ToolEncoding>();
  // The ids by namespace, then by name.
  const byNamespace = new Map<string | undefined, Map<string, string>>();
  for (const { namespace, name, id } of encodings) {
    once(byNamespace, namespace, () => new Map()).set(name, id);
  }
  for (const { namespace, name, alias, id } of aliases) {
    // `once` keeps an existing name, so current names take precedence over aliases.
    once(once(byNamespace, namespace, () => new Map()), name, () => alias);
    const encoding = byId.get(id);
    if (encoding !== undefined) byAlias.set(alias, encoding);
  }
  return Object.freeze({
    encodings: Object.freeze([...encodings]),
    idOf: (name: string, namespace?: string) => byNamespace.get(namespace)?.get(name),
    nameOf: (id: string) => byId.get(id)?.name,
    encodingOf: (id: string) => byId.get(id) ?? byAlias.get(id),
  });
}

export interface WireAlias extends WireName {
  readonly alias: string;
  readonly id: string;
}

/** Returns the wire names of the tools' aliases, which earlier exports may have sent. */
export function wireAliases(
  tools: readonly Tool[],
  rule: NameRule,
  namespaces: { readonly names: NameRule; readonly tools: NameRule } | undefined,
): readonly WireAlias[] {
  const made = tools.flatMap(({ id, aliases }) =>
    aliases.map((alias): WireAlias => {
      const { namespace, name } = parseToolId(alias);
      const wire = namespaces === undefined || namespace === undefined
        ? { name: legalName(alias, rule) }
        : {
          name: legalName(name, namespaces.tools),
          namespace: legalName(namespace, namespaces.names),
        };
      return { alias, id, ...wire };
    })
  );
  const key = ({ namespace, name }: WireAlias): string => JSON.stringify([namespace, name]);
  const times = new Map<string, number>();
  for (const wire of made) times.set(key(wire), (times.get(key(wire)) ?? 0) + 1);
  // A name of two aliases is omitted, because it could call the wrong tool.
  return made.filter((wire) => times.get(key(wire)) === 1);
}

export function wireNames(
  tools: readonly Tool[],
  rule: NameRule,
  namespaces: { readonly names: NameRule; readonly tools: NameRule } | undefined,
): ReadonlyMap<Tool, WireName> {
  const result = new Map<Tool, WireName>();
  const spaces = new Map<string | undefined, Tool[]>();
  for (const tool of tools) {
    once(spaces, namespaces && tool.namespace, () => []).push(tool);
  }
  const plain = spaces.get(undefined) ?? [];
  const wanted = sourceNames(plain, rule);
  const names = mapNames(plain.map((tool) => wanted.get(tool) ?? tool.id), rule);
  for (const tool of plain) {
    result.set(tool, { name: names.get(wanted.get(tool) ?? tool.id) as string });
  }
  if (namespaces === undefined) return result;

  spaces.delete(undefined);
  const spaceNames = mapNames([...spaces.keys()] as string[], namespaces.names);
  for (const [space, members] of spaces as Map<string, Tool[]>) {
    const own = mapNames(members.map((tool) => tool.name), namespaces.tools);
    for (const tool of members) {
      result.set(tool, {
        name: own.get(tool.name) as string,
        namespace: spaceNames.get(space) as string,
      });
    }
  }
  return result;
}

/** Returns the source names of imported tools, if these names are legal and unique. */
function sourceNames(tools: readonly Tool[], rule: NameRule): ReadonlyMap<Tool, string> {
  const names = new Map<Tool, string>();
  const owners = new Map<string, number>();
  const count = (name: string): void => void owners.set(name, (owners.get(name) ?? 0) + 1);
  for (const tool of tools) {
    count(tool.id);
    const { name } = hintsOf(tool);
    if (typeof name !== "string" || tool.namespace !== undefined) continue;
    if (name === tool.id || !isLegalName(name, rule)) continue;
    names.set(tool, name);
    count(name);
  }
  for (const [tool, name] of names) if (owners.get(name) !== 1) names.delete(tool);
  return names;
}
