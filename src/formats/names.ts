/**
 * Names on the wire. Most targets allow fewer characters than an id has, so ids are mapped:
 * each to one name, no two to the same, and the same ids always to the same names.
 *
 * This file imports nothing: a program that only needs legal names does not get the profiles.
 *
 * @module
 */

import { fnv1a } from "../tool/mod.ts";

/** What a target allows as a name. */
export interface NameRule {
  /** The characters it allows, besides letters, digits and `_`. */
  readonly also: string;
  /** How many characters at most; 16 or more. */
  readonly max: number;
  /** What stands between namespace and name, in place of the id's `:`. */
  readonly separator: string;
  /** The first character must be a letter or `_`. */
  readonly letterFirst?: boolean;
}

/** OpenAI's rule for function names, `^[a-zA-Z0-9_-]{1,64}$`, which many others share. */
export const OPENAI_NAME_RULE: NameRule = { also: "-", max: 64, separator: "__" };

/** How many characters a hash suffix has, with its `_`. */
const SUFFIX = 9;

/** The characters of a rule, as a test of one name. Rules are few and fixed: made once each. */
const legal = new WeakMap<NameRule, ReadonlySet<string>>();

function legalCharacters(rule: NameRule): ReadonlySet<string> {
  let characters = legal.get(rule);
  if (characters === undefined) {
    const letters = "abcdefghijklmnopqrstuvwxyz";
    characters = new Set(`${letters}${letters.toUpperCase()}0123456789_${rule.also}`);
    legal.set(rule, characters);
  }
  return characters;
}

function isLetterOrUnderscore(character: string | undefined): boolean {
  return character !== undefined && /^[A-Za-z_]$/.test(character);
}

/** Whether `name` is a name under `rule`. */
export function isLegalName(name: string, rule: NameRule): boolean {
  if (name.length === 0 || name.length > rule.max) return false;
  if (rule.letterFirst === true && !isLetterOrUnderscore(name[0])) return false;
  const characters = legalCharacters(rule);
  for (const character of name) if (!characters.has(character)) return false;
  return true;
}

/**
 * The name that `id` gets where nothing else is in its way: `id` itself if it is legal, otherwise
 * `id` with the separator for its colon and `_` for what is not allowed. What is too long is cut,
 * and ends in a hash of the whole id.
 */
export function legalName(id: string, rule: NameRule): string {
  if (isLegalName(id, rule)) return id;
  const characters = legalCharacters(rule);
  let name = "";
  for (const character of id) {
    if (characters.has(character)) name += character;
    else name += character === ":" ? rule.separator : "_";
  }
  if (name === "" || (rule.letterFirst === true && !isLetterOrUnderscore(name[0]))) {
    name = `_${name}`;
  }
  return name.length > rule.max ? withHash(name, id, rule) : name;
}

/**
 * Maps ids to names under `rule`: injective, and independent of the order of the ids.
 *
 * An id that is legal keeps its name. Where others would get a name that is taken, or share one,
 * all of those get a hash of their id at the end.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { mapNames, OPENAI_NAME_RULE } from "@plue/tools/formats";
 *
 * const names = mapNames(["chain:status", "read"], OPENAI_NAME_RULE);
 * assert.deepEqual([...names], [["chain:status", "chain__status"], ["read", "read"]]);
 * ```
 *
 * @param ids The ids, each once.
 * @param rule What the target allows.
 * @returns The name of each id, in the order of `ids`.
 */
export function mapNames(ids: readonly string[], rule: NameRule): Map<string, string> {
  const claims = new Map<string, number>();
  const wanted = ids.map((id) => {
    const name = legalName(id, rule);
    claims.set(name, (claims.get(name) ?? 0) + 1);
    return name;
  });
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const contested: string[] = [];
  for (let index = 0; index < ids.length; index++) {
    const id = ids[index] as string;
    const name = wanted[index] as string;
    if (name === id || claims.get(name) === 1) {
      names.set(id, name);
      taken.add(name);
    } else {
      names.set(id, ""); // Keeps the order; filled below.
      contested.push(id);
    }
  }
  // In code-unit order, so that the names do not depend on the order of the ids.
  for (const id of contested.sort()) {
    let name = withHash(legalName(id, rule), id, rule);
    for (let salt = 1; taken.has(name); salt++) name = withHash(name, `${id}\n${salt}`, rule);
    names.set(id, name);
    taken.add(name);
  }
  return names;
}

/** `name`, cut so that `_` and eight hexadecimal digits of a hash of `text` fit behind it. */
function withHash(name: string, text: string, rule: NameRule): string {
  return `${name.slice(0, rule.max - SUFFIX)}_${fnv1a(text).toString(16).padStart(8, "0")}`;
}
