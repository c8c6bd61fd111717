/** Rewrites older drafts, OpenAPI 3.0 and the typed schema of Gemini as JSON Schema 2020-12. */

import {
  asDraft2020,
  BESIDE_REF,
  type Dialect,
  fragment,
  fragmentSteps,
  isLater,
  isOldDraft,
} from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { LENGTHS } from "./keywords.ts";
import { acceptNull } from "./properties.ts";
import * as rewriting from "./rewrite.ts";
import { Trace, without } from "./rewrite.ts";
import { Report, type SchemaLoss } from "./report.ts";

/** Rewrites a schema of an older draft as a schema of 2020-12 that accepts the same values. */
export function normalizeDraft(trace: Trace, root: JsonSchema, dialect: Dialect): JsonSchema {
  return rewriting.mapSchema(trace, root, {
    enter: (node, spot) => {
      const moved = new Map<string, rewriting.Slot>();
      const made = asDraft2020(
        node,
        dialect,
        (to, from) => moved.set(to, { node, keyword: from }),
        // A tool's parameters have `type: "object"` at the root, even with a `$ref`.
        spot.root ? "type" : undefined,
      );
      const ref = newReference(made["$ref"], root, dialect);
      if (made === node && ref === made["$ref"]) return node;
      const result = ref === undefined ? made : { ...made, $ref: ref };
      trace.cameFrom(result, node, moved);
      return result;
    },
  });
}

/** Returns true if a draft-07 schema, with its `definitions`, has the same meaning in 2020-12. */
export function isUnchanged(schema: JsonSchema): boolean {
  let alike = true;
  rewriting.eachNode(undefined, schema, (node, spot) => {
    const { $id } = node;
    if (
      Array.isArray(node["items"]) || Object.hasOwn(node, "dependencies") ||
      (typeof $id === "string" && $id.startsWith("#")) ||
      Object.keys(node).some((keyword) => isLater(keyword, "draft-07")) ||
      (Object.hasOwn(node, "$ref") &&
        !Object.keys(node).every((key) => BESIDE_REF.has(key) || (spot.root && key === "type")))
    ) alike = false;
  });
  return alike;
}

/** Rewrites a reference to the path of its target in 2020-12. */
function newReference(ref: unknown, root: JsonSchema, dialect: Dialect): unknown {
  if (typeof ref !== "string") return ref;
  const steps = fragmentSteps(ref);
  if (steps === undefined) return ref;
  let at: unknown = root;
  // Inside a map, a step is a name, even if it is spelled like a keyword.
  let inMap = false;
  const moved: string[] = [];
  const old = isOldDraft(dialect);
  for (const step of steps) {
    const tuple = isObject(at) && Array.isArray(at["items"]);
    if (!isObject(at) || inMap) moved.push(step);
    else if (step === "definitions" && old && !Object.hasOwn(at, "$defs")) moved.push("$defs");
    else if (step === "items" && tuple) moved.push("prefixItems");
    else if (step === "additionalItems" && tuple) moved.push("items");
    else if (step === "dependencies" && old) moved.push("dependentSchemas");
    else moved.push(step);
    inMap = !inMap && MAPS.includes(step);
    at = typeof at === "object" && at !== null && Object.hasOwn(at, step)
      ? (at as Record<string, unknown>)[step]
      : undefined;
  }
  return fragment(moved);
}

const MAPS: unknown[] = ["properties", "patternProperties", "definitions", "$defs", "dependencies"];

/** Keywords of OpenAPI 3.0 without a counterpart, which do not restrict values. */
const FOREIGN = ["discriminator", "xml", "externalDocs"] as const;

/** The siblings of a `$ref` that OpenAPI 3.0 does not ignore. */
const BESIDE_REF_IN_OPENAPI: readonly string[] = ["$ref", "title", "description", "summary"];

/** The formats of OpenAPI 3.0 that are other keywords in JSON Schema. */
const BINARY_FORMATS: ReadonlyMap<unknown, JsonSchemaObject> = new Map([
  ["byte", { contentEncoding: "base64" }],
  ["binary", { contentMediaType: "application/octet-stream" }],
]);

/** Rewrites a Schema Object of OpenAPI 3.0. References stay unchanged. */
export function normalizeOpenApi30(
  schema: JsonSchema,
): { readonly schema: JsonSchema; readonly losses: readonly SchemaLoss[] } {
  const trace = new Trace();
  const report = new Report(trace);
  const made = rewriting.mapSchema(trace, schema, {
    enter: (node, spot) => normalizeNode(node, spot, trace, report),
  });
  return { schema: made, losses: report.losses(schema) };
}

