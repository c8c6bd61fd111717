/**
 * What one dispatch costs over the work that cannot be saved: `JSON.parse`, a compiled Ajv check of
 * the arguments, and the tool's own function. The dispatches check the result too, and keep their
 * metrics. All are measured in turns, in one run, so that the ratios hold on a busy machine.
 *
 * @module
 */

import { Ajv2020 } from "ajv/dist/2020.js";
import { do_not_optimize, measure } from "mitata";
import { defineTool, type JsonSchemaObject, ToolDispatcher, ToolRegistry } from "../mod.ts";

const ROUNDS = 9;
const NANOSECONDS_PER_ROUND = 60e6;

/** A call to measure: a tool, and what a model sends it. */
interface Sample {
  readonly name: string;
  readonly parameters: JsonSchemaObject;
  readonly returns: JsonSchemaObject;
  readonly arguments: string;
  execute(params: Readonly<Record<string, string>>): unknown;
}

/** A call as models make them: seven properties, two lists, a few lines of text. */
const ISSUE: Sample = {
  name: "create_issue, 7 properties, 262 characters",
  parameters: {
    type: "object",
    properties: {
      owner: { type: "string", description: "Repository owner" },
      repo: { type: "string", description: "Repository name" },
      title: { type: "string", description: "Issue title" },
      body: { type: "string", description: "Issue body content" },
      assignees: { type: "array", items: { type: "string" } },
      labels: { type: "array", items: { type: "string" } },
      milestone: { type: "number" },
    },
    required: ["owner", "repo", "title"],
  },
  returns: {
    type: "object",
    properties: {
      number: { type: "integer" },
      url: { type: "string" },
      title: { type: "string" },
    },
    required: ["number", "url"],
  },
  arguments: JSON.stringify({
    owner: "octocat",
    repo: "hello-world",
    title: "The parser loses the last line",
    body: "When the file does not end with a newline, its last line is lost.\n\n" +
      'To reproduce: parse "a\\nb" and count the lines.',
    assignees: ["octocat", "hubot"],
    labels: ["bug", "parser"],
    milestone: 3,
  }),
  execute: ({ owner, repo, title }) => ({
    number: 1347,
    url: `https://github.com/${owner}/${repo}/issues/1347`,
    title,
  }),
};

/** The least that has something to check. */
const ECHO: Sample = {
  name: "echo, 1 property, 16 characters",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  returns: { type: "string" },
  arguments: '{"text":"hello"}',
  execute: ({ text }) => text,
};

const ajv = new Ajv2020({ ownProperties: true });

/** A registry of `count` tools, of which the first is the sample's. */
function dispatcherOf(sample: Sample, count: number): ToolDispatcher {
  const { parameters, returns } = sample;
  return new ToolDispatcher(
    new ToolRegistry({
      tools: Array.from({ length: count }, (_, number) =>
        defineTool({
          name: `tool-${number}`,
          description: "A tool to measure.",
          parameters,
          returns,
          execute: (params) => sample.execute(params as Readonly<Record<string, string>>),
        })),
    }),
  );
}

/** The median time of each function, in nanoseconds, measured in turns. */
async function measureInTurns<Name extends string>(
  functions: Readonly<Record<Name, () => unknown>>,
): Promise<Readonly<Record<Name, number>>> {
  const names = Object.keys(functions) as Name[];
  const times = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) {
      const run = functions[name];
      const { p50 } = await measure(() => do_not_optimize(run()), {
        min_cpu_time: NANOSECONDS_PER_ROUND,
      });
      times.get(name)?.push(p50);
    }
  }
  const median = (list: readonly number[] = []): number =>
    list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
  return Object.fromEntries(names.map((name) => [name, median(times.get(name))])) as Record<
    Name,
    number
  >;
}

function print(what: string, figure: string, note = ""): void {
  console.log(`  ${what.padEnd(52)} ${figure.padStart(9)}  ${note}`);
}

for (const sample of [ISSUE, ECHO]) {
  const checkArguments = ajv.compile(sample.parameters);
  const checkResult = ajv.compile(sample.returns);
  const floor = (): unknown => {
    const params: Readonly<Record<string, string>> = JSON.parse(sample.arguments);
    if (!checkArguments(params)) throw new TypeError("The arguments do not fit");
    return sample.execute(params);
  };
  const few = dispatcherOf(sample, 10);
  const many = dispatcherOf(sample, 1_000);
  const call = { name: "tool-0", arguments: sample.arguments };
  const context = { sessionId: "bench" };
  const probe = await few.dispatch(call, context);
  if (!probe.ok) throw new TypeError(`Cannot measure: ${probe.error.message}`);

  const times = await measureInTurns({
    floor,
    floorWithResult: () => {
      const result = floor();
      if (!checkResult(result)) throw new TypeError("The result does not fit");
      return result;
    },
    dispatch: () => few.dispatch(call, context),
    dispatchOfMany: () => many.dispatch(call, context),
    clock: () => performance.now(),
  });

  console.log(sample.name);
  print("floor: JSON.parse, Ajv, function", `${times.floor.toFixed(0)} ns`);
  print("the same, and Ajv on the result", `${times.floorWithResult.toFixed(0)} ns`);
  print("dispatch, 10 tools", `${times.dispatch.toFixed(0)} ns`);
  print("dispatch, 1,000 tools", `${times.dispatchOfMany.toFixed(0)} ns`);
  print("reading the clock, which a dispatch does twice", `${times.clock.toFixed(0)} ns`);
  print("dispatch / floor", (times.dispatch / times.floor).toFixed(2), "aim on Bun: 2.00");
  print("dispatch / floor with the result", (times.dispatch / times.floorWithResult).toFixed(2));
  print("1,000 tools / 10 tools", (times.dispatchOfMany / times.dispatch).toFixed(2), "aim: 1.00");
}
