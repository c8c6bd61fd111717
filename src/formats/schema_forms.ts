/**
 * The forms that one schema uses.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { FormSet } from "./form_set.ts";
import { FORM_OF, formOfKeyword } from "./keyword_forms.ts";
import { describesObjects } from "./transform/close_objects.ts";
import { constrains } from "./transform/describe_constraints.ts";
import { acceptsNull } from "./transform/nullable.ts";
import {
  definitionName,
  findReferences,
  type Resolve,
  resolverOf,
} from "./transform/references.ts";
import {
  eachChildIn,
  HOLDS,
  isNode,
  MAX_DEPTH,
  requiredBy,
  tooDeep,
} from "./transform/schema_walk.ts";
import { lacksItems } from "./transform/tuples.ts";

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** What a schema needs one of to say something about the type of a value. */
const SAYS_TYPE: ReadonlySet<string> = new Set([
  "type",
  "enum",
  "const",
  "$ref",
  "anyOf",
  "oneOf",
  "allOf",
  "$dynamicRef",
]);

/** What is known of a keyword, whatever it holds. */
interface KeywordFacts {
  /** Its form; absent if that depends on what it holds. */
  readonly forms: FormSet | undefined;
  readonly saysType: boolean;
  readonly holds: boolean;
}

/** In one table, because every keyword of every schema is looked up. */
const FACTS: ReadonlyMap<string, KeywordFacts> = new Map(
  [...FORM_OF.keys(), ...SAYS_TYPE, ...HOLDS.keys()].map((keyword): [string, KeywordFacts] => {
    const form = FORM_OF.get(keyword);
    return [keyword, {
      forms: form === undefined ? undefined : new FormSet([form]),
      saysType: SAYS_TYPE.has(keyword),
      holds: HOLDS.has(keyword),
    }];
  }),
);

/**
 * The forms that a schema uses.
 *
 * @param schema A schema of 2020-12.
 * @returns Each form once.
 */
export function formsOf(schema: JsonSchema): FormSet {
  const finder = new FormFinder(schema);
  if (!isNode(schema)) return finder.forms.add("boolean schema");
  finder.add(schema, true);
  if (finder.refers) {
    const { recursive, external } = findReferences(schema);
    if (recursive.size > 0) finder.forms.add("$ref recursive");
    if (external.size > 0) finder.forms.add("$ref external");
  }
  return finder.forms;
}

/**
 * Collects forms. Every schema of every export comes by here once, so it goes over the keywords of
 * each once, and into none that holds no schema.
 */
class FormFinder {
  readonly forms: FormSet = new FormSet();
  /** There is a `$ref`. */
  refers = false;
  #depth = 0;
  readonly #resolve: Resolve;
  readonly #see: (child: JsonSchema, keyword: string) => void;

  constructor(root: JsonSchema) {
    this.#resolve = resolverOf(root);
    this.#see = (child, keyword) => {
      if (typeof child !== "boolean") this.add(child, false);
      // Everybody takes a boolean there.
      else if (keyword !== "additionalProperties" && keyword !== "unevaluatedProperties") {
        this.forms.add("boolean schema");
      }
    };
  }

  /** Adds the forms of a schema and of those in it. */
  add(node: JsonSchemaObject, root: boolean): void {
    if (this.#depth > MAX_DEPTH) throw tooDeep();
    this.#depth++;
    const { forms } = this;
    let saysType = false;
    for (const keyword in node) {
      const facts = FACTS.get(keyword);
      if (facts?.forms !== undefined) forms.addAll(facts.forms);
      else forms.add(formOfKeyword(keyword, node, root));
      if (facts === undefined) continue;
      saysType ||= facts.saysType;
      if (facts.holds) eachChildIn(node, keyword, this.#see);
      if (keyword === "$ref") this.#addReference(node, root);
      else if (root) continue;
      // A list or an object in it counts as that, and needs the keyword all the same.
      else if (keyword === "const") forms.add("const");
      else if (keyword === "$id") forms.add("$ref elsewhere");
      else if (keyword === "anyOf" && crowdsUnion(node)) forms.add("anyOf with siblings");
    }
    if (!saysType) forms.add("no type");
    if (describesObjects(node)) this.#addObject(node, root);
    if (lacksItems(node)) forms.add("items missing");
    this.#depth--;
  }

  #addReference(node: JsonSchemaObject, root: boolean): void {
    this.refers = true;
    if (!root && Object.keys(node).length > 1) this.forms.add("$ref with siblings");
    if (node["$ref"] !== "#" && definitionName(node["$ref"]) === undefined) {
      this.forms.add("$ref elsewhere");
    }
  }

  #addObject(node: JsonSchemaObject, root: boolean): void {
    const { forms } = this;
    const properties = isNode(node["properties"]) ? node["properties"] : {};
    const required = requiredBy(node);
    let names = 0;
    for (const name in properties) {
      names++;
      if (!PLAIN_KEY.test(name)) forms.add("odd property key");
      if (required.has(name)) continue;
      forms.add("optional property");
      const property = properties[name] as JsonSchema;
      if (acceptsNull(property, this.#resolve)) forms.add("optional nullable property");
    }
    const asked = node["required"];
    if (Array.isArray(asked) && asked.some((name) => !Object.hasOwn(properties, String(name)))) {
      forms.add("undeclared required");
    }
    if (Object.hasOwn(node, "additionalProperties")) return;
    // An object that names no properties is there to hold any; a tool without parameters is not.
    forms.add(names === 0 && !root ? "map" : "open object");
  }
}

function crowdsUnion(node: JsonSchemaObject): boolean {
  return Object.keys(node).some((keyword) => keyword !== "anyOf" && constrains(keyword));
}
