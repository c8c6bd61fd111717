/**
 * The cost of one dispatch relative to the unavoidable work: `JSON.parse`, a compiled Ajv check of
 * the arguments, and waiting for the tool's own function. The dispatches also check the result and
 * record metrics. Before the measurement, the process runs twenty other tools of different shapes,
 * as a server does. The functions are measured in turns, in one run, so that the ratios are right
 * on a busy machine.
 */

import { Ajv2020 } from "ajv/dist/2020.js";
import { defineTool, type JsonSchemaObject, ToolDispatcher, ToolRegistry } from "../mod.ts";

const ROUNDS = 40;
const MS_PER_ROUND = 20;

type Params = Readonly<Record<string, string>>;

/** A call to measure: a tool and a model's arguments. */
interface Sample {
  readonly name: string;
  readonly parameters: JsonSchemaObject;
  readonly returns: JsonSchemaObject;
  readonly arguments: string;
  execute(params: Params): unknown;
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

/** The smallest call with something to check. */
const ECHO: Sample = {
  name: "echo, 1 property, 16 characters",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  returns: { type: "string" },
  arguments: '{"text":"hello"}',
  execute: ({ text }) => text,
};

const ajv = new Ajv2020({ ownProperties: true });

/** The number of concurrent calls that wait. */
const AT_ONCE = 100;

/** Resolves in the next turn of the event loop, for all calls of this turn. */
function nextTurn(): Promise<void> {
  return turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
}
let turn: Promise<void> | undefined;

/** Runs `run` 100 times concurrently, and waits for all of them. */
function atOnce(run: () => unknown): Promise<unknown> {
  return Promise.all(Array.from({ length: AT_ONCE }, run));
}

/** A registry of `count` copies of the sample's tool: in turns synchronous, `async` and waiting. */
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
          execute: [
            (params: unknown) => sample.execute(params as Params),
            async (params: unknown) => await sample.execute(params as Params),
            async (params: unknown) => {
              await nextTurn();
              return sample.execute(params as Params);
            },
          ][number % 3] ?? (() => undefined),
        })),
    }),
  );
}

/** Runs twenty tools with different parameters, results and requirements. */
async function runOthers(): Promise<void> {
  const tools = Array.from({ length: 20 }, (_, number) => {
    const properties = Object.fromEntries(
      Array.from({ length: 1 + number % 6 }, (_, place) => [`p${number}_${place}`, {}]),
    );
    const answers: readonly unknown[] = [number, "text", true, null, [number], { number }];
    const answer = answers[number % answers.length];
    return defineTool({
      name: `other-${number}`,
      description: "A tool that ran before.",
      parameters: { type: "object", properties },
      ...(number % 3 === 0 ? { returns: {} } : {}),
      execute: (_params, context) => {
        if (number % 4 === 0) context.throwIfAborted();
        if (number % 5 === 0) void context.signal.aborted;
        if (number % 7 === 0) context.defer(() => {});
        if (number === 13) throw new Error("As tools do");
        return number % 2 === 0 ? answer : Promise.resolve(answer);
      },
    });
  });
  const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }));
  const { signal } = new AbortController();
  for (let turn = 0; turn < 2_000; turn++) {
    const number = turn % 20;
    const value = { [`p${number}_0`]: turn };
    await dispatcher.dispatch(
      { name: `other-${number}`, arguments: turn % 3 === 0 ? value : JSON.stringify(value) },
      turn % 2 === 0 ? { signal } : { sessionId: "bench", principal: "ann" },
    );
  }
}

/** Mastra's `tool.execute`, if `npm ci` in `bench/peers` has installed Mastra. */
async function peerOf(
  sample: Sample,
): Promise<((params: unknown, signal: AbortSignal) => unknown) | undefined> {
  try {
    const { mastraTool } = await import("./peers/mastra.mjs");
    return mastraTool(sample);
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    console.log(`Mastra is omitted (npm ci in bench/peers installs it): ${why}`);
    return undefined;
  }
}

/** The time of `times` runs, one after the other, in milliseconds. */
async function time(run: () => unknown, times: number): Promise<number> {
  const from = performance.now();
  for (let turn = 0; turn < times; turn++) await run();
  return performance.now() - from;
}

