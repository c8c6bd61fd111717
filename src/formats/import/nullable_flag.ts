/**
 * `nullable: true`, which JSON Schema does not know, in schemas that providers are sent. It came
 * from OpenAPI 3.0, and means there that `null` is accepted too.
 *
 * @module
 */

import type { JsonSchema } from "../../tool/mod.ts";
import { acceptNull } from "../transform/nullable.ts";
import { mapSchema, without } from "../transform/schema_walk.ts";

/**
 * The schema with `null` accepted where `nullable: true` stands beside a `type`, or the same object
 * if it stands nowhere. The root stays what it is: arguments are an object.
 */
export function readNullable(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, {
    leave: (node, { root }) =>
      node["nullable"] === true && Object.hasOwn(node, "type") && !root
        ? acceptNull(without(node, "nullable"))
        : node,
  });
}
