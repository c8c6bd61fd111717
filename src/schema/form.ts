/**
 * The fields of a form, derived from a JSON Schema: the kind of input for each value, and its
 * label. The explorer's page and the flags and questions of the command use the fields. A form does
 * not validate: it shows any value, and the check of the arguments reports the issues.
 */

import { defined, isObject, isWord, type JsonSchema, type JsonSchemaObject } from "../tool/mod.ts";
import {
  asDraft2020,
  detectDialect,
  type Dialect,
  indexSchemas,
  isOfType,
  isOneOf,
  ReferenceIndex,
  ROOT_URI,
} from "./mod.ts";

interface Part {
  readonly schema: JsonSchema;
  readonly base: string;
}

/** The schemas that all apply to one value. */
export type Place = readonly Part[];

export interface Variant {
  readonly label: string;
  readonly place: Place;
}

export interface Choice {
  readonly label: string;
  readonly value: unknown;
}

export type Shape =
  | ObjectShape
  | ListShape
  | { readonly kind: "choice"; readonly choices: readonly Choice[] }
  | { readonly kind: "variants"; readonly variants: readonly Variant[] }
  | { readonly kind: "text"; readonly format?: string }
  | { readonly kind: "number"; readonly integer: boolean }
  | { readonly kind: "boolean" }
  | { readonly kind: "null" }
  | { readonly kind: "json" };

export interface ObjectShape {
  readonly kind: "object";
  readonly properties: ReadonlyMap<string, Place>;
  readonly required: ReadonlySet<string>;
  /** The schemas of further properties: empty if any value is valid, absent if none are allowed. */
  readonly rest?: Place;
}

export interface ListShape {
  readonly kind: "list";
  readonly first: readonly Place[];
  /** The schemas of further items; absent if further items are not allowed. */
  readonly rest?: Place;
  readonly maxItems: number;
}

export interface Notes {
  readonly title?: string;
  readonly description?: string;
  readonly deprecated: boolean;
  readonly examples: readonly unknown[];
  /** The value that an absent value means. */
  readonly default?: unknown;
}

/** The maximum number of parts or alternatives of one value: a schema may be recursive. */
const MAX_PARTS = 64;
const MAX_DEPTH = 6;

export class FormSchema {
  readonly root: Place;
  readonly #dialect: Dialect;
  readonly #index: ReferenceIndex;

