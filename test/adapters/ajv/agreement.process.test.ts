/** Both engines return the same verdicts: the schemas of the official suite with its values. */

import { assertEquals, assertGreater } from "@std/assert";
import { describe } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ajvEngine } from "../../../src/adapters/ajv/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { checkSchema } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import { KNOWN_DIFFERENCES } from "../../contract/known_differences.ts";
import { sample } from "../../support/laws.ts";
import { maybe } from "../../support/skip.ts";

const SUITE = join(import.meta.dirname, "../../../../shared/data/json-schema-test-suite/tests");
const FOLDERS = ["draft7", "draft2020-12"].flatMap((draft) =>
  ["", "/optional", "/optional/format"].map((folder) => draft + folder)
);

/**
 * Names that every object inherits. When Ajv tracks evaluated properties, it treats such properties
 * as evaluated: `unevaluatedProperties: false` accepts them.
 */
const INHERITED = /__proto__|constructor|toString/;

interface Group {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly tests: readonly { readonly data: unknown }[];
}

/** True if the suite's own tests already show that Ajv's verdict differs. */
function isKnown(group: string): boolean {
  const known = KNOWN_DIFFERENCES.get("ajv") ?? [];
  return known.some((difference) => difference.startsWith(`${group}: `));
}

/** The comparison is split into four tests, because it takes seconds. */
const PARTS = [0, 1, 2, 3] as const;

describe("ajvEngine() and typeboxEngine()", () => {
  const run = maybe(existsSync(SUITE), "the official JSON Schema test suite is not here");
  for (const part of PARTS) {
    run(`agree on the schemas and values of the official suite, part ${part + 1} of 4`, () => {
      const { groups: all, values } = readSuite();
      const groups = sample(all);
      const engines = [typeboxEngine(), ajvEngine()] as const;
      const differences: string[] = [];
      let count = 0;
      for (const [number, [group, schema]] of groups.entries()) {
        if (number % PARTS.length !== part || isKnown(group) || !accepts(schema)) continue;
        const { dialect } = checkSchema(schema);
        const [typebox, ajv] = engines.map((engine) => engine.compile(schema, dialect));
        for (const [at, [text, value]] of [...values].entries()) {
          // Each schema is compared on a quarter of the values, to save time.
          if ((at + Math.floor(number / PARTS.length)) % 4 > 0) continue;
          if (INHERITED.test(text) && JSON.stringify(schema).includes("unevaluated")) continue;
          count++;
          const verdict = typebox?.check(value);
          if (verdict !== ajv?.check(value)) differences.push(`${group}: ${text}`);
          if (verdict === false && typebox?.issues(value)[0]?.keyword === "schema") {
            differences.push(`${group}: ${text}: no engine can say what is wrong`);
          }
        }
      }
      assertEquals(differences, []);
      assertGreater(count, 37_500 * groups.length / all.length * 0.8);
    });
  }
});

/** All schemas of the suite by name, and all values by their JSON. */
function readSuite(): {
  readonly groups: readonly (readonly [name: string, schema: JsonSchema])[];
  readonly values: ReadonlyMap<string, unknown>;
} {
  const groups: (readonly [name: string, schema: JsonSchema])[] = [];
  const values = new Map<string, unknown>();
  for (const folder of FOLDERS) {
    for (const file of readdirSync(join(SUITE, folder))) {
      if (!file.endsWith(".json")) continue;
      const text = readFileSync(join(SUITE, folder, file), "utf8");
      for (const { description, schema, tests } of JSON.parse(text) as readonly Group[]) {
        groups.push([`${folder}/${file}: ${description}`, schema]);
        for (const { data } of tests) values.set(JSON.stringify(data), data);
      }
    }
  }
  return { groups, values };
}

function accepts(schema: JsonSchema): boolean {
  try {
    checkSchema(schema);
    return true;
  } catch {
    return false;
  }
}
