/**
 * Finds what a `$ref` points to, inside one schema document. Nothing is fetched: what is not in the
 * document is not found.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import type { Dialect } from "./dialect.ts";

/** Where a document without an `$id` is taken to live. */
export const ROOT_URI = "plue:/schema";

/** A place in a document, and the URI that references at that place are relative to. */
export interface ReferenceTarget {
  readonly schema: unknown;
  readonly base: string;
}

/** The identified places of one document. A walk of the document fills it, then it resolves. */
export class ReferenceIndex {
  readonly #dialect: Dialect;
  readonly #targets = new Map<string, ReferenceTarget>();
  /** The schemas that have a `$dynamicAnchor`, by its name. */
  readonly dynamicAnchors: Map<string, ReferenceTarget[]> = new Map();

  constructor(root: JsonSchema, dialect: Dialect) {
    this.#dialect = dialect;
    this.#targets.set(ROOT_URI, { schema: root, base: ROOT_URI });
  }

  /**
   * Notes what a schema calls itself.
   *
   * @param base The URI that the place around it has.
   * @returns The URI that references inside it are relative to, or the name that is already taken.
   */
  add(schema: JsonSchemaObject, base: string): string | { readonly taken: string } {
    const id = schema["$id"];
    if (this.#dialect === "draft-07") {
      // In draft-07 a $ref hides everything beside it, and "#name" in $id is an anchor.
      if (typeof id !== "string" || schema["$ref"] !== undefined) return base;
      if (id.startsWith("#")) {
        return this.#set(base + id, { schema, base }) ? base : { taken: id };
      }
    }
    if (typeof id === "string") {
      const uri = join(id.replace(/#$/, ""), base);
      if (uri === undefined || !this.#set(uri, { schema, base: uri })) return { taken: id };
      base = uri;
    }
    if (this.#dialect === "draft-07") return base;
    const anchor = schema["$anchor"];
    const dynamic = schema["$dynamicAnchor"];
    const target = { schema, base };
    if (typeof anchor === "string" && !this.#set(`${base}#${anchor}`, target)) {
      return { taken: anchor };
    }
    if (typeof dynamic === "string") {
      if (dynamic !== anchor && !this.#set(`${base}#${dynamic}`, target)) return { taken: dynamic };
      const namesakes = this.dynamicAnchors.get(dynamic);
      if (namesakes === undefined) this.dynamicAnchors.set(dynamic, [target]);
      else namesakes.push(target);
    }
    return base;
  }

  /** What `ref` points to from a place with that base, if it is in the document. */
  resolve(ref: string, base: string): ReferenceTarget | undefined {
    const hash = ref.indexOf("#");
    const uri = hash === -1 ? ref : ref.slice(0, hash);
    const resource = uri === "" ? base : join(uri, base);
    const fragment = hash === -1 ? "" : decode(ref.slice(hash + 1));
    if (resource === undefined || fragment === undefined) return undefined;
    if (fragment === "") return this.#targets.get(resource);
    if (!fragment.startsWith("/")) return this.#targets.get(`${resource}#${fragment}`);
    const root = this.#targets.get(resource);
    return root && this.#follow(root, fragment);
  }

  #set(uri: string, target: ReferenceTarget): boolean {
    const known = this.#targets.get(uri);
    if (known !== undefined) return known.schema === target.schema;
    this.#targets.set(uri, target);
    return true;
  }

  #follow(root: ReferenceTarget, pointer: string): ReferenceTarget | undefined {
    let { schema, base } = root;
    for (const step of pointer.slice(1).split("/")) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof schema !== "object" || schema === null || !Object.hasOwn(schema, key)) {
        return undefined;
      }
      if (Array.isArray(schema) && key === "length") return undefined;
      schema = (schema as Record<string, unknown>)[key];
      base = this.#baseOf(schema, base);
    }
    return { schema, base };
  }

  /** The base inside a schema that is passed on the way; `add` has checked its `$id`. */
  #baseOf(schema: unknown, base: string): string {
    if (typeof schema !== "object" || schema === null) return base;
    const { $id: id, $ref: ref } = schema as JsonSchemaObject;
    if (typeof id !== "string") return base;
    if (this.#dialect === "draft-07" && (ref !== undefined || id.startsWith("#"))) return base;
    return join(id.replace(/#$/, ""), base) ?? base;
  }
}

function join(uri: string, base: string): string | undefined {
  try {
    return new URL(uri, base).href;
  } catch {
    return undefined;
  }
}

function decode(fragment: string): string | undefined {
  if (!fragment.includes("%")) return fragment;
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}
