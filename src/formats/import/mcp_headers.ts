/**
 * `x-mcp-header` of MCP 2026-07-28: a property that is sent as an HTTP header too.
 *
 * @module
 */

import { pointerStep } from "../../tool/mod.ts";
import { locate, pathOf } from "../transform/origin.ts";
import { eachNode } from "../transform/schema_walk.ts";
import { isMembers, type Members, objectIn } from "./fields.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
const PRIMITIVE: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);

/** What is wrong with a header, and where in the schema. */
export interface HeaderProblem {
  readonly path: string;
  readonly message: string;
}

/**
 * The first wrong `x-mcp-header` in a schema of arguments. A right one is an HTTP token, is not
 * used twice, and stands on a string, integer or boolean that is reached through `properties` alone.
 */
export function wrongHeader(schema: Members): HeaderProblem | undefined {
  const taken = new Set<string>();
  const right = new Set<unknown>();
  const reached = (node: Members, path: string): HeaderProblem | undefined => {
    const properties = objectIn(node, "properties") ?? {};
    for (const name of Object.keys(properties)) {
      const property = properties[name];
      if (!isMembers(property)) continue;
      const at = `${path}/properties${pointerStep(name)}`;
      if (Object.hasOwn(property, "x-mcp-header")) {
        const header = property["x-mcp-header"];
        const where = `${at}/x-mcp-header`;
        if (typeof header !== "string" || !TOKEN.test(header)) {
          return { path: where, message: "it must be the name of an HTTP header" };
        }
        if (!PRIMITIVE.has(property["type"])) {
          return { path: where, message: "it must stand on a string, integer or boolean" };
        }
        if (taken.has(header.toLowerCase())) {
          return { path: where, message: "no two properties may have the same header" };
        }
        taken.add(header.toLowerCase());
        right.add(property);
      }
      const inner = reached(property, at);
      if (inner !== undefined) return inner;
    }
    return undefined;
  };
  return reached(schema, "") ?? elsewhere(schema, right);
}

/** A header on something that `properties` alone do not lead to. */
function elsewhere(schema: Members, right: ReadonlySet<unknown>): HeaderProblem | undefined {
  let wrong: object | undefined;
  eachNode(schema, (node) => {
    if (Object.hasOwn(node, "x-mcp-header") && !right.has(node)) wrong ??= node;
  });
  return wrong === undefined ? undefined : {
    path: `${pathOf(wrong, locate(schema))}/x-mcp-header`,
    message: 'it must stand on a property that is reached through "properties" alone',
  };
}
