/**
 * Constants: `const` as an `enum` of one, and an `enum` of numbers as one of texts.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject, JsonValue } from "../../tool/mod.ts";
import { includesValue } from "./json_equal.ts";
import { cameFrom, mark } from "./origin.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, mapSchema, type Spot } from "./schema_walk.ts";
import { addWords } from "./words.ts";

/**
 * Rewrites `const` as an `enum` of one value. Both accept the same.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { constToEnum } from "@plue/tools/formats";
 *
 * assert.deepEqual(constToEnum({ const: "c" }).schema, { enum: ["c"] });
 * ```
 */
export function constToEnum(schema: JsonSchema): TransformResult {
  return transformed(schema, enumerateConstants);
}

/** {@linkcode constToEnum} inside a chain of transforms. */
export function enumerateConstants(root: JsonSchema): JsonSchema {
  return mapSchema(root, {
    leave: (node) => {
      if (!Object.hasOwn(node, "const")) return node;
      const values = node["enum"];
      // Beside an `enum` that lacks it, nothing fits.
      if (Array.isArray(values) && !includesValue(values, node["const"])) {
        return false;
      }
      const copy = copyNode(node);
      delete copy["const"];
      copy["enum"] = [node["const"]];
      if (!Object.hasOwn(node, "enum")) {
        cameFrom(copy, node, new Map([["enum", { node, keyword: "const" }]]));
      }
      return copy;
    },
  });
}

/**
 * Rewrites an `enum` of numbers or booleans as one of texts, and remembers what each text stands
 * for. An `enum` that cannot be written so (lists, objects, `1` beside `"1"`, the empty text) is
 * said in the description, which is reported.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { enumToText } from "@plue/tools/formats";
 *
 * const { schema } = enumToText({ type: "integer", enum: [1, 2] });
 * assert.deepEqual(schema, { type: "string", enum: ["1", "2"] });
 * ```
 */
export function enumToText(schema: JsonSchema): TransformResult {
  return transformed(schema, (root, report) => writeEnums(root, report, true));
}

/** {@linkcode enumToText} inside a chain of transforms. */
export function writeEnums(root: JsonSchema, report: Report, describe: boolean): JsonSchema {
  return mapSchema(root, { leave: (node, spot) => writeEnum(node, spot, report, describe) });
}

function writeEnum(
  node: JsonSchemaObject,
  spot: Spot,
  report: Report,
  describe: boolean,
): JsonSchemaObject {
  const values = node["enum"];
  if (!Array.isArray(values)) return node;
  const texts = values.map((value) => typeof value === "object" ? null : String(value));
  const possible = texts.every((text) => text !== null && text !== "") &&
    new Set(texts).size === texts.length;
  const copy = copyNode(node);
  if (!possible) {
    report.add(node, spot, {
      keyword: "enum",
      action: describe ? "described" : "dropped",
      grade: describe ? "moved" : "lost",
      widens: true,
      message: '"enum" may only hold texts that are not empty',
    });
    delete copy["enum"];
    if (describe) addWords(copy, "enum", values);
    return copy;
  }
  if (values.every((value) => typeof value === "string") && node["type"] === "string") return node;
  copy["type"] = "string";
  copy["enum"] = texts;
  // Bounds of the number say nothing about its text.
  for (const keyword of ["minimum", "maximum", "multipleOf", "format"]) delete copy[keyword];
  const stands = new Map<string, JsonValue>();
  values.forEach((value: JsonValue, index) => {
    if (typeof value !== "string") stands.set(texts[index] as string, value);
  });
  if (stands.size > 0) mark(copy, { values: stands });
  return copy;
}
