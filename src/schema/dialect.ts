/**
 * Which draft a schema is written in.
 *
 * @module
 */

import type { JsonSchema } from "../tool/mod.ts";
import { KEYWORDS } from "./keywords.ts";

/** The drafts that plue reads. */
export type Dialect = "draft-07" | "2020-12";

const BY_URI: ReadonlyMap<unknown, Dialect> = new Map([
  ["http://json-schema.org/draft-07/schema", "draft-07"],
  ["https://json-schema.org/draft/2020-12/schema", "2020-12"],
]);

/** Bounds of the search. `checkSchema` refuses what is larger. */
const MAX_DEPTH = 64;
const MAX_SCHEMAS = 100_000;

/**
 * Which draft `schema` is written in: what `$schema` names; without it draft-07 if a form is used
 * that only draft-07 has (`definitions`, `dependencies`, a list of schemas in `items`), else 2020-12.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { detectDialect } from "@plue/tools";
 *
 * assert.equal(detectDialect({ type: "object" }), "2020-12");
 * assert.equal(detectDialect({ items: [{ type: "string" }] }), "draft-07");
 * ```
 *
 * @param schema The schema. It need not be a valid one.
 * @returns The draft.
 * @throws {TypeError} If `$schema` names another draft.
 */
export function detectDialect(schema: JsonSchema): Dialect {
  if (typeof schema !== "object" || schema === null) return "2020-12";
  const uri = schema["$schema"];
  if (uri !== undefined) {
    const dialect = BY_URI.get(typeof uri === "string" ? uri.replace(/#$/, "") : uri);
    if (dialect !== undefined) return dialect;
    const named = typeof uri === "string" ? `"${uri.slice(0, 60)}"` : typeof uri;
    throw new TypeError(
      `Cannot read the schema: its "$schema" is ${named}, and must be absent or one of ` +
        [...BY_URI.keys()].map((known) => `"${known}"`).join(", "),
    );
  }
  let left = MAX_SCHEMAS;
  return usesDraft07(schema, MAX_DEPTH) ? "draft-07" : "2020-12";

  function usesDraft07(part: unknown, depth: number): boolean {
    if (typeof part !== "object" || part === null || depth < 0 || left-- <= 0) return false;
    if (Array.isArray(part)) return part.some((item) => usesDraft07(item, depth));
    for (const keyword of Object.keys(part)) {
      const value: unknown = (part as Record<string, unknown>)[keyword];
      if (typeof value !== "object" || value === null) continue;
      switch (KEYWORDS["2020-12"].get(keyword)) {
        case "schema":
        case "schemas":
          if (keyword === "items" && Array.isArray(value)) return true;
          if (usesDraft07(value, depth - 1)) return true;
          break;
        case "dependencies":
          return true;
        case "map":
          if (keyword === "definitions") return true;
          for (const name of Object.keys(value)) {
            if (usesDraft07((value as Record<string, unknown>)[name], depth - 1)) return true;
          }
      }
    }
    return false;
  }
}
