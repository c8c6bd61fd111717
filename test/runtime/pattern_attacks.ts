/**
 * Checks texts against patterns on which a backtracking matcher would hang, at every position in a
 * schema, and prints the number of finished checks. Another process waits for that number.
 */

import { ajvEngine } from "../../src/adapters/ajv/mod.ts";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import { importTools } from "../../src/formats/mod.ts";
import { ToolDispatcher, ToolRegistry, typeboxEngine } from "../../mod.ts";
import { Registry } from "../../src/core.ts";
import type { Tool } from "../../src/tool/mod.ts";
import { sample } from "../support/laws.ts";

const ATTACK = `${"a".repeat(2_000)}!`;
const PARTS = ["a", "(?:a|aa)", "(?:\\w|)"];
const REPEATS = ["+", "{1,20}"];
const PATTERNS = sample(
  PARTS.flatMap((part) =>
    REPEATS.flatMap((inner) =>
      REPEATS.flatMap((outer) => [
        `^(?:${part}${inner})${outer}$`,
        `${part}${inner}${part}${outer}b`,
        `^(?!(?:${part}${inner})${outer}$)b`,
      ])
    )
  ),
);

/** A tool for each position of a pattern in a schema. */
function toolsWith(pattern: string, at: number): readonly Tool[] {
  const object = (rest: object) => ({ type: "object", ...rest });
  const text = { type: "string", pattern };
  const mcp = importTools("mcp", [
    { name: "arguments", inputSchema: object({ properties: { a: text } }) },
    { name: "results", inputSchema: object({}), outputSchema: object({ properties: { a: text } }) },
    { name: "names", inputSchema: object({ patternProperties: { [pattern]: false } }) },
    { name: "nameRules", inputSchema: object({ propertyNames: { pattern } }) },
  ], { namespace: `mcp${at}`, execute: () => ({ a: ATTACK }) });
  const api = importOpenApi({
    openapi: "3.1.0",
    paths: {
      "/": {
        get: { operationId: "parameter", parameters: [{ name: "a", in: "query", schema: text }] },
      },
    },
  }, { namespace: `api${at}`, execute: () => ({}) });
  return [...mcp.tools, ...api.tools];
}

let answered = 0;
const tools = PATTERNS.flatMap(toolsWith);
for (
  const registry of [
    new ToolRegistry({ engine: typeboxEngine(), tools }),
    new ToolRegistry({ engine: ajvEngine(), tools }),
    // The core does not harden its engine, but imported tools are hardened nevertheless.
    new Registry({ engine: typeboxEngine(), tools }),
  ]
) {
  const dispatcher = new ToolDispatcher(registry);
  for (const { id, name } of registry.tools) {
    const args = name === "results" ? {} : { [name.startsWith("name") ? ATTACK : "a"]: ATTACK };
    await dispatcher.dispatch({ name: id, arguments: args });
    answered++;
  }
}
console.log(`answered ${answered} of ${3 * 5 * PATTERNS.length}`);
