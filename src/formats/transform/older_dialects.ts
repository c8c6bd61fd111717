/**
 * Older drafts and the Schema Object of OpenAPI 3.0 as 2020-12.
 *
 * @module
 */

import {
  asDraft2020,
  BESIDE_REF,
  type Dialect,
  fragment,
  fragmentSteps,
  isLater,
  isOldDraft,
} from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../tool/mod.ts";
import { acceptNull } from "./properties.ts";
import { changed, eachNode, mapSchema, type Slot, type Spot, Trace, without } from "./rewrite.ts";
import { Report, type SchemaLoss } from "./report.ts";

/**
 * Rewrites an older draft as 2020-12: `definitions`, lists in `items`, `additionalItems`,
 * `dependencies`, `$id: "#name"`, and the siblings of a `$ref`, which older drafts ignore. Both accept
 * the same values. `$schema` is omitted.
 */
export function normalizeDraft(trace: Trace, root: JsonSchema, dialect: Dialect): JsonSchema {
  return mapSchema(trace, root, {
    enter: (node, spot) => {
      const moved = new Map<string, Slot>();
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

/**
 * Returns true if a schema of draft-07 has the same meaning in 2020-12. It may use `definitions`, which
 * references find by their path in both drafts.
 */
export function readsAlike(schema: JsonSchema): boolean {
  let alike = true;
  eachNode(undefined, schema, (node, spot) => {
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

/** A reference along the path that its target moved to. */
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

const MAPS: readonly unknown[] = [
  "properties",
  "patternProperties",
  "definitions",
  "$defs",
  "dependencies",
];

/** Keywords that do not restrict values and have no counterpart. */
const FOREIGN = ["discriminator", "xml", "externalDocs"] as const;

/** The siblings of a `$ref` that OpenAPI 3.0 does not ignore. */
const BESIDE_REF_IN_OPENAPI: readonly string[] = ["$ref", "title", "description", "summary"];

/** The formats of OpenAPI 3.0 for what JSON Schema says with other keywords. */
const BINARY_FORMATS: ReadonlyMap<unknown, JsonSchemaObject> = new Map([
  ["byte", { contentEncoding: "base64" }],
  ["binary", { contentMediaType: "application/octet-stream" }],
]);

/**
 * Rewrites a Schema Object of OpenAPI 3.0 as 2020-12: `nullable`, `exclusiveMinimum: true`,
 * `example`, the formats `byte` and `binary`, and the siblings of a `$ref`. References stay unchanged.
 */
export function normalizeOpenApi30(
  schema: JsonSchema,
): { readonly schema: JsonSchema; readonly losses: readonly SchemaLoss[] } {
  const trace = new Trace();
  const report = new Report(trace);
  const made = mapSchema(trace, schema, {
    enter: (node, spot) => normalizeNode(node, spot, trace, report),
  });
  return { schema: made, losses: report.losses(schema) };
}

function normalizeNode(
  node: JsonSchemaObject,
  spot: Spot,
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
    result = changed(trace, result, { example: undefined, examples });
  }
  const meaning = BINARY_FORMATS.get(result["format"]);
  if (meaning !== undefined) result = changed(trace, result, { format: undefined, ...meaning });
  const plain = without(trace, result, "nullable");
  if (result["nullable"] !== true) return plain;
  if (!Object.hasOwn(node, "type")) {
    const message =
      '"nullable" without "type" is read as accepting null, which not every reader does';
    report.add(node, spot, "nullable", message, { grade: "ambiguous", widens: true });
  }
  return acceptNull(trace, plain);
}

/** `exclusiveMinimum: true` with `minimum: 1` is `exclusiveMinimum: 1`. */
function numericBound(
  trace: Trace,
  node: JsonSchemaObject,
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
  inclusive: "minimum" | "maximum",
): JsonSchemaObject {
  if (typeof node[exclusive] !== "boolean") return node;
  return node[exclusive] && typeof node[inclusive] === "number"
    ? changed(trace, node, { [exclusive]: node[inclusive], [inclusive]: undefined })
    : without(trace, node, exclusive);
}
