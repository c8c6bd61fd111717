/**
 * The names of one export, both ways.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";
import { isLegalName, mapNames, type NameRule } from "./names.ts";
import { hintsOf } from "./tool_fields.ts";
import type { ExportNames, TargetId, ToolEncoding, WireName } from "./types.ts";

/** Names by namespace, then by name: neither is ever joined to the other, or taken apart. */
class NameTable implements ExportNames {
  readonly target: TargetId;
  readonly encodings: readonly ToolEncoding[];
  readonly #byId = new Map<string, ToolEncoding>();
  readonly #byName = new Map<string, string>();
  readonly #byNamespace = new Map<string, Map<string, string>>();

  constructor(target: TargetId, encodings: readonly ToolEncoding[]) {
    this.target = target;
    this.encodings = Object.freeze([...encodings]);
    for (const encoding of encodings) {
      this.#byId.set(encoding.id, encoding);
      this.#namesIn(encoding.namespace, true)?.set(encoding.name, encoding.id);
    }
    Object.freeze(this);
  }

  #namesIn(namespace: string | undefined, add: boolean): Map<string, string> | undefined {
    if (namespace === undefined) return this.#byName;
    let names = this.#byNamespace.get(namespace);
    if (names === undefined && add) this.#byNamespace.set(namespace, names = new Map());
    return names;
  }

  idOf(name: string, namespace?: string): string | undefined {
    return this.#namesIn(namespace, false)?.get(name);
  }

  nameOf(id: string): string | undefined {
    return this.#byId.get(id)?.name;
  }

  encodingOf(id: string): ToolEncoding | undefined {
    return this.#byId.get(id);
  }
}

/** Makes the names of an export. */
export function createExportNames(
  target: TargetId,
  encodings: readonly ToolEncoding[],
): ExportNames {
  return new NameTable(target, encodings);
}

/**
 * The name on the wire of every tool in a list.
 *
 * @param namespaces The rules of the target's own namespaces, if they are to be used.
 */
export function wireNames(
  tools: readonly Tool[],
  rule: NameRule,
  namespaces: { readonly names: NameRule; readonly tools: NameRule } | undefined,
): ReadonlyMap<Tool, WireName> {
  const result = new Map<Tool, WireName>();
  const spaces = new Map<string, Tool[]>();
  const plain: Tool[] = [];
  for (const tool of tools) {
    if (namespaces === undefined || tool.namespace === undefined) plain.push(tool);
    else {
      const members = spaces.get(tool.namespace);
      if (members === undefined) spaces.set(tool.namespace, [tool]);
      else members.push(tool);
    }
  }
  const wanted = sourceNames(plain, rule);
  const names = mapNames(plain.map((tool) => wanted.get(tool) ?? tool.id), rule);
  for (const tool of plain) {
    result.set(tool, { name: names.get(wanted.get(tool) ?? tool.id) as string });
  }
  if (namespaces === undefined) return result;

  const spaceNames = mapNames([...spaces.keys()], namespaces.names);
  for (const [space, members] of spaces) {
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

/**
 * The names that imported tools had in their source, where the target allows them and no other
 * tool could want them: so that what was imported is exported under the name that it had.
 */
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
