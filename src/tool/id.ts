/**
 * Tool identity: `namespace:name`, or `name` alone. The namespace and the name are each 1 to 128
 * letters, digits, `_`, `.` or `-`, so an id splits in one way only.
 */

const PART = "[A-Za-z0-9_.-]{1,128}";
const NAME = RegExp(`^${PART}$`);
const ID = RegExp(`^(${PART}:)?${PART}$`);

/** The rule for names and namespaces, for messages. */
export const TOOL_NAME_RULE = '1 to 128 letters, digits, "_", "." or "-"';

export function isToolName(value: unknown): value is string {
  return typeof value === "string" && NAME.test(value);
}

/** Returns true if `value` is an id: `name` or `namespace:name`. */
export function isToolId(value: unknown): value is string {
  return typeof value === "string" && ID.test(value);
}

/**
 * Makes an id of a name and an optional namespace.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { toolId } from "@plue/tools";
 *
 * assert.equal(toolId("status", "chain"), "chain:status");
 * assert.equal(toolId("file-read"), "file-read");
 * ```
 *
 * @param name The tool's name.
 * @param namespace The namespace it lives in, if any.
 * @returns The id.
 */
export function toolId(name: string, namespace?: string): string {
  return namespace === undefined ? name : `${namespace}:${name}`;
}

/** Splits an id into its namespace (if any) and its name. */
export function parseToolId(id: string): { readonly namespace?: string; readonly name: string } {
  const colon = id.indexOf(":");
  return colon === -1 ? { name: id } : { namespace: id.slice(0, colon), name: id.slice(colon + 1) };
}
