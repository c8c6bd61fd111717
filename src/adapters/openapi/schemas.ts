/** Converts schemas of an OpenAPI document to JSON Schema, with shared schemas in `$defs`. */

import * as kit from "../../formats/provider_kit.ts";
import { fragment, fragmentSteps, isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, once, setOwn } from "../../tool/mod.ts";
import { type ApiDocument, type Located, MAX_HOPS } from "./document.ts";

/** The direction of values: inputs lack `readOnly` properties, outputs `writeOnly` ones. */
export type Direction = "input" | "output";

export interface ReadContext {
  readonly document: ApiDocument;
  readonly schemas: SchemaReader;
  /** The parameters that are credentials, as `in name`. The option `authorize` provides them. */
  readonly credentials: ReadonlySet<string>;
  warn(path: string, rule: string, message: string): void;
}

/** The dialects of OpenAPI 3.1 and later, which are JSON Schema 2020-12 with annotations. */
const OAS_DIALECT = /^https:\/\/spec\.openapis\.org\/oas\/3\.\d\/dialect\//;

const ANNOTATIONS_BESIDE_REF: ReadonlySet<string> = new Set(["title", "description", "summary"]);

export class SchemaReader {
  readonly #document: ApiDocument;
  readonly #note: (path: string, keyword: string, message: string) => void;
  readonly #plain = new Map<unknown, JsonSchema>();
  /** The schemas by their object in the document, which parameters and responses may share. */
  readonly #read = {
    input: new Map<unknown, JsonSchema>(),
    output: new Map<unknown, JsonSchema>(),
  };
  /** The name in `$defs` of each shared schema, by its pointer. */
  readonly #names = new Map<string, string>();
  /** The shared schemas by their names in `$defs`; `undefined` for a reference without a target. */
  readonly #definitions = new Map<string, Located<unknown> | undefined>();
  readonly #refs = new Map<JsonSchema, ReadonlySet<string>>();

  constructor(
    document: ApiDocument,
    note: (path: string, keyword: string, message: string) => void,
  ) {
    this.#document = document;
    this.#note = note;
  }

  /** Reads the schema at `path`. Anything but a schema is read as a schema that accepts everything. */
  read(raw: unknown, path: string, direction: Direction): JsonSchema {
    return once(
      this.#read[direction],
      raw,
      () => this.#convert(this.#normalize(raw, path), direction),
    );
  }

  definition(ref: unknown, direction: Direction): JsonSchema | undefined {
    const found = this.#definitions.get(kit.definitionName(ref) ?? "");
    return found && this.read(found.value, found.path, direction);
  }

  inlineRoot(root: JsonSchema, direction: Direction): JsonSchema {
    let schema = root;
    for (let hops = 0; hops < MAX_HOPS && isObject(schema); hops++) {
      const definition = this.definition(schema["$ref"], direction);
      if (definition === undefined) break;
      const { $ref: _followed, ...beside } = schema;
      // Annotations next to a reference override the target's annotations. Other keywords must hold
      // together with the target.
      if (Object.keys(beside).some((keyword) => !ANNOTATIONS_BESIDE_REF.has(keyword))) break;
      schema = isObject(definition) ? { ...definition, ...beside } : definition;
    }
    return schema;
  }

  /** Adds the definitions to which a read schema refers, directly or through others. */
  withDefinitions(schema: JsonSchema, direction: Direction): JsonSchema {
    if (!isObject(schema)) return schema;
    const names = new Set(this.#refsOf(schema));
    if (names.size === 0) return schema;
    const definitions: Record<string, unknown> = { ...kit.mapOf(schema["$defs"]) };
    // The loop also visits references that it adds.
    for (const name of names) {
      const definition = this.definition(fragment(["$defs", name]), direction) ?? true;
      setOwn(definitions, name, definition);
      for (const ref of once(this.#refs, definition, () => this.#refsOf(definition))) {
        names.add(ref);
      }
    }
    return { ...schema, $defs: definitions };
  }

  #refsOf(schema: JsonSchema): ReadonlySet<string> {
    const refs = new Set<string>();
    const visit = (node: JsonSchema): void => {
      if (!isObject(node) || this.#isWhole(node)) return;
      const name = kit.definitionName(node["$ref"]) ?? "";
      if (this.#definitions.get(name) !== undefined) refs.add(name);
      kit.eachChild(node, visit);
    };
    visit(schema);
    return refs;
  }

  /** An `$id` changes the base of the references below it. `checkSchema` checks such references. */
  #isWhole({ $id }: JsonSchemaObject): boolean {
    return !this.#document.is30 && typeof $id === "string";
  }

  #normalize(raw: unknown, path: string): JsonSchema {
    if (!isSchema(raw)) return true;
    if (!this.#document.is30) return raw;
    return once(this.#plain, raw, () => {
      const { schema, losses } = kit.normalizeOpenApi30(raw);
      for (const loss of losses) this.#note(path + loss.path, loss.keyword, loss.message);
      return schema;
    });
  }

  #convert(schema: JsonSchema, direction: Direction): JsonSchema {
    if (!isObject(schema) || this.#isWhole(schema)) return schema;
    const shown = this.#reference(this.#withoutHidden(schema, direction));
    return kit.mapChildren(undefined, shown, (child) => this.#convert(child, direction));
  }

  /** Returns the node with its reference into `$defs`, without the document's own keywords. */
  #reference(node: JsonSchemaObject): JsonSchemaObject {
    const dialect = node["$schema"];
    const clean = typeof dialect === "string" && OAS_DIALECT.test(dialect)
      ? kit.without(undefined, node, "$schema", "definitions")
      : kit.without(undefined, node, "definitions");
    const ref = clean["$ref"];
    if (typeof ref !== "string") return clean;
    const found = this.#document.at(ref);
    const target = found && isSchema(found.value) ? found : undefined;
    if (target === undefined && kit.definitionName(ref) === undefined) return clean;
    return { ...clean, $ref: fragment(["$defs", this.#nameOf(target, ref)]) };
  }

  #nameOf(target: Located<unknown> | undefined, ref: string): string {
    const place = target?.path ?? ref;
    return once(this.#names, place, () => {
      const wanted = fragmentSteps(ref)?.at(-1) || "schema";
      let name = wanted;
      for (let number = 2; this.#definitions.has(name); number++) name = `${wanted}_${number}`;
      this.#definitions.set(name, target);
      return name;
    });
  }

  #withoutHidden(node: JsonSchemaObject, direction: Direction): JsonSchemaObject {
    const { properties, required } = node;
    if (!isObject(properties)) return node;
    const flag = direction === "input" ? "readOnly" : "writeOnly";
    const hidden = Object.keys(properties).filter((name) => this.#has(flag, properties[name]));
    if (hidden.length === 0) return node;
    const shown = kit.without(undefined, properties, ...hidden);
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
