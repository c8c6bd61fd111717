// The types that `defineTool` infers. Compiled by tsc; never run.

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import Type from "typebox";
import * as v from "valibot";
import { z } from "zod";
import * as mini from "zod/mini";
import { defineTool, type InferParams, type InferResult } from "../../src/adapters/typebox/mod.ts";
import type { JsonSchema, JsonSchemaObject, ToolContext } from "../../src/tool/mod.ts";

/** Compiles if both types are the same. */
function isExactly<Expected>() {
  return <Actual>(
    _value: Actual,
    ..._same: [Expected] extends [Actual] ? [Actual] extends [Expected] ? [] : [never] : [never]
  ): void => {};
}

function isUnknown<T>(
  _value: T,
  ..._no: 0 extends 1 & T ? [never] : unknown extends T ? [] : [never]
): void {}

const base = { name: "t", description: "A tool." } as const;

// --- JSON Schema literals ---------------------------------------------------------------------

defineTool({
  ...base,
  parameters: {
    type: "object",
    properties: {
      city: { type: "string" },
      days: { type: "integer" },
      unit: { enum: ["c", "f"] },
      tags: { type: "array", items: { type: "string" } },
      at: { type: "object", properties: { lat: { type: "number" } }, required: ["lat"] },
      either: { anyOf: [{ type: "string" }, { type: "null" }] },
    },
    required: ["city", "tags", "at", "either"],
    additionalProperties: false,
  },
  returns: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
  execute(params) {
    isExactly<string>()(params.city);
    isExactly<number | undefined>()(params.days);
    isExactly<"c" | "f" | undefined>()(params.unit);
    isExactly<string[]>()(params.tags);
    isExactly<number>()(params.at.lat);
    isExactly<string | null>()(params.either);
    // @ts-expect-error there is no such property
    params.town;
    // @ts-expect-error it may be absent
    params.days.toFixed();
    return { ok: true };
  },
});

defineTool({
  ...base,
  parameters: { type: "object", properties: {} },
  returns: { type: "number" },
  // @ts-expect-error the result must be a number
  execute: () => "three",
});

// Draft-07 definitions, and a schema that contains itself.
defineTool({
  ...base,
  parameters: {
    type: "object",
    definitions: { name: { type: "string" } },
    properties: { name: { $ref: "#/definitions/name" } },
    required: ["name"],
  },
  execute: ({ name }) => void isExactly<string>()(name),
});
defineTool({
  ...base,
  parameters: {
    type: "object",
    properties: { root: { $ref: "#/$defs/node" } },
    required: ["root"],
    $defs: {
      node: {
        type: "object",
        properties: {
          value: { type: "number" },
          children: { type: "array", items: { $ref: "#/$defs/node" } },
        },
        required: ["value", "children"],
      },
    },
  },
  execute: ({ root }) => void root,
});

// --- Services ---------------------------------------------------------------------------------

type Clock = { readonly clock: { readonly now: () => string } };
defineTool({
  ...base,
  parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
  returns: { type: "string" },
  execute({ zone }, { services }: ToolContext<unknown, undefined, unknown, Clock>) {
    isExactly<string>()(zone);
    isExactly<string>()(services.clock.now());
    // @ts-expect-error there is no such service
    void services.calendar;
    return services.clock.now();
  },
});

// --- Schemas that are not literals ------------------------------------------------------------

declare const someObject: JsonSchemaObject;
declare const someSchema: JsonSchema;
defineTool({
  ...base,
  parameters: someObject,
  returns: someSchema,
  execute(params) {
    isUnknown(params["anything"]);
    return [1, "2", null];
  },
});
defineTool({
  ...base,
  execute(params) {
    isUnknown(params["anything"]);
  },
});
declare const plain: object;
defineTool({
  ...base,
  parameters: plain,
  execute(params) {
    isUnknown(params["anything"]);
  },
});

// --- TypeBox ----------------------------------------------------------------------------------

