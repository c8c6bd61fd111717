/**
 * The wrapping that MCP servers before 2026-07-28 put around results that are no objects.
 *
 * @module
 */

import {
  isToolResult,
  type JsonSchema,
  type JsonSchemaObject,
  ToolResult,
} from "../../tool/mod.ts";
import { isMembers, objectIn } from "./fields.ts";
import { copyNode, isSchema, mapSchema } from "../transform/schema_walk.ts";

const PREFIX = "#/properties/result";

/**
 * The schema inside `{ type: "object", properties: { result: S }, required: ["result"] }`, with its
 * references led back; `undefined` if the schema is anything else, or refers to the wrapping.
 */
export function unwrapReturns(schema: JsonSchema): JsonSchema | undefined {
  if (!isMembers(schema) || schema["type"] !== "object") return undefined;
  const keywords = Object.keys(schema).filter((keyword) => keyword !== "$schema");
  const properties = objectIn(schema, "properties");
  const required = schema["required"];
  if (
    keywords.length !== 3 || properties === undefined || !Array.isArray(required) ||
    required.length !== 1 || required[0] !== "result" ||
    Object.keys(properties).join() !== "result" || !isSchema(properties["result"])
  ) return undefined;
  let outside = false;
  const inner = mapSchema(properties["result"], {
    enter(node) {
      const ref = node["$ref"];
      if (typeof ref !== "string" || !ref.startsWith("#")) return node;
      if (ref !== PREFIX && !ref.startsWith(`${PREFIX}/`)) {
        outside = true;
        return node;
      }
      const copy = copyNode(node);
      copy["$ref"] = `#${ref.slice(PREFIX.length)}`;
      return copy;
    },
  });
  return outside ? undefined : withDialect(inner, schema);
}

function withDialect(inner: JsonSchema, outer: JsonSchemaObject): JsonSchema {
  const dialect = outer["$schema"];
  return dialect === undefined || typeof inner === "boolean" || inner["$schema"] !== undefined
    ? inner
    : { $schema: dialect, ...inner };
}

/** The result inside of `{ result: … }`; anything else as it is. */
export function unwrapResult(result: unknown): unknown {
  if (isToolResult(result)) {
    return result.ok ? ToolResult.ok(unwrapResult(result.content), result.durationMs) : result;
  }
  return isMembers(result) && Object.keys(result).join() === "result" ? result["result"] : result;
}