function normalizeNode(
  node: JsonSchemaObject,
  spot: rewriting.Spot,
  trace: Trace,
  report: Report,
): JsonSchemaObject {
  if (typeof node["$ref"] === "string") {
    return without(
      trace,
      node,
      ...Object.keys(node).filter((keyword) => !BESIDE_REF_IN_OPENAPI.includes(keyword)),
    );
  }
  let result = node;
  for (const keyword of FOREIGN) {
    if (!Object.hasOwn(node, keyword)) continue;
    const message = `"${keyword}" has no counterpart in JSON Schema`;
    report.add(node, spot, keyword, message, { action: "dropped", grade: "lost" });
  }
  result = without(trace, result, ...FOREIGN);
  result = numericBound(trace, result, "exclusiveMinimum", "minimum");
  result = numericBound(trace, result, "exclusiveMaximum", "maximum");
  if (Object.hasOwn(result, "example")) {
    const { example, examples = [example] } = result;
    result = rewriting.changed(trace, result, { example: undefined, examples });
  }
  const meaning = BINARY_FORMATS.get(result["format"]);
  if (meaning !== undefined) {
    result = rewriting.changed(trace, result, { format: undefined, ...meaning });
  }
  const plain = without(trace, result, "nullable");
  if (result["nullable"] !== true) return plain;
  if (!Object.hasOwn(node, "type")) {
    const message =
      '"nullable" without "type" is read as accepting null, which not every reader does';
    report.add(node, spot, "nullable", message, { grade: "ambiguous", widens: true });
  }
  return acceptNull(trace, plain);
}

/** Rewrites `exclusiveMinimum: true` with `minimum: 1` as `exclusiveMinimum: 1`. */
function numericBound(
  trace: Trace,
  node: JsonSchemaObject,
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
  inclusive: "minimum" | "maximum",
): JsonSchemaObject {
  if (typeof node[exclusive] !== "boolean") return node;
  return node[exclusive] && typeof node[inclusive] === "number"
    ? rewriting.changed(trace, node, { [exclusive]: node[inclusive], [inclusive]: undefined })
    : without(trace, node, exclusive);
}

// The typed schema of Gemini

const TYPES: ReadonlyMap<unknown, string> = new Map(
  ["string", "number", "integer", "boolean", "array", "object", "null"].map((type) => [
    type.toUpperCase(),
    type,
  ]),
);

/** The maximum number of parts of a schema that are inspected to detect its form. */
const MAX_SCHEMAS = 10_000;

/** Returns true for a typed schema, which has types in capitals or `nullable`. */
export function isTypedSchema(schema: unknown): boolean {
  const schemas: unknown[] = [schema];
  const add = (found: unknown): void => {
    if (schemas.length < MAX_SCHEMAS) schemas.push(found);
  };
  // The loop also visits items that are added to the list.
  for (const at of schemas) {
    if (!isObject(at)) continue;
    const { type, nullable, properties, items } = at;
    if (TYPES.has(type) || type === "TYPE_UNSPECIFIED" || typeof nullable === "boolean") {
      return true;
    }
    add(items);
    if (isObject(properties)) { for (const key of Object.keys(properties)) add(properties[key]); }
  }
  return false;
}

/** The keywords that have another name in a typed schema. */
const NAMED: ReadonlyMap<string, string> = new Map([["defs", "$defs"], ["ref", "$ref"]]);

/** @param wrong Called with the path of a length that is not a number. */
export function readTypedSchema(
  schema: JsonSchemaObject,
  wrong: (path: string, keyword: string) => void,
): JsonSchema {
  return rewriting.mapSchema(undefined, schema, {
    enter: (node) => {
      const result: Record<string, unknown> = {};
      for (const keyword of Object.keys(node)) {
        const value = node[keyword];
        if (keyword === "type") {
          if (value !== "TYPE_UNSPECIFIED") result["type"] = TYPES.get(value) ?? value;
        } else if (keyword === "example") {
          if (!Object.hasOwn(node, "examples")) result["examples"] = [value];
        } else if (LENGTHS.has(keyword)) {
          const isText = typeof value === "string" && /^\d{1,15}$/.test(value);
          const length = isText ? Number(value) : value;
          if (typeof length === "number") result[keyword] = length;
          else wrong(`${rewriting.pathOf(node, rewriting.locate(schema))}/${keyword}`, keyword);
        } else if (keyword !== "nullable") {
          const isReference = keyword === "ref" && typeof value === "string";
          const made = isReference ? value.replace(/^#\/defs\//, "#/$defs/") : value;
          setOwn(result, NAMED.get(keyword) ?? keyword, made);
        }
      }
      return node["nullable"] === true ? acceptNull(undefined, result) : result;
    },
  });
}
