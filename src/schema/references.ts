/** Resolves references inside one schema document, and bounds their number. Fetches nothing. */

import {
  attemptOr,
  clip,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  once,
  pointerStep,
} from "../tool/mod.ts";
import { type Dialect, eachSchemaIn, isOldDraft, KEYWORDS, partsOf } from "./keywords.ts";

/** The URI of a document without an `$id`. */
export const ROOT_URI = "plue:/schema";

/** The maximum depth of the search for names. Registration allows far less. */
const MAX_DEPTH = 512;

export interface ReferenceTarget {
  readonly schema: unknown;
  /** The base URI outside the schema, to which the schema's own `$id` is relative. */
  readonly base: string;
}

/** The named schemas of one document. All names are added before references are resolved. */
export class ReferenceIndex {
  readonly dialect: Dialect;
  readonly #targets = new Map<string, ReferenceTarget>();
  /** The schemas with a `$dynamicAnchor`, by the name of the anchor. */
  readonly dynamicAnchors: Map<string, ReferenceTarget[]> = new Map();

  constructor(root: JsonSchema, dialect: Dialect) {
    this.dialect = dialect;
    this.#targets.set(ROOT_URI, { schema: root, base: ROOT_URI });
  }

  /** Adds a schema's names, and returns its base URI. `refuse` receives the invalid names. */
  add(schema: JsonSchemaObject, base: string, refuse: (name: unknown) => void = () => {}): string {
    const { $ref: ref, $anchor: anchor, $dynamicAnchor: dynamic } = schema;
    const target = { schema, base };
    const add = (name: unknown, uri: string): void => {
      if (once(this.#targets, uri, () => target).schema !== schema) refuse(name);
    };
    const id = this.#idOf(schema);
    const inner = this.#baseInside(schema, base);
    if (inner === undefined) refuse(id);
    else if (inner !== base) add(id, inner);
    if (isOldDraft(this.dialect)) {
      // Until draft-07, "#name" in `$id` is an anchor.
      if (typeof id === "string" && id.startsWith("#") && ref === undefined) add(id, base + id);
    } else {
      if (typeof anchor === "string") add(anchor, `${inner}#${anchor}`);
      if (typeof dynamic === "string" && this.dialect === "2020-12") {
        add(dynamic, `${inner}#${dynamic}`);
        const namesakes = once(this.dynamicAnchors, dynamic, () => []);
        if (!namesakes.some((namesake) => namesake.schema === schema)) namesakes.push(target);
      }
    }
    return inner ?? base;
  }

  /** Returns the target of `ref`, relative to a base, if it is in the document. */
  resolve(ref: string, base: string): ReferenceTarget | undefined {
    const hash = ref.indexOf("#");
    const uri = hash === -1 ? ref : ref.slice(0, hash);
    const resource = uri === "" ? base : join(uri, base);
    const fragment = hash === -1 ? "" : decode(ref.slice(hash + 1));
    if (resource === undefined || fragment === undefined) return undefined;
    if (fragment === "") return this.#targets.get(resource);
    if (!fragment.startsWith("/")) return this.#targets.get(`${resource}#${fragment}`);
    return this.#follow(resource, fragment);
  }

  uris(): Iterable<string> {
    return this.#targets.keys();
  }

  #follow(resource: string, pointer: string): ReferenceTarget | undefined {
    let schema = this.#targets.get(resource)?.schema;
    let base = resource;
    for (const [at, key] of pointerSteps(pointer).entries()) {
      if (typeof schema !== "object" || schema === null || !Object.hasOwn(schema, key)) {
        return undefined;
      }
      if (at > 0) base = this.#baseInside(schema as JsonSchemaObject, base) ?? base;
      schema = (schema as Record<string, unknown>)[key];
    }
    return { schema, base };
  }

  #idOf(schema: JsonSchemaObject): unknown {
    return schema[this.dialect === "draft-04" ? "id" : "$id"];
  }