defineTool({
  ...base,
  parameters: Type.Object({
    city: Type.String(),
    days: Type.Optional(Type.Integer()),
    unit: Type.Union([Type.Literal("c"), Type.Literal("f")]),
    nested: Type.Array(Type.Object({ a: Type.Boolean() })),
  }),
  returns: Type.Object({ degrees: Type.Number() }),
  config: Type.Object({ key: Type.String() }),
  init: (context) => {
    isExactly<string>()(context.config.key);
    return { calls: 0 };
  },
  execute(params, context) {
    isExactly<string>()(params.city);
    isExactly<number | undefined>()(params.days);
    isExactly<"c" | "f">()(params.unit);
    isExactly<boolean | undefined>()(params.nested[0]?.a);
    isExactly<string>()(context.config.key);
    isExactly<number>()(context.state.calls);
    return { degrees: 3 };
  },
});

// --- Standard Schemas: `execute` receives the output of the validation --------------------------

defineTool({
  ...base,
  parameters: z.object({
    city: z.string(),
    days: z.number().default(3),
    at: z.string().transform(Number),
  }),
  returns: z.object({ degrees: z.number() }),
  execute(params) {
    isExactly<string>()(params.city);
    isExactly<number>()(params.days);
    isExactly<number>()(params.at);
    return { degrees: 3 };
  },
});
defineTool({
  ...base,
  returns: z.object({ degrees: z.number() }),
  // @ts-expect-error the result must have degrees
  execute: () => ({ grades: 3 }),
});
defineTool({
  ...base,
  parameters: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number(), 3) })),
  execute(params) {
    isExactly<string>()(params.city);
    isExactly<number>()(params.days);
  },
});
defineTool({
  ...base,
  parameters: mini.toJSONSchema(mini.object({ city: mini._default(mini.string(), "Rome") })),
  execute: (params) => void isExactly<string>()(params.city),
});
defineTool({
  ...base,
  parameters: type({ city: "string", "days?": "number" }),
  execute(params) {
    isExactly<string>()(params.city);
    isExactly<number | undefined>()(params.days);
  },
});

// --- Streams and results ------------------------------------------------------------------------

const streamed = defineTool({
  ...base,
  parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  returns: { type: "string" },
  async *execute({ n }) {
    yield n;
    return "done";
  },
});
isExactly<{ n: number }>()(null as never as Parameters<NonNullable<typeof streamed.execute>>[0]);

// --- The types of a tool's arguments and results, read from the tool ----------------------------

const greet = defineTool({
  ...base,
  parameters: z.object({ who: z.string().default("you") }),
  returns: { type: "string" },
  execute: ({ who }) => `Hello, ${who}`,
});
isExactly<{ who: string }>()(null as never as InferParams<typeof greet>);
isExactly<string>()(null as never as InferResult<typeof greet>);
isExactly<{ n: number }>()(null as never as InferParams<typeof streamed>);
const schema = z.object({ at: z.string().transform(Number) });
isExactly<{ at: number }>()(null as never as InferParams<typeof schema>);

// --- Fields -----------------------------------------------------------------------------------

// The specification's own pattern.
defineTool({ ...base, name: "chain:status", allowedRoles: ["control", "impl"] });

// @ts-expect-error it is called `parameters`
defineTool({ name: "t", description: "A tool.", inputSchema: { type: "object" } });
// @ts-expect-error it is called `execute`
defineTool({ name: "t", description: "A tool.", handler: () => 1 });

// --- The context of a call --------------------------------------------------------------------

defineTool({
  ...base,
  context: { type: "object", properties: { tenant: { type: "string" } }, required: ["tenant"] },
  validate: (_, { context }) => isExactly<string>()(context.tenant),
  execute(_, { context }) {
    isExactly<string>()(context.tenant);
    // @ts-expect-error there is no such property
    context.user;
  },
});
defineTool({
  ...base,
  context: z.object({ since: z.date(), limit: z.number().default(5) }),
  execute(_, { context }) {
    isExactly<Date>()(context.since);
    isExactly<number>()(context.limit);
  },
});
defineTool({ ...base, execute: (_, { context }) => isUnknown(context) });
