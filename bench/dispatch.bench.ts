/**
 * What one dispatch costs over the work that cannot be saved: `JSON.parse`, a compiled Ajv check of
 * the arguments, and the tool's own function. With metrics on, the result checked, 10 tools and
 * 1,000. Everything is measured in one run, so that the ratios mean something on any machine.
 *
 * @module
 */

import { Ajv2020 } from "ajv/dist/2020.js";
import { bench, do_not_optimize, run } from "mitata";
import { defineTool, type Tool, ToolRegistry } from "../mod.ts";
import { ToolDispatcher } from "../src/execute/mod.ts";

const PARAMETERS = {
  type: "object",
  properties: {
    city: { type: "string", minLength: 1, maxLength: 100 },
    country: { type: "string", minLength: 2, maxLength: 2 },
    unit: { enum: ["celsius", "fahrenheit"] },
    days: { type: "integer", minimum: 1, maximum: 14 },
    hourly: { type: "boolean" },
  },
  required: ["city", "unit"],
  additionalProperties: false,
} as const;

const RETURNS = {
  type: "object",
  properties: {
    city: { type: "string" },
    temperature: { type: "number" },
    unit: { type: "string" },
  },
  required: ["city", "temperature", "unit"],
} as const;

interface Question {
  readonly city: string;
  readonly unit: string;
  readonly days: number;
}

interface Answer {
  readonly city: string;
  readonly temperature: number;
  readonly unit: string;
}

const ARGUMENTS = JSON.stringify({
  city: "Reykjavík",
  country: "IS",
  unit: "celsius",
  days: 3,
  hourly: false,
});

function forecast({ city, unit, days }: Question): Answer {
  return { city, temperature: 4 + days, unit };
}

function tools(count: number): Tool[] {
  return Array.from({ length: count }, (_, number) =>
    defineTool({
      name: `forecast-${number}`,
      description: "Says how warm it will be.",
      parameters: PARAMETERS,
      returns: RETURNS,
      risk: "safe",
      execute: (question) => forecast(question as Question),
    }));
}

const ajv = new Ajv2020({ ownProperties: true });
const checkArguments = ajv.compile(PARAMETERS);
const checkResult = ajv.compile(RETURNS);

/** The floor: what any dispatcher must do for a call like this. */
function floor(): Answer {
  const question: unknown = JSON.parse(ARGUMENTS);
  if (!checkArguments(question)) throw new TypeError("The arguments do not fit");
  return forecast(question as unknown as Question);
}

function floorWithResult(): Answer {
  const answer = floor();
  if (!checkResult(answer)) throw new TypeError("The result does not fit");
  return answer;
}

const few = new ToolDispatcher(new ToolRegistry({ tools: tools(10) }));
const many = new ToolDispatcher(new ToolRegistry({ tools: tools(1_000) }));
const call = { name: "forecast-7", arguments: ARGUMENTS };
const context = { sessionId: "bench" };

const first = await few.dispatch(call, context);
if (!first.ok) throw new TypeError(`The benchmark's own call fails: ${first.error.message}`);

bench("floor: JSON.parse + Ajv + function", () => do_not_optimize(floor()));
bench("floor with a check of the result", () => do_not_optimize(floorWithResult()));
bench("dispatch, 10 tools", () => do_not_optimize(few.dispatch(call, context)));
bench("dispatch, 1,000 tools", () => do_not_optimize(many.dispatch(call, context)));
bench("floor, awaited", async () => do_not_optimize(await Promise.resolve(floor())));
bench("dispatch, awaited", async () => do_not_optimize(await few.dispatch(call, context)));

const { benchmarks } = await run();
const times = new Map(
  benchmarks.map(({ alias, runs }) => [alias, runs[0]?.stats?.p50 ?? Number.NaN]),
);

function ratio(what: string, of: string, limit: string): void {
  const figure = (times.get(what) ?? Number.NaN) / (times.get(of) ?? Number.NaN);
  console.log(`${`${what} / ${of}`.padEnd(62)} ${figure.toFixed(2)}  (${limit})`);
}

console.log();
ratio("dispatch, 10 tools", "floor: JSON.parse + Ajv + function", "aim: 2.00 on Bun");
ratio("dispatch, 10 tools", "floor with a check of the result", "for comparison");
ratio("dispatch, awaited", "floor, awaited", "for comparison");
ratio("dispatch, 1,000 tools", "dispatch, 10 tools", "aim: 1");