/** The times of each function, in nanoseconds, one for each round of turns. */
async function measureInTurns<Name extends string>(
  subjects: Readonly<Record<Name, () => unknown>>,
): Promise<Readonly<Record<Name, readonly number[]>>> {
  const names = Object.keys(subjects) as Name[];
  const lists = new Map<Name, { times: number; readonly ns: number[] }>();
  for (const name of names) {
    await time(subjects[name], 3_000);
    const ms = await time(subjects[name], 3_000);
    lists.set(name, { times: Math.ceil(3_000 * MS_PER_ROUND / ms), ns: [] });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, { times, ns }] of lists) {
      ns.push(await time(subjects[name], times) / times * 1e6);
    }
  }
  return Object.fromEntries([...lists].map(([name, { ns }]) => [name, ns])) as Record<
    Name,
    number[]
  >;
}

function median(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
}

function print(what: string, ns: readonly number[], floor: readonly number[], note = ""): void {
  // The median of the rounds' ratios, because other work on the machine slows a whole round.
  const ratio = median(ns.map((one, round) => one / (floor[round] ?? Number.NaN)));
  console.log(
    `  ${what.padEnd(52)} ${`${median(ns).toFixed(0)} ns`.padStart(9)} ${
      ratio.toFixed(2).padStart(6)
    }  ${note}`,
  );
}

await runOthers();

for (const sample of [ISSUE, ECHO]) {
  const checkArguments = ajv.compile(sample.parameters);
  const value: unknown = JSON.parse(sample.arguments);
  const check = (params: unknown): Params => {
    if (!checkArguments(params)) throw new TypeError("The arguments do not fit");
    return params as Params;
  };
  const execute = async (params: Params): Promise<unknown> => await sample.execute(params);
  const executeLater = async (params: Params): Promise<unknown> => {
    await nextTurn();
    return sample.execute(params);
  };
  const few = dispatcherOf(sample, 10);
  const many = dispatcherOf(sample, 1_000);
  const text = { name: "tool-0", arguments: sample.arguments };
  const textAsync = { name: "tool-1", arguments: sample.arguments };
  const textWaits = { name: "tool-2", arguments: sample.arguments };
  const valueSync = { name: "tool-0", arguments: value };
  const valueAsync = { name: "tool-1", arguments: value };
  const context = { sessionId: "bench" };
  const { signal } = new AbortController();
  const withSignal = { sessionId: "bench", signal };
  for (const call of [text, textAsync, textWaits, valueSync, valueAsync]) {
    const probe = await few.dispatch(call, withSignal);
    if (!probe.ok) throw new TypeError(`Cannot measure: ${probe.error.message}`);
  }
  const peer = await peerOf(sample);
  const times = await measureInTurns({
    floor: async () => await execute(check(JSON.parse(sample.arguments))),
    sync: () => few.dispatch(text, context),
    syncMany: () => many.dispatch(text, context),
    syncSignal: () => few.dispatch(text, withSignal),
    syncValue: () => few.dispatch(valueSync, context),
    async: () => few.dispatch(textAsync, context),
    asyncSignal: () => few.dispatch(textAsync, withSignal),
    asyncValue: () => few.dispatch(valueAsync, context),
    asyncValueSignal: () => few.dispatch(valueAsync, withSignal),
    peer: () => peer?.(JSON.parse(sample.arguments), signal),
    floorWaits: () => atOnce(() => executeLater(check(JSON.parse(sample.arguments)))),
    waits: () => atOnce(() => few.dispatch(textWaits, context)),
    waitsSignal: () => atOnce(() => few.dispatch(textWaits, withSignal)),
  });

  console.log(sample.name);
  print("floor: JSON.parse, Ajv, await of the function", times.floor, times.floor);
  print("dispatch", times.sync, times.floor, "aim: 2.50 on Bun");
  print("dispatch, 1,000 tools", times.syncMany, times.floor);
  print("dispatch, a signal", times.syncSignal, times.floor);
  print("dispatch, a value", times.syncValue, times.floor, "aim: as text");
  print("dispatch, async", times.async, times.floor);
  const aims = "aim: 2.30 on Bun, 2.00 on Node, 2.20 on Deno";
  print("dispatch, async, a signal", times.asyncSignal, times.floor, aims);
  print("dispatch, async, a value", times.asyncValue, times.floor, "aim: as text");
  print("dispatch, async, a value, a signal", times.asyncValueSignal, times.floor, "aim: as text");
  if (peer !== undefined) {
    print("JSON.parse and Mastra, async, a signal", times.peer, times.floor);
  }
  print("100 concurrently, waiting: floor", times.floorWaits, times.floorWaits);
  print("100 concurrently, waiting", times.waits, times.floorWaits);
  print("100 concurrently, waiting, a signal", times.waitsSignal, times.floorWaits);
}
