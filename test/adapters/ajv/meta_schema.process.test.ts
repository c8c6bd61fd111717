/**
 * `checkSchema` is written by hand, to be small and fast. These tests compare it with the
 * meta-schemas, as Ajv applies them, on the schemas of the official suite and their mutations.
 */

import { assert, assertEquals, assertGreater } from "@std/assert";
import { Ajv, type AnySchema } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkSchema } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import { maybe } from "../../support/skip.ts";
import data from "./meta_schema.json" with { type: "json" };

const SUITE = join(import.meta.dirname, "../../../../shared/data/json-schema-test-suite/tests");
const MUTATIONS_PER_SCHEMA = 25;

/** The rules of `checkSchema` that a meta-schema cannot express. */
const BEYOND_META_SCHEMAS = [
  "must point into the schema",
  "refers to itself",
  "must be a regular expression",
  "that is taken or not a URI",
  "exceeds a limit",
];

/** The values that replace parts of a schema. */
const REPLACEMENTS: readonly unknown[] = data.replacements as never;

const DRAFTS = [
  ["draft7", "http://json-schema.org/draft-07/schema#", new Ajv({ strict: false, logger: false })],
  [
    "draft2020-12",
    "https://json-schema.org/draft/2020-12/schema",
    new Ajv2020({ strict: false, logger: false }),
  ],
] as const;

/** Numbers below `bound`, the same in every run. */
function numbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

/** Returns a copy with one part replaced, or with one keyword added. */
function mutate(schema: unknown, below: (bound: number) => number): unknown {
  const copy: unknown = structuredClone(schema);
  const places: { readonly [key: string]: unknown }[] = [];
  const visit = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    places.push(part as { readonly [key: string]: unknown });
    Object.values(part).forEach(visit);
  };
  visit(copy);
  const place = places[below(places.length)];
  if (place === undefined) return copy;
  const keys = [...Object.keys(place), KEYWORDS[below(KEYWORDS.length)] ?? "type"];
  const key = keys[below(keys.length)] ?? "type";
  const replacement = structuredClone(REPLACEMENTS[below(REPLACEMENTS.length)]);
  if (key !== "$schema") Object.assign(place, { [key]: replacement });
  return copy;
}

const KEYWORDS = (
  "additionalItems additionalProperties allOf anyOf const contains dependencies dependentRequired " +
  "dependentSchemas enum if items maxContains maxLength maximum minItems multipleOf not pattern " +
  "patternProperties prefixItems properties propertyNames required type unevaluatedItems " +
  "uniqueItems title default examples $comment $defs definitions $id $anchor $dynamicAnchor " +
  "$vocabulary readOnly deprecated contentSchema contentEncoding format $ref"
).split(" ");

describe("checkSchema()", () => {
  const run = maybe(existsSync(SUITE), "the official JSON Schema test suite is not here");
  for (const [folder, uri, ajv] of DRAFTS) {
    run(`agrees with the meta-schema of ${folder}`, () => {
      const below = numbers(7);
      const differences: string[] = [];
      let accepted = 0;
      let refused = 0;
      const compare = (schema: unknown): void => {
        let problem: string | undefined;
        try {
          checkSchema(schema as JsonSchema);
        } catch (error) {
          assert(error instanceof Error);
          problem = error.message;
        }
        // These problems hide whether the rest of the schema is valid.
        if (BEYOND_META_SCHEMAS.some((words) => problem?.includes(words))) return;
        const valid = ajv.validateSchema(schema as AnySchema) === true;
        // Ajv's copy of draft-07 still requires what the draft only recommends: the members of an
        // enum exist and are unique.
        if (
          !valid && problem === undefined &&
          ajv.errors?.some(({ instancePath, keyword }) =>
            instancePath.endsWith("/enum") && (keyword === "minItems" || keyword === "uniqueItems")
          )
        ) return;
        if (valid) accepted++;
        else refused++;
        if (valid !== (problem === undefined)) {
          differences.push(`${JSON.stringify(schema)}: ${problem ?? "accepted"}`);
        }
      };
      for (const file of readdirSync(join(SUITE, folder))) {
        if (!file.endsWith(".json")) continue;
        for (const { schema } of JSON.parse(readFileSync(join(SUITE, folder, file), "utf8"))) {
          if (typeof schema !== "object") continue;
          const named = { ...schema, $schema: uri };
          compare(named);
          for (let i = 0; i < MUTATIONS_PER_SCHEMA; i++) compare(mutate(named, below));
        }
      }
      assertEquals(differences, []);
      assertGreater(accepted, 1_000);
      assertGreater(refused, 1_000);
    });
  }
});
