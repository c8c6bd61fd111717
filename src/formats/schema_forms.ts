/**
 * The forms that one schema uses.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { FormSet } from "./form_set.ts";
import { formOfKeyword } from "./keyword_forms.ts";
import { describesObjects } from "./transform/close_objects.ts";
import { acceptsNull } from "./transform/nullable.ts";
import { definitionName, findReferences } from "./transform/references.ts";
import { eachNode, isNode } from "./transform/schema_walk.ts";
import { lacksItems } from "./transform/tuples.ts";
import { BESIDE_UNION } from "./transform/unions.ts";

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** What a schema needs to say something about the type of a value. */
const SAYS_TYPE = [
  "type",
  "enum",
  "const",
  "$ref",
  "anyOf",
  "oneOf",
  "allOf",
  "$dynamicRef",
] as const;

/**
 * The forms that a schema uses.
 *
 * @param schema A schema of 2020-12.
 * @returns Each form once.
 */
export function formsOf(schema: JsonSchema): FormSet {
  const forms = new FormSet();
  if (!isNode(schema)) return forms.add("boolean schema");
  let references = false;
  eachNode(schema, (node, { root }) => {
    for (const keyword of Object.keys(node)) {
      forms.add(formOfKeyword(keyword, node, root));
      // A list or an object in it counts as that, and needs the keyword all the same.
      if (keyword === "const" && !root) forms.add("const");
      if (keyword === "$id" && !root) forms.add("$ref elsewhere");
      if (keyword !== "$ref") continue;
      references = true;
      if (Object.keys(node).length > 1 && !root) forms.add("$ref with siblings");
      if (node["$ref"] !== "#" && definitionName(node["$ref"]) === undefined) {
        forms.add("$ref elsewhere");
      }
    }
    if (describesObjects(node)) addObjectForms(node, root, forms);
    if (lacksItems(node)) forms.add("items missing");
    if (Object.hasOwn(node, "anyOf") && !root) {
      if (Object.keys(node).some((keyword) => !BESIDE_UNION.has(keyword))) {
        forms.add("anyOf with siblings");
      }
    }
    if (!SAYS_TYPE.some((keyword) => Object.hasOwn(node, keyword))) forms.add("no type");
  }, (_value, keyword) => {
    // Everybody takes a boolean there.
    if (keyword !== "additionalProperties" && keyword !== "unevaluatedProperties") {
      forms.add("boolean schema");
    }
  });
  if (references) {
    const { recursive, external } = findReferences(schema);
    if (recursive.size > 0) forms.add("$ref recursive");
    if (external.size > 0) forms.add("$ref external");
  }
  return forms;
}

function addObjectForms(node: JsonSchemaObject, root: boolean, forms: FormSet): void {
  const properties = isNode(node["properties"]) ? node["properties"] : {};
  const names = Object.keys(properties);
  const required: readonly unknown[] = Array.isArray(node["required"]) ? node["required"] : [];
  for (const name of names) {
    if (!PLAIN_KEY.test(name)) forms.add("odd property key");
    if (required.includes(name)) continue;
    forms.add("optional property");
    const property = properties[name] as JsonSchema;
    if (acceptsNull(property)) forms.add("optional nullable property");
  }
  if (required.some((name) => !Object.hasOwn(properties, String(name)))) {
    forms.add("undeclared required");
  }
  if (Object.hasOwn(node, "additionalProperties")) return;
  // An object that names no properties is there to hold any; a tool without parameters is not.
  forms.add(names.length === 0 && !root ? "map" : "open object");
}
