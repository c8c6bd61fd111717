/**
 * The schemas of an OpenAPI document as JSON Schema. What they share stands in the `$defs` of each
 * schema that refers to it; recursion stays.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../../tool/mod.ts";
import { definitionName, fragment, fragmentSteps } from "../../transform/references.ts";
import { normalizeOpenApi30 } from "../../transform/normalize_openapi30.ts";
import {
  copyMap,
  copyNode,
  eachNode,
  isNode,
  isSchema,
  mapChildren,
  without,
} from "../../transform/schema_walk.ts";
import type { OpenApiDocument } from "./document.ts";

/** Which way values of a schema go. What is only read is no input, what is only written no output. */
export type Direction = "input" | "output";

/** A schema, and the definitions that it refers to, by their pointers. */
export interface ReadSchema {
  readonly schema: JsonSchema;
  readonly refs: ReadonlySet<string>;
}

/** OpenAPI's own dialect is 2020-12 with annotations. */
const OAS_DIALECT = /^https:\/\/spec\.openapis\.org\/oas\/3\.\d\/dialect\//;

const MAX_HOPS = 32;

const ROOT_WORDS: ReadonlySet<string> = new Set(["title", "description", "summary"]);

/** Reads the schemas of one document. Shared ones are read once for each direction. */
export class SchemaReader {
  readonly #document: OpenApiDocument;
  readonly #note: (path: string, keyword: string, message: string) => void;
  readonly #plain = new Map<unknown, JsonSchema>();
  /** Parameters and responses may be shared too: each schema is converted once. */
  readonly #read = {
    input: new Map<unknown, ReadSchema>(),
    output: new Map<unknown, ReadSchema>(),
  };
  readonly #definitions = {
    input: new Map<string, ReadSchema>(),
    output: new Map<string, ReadSchema>(),
  };
  /** The name in `$defs` of each pointer that was met, and the other way round. */
  readonly #names = new Map<string, string>();
  readonly #pointers = new Map<string, string>();

  constructor(
    document: OpenApiDocument,
    note: (path: string, keyword: string, message: string) => void,
  ) {
    this.#document = document;
    this.#note = note;
  }

  /** Reads a schema that stands at `path`. What is no schema accepts everything. */
  read(raw: unknown, path: string, direction: Direction): ReadSchema {
    const known = this.#read[direction].get(raw);
    if (known !== undefined) return known;
    const refs = new Set<string>();
    const plain = this.#normalize(raw, path);
    const read = { schema: this.#convert(plain, direction, refs), refs };
    this.#read[direction].set(raw, read);
    return read;
  }

  /** The pointers of the definitions that a part of a read schema refers to. */
  refsOf(schema: JsonSchema): ReadonlySet<string> {
    const refs = new Set<string>();
    eachNode(schema, (node) => {
      const pointer = this.#pointerOf(node["$ref"]);
      if (pointer !== undefined) refs.add(pointer);
    });
    return refs;
  }

  /** The definition that a reference of a read schema means. */
  definition(ref: unknown, direction: Direction): ReadSchema | undefined {
    const pointer = this.#pointerOf(ref);
    return pointer === undefined ? undefined : this.#define(pointer, direction);
  }

  /** A schema whose root is a reference, with what that leads to in its place. */
  inlineRoot(read: ReadSchema, direction: Direction): ReadSchema {
    let { schema, refs } = read;
    for (let hops = 0; hops < MAX_HOPS && isNode(schema); hops++) {
      const definition = this.definition(schema["$ref"], direction);
      if (definition === undefined) break;
      const { $ref: _followed, ...beside } = schema;
      // Words beside a reference win over those behind it; anything else holds beside it.
      if (Object.keys(beside).some((keyword) => !ROOT_WORDS.has(keyword))) break;
      schema = isNode(definition.schema) ? { ...definition.schema, ...beside } : definition.schema;
      refs = definition.refs;
    }
    return { schema, refs };
  }

  /** Puts the definitions that `refs` lead to beside a schema. */
  withDefinitions(
    schema: JsonSchema,
    refs: Iterable<string>,
    direction: Direction,
  ): JsonSchema {
    const open = new Set(refs);
    if (open.size === 0) return schema;
    const definitions: Record<string, unknown> = {};
    // A set's iterator goes on to what is added.
    for (const pointer of open) {
      const { schema: definition, refs: more } = this.#define(pointer, direction);
      setOwn(definitions, this.#names.get(pointer) ?? pointer, definition);
      for (const ref of more) open.add(ref);
    }
    if (!isNode(schema)) return schema;
    const own = schema["$defs"];
    return { ...schema, $defs: isNode(own) ? { ...own, ...definitions } : definitions };
  }

  #pointerOf(ref: unknown): string | undefined {
    const name = definitionName(ref);
    return name === undefined ? undefined : this.#pointers.get(name);
  }

  #normalize(raw: unknown, path: string): JsonSchema {
    if (!isSchema(raw)) return true;
    if (!this.#document.is30) return raw;
    const known = this.#plain.get(raw);
    if (known !== undefined) return known;
    const { schema, losses } = normalizeOpenApi30(raw);
    for (const loss of losses) this.#note(path + loss.path, loss.keyword, loss.message);
    this.#plain.set(raw, schema);
    return schema;
  }

  #define(pointer: string, direction: Direction): ReadSchema {
    const known = this.#definitions[direction].get(pointer);
    if (known !== undefined) return known;
    const target = this.#document.at(`#${pointer}`)?.value;
    const read = this.read(target, pointer, direction);
    this.#definitions[direction].set(pointer, read);
    return read;
  }

  #convert(schema: JsonSchema, direction: Direction, refs: Set<string>): JsonSchema {
    if (!isNode(schema)) return schema;
    // Below an `$id` references mean something else; `checkSchema` says whether they lead anywhere.
    if (!this.#document.is30 && typeof schema["$id"] === "string") return schema;
    const seen = this.#reference(this.#withoutHidden(schema, direction), refs);
    return mapChildren(seen, (child) => this.#convert(child, direction, refs));
  }

  /** The node with its reference into `$defs`, and without what only the document can use. */
  #reference(node: JsonSchemaObject, refs: Set<string>): JsonSchemaObject {
    const dialect = node["$schema"];
    const clean = typeof dialect === "string" && OAS_DIALECT.test(dialect)
      ? without(node, "$schema", "definitions")
      : without(node, "definitions");
    const ref = clean["$ref"];
    if (typeof ref !== "string") return clean;
    const target = this.#document.at(ref);
    if (target === undefined || !isSchema(target.value)) return clean;
    refs.add(target.path);
    const copy = copyNode(clean);
    copy["$ref"] = fragment(["$defs", this.#nameOf(target.path)]);
    return copy;
  }

  #nameOf(pointer: string): string {
    const known = this.#names.get(pointer);
    if (known !== undefined) return known;
    const last = fragmentSteps(`#${pointer}`)?.at(-1) ?? "";
    const wanted = last === "" ? "schema" : last;
    let name = wanted;
    for (let number = 2; this.#pointers.has(name); number++) name = `${wanted}_${number}`;
    this.#names.set(pointer, name);
    this.#pointers.set(name, pointer);
    return name;
  }

  #withoutHidden(node: JsonSchemaObject, direction: Direction): JsonSchemaObject {
    const { properties, required } = node;
    if (!isNode(properties)) return node;
    const flag = direction === "input" ? "readOnly" : "writeOnly";
    const hidden = Object.keys(properties).filter((name) => this.#has(flag, properties[name]));
    if (hidden.length === 0) return node;
    const copy = copyNode(node);
    const shown = copyMap(properties);
    for (const name of hidden) delete shown[name];
    copy["properties"] = shown;
    if (Array.isArray(required)) {
      copy["required"] = required.filter((name) => !hidden.includes(name));
    }
    return copy;
  }

  /** Whether a property, or what it refers to, has a flag. */
  #has(flag: "readOnly" | "writeOnly", property: unknown): boolean {
    let at = property;
    for (let hops = 0; hops < MAX_HOPS && isNode(at); hops++) {
      if (at[flag] === true) return true;
      if (typeof at["$ref"] !== "string") return false;
      at = this.#document.at(at["$ref"])?.value;
    }
    return false;
  }
}
