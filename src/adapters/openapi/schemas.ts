/** Converts schemas of an OpenAPI document to JSON Schema, with shared schemas in `$defs`. */

import {
  definitionName,
  eachNode,
  mapChildren,
  normalizeOpenApi30,
  without,
} from "../../formats/provider_kit.ts";
import { fragment, fragmentSteps, isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import type { ApiDocument, Located } from "./document.ts";

/** The direction of values: inputs lack `readOnly` properties, outputs `writeOnly` ones. */
export type Direction = "input" | "output";

/** A schema, and the names of the definitions that it refers to. */
export interface ReadSchema {
  readonly schema: JsonSchema;
  readonly refs: ReadonlySet<string>;
}

export interface ReadContext {
  readonly document: ApiDocument;
  readonly schemas: SchemaReader;
  /** The parameters that are credentials, as `in name`. The option `authorize` provides them. */
  readonly credentials: ReadonlySet<string>;
  warn(path: string, rule: string, message: string): void;
}

/** The dialects of OpenAPI 3.1 and later, which are JSON Schema 2020-12 with annotations. */
const OAS_DIALECT = /^https:\/\/spec\.openapis\.org\/oas\/3\.\d\/dialect\//;

const MAX_HOPS = 32;

const ANNOTATIONS_BESIDE_REF: ReadonlySet<string> = new Set(["title", "description", "summary"]);

/** Reads the schemas of one document. A shared schema is read once for each direction. */
export class SchemaReader {
  readonly #document: ApiDocument;
  readonly #note: (path: string, keyword: string, message: string) => void;
  readonly #plain = new Map<unknown, JsonSchema>();
  /** The schemas by their object in the document, which parameters and responses may share. */
  readonly #read = {
    input: new Map<unknown, ReadSchema>(),
    output: new Map<unknown, ReadSchema>(),
  };
  /** The name in `$defs` of each shared schema, by its pointer. */
  readonly #names = new Map<string, string>();
  readonly #definitions = new Map<string, Located<unknown>>();

  constructor(
    document: ApiDocument,
    note: (path: string, keyword: string, message: string) => void,
  ) {
    this.#document = document;
    this.#note = note;
  }

  /** Reads the schema at `path`. Anything but a schema is read as a schema that accepts everything. */
  read(raw: unknown, path: string, direction: Direction): ReadSchema {
    const known = this.#read[direction].get(raw);
    if (known !== undefined) return known;
    const refs = new Set<string>();
    const plain = this.#normalize(raw, path);
    const read = { schema: this.#convert(plain, direction, refs), refs };
    this.#read[direction].set(raw, read);
    return read;
  }

  /** Returns the names of the definitions to which a part of a read schema refers. */
  refsOf(schema: JsonSchema): ReadonlySet<string> {
    const refs = new Set<string>();
    eachNode(undefined, schema, (node) => {
      const name = definitionName(node["$ref"]);
      if (name !== undefined && this.#definitions.has(name)) refs.add(name);
    });
    return refs;
  }

  definition(ref: unknown, direction: Direction): ReadSchema | undefined {
    const name = definitionName(ref);
    return name === undefined ? undefined : this.#define(name, direction);
  }

  /** Replaces a reference at the root of a schema by its target. */
  inlineRoot(read: ReadSchema, direction: Direction): ReadSchema {
    let { schema, refs } = read;
    for (let hops = 0; hops < MAX_HOPS && isObject(schema); hops++) {
      const definition = this.definition(schema["$ref"], direction);
      if (definition === undefined) break;
      const { $ref: _followed, ...beside } = schema;
      // Annotations next to a reference override the target's annotations. Other keywords must hold
      // together with the target.
      if (Object.keys(beside).some((keyword) => !ANNOTATIONS_BESIDE_REF.has(keyword))) break;
      schema = isObject(definition.schema)
        ? { ...definition.schema, ...beside }
        : definition.schema;
      refs = definition.refs;
    }
    return { schema, refs };
  }

  withDefinitions(schema: JsonSchema, refs: Iterable<string>, direction: Direction): JsonSchema {
    const open = new Set(refs);
    if (open.size === 0) return schema;
    const definitions: Record<string, unknown> = {};
    // The loop also visits references that it adds.
    for (const name of open) {
      const definition = this.#define(name, direction);
      if (definition === undefined) continue;
      setOwn(definitions, name, definition.schema);
      for (const ref of definition.refs) open.add(ref);
    }
    if (!isObject(schema)) return schema;
    const own = schema["$defs"];
    return { ...schema, $defs: isObject(own) ? { ...own, ...definitions } : definitions };
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

  #define(name: string, direction: Direction): ReadSchema | undefined {
    const found = this.#definitions.get(name);
    return found && this.read(found.value, found.path, direction);
  }

  #convert(schema: JsonSchema, direction: Direction, refs: Set<string>): JsonSchema {
    if (!isObject(schema)) return schema;
    // An `$id` changes the base of the references below it. `checkSchema` checks such references.
    if (!this.#document.is30 && typeof schema["$id"] === "string") return schema;
    const shown = this.#reference(this.#withoutHidden(schema, direction), refs);
    return mapChildren(undefined, shown, (child) => this.#convert(child, direction, refs));
  }

  /** Returns the node with its reference into `$defs`, without the document's own keywords. */
  #reference(node: JsonSchemaObject, refs: Set<string>): JsonSchemaObject {
    const dialect = node["$schema"];
    const clean = typeof dialect === "string" && OAS_DIALECT.test(dialect)
      ? without(undefined, node, "$schema", "definitions")
      : without(undefined, node, "definitions");
    const ref = clean["$ref"];
    if (typeof ref !== "string") return clean;
    const target = this.#document.at(ref);
    if (target === undefined || !isSchema(target.value)) return clean;
    const name = this.#nameOf(target, ref);
    refs.add(name);
    return { ...clean, $ref: fragment(["$defs", name]) };
  }

  #nameOf(target: Located<unknown>, ref: string): string {
    const known = this.#names.get(target.path);
    if (known !== undefined) return known;
    const wanted = fragmentSteps(ref)?.at(-1) || "schema";
    let name = wanted;
    for (let number = 2; this.#definitions.has(name); number++) name = `${wanted}_${number}`;
    this.#names.set(target.path, name);
    this.#definitions.set(name, target);
    return name;
  }

  #withoutHidden(node: JsonSchemaObject, direction: Direction): JsonSchemaObject {
    const { properties, required } = node;
    if (!isObject(properties)) return node;
    const flag = direction === "input" ? "readOnly" : "writeOnly";
    const hidden = Object.keys(properties).filter((name) => this.#has(flag, properties[name]));
    if (hidden.length === 0) return node;
    const shown = without(undefined, properties, ...hidden);
    if (!Array.isArray(required)) return { ...node, properties: shown };
    const left = required.filter((name) => !hidden.includes(name));
    return { ...node, properties: shown, required: left };
  }

  #has(flag: "readOnly" | "writeOnly", property: unknown): boolean {
    let at = property;
    for (let hops = 0; hops < MAX_HOPS && isObject(at); hops++) {
      if (at[flag] === true) return true;
      if (typeof at["$ref"] !== "string") return false;
      at = this.#document.at(at["$ref"])?.value;
    }
    return false;
  }
}
