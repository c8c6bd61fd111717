/**
 * The official JSON Schema test suite, for a schema engine as the registry uses it: the schema is
 * checked first, and nothing is fetched. Referenced documents are inserted into a schema under
 * their `$id`, as in the "compound documents" of the specification.
 */

import { assertEquals, assertGreater } from "@std/assert";
import { describe } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { compileOnce, type Dialect, hardened, type SchemaEngine } from "../../src/schema/mod.ts";
import type { JsonSchema, JsonSchemaObject } from "../../src/tool/mod.ts";
import { isAll, sample } from "../support/laws.ts";
import { maybe } from "../support/skip.ts";
import { KNOWN_DIFFERENCES } from "./known_differences.ts";

const SUITE = join(import.meta.dirname, "../../../shared/data/json-schema-test-suite");
/** The URL at which the suite's schemas expect `remotes/` to be served. */
const REMOTE = "http://localhost:1234/";

interface Group {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly tests: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
}

interface Draft {
  readonly dialect: Dialect;
  readonly folder: string;
  readonly uri: string;
  readonly definitions: "definitions" | "$defs";
  /** The folders of `remotes/` for other drafts. */
  readonly others: RegExp;
}

const DRAFTS: readonly Draft[] = [
  {
    ...{ dialect: "draft-07", folder: "draft7", uri: "http://json-schema.org/draft-07/schema#" },
    definitions: "definitions",
    others: /\/(draft(?!7)|v1)/,
  },
  {
    ...{ dialect: "2020-12", folder: "draft2020-12" },
    ...{ uri: "https://json-schema.org/draft/2020-12/schema", definitions: "$defs" },
    others: /\/(draft(?!2020-12)|v1)/,
  },
];

/** Runs the suite in both drafts, and its format tests, with formats asserted. */
export function describeOfficialSuite(
  name: string,
  makeEngine: (formats: "assert" | "annotate") => SchemaEngine,
): void {
  describe(`${name} and the official suite`, () => {
    const run = maybe(existsSync(SUITE), "the official JSON Schema test suite is not here");
    for (const draft of DRAFTS) {
      for (const formats of ["annotate", "assert"] as const) {
        const folder = draft.folder + (formats === "assert" ? "/optional/format" : "");
        const engine = hardened(makeEngine(formats));
        const differences = KNOWN_DIFFERENCES.get(engine.name) ?? [];
        run(`gives the verdicts of ${folder}, but for the known differences`, () => {
          const wrong: string[] = [];
          const ran = new Set<string>();
          let count = 0;
          for (const [file, group] of sample(groupsIn(folder))) {
            const check = verdicts(engine, draft, group.schema);
            for (const test of group.tests) {
              const title = `${folder}/${file}: ${group.description}: ${test.description}`;
              count++;
              ran.add(title);
              if (check(test.data) !== test.valid) wrong.push(title);
            }
          }
          // The folder of the required tests contains the folder of the optional tests.
          const known = differences.filter((one) =>
            (isAll || ran.has(one)) && one.startsWith(`${folder}/`) &&
            !one.slice(folder.length + 1).startsWith("optional/")
          );
          assertEquals(wrong.sort(), known.sort());
          assertGreater(count, isAll ? 600 : 30);
        });
      }
    }
  });
}

/** The groups of tests in the files of a folder of the suite. */
function groupsIn(folder: string): readonly (readonly [file: string, group: Group])[] {
  return readdirSync(join(SUITE, "tests", folder)).filter((file) => file.endsWith(".json")).sort()
    .flatMap((file) =>
      (readJson(join(SUITE, "tests", folder, file)) as readonly Group[])
        .map((group) => [file, group] as const)
    );
}

/** The engine's verdict on a value; `undefined` if the schema was rejected. */
function verdicts(
  engine: SchemaEngine,
  draft: Draft,
  schema: JsonSchema,
): (value: unknown) => boolean | undefined {
  try {
    const document = withReferred(schema, draft);
    engine.admit(document);
    const { check } = compileOnce(engine, document, draft.dialect);
    return check;
  } catch {
    return () => undefined;
  }
}

/** Inserts the documents to which a schema refers into its definitions. */
function withReferred(schema: JsonSchema, draft: Draft): JsonSchema {
  if (typeof schema === "boolean") return schema;
  const documents = remoteDocuments(draft);
  const wanted = new Map<string, JsonSchemaObject>();
  const visit = (part: unknown, outer: string): void => {
    if (typeof part !== "object" || part === null) return;
    const { $id: id } = part as JsonSchemaObject;
    const base = typeof id === "string" ? new URL(id, outer).href : outer;
    for (const [key, value] of Object.entries(part)) {
      if ((key === "$ref" || key === "$dynamicRef") && typeof value === "string") {
        // In draft-07 an $id next to a $ref has no effect.
        for (const from of [base, outer]) {
          const uri = URL.canParse(value, from)
            ? new URL(value, from).href.split("#")[0] ?? ""
            : "";
          const document = documents.get(uri);
          if (document === undefined || wanted.has(uri)) continue;
          wanted.set(uri, document);
          visit(document, uri);
        }
      }
      visit(value, base);
    }
  };
  visit(schema, "plue:/test");
  if (wanted.size === 0) return schema;
  const embedded = [...wanted].map(([uri, { $schema: _, ...document }], at) => [
    `embedded ${at}`,
    typeof document["$id"] === "string" && !document["$id"].startsWith("#")
      ? document
      : { ...document, $id: uri },
  ]);
  return {
    $schema: draft.uri,
    ...schema,
    [draft.definitions]: {
      ...schema[draft.definitions] as JsonSchemaObject | undefined,
      ...Object.fromEntries(embedded),
    },
  };
}

const byDraft = new Map<Draft, ReadonlyMap<string, JsonSchemaObject>>();

/** The suite's remote documents, and the meta-schemas, by URI. */
function remoteDocuments(draft: Draft): ReadonlyMap<string, JsonSchemaObject> {
  let documents = byDraft.get(draft);
  if (documents === undefined) {
    const found = new Map<string, JsonSchemaObject>();
    const folder = join(SUITE, "remotes");
    for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      if (!path.endsWith(".json") || draft.others.test(`/${path}`)) continue;
      found.set(REMOTE + path, readJson(join(folder, path)) as JsonSchemaObject);
    }
    for (const document of metaSchemas(draft)) {
      found.set(String(document["$id"]).replace(/#$/, ""), document);
    }
    byDraft.set(draft, documents = found);
  }
  return documents;
}

/** Ajv's package contains copies of the meta-schemas. */
function metaSchemas(draft: Draft): readonly JsonSchemaObject[] {
  const require = createRequire(import.meta.url);
  const read = (name: string) => require(`ajv/dist/refs/${name}.json`) as JsonSchemaObject;
  if (draft.dialect === "draft-07") return [read("json-schema-draft-07")];
  const parts = [
    "applicator",
    "content",
    "core",
    "format-annotation",
    "meta-data",
    "unevaluated",
    "validation",
  ];
  return [
    read("json-schema-2020-12/schema"),
    ...parts.map((part) => read(`json-schema-2020-12/meta/${part}`)),
  ];
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}
