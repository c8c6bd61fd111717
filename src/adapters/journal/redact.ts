/** Finds the secrets of values by a tool's schema and by names, and removes them. */

import { detectDialect, indexSchemas, isStructure, ReferenceIndex } from "../../schema/mod.ts";
import { isObject, isText, type JsonSchemaObject, type Tool, toolsBehind } from "../../tool/mod.ts";

const REDACTED = "[redacted]";

/** The ends of names that are always secret, in lower case and without separators. */
const NAMES =
  /(?:password|passwd|secret|token|apikey|authorization|cookie|privatekey|credentials)$/;

/** A shorter text is part of many words: a message that contains it is removed as a whole. */
const MIN_SECRET = 4;
/** With more secrets, a text is removed as a whole, because searching for each takes long. */
const MAX_SECRETS = 200;

/** Removes the secrets of the values of one tool. Without a tool, every value is secret. */
export class Redactor {
  readonly #names: Set<string>;
  #isAllSecret: boolean;

  /** @param names Names of further secret members. Case and separators are ignored. */
  constructor(tool: Tool | undefined, names: readonly string[] = []) {
    this.#names = new Set(names.map(plain));
    // A program contains the arguments of its calls, which have records of their own.
    this.#isAllSecret = tool?.callsTools ?? true;
    // The values of a view are also values of its original.
    for (const { parameters, returns } of tool ? toolsBehind(tool) : []) {
      for (const schema of [parameters, returns]) if (isObject(schema)) this.#learn(schema);
    }
  }

  /** Adds the names of all properties that are secret, wherever they are in the document. */
  #learn(root: JsonSchemaObject): void {
    const index = new ReferenceIndex(root, detectDialect(root));
    indexSchemas(index, root);
    const visit = (node: object): void => {
      for (const [keyword, part] of Object.entries(node)) {
        if (!isStructure(part)) continue;
        for (const [name, schema] of keyword === "properties" ? Object.entries(part) : []) {
          if (isSecretIn(index, schema)) this.#names.add(plain(name));
        }
        visit(part);
      }
    };
    visit(root);
    this.#isAllSecret ||= isSecretIn(index, root);
  }

  /** Returns a copy of a JSON value without its secrets, and adds their texts to `found`. */
  redact(value: unknown, found: Set<string>, isSecret: boolean = this.#isAllSecret): unknown {
    // As a whole: the size of a secret object and its names may be secret, too.
    if (isSecret && value !== undefined) return addTexts(value, found);
    if (Array.isArray(value)) return value.map((item) => this.redact(item, found));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        const key = plain(name);
        return [name, this.redact(member, found, NAMES.test(key) || this.#names.has(key))];
      }),
    );
  }
}

function addTexts(secret: unknown, found: Set<string>): string {
  if (found.size > MAX_SECRETS || secret === null) return REDACTED;
  if (typeof secret !== "object") found.add(String(secret));
  else for (const part of Object.values(secret)) addTexts(part, found);
  return REDACTED;
}

/** Removes found secrets from a text: plain, as JSON, and encoded for URLs. */
export function scrub(text: string, found: ReadonlySet<string>): string {
  if (found.size > MAX_SECRETS) return REDACTED;
  let clean = text;
  // The longest first, because a secret may contain another one.
  for (const secret of [...found].filter(Boolean).sort((a, b) => b.length - a.length)) {
    if (secret.length < MIN_SECRET && text.includes(secret)) return REDACTED;
    const inUrl = encodeURIComponent(secret.toWellFormed());
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), inUrl]) {
      clean = withoutStart(clean.replaceAll(form, REDACTED), form);
    }
  }
  return clean;
}

/** If a truncated text ends with the start of a secret, removes that start. */
function withoutStart(text: string, secret: string): string {
  if (!text.endsWith("…")) return text;
  const start = secret.slice(0, MIN_SECRET);
  for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1)) {
    if (secret.startsWith(text.slice(at, -1))) return `${text.slice(0, at)}${REDACTED}…`;
  }
  return text;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, "");
}

const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"];
const NAMED = ["properties", "$defs", "definitions"];
/** Keywords whose subschemas describe values without a known name. */
const UNNAMED = ["patternProperties", "dependentSchemas", "dependencies"];

function isSecretIn(
  index: ReferenceIndex,
  schema: unknown,
  seen: Set<unknown> = new Set(),
): boolean {
  if (!isStructure(schema) || seen.has(schema)) return false;
  seen.add(schema);
  const { writeOnly, format, "x-sensitive": isMarked } = schema as JsonSchemaObject;
  if (writeOnly === true || format === "password" || isMarked) return true;
  return Object.entries(schema).some(([keyword, part]) => {
    if (NAMED.includes(keyword)) return false;
    let parts = [part];
    if (UNNAMED.includes(keyword)) parts = Object.values(Object(part));
    else if (REFERENCES.includes(keyword) && isText(part)) parts = targetsOf(index, part);
    return parts.some((one) => isSecretIn(index, one, seen));
  });
}

/** A reference may have a target in each embedded document; without a target, it is secret. */
function targetsOf(index: ReferenceIndex, ref: string): unknown[] {
  const targets = [...index.uris()].flatMap((uri) => index.resolve(ref, uri)?.schema ?? []);
  return targets.length > 0 ? targets : [{ writeOnly: true }];
}
