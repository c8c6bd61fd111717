/**
 * The costs of schemas: the check at registration, compilation on first use, validation on every
 * call, and error messages. Each is compared with Ajv, in one run.
 */

import { Ajv2020 } from "ajv/dist/2020.js";
import { do_not_optimize, measure } from "mitata";
import { Errors } from "typebox/schema";
import { ajvEngine } from "../src/adapters/ajv/mod.ts";
import { typeboxEngine } from "../mod.ts";
import { checkSchema } from "../src/schema/mod.ts";
import { table } from "../scripts/lib/table.mjs";

const ROUNDS = 5;

const SCHEMA = {
  type: "object",
  properties: {
    owner: { type: "string", minLength: 1, description: "Repository owner" },
    repo: { type: "string", description: "Repository name" },
    title: { type: "string" },
    body: { type: "string" },
    state: { enum: ["open", "closed"] },
    assignees: { type: "array", items: { type: "string" }, maxItems: 10 },
    labels: { type: "array", items: { type: "string" } },
    milestone: { type: "integer", minimum: 1 },
  },
  required: ["owner", "repo", "title"],
  additionalProperties: false,
};
const GOOD = {
  owner: "octocat",
  repo: "hello-world",
  title: "The parser loses the last line",
  state: "open",
  labels: ["bug", "parser"],
  milestone: 3,
};
const BAD = { ...GOOD, title: undefined, state: "done", lables: [], milestone: 0 };

const meta = new Ajv2020({ strict: false });
const every = new Ajv2020({ strict: false, allErrors: true }).compile(SCHEMA);
const floor = new Ajv2020({ strict: false, ownProperties: true }).compile(SCHEMA);
const typebox = typeboxEngine().compile(SCHEMA, "2020-12");
const interpreted = typeboxEngine({ codeGeneration: false }).compile(SCHEMA, "2020-12");
const ajv = ajvEngine().compile(SCHEMA, "2020-12");
const compiling = { typebox: typeboxEngine(), ajv: ajvEngine(), bare: meta };
meta.validateSchema(SCHEMA);

/** The work, and the row of the same question with which the work is compared. */
const QUESTIONS:
  readonly (readonly [question: string, rows: Readonly<Record<string, () => unknown>>])[] = [
    ["check a schema", {
      "Ajv, by the meta-schema": () => meta.validateSchema(SCHEMA),
      "checkSchema()": () => checkSchema(SCHEMA),
    }],
    ["compile a schema", {
      "Ajv": () => meta.compile({ ...SCHEMA }),
      "typeboxEngine()": () => compiling.typebox.compile(SCHEMA, "2020-12"),
      "ajvEngine()": () => compiling.ajv.compile(SCHEMA, "2020-12"),
    }],
    ["check a value that fits", {
      "Ajv": () => floor(GOOD),
      "typeboxEngine()": () => typebox.check(GOOD),
      "typeboxEngine(), interpreted": () => interpreted.check(GOOD),
      "ajvEngine()": () => ajv.check(GOOD),
    }],
    ["explain what is invalid", {
      "Ajv, allErrors": () => every(BAD) || every.errors,
      "TypeBox Errors()": () => Errors(SCHEMA, BAD),
      "issues()": () => typebox.issues(BAD),
    }],
  ];

/** The median of the rounds, in nanoseconds. The rows of a question are measured in turns. */
async function nanoseconds(
  rows: Readonly<Record<string, () => unknown>>,
): Promise<Map<string, number>> {
  const found = new Map<string, number[]>(Object.keys(rows).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(rows)) {
      const { p50 } = await measure(() => do_not_optimize(run()), { min_cpu_time: 50e6 });
      found.get(name)?.push(p50);
    }
  }
  return new Map([...found].map(([name, times]) => [
    name,
    times.sort((a, b) => a - b)[times.length >> 1] ?? NaN,
  ]));
}

for (const [question, rows] of QUESTIONS) {
  const times = await nanoseconds(rows);
  const [first = NaN] = times.values();
  console.log(
    `\n${
      table(
        [question, "µs", "of the first"],
        [...times].map(([name, time]) => [
          name,
          (time / 1_000).toFixed(2),
          (time / first).toFixed(2),
        ]),
      )
    }`,
  );
}
