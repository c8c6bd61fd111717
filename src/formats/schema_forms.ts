/** Finds the forms that one schema uses. */

import { isObject, type JsonSchema, type JsonSchemaObject } from "../tool/mod.ts";
import { FORM_OF, type KeywordForm } from "./form_rules.ts";
import { constrains, lacksItems } from "./transform/keywords.ts";
import { acceptsNull, describesObjects } from "./transform/properties.ts";
import * as references from "./transform/references.ts";
import { eachChild, MAX_DEPTH, requiredBy, tooDeep, type Trace } from "./transform/rewrite.ts";

export type FormSet = ReadonlySet<KeywordForm>;

/** Parts of regular expressions that providers do not compile. */
const COMPLEX_PATTERN = /\(\?[=!<]|\\[1-9bBk]/;

export function formOfKeyword(keyword: string, node: JsonSchemaObject, root: boolean): KeywordForm {
  const value = node[keyword];
  // Checked first, because nearly every schema has a type.
  if (keyword === "type") {
    return Array.isArray(value) ? "type list" : value === "null" ? "type null" : "type";
  }
  const fixed = FORM_OF.get(keyword);
  if (fixed !== undefined) return fixed;
  switch (keyword) {
    case "anyOf":
    case "oneOf":
    case "allOf":
    case "not":
    case "$ref":
      return root ? "root composition" : keyword;
    case "enum":
      return root ? "root composition" : formOfValues(Array.isArray(value) ? value : []);
    case "const":
      if (root) return "root composition";
      return typeof value === "object" && value !== null ? "enum complex" : "const";
    case "nullable":
      return value === true ? "nullable" : "unknown";
    case "additionalProperties":
      return value === false ? "additionalProperties false" : "map";
    case "minItems":
      return value === 0 || value === 1 ? "minItems 0 or 1" : "minItems";
    case "pattern":
      return typeof value === "string" && COMPLEX_PATTERN.test(value)
        ? "pattern complex"
        : "pattern";
    default:
      return "unknown";
  }
}

function formOfValues(values: readonly unknown[]): KeywordForm {
  let form: KeywordForm = "enum";
  for (const value of values) {
    if (typeof value === "object" && value !== null) return "enum complex";
    if (value === "") form = form === "enum" ? "enum empty text" : form;
    else if (typeof value !== "string" && value !== null) form = "enum scalar";
  }
  return form;
}

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** The keywords that restrict the type of a value. */
const TYPE_KEYWORDS = new Set("type enum const $ref anyOf oneOf allOf $dynamicRef".split(" "));

export function formsOf(schema: JsonSchema, trace?: Trace): FormSet {
  const finder = new FormFinder(schema);
  if (!isObject(schema)) return finder.forms.add("boolean schema");
  finder.add(schema, true);
  if (finder.refers) {
    const { recursive, external } = references.findReferences(trace, schema);
    if (recursive.size > 0) finder.forms.add("$ref recursive");
    if (external.size > 0) finder.forms.add("$ref external");
  }
  return finder.forms;
}

class FormFinder {
  readonly forms: Set<KeywordForm> = new Set();
  refers = false;
  #depth = 0;
  readonly #resolve: references.Resolve;
  readonly #see: (child: JsonSchema, keyword: string) => void;

  constructor(root: JsonSchema) {
    this.#resolve = references.resolverOf(root);
    this.#see = (child, keyword) => {
      if (typeof child !== "boolean") this.add(child, false);
      else if (keyword !== "additionalProperties" && keyword !== "unevaluatedProperties") {
        this.forms.add("boolean schema");
      }
    };
  }

  add(node: JsonSchemaObject, root: boolean): void {
    if (this.#depth > MAX_DEPTH) throw tooDeep();
    this.#depth++;
    const { forms } = this;
    let hasType = false;
    for (const keyword in node) {
      forms.add(formOfKeyword(keyword, node, root));
      hasType ||= TYPE_KEYWORDS.has(keyword);
      if (keyword === "$ref") this.#addReference(node, root);
      else if (root) continue;
      // A constant that is a list or an object has two forms: "enum complex" and "const".
      else if (keyword === "const") forms.add("const");
      else if (keyword === "$id") forms.add("$ref elsewhere");
      else if (keyword === "anyOf" && crowdsUnion(node)) forms.add("anyOf with siblings");
    }
    eachChild(node, this.#see);
    if (!hasType) forms.add("no type");
    if (describesObjects(node)) this.#addObject(node, root);
    if (lacksItems(node)) forms.add("items missing");
    this.#depth--;
  }

  #addReference(node: JsonSchemaObject, root: boolean): void {
    this.refers = true;
    if (!root && Object.keys(node).length > 1) this.forms.add("$ref with siblings");
    if (node["$ref"] !== "#" && references.definitionName(node["$ref"]) === undefined) {
      this.forms.add("$ref elsewhere");
    }
  }

  #addObject(node: JsonSchemaObject, root: boolean): void {
    const { forms } = this;
    const properties = isObject(node["properties"]) ? node["properties"] : {};
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
    const keys = node["required"];
    if (Array.isArray(keys) && keys.some((name) => !Object.hasOwn(properties, String(name)))) {
      forms.add("undeclared required");
    }
    if (Object.hasOwn(node, "additionalProperties")) return;
    // Without properties, an object is a map; at the root, the tool has no parameters.
    forms.add(names === 0 && !root ? "map" : "open object");
  }
}

function crowdsUnion(node: JsonSchemaObject): boolean {
  return Object.keys(node).some((keyword) => keyword !== "anyOf" && constrains(keyword));
}