  constructor(schema: JsonSchema) {
    this.#dialect = detectDialect(schema);
    this.#index = new ReferenceIndex(schema, this.#dialect);
    indexSchemas(this.#index, schema);
    this.root = [{ schema, base: ROOT_URI }];
  }

  shapeOf(place: Place): Shape {
    const parts = this.#expand(place);
    return choiceIn(parts) ?? this.#variantsIn(parts) ?? shapeByType(parts);
  }

  /** Returns the possible inputs for a value: one for each alternative of its schemas. */
  alternativesOf(place: Place, depth = 0): readonly (readonly [Place, Shape])[] {
    const shape = this.shapeOf(place);
    return shape.kind === "variants" && depth < MAX_DEPTH
      ? shape.variants.flatMap((one) => this.alternativesOf(one.place, depth + 1)).slice(
        0,
        MAX_PARTS,
      )
      : [[place, shape]];
  }

  notesOf(place: Place): Notes {
    const parts = this.#expand(place);
    return {
      ...defined({
        default: defaultIn(parts),
        title: textIn(parts, "title"),
        description: textIn(parts, "description"),
      }),
      deprecated: parts.some(({ schema }) => schema["deprecated"] === true),
      examples: parts.flatMap(({ schema }) =>
        Array.isArray(schema["examples"]) ? schema["examples"] : []
      ),
    };
  }

  initial(place: Place, depth = 0): unknown {
    const parts = this.#expand(place);
    const preset = defaultIn(parts);
    if (preset !== undefined) return preset;
    const shape = this.shapeOf(place);
    switch (shape.kind) {
      case "object":
        return Object.fromEntries(
          [...shape.properties].flatMap(([name, own]) => {
            const value = depth < MAX_DEPTH && shape.required.has(name)
              ? this.#fixedValue(own, depth + 1)
              : undefined;
            return value === undefined ? [] : [[name, value]];
          }),
        );
      case "list":
        return [];
      case "choice":
        return shape.choices[0]?.value ?? null;
      case "variants":
        return depth < MAX_DEPTH && shape.variants[0] !== undefined
          ? this.initial(shape.variants[0].place, depth + 1)
          : null;
      case "text":
        return "";
      case "number":
        return numberIn(parts, "minimum") ?? 0;
      case "boolean":
        return false;
      default:
        return null;
    }
  }

  /** Returns the index of the first variant that is like a value, or else 0. */
  variantOf(variants: readonly Variant[], value: unknown): number {
    const fits = variants.findIndex(({ place }) => this.#resembles(place, value, 2));
    if (fits !== -1) return fits;
    return Math.max(0, variants.findIndex(({ place }) => this.#resembles(place, value, 0)));
  }

  /** Returns the only possible value of a required property, such as a constant. */
  #fixedValue(place: Place, depth: number): unknown {
    const shape = this.shapeOf(place);
    const hasDefault = defaultIn(this.#expand(place)) !== undefined;
    if (hasDefault || shape.kind === "object" || shape.kind === "list") {
      return this.initial(place, depth);
    }
    if (shape.kind === "variants") {
      const first = this.initial(place, depth);
      return typeof first === "object" && first !== null ? first : undefined;
    }
    return shape.kind === "choice" && shape.choices.length === 1
      ? shape.choices[0]?.value
      : undefined;
  }

  /** Returns true if a value has the schema's type, and its constants down to a depth. */
  #resembles(place: Place, value: unknown, depth: number): boolean {
    const parts = this.#expand(place);
    const types = typesOf(parts);
    if (types !== undefined && !types.some((type) => isOfType(type, value))) {
      return false;
    }
    const choice = choiceIn(parts);
    if (choice !== undefined) {
      return isOneOf(choice.choices.map((one) => one.value))(value);
    }
    if (depth === 0) return true;
    const shape = this.shapeOf(place);
    if (shape.kind === "variants") {
      return shape.variants.some((variant) => this.#resembles(variant.place, value, depth - 1));
    }
    if (shape.kind === "list" && Array.isArray(value)) {
      const { rest } = shape;
      return (
        rest === undefined ||
        value.slice(0, 8).every((item) => this.#resembles(rest, item, depth - 1))
      );
    }
    if (shape.kind !== "object" || !isObject(value)) return true;
    return (
      [...shape.required].every((name) => Object.hasOwn(value, name)) &&
      [...shape.properties].every(
        ([name, own]) =>
          !Object.hasOwn(value, name) || this.#resembles(own, value[name], depth - 1),
      )
    );
  }

  /** Resolves references and `allOf`. */
  #expand(place: Place): readonly ObjectPart[] {
    const found: ObjectPart[] = [];
    const waiting = [...place];
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      const { schema, base } = part;
      if (typeof schema === "boolean") continue;
      if (found.length >= MAX_PARTS) break;
      const own = this.#dialect === "2020-12" ? schema : asDraft2020(schema, this.#dialect);
      found.push({ schema: own, base });
      for (const keyword of ["$ref", "$dynamicRef"]) {
        const ref = own[keyword];
        const target = typeof ref === "string" ? this.#index.resolve(ref, base) : undefined;
        if (target !== undefined) {
          waiting.push({ schema: target.schema as JsonSchema, base: target.base });
        }
      }
      waiting.push(...placesIn(own["allOf"], base).flat());
    }
    return found;
  }

  #variantsIn(parts: readonly ObjectPart[]): Shape | undefined {
    for (const part of parts) {
      for (const keyword of ["oneOf", "anyOf"]) {
        const places = placesIn(part.schema[keyword], part.base);
        // Branches such as { required: ["a"] } only require properties: they offer no choice.
        if (places.length === 0 || !places.some((place) => this.#offersInput(place))) continue;
        const { [keyword]: _, ...rest } = part.schema;
        const others = parts
          .map((one) => (one === part ? { ...part, schema: rest } : one))
          .map(withoutReferences);
        const choices = places.map((place) => constantIn(this.#expand(place)));
        if (choices.every((choice) => choice !== undefined)) {
          return { kind: "choice", choices };
        }
        return {
          kind: "variants",
          variants: places.map((place, index) => ({
            label: this.#labelOf(place) ?? `Form ${index + 1}`,
            place: [...others, ...place],
          })),
        };
      }
    }
    const types = typesOf(parts);
    return types === undefined || types.length < 2 ? undefined : {
      kind: "variants",
      variants: types.map((type) => ({
        label: type,
        place: [...parts.map(withoutReferences), { schema: { type }, base: ROOT_URI }],
      })),
    };
  }

  #offersInput(place: Place): boolean {
    return this.#expand(place).some(({ schema }) =>
      FORM_KEYWORDS.some((keyword) => schema[keyword] !== undefined)
    );
  }

  #labelOf(place: Place, depth = 0): string | undefined {
    const parts = this.#expand(place);
    const title = textIn(parts, "title");
    if (title !== undefined) return title;
    const constant = constantIn(parts);
    if (constant !== undefined) return constant.label;
    const shape = shapeByType(parts);
    if (shape.kind === "object") {
      for (const [name, own] of shape.properties) {
        const value = constantIn(this.#expand(own));
        if (value !== undefined) return `${name}: ${value.label}`;
      }
      const names = [...shape.properties.keys()].slice(0, 3);
      return names.length === 0 ? "object" : names.join(", ");
    }
    if (shape.kind === "list" && shape.rest !== undefined) {
      const item = depth < 2 ? this.#labelOf(shape.rest, depth + 1) : undefined;
      return item === undefined ? "list" : `list of ${item}`;
    }
    return typesOf(parts)?.join(" or ");
  }
}

interface ObjectPart {
  readonly schema: JsonSchemaObject;
  readonly base: string;
}

const FORM_KEYWORDS = [
  ...["type", "properties", "items", "prefixItems", "const", "enum", "additionalProperties"],
  ...["oneOf", "anyOf"],
];

function withoutReferences({ schema, base }: ObjectPart): ObjectPart {
  const { $ref: _, $dynamicRef: __, allOf: ___, ...rest } = schema;
  return { schema: rest, base };
}

function placesIn(schemas: unknown, base: string): readonly Place[] {
  return Array.isArray(schemas) ? schemas.map((schema: JsonSchema) => [{ schema, base }]) : [];
}

/** Returns the first value of a keyword that `accepts` accepts. */
function firstIn<T>(
  parts: readonly ObjectPart[],
  keyword: string,
  accepts: (value: unknown) => value is T,
): T | undefined {
  return parts.map(({ schema }) => schema[keyword]).find(accepts);
}

function textIn(parts: readonly ObjectPart[], keyword: string): string | undefined {
  return firstIn(parts, keyword, isWord);
}

function numberIn(parts: readonly ObjectPart[], keyword: string): number | undefined {
  return firstIn(parts, keyword, (value) => typeof value === "number");
}

function defaultIn(parts: readonly ObjectPart[]): unknown {
  return firstIn(parts, "default", (value): value is unknown => value !== undefined);
}

function typesOf(parts: readonly ObjectPart[]): readonly string[] | undefined {
  let types: readonly string[] | undefined;
  for (const { schema } of parts) {
    const { type } = schema;
    if (type === undefined) continue;
    const own: readonly string[] = Array.isArray(type) ? type : [type];
    types = types === undefined ? own : types.flatMap((one) => {
      if (own.includes(one)) return [one];
      if (one === "number" && own.includes("integer")) return ["integer"];
      return one === "integer" && own.includes("number") ? ["integer"] : [];
    });
  }
  return types;
}

function labelled(values: readonly unknown[]): readonly Choice[] {
  const others = new Set(
    values.flatMap((value) => typeof value === "string" ? [] : [JSON.stringify(value)]),
  );
  return values.map((value) => ({
    label: typeof value === "string" && value !== "" && !others.has(value)
      ? value
      : JSON.stringify(value),
    value,
  }));
}

function choiceIn(
  parts: readonly ObjectPart[],
): { readonly kind: "choice"; readonly choices: readonly Choice[] } | undefined {
  const lists = parts.flatMap(({ schema }) => {
    if (Object.hasOwn(schema, "const")) return [[schema["const"]]];
    return Array.isArray(schema["enum"]) ? [schema["enum"] as unknown[]] : [];
  });
  const [first, ...others] = lists;
  if (first === undefined) return undefined;
  const values = first.filter((value) => others.every((list) => isOneOf(list)(value)));
  return { kind: "choice", choices: labelled(values) };
}

function constantIn(parts: readonly ObjectPart[]): Choice | undefined {
  const only = choiceIn(parts)?.choices;
  const [choice] = only ?? [];
  if (choice === undefined || only?.length !== 1) return undefined;
  return { value: choice.value, label: textIn(parts, "title") ?? choice.label };
}

function shapeByType(parts: readonly ObjectPart[]): Shape {
  const has = (keyword: string): boolean =>
    parts.some(({ schema }) => schema[keyword] !== undefined);
  const named = typesOf(parts);
  const type = named?.length === 1
    ? named[0]
    : named !== undefined
    ? undefined
    : has("properties") || has("additionalProperties")
    ? "object"
    : has("items") || has("prefixItems")
    ? "array"
    : undefined;
  switch (type) {
    case "object":
      return objectOf(parts);
    case "array":
      return listOf(parts);
    case "string": {
      const format = textIn(parts, "format");
      return { kind: "text", ...(format === undefined ? {} : { format }) };
    }
    case "number":
    case "integer":
      return { kind: "number", integer: type === "integer" };
    case "boolean":
    case "null":
      return { kind: type };
    default:
      return { kind: "json" };
  }
}

function objectOf(parts: readonly ObjectPart[]): ObjectShape {
  const properties = new Map<string, Place>();
  const required = new Set<string>();
  const rest: Part[] = [];
  let isClosed = false;
  let isOpen = false;
  for (const { schema, base } of parts) {
    if (isObject(schema["properties"])) {
      for (const [name, own] of Object.entries(schema["properties"])) {
        const part = { schema: own as JsonSchema, base };
        properties.set(name, [...(properties.get(name) ?? []), part]);
      }
    }
    if (Array.isArray(schema["required"])) {
      for (const name of schema["required"]) required.add(String(name));
    }
    for (const keyword of ["additionalProperties", "unevaluatedProperties"]) {
      const other = schema[keyword];
      if (other === false) isClosed = true;
      else if (other !== undefined) {
        isOpen = true;
        rest.push({ schema: other as JsonSchema, base });
      }
    }
    if (isObject(schema["patternProperties"])) {
      const [pattern] = Object.values(schema["patternProperties"]);
      if (pattern !== undefined) {
        isOpen = true;
        rest.push({ schema: pattern as JsonSchema, base });
      }
    }
  }
  // An object without named properties is a map, unless it is closed.
  const takesOthers = isOpen || (!isClosed && properties.size === 0);
  return { kind: "object", properties, required, ...(takesOthers ? { rest } : {}) };
}

function listOf(parts: readonly ObjectPart[]): ListShape {
  const first: Place[] = [];
  const rest: Part[] = [];
  let isClosed = false;
  for (const { schema, base } of parts) {
    placesIn(schema["prefixItems"], base).forEach((place, index) => {
      first[index] = [...(first[index] ?? []), ...place];
    });
    const { items } = schema;
    if (items === false) isClosed = true;
    else if (items !== undefined) {
      rest.push({ schema: items as JsonSchema, base });
    }
  }
  const maxItems = numberIn(parts, "maxItems") ?? Infinity;
  return { kind: "list", first, maxItems, ...(isClosed ? {} : { rest }) };
}
