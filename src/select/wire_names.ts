/** Names on the wire: a legal, unique name for each id, the same in every export. */

import { fnv1a } from "../tool/mod.ts";

/** A target's rule for names. */
export interface NameRule {
  /** The allowed characters besides letters, digits and `_`. */
  readonly also: string;
  /** The maximum length; 16 or more. */
  readonly max: number;
  /** The separator between namespace and name, instead of the id's `:`. */
  readonly separator: string;
  /** The first character must be a letter or `_`. */
  readonly letterFirst?: boolean;
}

/** OpenAI's rule for function names, `^[a-zA-Z0-9_-]{1,64}$`. Many providers have the same rule. */
export const OPENAI_NAME_RULE: NameRule = { also: "-", max: 64, separator: "__" };

const SUFFIX = 9;

function beginsLegally(name: string, rule: NameRule): boolean {
  return rule.letterFirst === true ? /^[A-Za-z_]/.test(name) : name !== "";
}

/** Returns true if `name` is valid under `rule`. */
export function isLegalName(name: string, rule: NameRule): boolean {
  return name.length <= rule.max && beginsLegally(name, rule) &&
    (name.match(/\W/gu) ?? []).every((character) => rule.also.includes(character));
}

/**
 * Returns the legal name of one `id`: with the separator for the colon, and `_` for illegal
 * characters. A name that is too long ends with a hash of the id.
 */
export function legalName(id: string, rule: NameRule): string {
  if (isLegalName(id, rule)) return id;
  // Long enough, even if each character is a surrogate pair.
  const legal = id.slice(0, 2 * rule.max + 2).replace(/\W/gu, (character) => {
    if (rule.also.includes(character)) return character;
    return character === ":" ? rule.separator : "_";
  });
  const name = beginsLegally(legal, rule) ? legal : `_${legal}`;
  return name.length > rule.max ? withHash(name, id, rule) : name;
}

/**
 * Maps ids to names under `rule`, without collisions, in any order of the ids. A legal id keeps its
 * name. Ids whose names are taken or equal get a hash of the id at the end of the name.
 */
export function mapNames(ids: readonly string[], rule: NameRule): Map<string, string> {
  const names = new Map<string, string>();
  const claims = new Map<string | undefined, number>();
  for (const id of ids) {
    const name = legalName(id, rule);
    names.set(id, name);
    claims.set(name, (claims.get(name) ?? 0) + 1);
  }
  const contested = ids.filter((id) => names.get(id) !== id && claims.get(names.get(id)) !== 1);
  // Reserves the positions of these ids in the map. The names are set below.
  for (const id of contested) names.set(id, "");
  const taken = new Set(names.values());
  // In code-unit order, so that the names do not depend on the order of the ids.
  for (const id of contested.sort()) {
    let name = withHash(legalName(id, rule), id, rule);
    for (let salt = 1; taken.has(name); salt++) name = withHash(name, `${id}\n${salt}`, rule);
    names.set(id, name);
    taken.add(name);
  }
  return names;
}

/** Appends `_` and eight hexadecimal digits of a hash of `text` to the truncated name. */
function withHash(name: string, text: string, rule: NameRule): string {
  const hash = fnv1a(text).toString(16).padStart(8, "0");
  return `${name.slice(0, rule.max - SUFFIX)}_${hash}`;
}