  /** The base URI of references in `schema`; `undefined` if the schema's `$id` is not a URI. */
  #baseInside(schema: JsonSchemaObject, base: string): string | undefined {
    const id = this.#idOf(schema);
    if (typeof id !== "string") return base;
    // Until draft-07, a `$ref` hides the keywords next to it.
    const hidden = isOldDraft(this.dialect) && schema["$ref"] !== undefined;
    return hidden || id.startsWith("#") ? base : join(id.replace(/#$/, ""), base);
  }
}

// Functions, not methods: the core does not use them, so bundles of the core omit them.

export function indexSchemas(
  index: ReferenceIndex,
  schema: JsonSchema,
  base: string = ROOT_URI,
  depth = 0,
): void {
  if (typeof schema === "boolean" || depth > MAX_DEPTH) return;
  const inner = index.add(schema, base);
  eachSchemaIn(schema, KEYWORDS[index.dialect], (child) => {
    indexSchemas(index, child, inner, depth + 1);
  });
}

/** Returns the target of `ref` in the root, or else in the first embedded document that has it. */
export function resolveAnywhere(index: ReferenceIndex, ref: string): ReferenceTarget | undefined {
  for (const uri of index.uris()) {
    const target = uri.includes("#") ? undefined : index.resolve(ref, uri);
    if (target !== undefined) return target;
  }
  return undefined;
}

/**
 * Creates a function that counts the schemas that apply after a schema's references are followed. A
 * schema that refers to itself counts as `circle`, a chain of more than `maxChain` as `Infinity`.
 */
export function unfolding(
  next: (schema: JsonSchemaObject) => Iterable<unknown>,
  circle: number,
  maxChain: number,
): (schema: unknown) => number {
  const sizes = new Map<unknown, number>();
  const sizeOf = (schema: unknown, depth: number): number => {
    if (!isObject(schema)) return 0;
    const known = sizes.get(schema);
    if (known !== undefined) return known;
    if (depth > maxChain) return Infinity;
    sizes.set(schema, circle);
    let size = 1;
    for (const part of next(schema)) size += sizeOf(part, depth + 1);
    sizes.set(schema, size);
    return size;
  };
  return (schema) => sizeOf(schema, 0);
}

/** Splits a JSON Pointer (RFC 6901) into its keys. */
export function pointerSteps(pointer: string): string[] {
  return pointer === ""
    ? []
    : pointer.slice(1).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Splits a JSON Pointer that is a URI fragment; returns `undefined` for other references. */
export function fragmentSteps(ref: string): string[] | undefined {
  const pointer = /^#(?:\/|$)/.test(ref) ? decode(ref.slice(1)) : undefined;
  return pointer === undefined ? undefined : pointerSteps(pointer);
}

/** Writes a JSON Pointer as a URI fragment. */
export function fragment(steps: readonly string[]): string {
  return `#${
    steps.map((step) => encodeURI(pointerStep(step)).replaceAll("#", "%23").replaceAll("?", "%3F"))
      .join("")
  }`;
}

function join(uri: string, base: string): string | undefined {
  return attemptOr(undefined, () => new URL(uri, base).href);
}

function decode(fragment: string): string | undefined {
  if (!fragment.includes("%")) return fragment;
  return attemptOr(undefined, () => decodeURIComponent(fragment));
}

/** A reference, and the pointer and the base URI of the schema that contains the reference. */
export interface Reference {
  readonly holder: JsonSchemaObject;
  readonly keyword: "$ref" | "$dynamicRef" | "$recursiveRef";
  readonly base: string;
  readonly pointer: string;
  /** The possible targets. A dynamic reference may have several. */
  targets: readonly unknown[];
}

/** The maximum length of a chain of references that check one value: each uses the stack. */
const MAX_CHAIN = 256;

/**
 * Bounds the chains of references that check one value. Throws a `TypeError` for a circle, and a
 * `RangeError` if more than `maxSchemas` schemas check one value.
 */
export function boundReferences(
  references: readonly Reference[],
  dialect: Dialect,
  maxSchemas: number,
  what: string,
): void {
  // Sets, because an object that occurs twice in the schema is visited twice.
  const targetsOf = new Map<unknown, Set<unknown>>();
  for (const { holder, targets } of references) {
    const known = once(targetsOf, holder, () => new Set());
    for (const target of targets) known.add(target);
  }
  // NaN for a circle, and for every schema that refers to a circle.
  const sizeOf = unfolding(
    (schema) => {
      const next = [...targetsOf.get(schema) ?? []];
      const hidden = isOldDraft(dialect) && next.length > 0;
      return hidden ? next : [...next, ...partsOf(schema, dialect).inPlace];
    },
    NaN,
    MAX_CHAIN,
  );
  for (const { holder, keyword, pointer } of references) {
    const size = sizeOf(holder);
    if (size <= maxSchemas) continue;
    throw Number.isNaN(size)
      ? new TypeError(
        `Cannot use ${what}: "${pointer}" refers to itself: ` +
          `put the reference to "${clip(String(holder[keyword]))}" under "properties" or "items"`,
      )
      : new RangeError(
        `Cannot use ${what}: "${pointer}" exceeds a limit: its references must unfold to at ` +
          `most ${maxSchemas} schemas, in chains of at most ${MAX_CHAIN}`,
      );
  }
}

/** A schema that applies at most this number of schemas is cheap; a recursive one has no end. */
const FEW_SCHEMAS = 1_000;
/** A longer chain of schemas counts as endless. */
const LONG_CHAIN = 1_000;
/** The maximum number of schemas that check one value; registration allows fewer. */
const MAX_IN_PLACE = 10_000;

/**
 * Returns true if a normalised schema checks a part of a value more than once at each level.
 * `{"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 1}]}` checks each item
 * twice, the items of each item four times, and so on.
 */
export function checksRepeatedly(
  root: JsonSchema,
  targets: ReadonlyMap<string, JsonSchema>,
): boolean {
  const splitParts = (schema: JsonSchemaObject): ReturnType<typeof partsOf> => {
    const { inPlace, below } = partsOf(schema);
    return { inPlace: [...inPlace, targets.get(String(schema["$ref"]))], below };
  };
  const sizeOf = unfolding(
    (schema) => {
      const { inPlace, below } = splitParts(schema);
      return [...inPlace, ...below.map(({ child }) => child)];
    },
    Infinity,
    LONG_CHAIN,
  );
  const units = new Set<unknown>([root]);
  for (const unit of units) {
    const positions = new Set<string>();
    // A list, not a set: a schema that is reached in two ways checks the value twice.
    const here = [unit];
    for (const schema of here) {
      if (!isObject(schema)) continue;
      const { inPlace, below } = splitParts(schema);
      here.push(...inPlace);
      if (here.length > MAX_IN_PLACE) return true;
      for (const { child, position } of below) {
        if (sizeOf(child) <= FEW_SCHEMAS) continue;
        if (overlaps(position, positions)) return true;
        positions.add(position);
        units.add(child);
      }
    }
  }
  return false;
}

/** Returns true if a value at `position` may also be at one of the other positions. */
function overlaps(position: string, others: ReadonlySet<string>): boolean {
  if (others.has(position)) return true;
  const all = position.slice(0, 1);
  return position === all ? [...others].some((other) => other.startsWith(all)) : others.has(all);
}
