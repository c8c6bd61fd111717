/**
 * The forms that one schema uses.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { FormSet } from "./form_set.ts";
import { formOfKeyword } from "./keyword_forms.ts";
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
  eachChild,
  holdsSchemas,
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

/**
 * The forms that a schema uses.
 *
 * @param schema A schema of 2020-12.
 * @returns Each form once.
 */
export function formsOf(schema: JsonSchema): FormSet {
  const forms = new FormSet();
  if (!isNode(schema)) return forms.add("boolean schema");
  if (addForms(schema, resolverOf(schema), true, forms, 0)) {
    const { recursive, external } = findReferences(schema);
    if (recursive.size > 0) forms.add("$ref recursive");
    if (external.size > 0) forms.add("$ref external");
  }
  return forms;
}

/**
 * Adds the forms of a schema and of those in it. Every schema of every export comes by here once,
 * so it goes over the keywords of each once, and into none that holds no schema.
 *
 * @returns Whether there is a `$ref`.
 */
function addForms(
  node: JsonSchemaObject,
  resolve: Resolve,
  root: boolean,
  forms: FormSet,
  depth: number,
): boolean {
  if (depth > MAX_DEPTH) throw tooDeep();
  let refers = false;
  let saysType = false;
  let crowdsUnion = false;
  let keywords = 0;
  let holds = false;
  for (const keyword in node) {
    keywords++;
    forms.add(formOfKeyword(keyword, node, root));
    saysType ||= SAYS_TYPE.has(keyword);
    crowdsUnion ||= keyword !== "anyOf" && constrains(keyword);
    holds ||= holdsSchemas(keyword);
    if (keyword === "$ref") refers = true;
    else if (root) continue;
    // A list or an object in it counts as that, and needs the keyword all the same.
    else if (keyword === "const") forms.add("const");
    else if (keyword === "$id") forms.add("$ref elsewhere");
  }
  if (refers) {
    if (keywords > 1 && !root) forms.add("$ref with siblings");
    if (node["$ref"] !== "#" && definitionName(node["$ref"]) === undefined) {
      forms.add("$ref elsewhere");
    }
  }
  if (!saysType) forms.add("no type");
  if (crowdsUnion && !root && Object.hasOwn(node, "anyOf")) forms.add("anyOf with siblings");
  if (describesObjects(node)) addObjectForms(node, resolve, root, forms);
  if (lacksItems(node)) forms.add("items missing");
  if (!holds) return refers;
  eachChild(node, (child, keyword) => {
    if (typeof child !== "boolean") {
      refers = addForms(child, resolve, false, forms, depth + 1) || refers;
    } // Everybody takes a boolean there.
    else if (keyword !== "additionalProperties" && keyword !== "unevaluatedProperties") {
      forms.add("boolean schema");
    }
  });
  return refers;
}

function addObjectForms(
  node: JsonSchemaObject,
  resolve: Resolve,
  root: boolean,
  forms: FormSet,
): void {
  const properties = isNode(node["properties"]) ? node["properties"] : {};
  const required = requiredBy(node);
  let names = 0;
  for (const name in properties) {
    names++;
    if (!PLAIN_KEY.test(name)) forms.add("odd property key");
    if (required.has(name)) continue;
    forms.add("optional property");
    const property = properties[name] as JsonSchema;
    if (acceptsNull(property, resolve)) forms.add("optional nullable property");
  }
  const asked = node["required"];
  if (Array.isArray(asked) && asked.some((name) => !Object.hasOwn(properties, String(name)))) {
    forms.add("undeclared required");
  }
  if (Object.hasOwn(node, "additionalProperties")) return;
  // An object that names no properties is there to hold any; a tool without parameters is not.
  forms.add(names === 0 && !root ? "map" : "open object");
}
