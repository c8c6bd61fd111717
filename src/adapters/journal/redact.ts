/** Finds the secrets of values by a tool's schema and by names, and removes them. */

import { detectDialect, eachSchemaIn, type Keyword, KEYWORDS } from "../../schema/mod.ts";
import { attemptOr, isObject, type JsonSchema, type JsonSchemaObject } from "../../tool/mod.ts";

const REDACTED = "[redacted]";

/** The names of members that are always secret, in lower case and without separators. */
const NAMES = "password passwd secret token apikey authorization cookie clientsecret accesstoken " +
  "refreshtoken privatekey credentials";

/** A shorter text is part of many words: a message that contains it is removed as a whole. */
const MIN_SECRET = 4;

/** Removes the secrets of one tool's values. */
export class Redactor {
  readonly #names: Set<string>;
  #isAllSecret: boolean;

  /**
   * @param names Names of further secret members. Case and separators are ignored.
   * @param schemas The schemas of the values; without them, every value is secret.
   */
  constructor(names: readonly string[], schemas?: readonly JsonSchema[]) {
    this.#names = new Set([...NAMES.split(" "), ...names].map(plain));
    this.#isAllSecret = schemas === undefined;
    for (const schema of schemas ?? []) if (isObject(schema)) this.#learn(schema);
  }

  /** Adds the names of all properties that are secret, wherever they are in the schema. */
  #learn(root: JsonSchemaObject): void {
    const keywords = KEYWORDS[detectDialect(root)];
    const isSecret = (schema: JsonSchema) => isSecretIn(root, keywords, schema, new Set());
    const collect = (node: JsonSchemaObject): void =>
      eachSchemaIn(node, keywords, (child, keyword, key = "") => {
        if (keyword === "properties" && isSecret(child)) this.#names.add(plain(key));
        if (isObject(child)) collect(child);
      });
    collect(root);
    this.#isAllSecret ||= isSecret(root);
  }

  /** Returns a copy of a JSON value without its secrets, and adds their texts to `found`. */
  redact(value: unknown, found: Set<string>, isSecret: boolean = this.#isAllSecret): unknown {
    if (Array.isArray(value)) return value.map((item) => this.redact(item, found, isSecret));
    if (isObject(value)) {
      const members = Object.entries(value).map(([name, member]) => [
        name,
        this.redact(member, found, isSecret || this.#names.has(plain(name))),
      ]);
      return Object.fromEntries(members);
    }
    if (!isSecret || value === null || value === undefined) return value;
    found.add(String(value));
    return REDACTED;
  }
}

/** Removes found secrets from a text, also as they are written in JSON and in URLs. */
export function scrub(text: string, found: ReadonlySet<string>): string {
  let clean = text;
  // The longest first, because a secret may contain another one.
  for (const secret of [...found].filter(Boolean).sort((a, b) => b.length - a.length)) {
    if (secret.length < MIN_SECRET && text.includes(secret)) return REDACTED;
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]) {
      clean = clean.replaceAll(form, REDACTED);
    }
  }
  return clean;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, "");
}

/** True if a value of the schema, or a part of it without a name, is secret. */
function isSecretIn(
  root: JsonSchemaObject,
  keywords: ReadonlyMap<string, Keyword>,
  schema: unknown,
  seen: Set<unknown>,
): boolean {
  if (!isObject(schema) || seen.has(schema)) return false;
  seen.add(schema);
  const { writeOnly, format, $ref: ref } = schema;
  if (writeOnly === true || format === "password" || schema["x-sensitive"]) return true;
  const isSecret = (part: unknown): boolean => isSecretIn(root, keywords, part, seen);
  // A value counts as secret if its reference cannot be followed.
  let found = typeof ref === "string" && isSecret(targetOf(root, ref) ?? { writeOnly: true });
  eachSchemaIn(schema, keywords, (child, keyword) => {
    if (!["properties", "$defs", "definitions"].includes(keyword)) found ||= isSecret(child);
  });
  return found;
}

/** Follows a JSON Pointer of a reference. */
function targetOf(root: unknown, ref: string): unknown {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  return attemptOr(undefined, () =>
    ref.split("/").slice(1).reduce((node, step) => {
      const name = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
      return Object(node)[name];
    }, root));
}
