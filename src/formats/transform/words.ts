/**
 * Constraints in words, for a model that is told them in a description.
 *
 * @module
 */

/** How long the words for one constraint may be. */
const MAX_WORDS = 400;

function json(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_WORDS ? `${text.slice(0, MAX_WORDS - 1)}…` : text;
}

function count(value: unknown, one: string, many: string): string {
  return `${json(value)} ${value === 1 ? one : many}`;
}

/** The words for each keyword. A keyword that is not here says nothing that a model needs. */
const WORDS: ReadonlyMap<string, (value: unknown) => string | undefined> = new Map<
  string,
  (value: unknown) => string | undefined
>([
  ["minLength", (value) => `At least ${count(value, "character", "characters")}.`],
  ["maxLength", (value) => `At most ${count(value, "character", "characters")}.`],
  ["pattern", (value) => `Matches the regular expression ${String(value).slice(0, MAX_WORDS)}`],
  ["format", (value) => `Format: ${String(value).slice(0, MAX_WORDS)}.`],
  ["minimum", (value) => `At least ${json(value)}.`],
  ["maximum", (value) => `At most ${json(value)}.`],
  ["exclusiveMinimum", (value) => `More than ${json(value)}.`],
  ["exclusiveMaximum", (value) => `Less than ${json(value)}.`],
  ["multipleOf", (value) => `A multiple of ${json(value)}.`],
  ["minItems", (value) => `At least ${count(value, "item", "items")}.`],
  ["maxItems", (value) => `At most ${count(value, "item", "items")}.`],
  ["uniqueItems", (value) => value === true ? "No two items are the same." : undefined],
  ["contains", (value) => `At least one item fits ${json(value)}`],
  ["minProperties", (value) => `At least ${count(value, "property", "properties")}.`],
  ["maxProperties", (value) => `At most ${count(value, "property", "properties")}.`],
  ["enum", (value) => `One of: ${json(value)}`],
  ["const", (value) => `Always ${json(value)}.`],
  ["default", (value) => `Default: ${json(value)}`],
  ["examples", (value) => `Examples: ${json(value)}`],
  ["example", (value) => `Example: ${json(value)}`],
  ["deprecated", (value) => value === true ? "Deprecated." : undefined],
  ["contentEncoding", (value) => `Encoded as ${String(value).slice(0, MAX_WORDS)}.`],
  ["contentMediaType", (value) => `Media type: ${String(value).slice(0, MAX_WORDS)}.`],
  ["additionalProperties", restWords],
  ["unevaluatedProperties", restWords],
  ["patternProperties", (value) => `Properties by pattern of their names: ${json(value)}`],
  ["propertyNames", (value) => `The property names fit ${json(value)}`],
  ["dependentRequired", dependentWords],
  ["dependentSchemas", (value) => `If a property is given, the whole fits: ${json(value)}`],
  ["not", (value) => `Must not fit ${json(value)}`],
  ["if", (value) => `If it fits ${json(value)}, more rules apply.`],
  ["then", (value) => `If so: ${json(value)}`],
  ["else", (value) => `If not: ${json(value)}`],
  ["anyOf", (value) => unionWords("At least one", value)],
  ["oneOf", (value) => unionWords("Exactly one", value)],
  ["allOf", (value) => `Also fits ${json(value)}`],
  ["prefixItems", (value) => `The first items fit, in this order: ${json(value)}`],
]);

function restWords(value: unknown): string | undefined {
  if (value === true) return undefined;
  return value === false ? "No other properties." : `Other properties fit ${json(value)}`;
}

function dependentWords(value: unknown): string {
  const lines = Object.entries(value as Record<string, unknown>).map(([name, needs]) =>
    `"${name}" needs ${Array.isArray(needs) ? needs.map((need) => `"${need}"`).join(", ") : ""}`
  );
  return `${lines.join("; ").slice(0, MAX_WORDS)}.`;
}

/** A union of what is required reads better as the names than as the schemas. */
function unionWords(how: string, value: unknown): string {
  const branches = Array.isArray(value) ? value : [];
  const names = branches.map((branch: { readonly required?: unknown } | null) => {
    const required = branch?.required;
    const only = typeof branch === "object" && branch !== null &&
      Object.keys(branch).every((keyword) => keyword === "required");
    return only && Array.isArray(required)
      ? required.map((name) => `"${name}"`).join(" and ")
      : undefined;
  });
  return names.every((name) => name !== undefined)
    ? `${how} of these must be given: ${names.join("; ").slice(0, MAX_WORDS)}.`
    : `${how} of these fits: ${json(value)}`;
}

/** A constraint in words, or `undefined` if there is nothing to say. */
export function wordsFor(keyword: string, value: unknown): string | undefined {
  return WORDS.get(keyword)?.(value);
}

/** Adds what a keyword said to the description. */
export function addWords(node: Record<string, unknown>, keyword: string, value: unknown): boolean {
  const words = wordsFor(keyword, value);
  if (words === undefined) return false;
  const before = typeof node["description"] === "string" ? node["description"].trimEnd() : "";
  const gap = before === "" ? "" : /[.!?:…]$/.test(before) ? " " : ". ";
  node["description"] = before + gap + words;
  return true;
}
