import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import * as plue from "../../../src/formats/mod.ts";
import { decodeCalls, exportTools, type TargetName } from "../../../src/formats/mod.ts";
import { makeTool, type Tool, ToolResult } from "../../../src/tool/mod.ts";
import { aToolSchema, aValue, aValueFor } from "../../support/arbitrary_schema.ts";
import { FIXTURES } from "./cases.ts";
import { cases } from "../../support/laws.ts";

fc.configureGlobal(cases(100));

const engine = typeboxEngine({ codeGeneration: false });
const runs = cases(60);

/** A tool, and arguments that its own schema accepts. */
const aCall: fc.Arbitrary<{ readonly tool: Tool; readonly args: unknown }> = aToolSchema()
  .chain((parameters) =>
    aValueFor(parameters).map((args) => ({
      tool: makeTool({ name: "t", description: "A tool.", parameters }),
      args,
    }))
  )
  .filter(({ tool, args }) => engine.compile(tool.parameters, "2020-12").check(args));

/** Returns true if two JSON values are the same, `__proto__` included. */
const same = (a: unknown, b: unknown): boolean => canonical(a) === canonical(b);
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${
    Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).sort()
      .join()
  }}`;
}

describe("decodeCalls()", () => {
  for (const { targets, call } of FIXTURES) {
    for (const target of targets) {
      it(`returns the arguments that were written for ${target}`, () => {
        fc.assert(
          fc.property(aCall, ({ tool, args }) => {
            const { names, losses } = exportTools([tool], target as TargetName);
            const encoding = names.encodingOf("t");
            // Some tools cannot be exported; some values are identical on the wire, which losses
            // report.
            if (encoding === undefined) return;
            if (losses.some(({ grade, narrows }) => grade === "ambiguous" || narrows)) return;
            const wire = JSON.parse(JSON.stringify(plue.encodeArguments(args, encoding.input)));
            const raw = { ...call(encoding.name, wire, "abcdefgh1") as object };
            if ("namespace" in raw) delete raw.namespace;
            const [decoded] = decodeCalls(target, [raw], names);
            assertEquals(decoded?.name, "t");
            assert(same(decoded?.arguments, args), canonical(decoded?.arguments));
          }),
          runs,
        );
      });

      it(`never changes the response of ${target}, and never throws for arguments`, () => {
        fc.assert(
          fc.property(aCall, aValue, ({ tool }, args) => {
            const { names } = exportTools([tool], target as TargetName);
            const raw = call(names.nameOf("t") ?? "t", args, "abcdefgh1");
            const before = canonical(raw);
            decodeCalls(target, [raw], names);
            assertEquals(canonical(raw), before);
          }),
          runs,
        );
      });
    }
  }

  it("undoes exactly the nulls that strict modes added, at every depth", () => {
    type Pair = readonly [schema: Readonly<Record<string, unknown>>, value: fc.Arbitrary<unknown>];
    const key = fc.constantFrom("a", "b", "constructor", "__proto__");
    const { pair } = fc.letrec<{ pair: Pair; object: Pair }>((tie) => ({
      pair: fc.oneof(
        { maxDepth: 3 },
        fc.constant<Pair>([{ type: "integer" }, fc.integer()]),
        // A null that the tool's schema allows, which must stay.
        fc.constant<Pair>([{ type: ["string", "null"] }, fc.constantFrom("x", null)]),
        tie("object"),
        tie("pair").map(([schema, value]): Pair => [
          { type: "array", items: schema },
          fc.array(value, { maxLength: 2 }),
        ]),
      ),
      object: fc.uniqueArray(fc.tuple(key, tie("pair"), fc.boolean()), {
        maxLength: 3,
        selector: ([name]) => name,
      }).map((list): Pair => {
        // Optional *and* nullable cannot be distinguished on the wire.
        const members = list.map(([name, [schema, value], needed]) => ({
          name,
          schema,
          value,
          needed: needed || Array.isArray(schema["type"]),
        }));
        const required = members.filter(({ needed }) => needed).map(({ name }) => name);
        return [
          {
            type: "object",
            properties: Object.fromEntries(members.map(({ name, schema }) => [name, schema])),
            required,
            additionalProperties: false,
          },
          fc.tuple(
            ...members.map(({ value, needed }) =>
              needed
                ? value.map((item) => [item])
                : fc.option(value.map((item) => [item]), { nil: [] })
            ),
          ).map((items) =>
            Object.fromEntries(
              items.flatMap((item, index) =>
                item.map((one): [string, unknown] => [members[index]?.name ?? "", one])
              ),
            )
          ),
        ];
      }),
    })) as { pair: fc.Arbitrary<Pair> };
    const aTurn = pair.filter(([schema]) => schema["type"] === "object").chain(([schema, value]) =>
      value.map((args) => ({ schema, args }))
    );
    fc.assert(
      fc.property(aTurn, ({ schema, args }) => {
        const tool = makeTool({ name: "t", description: "A tool.", parameters: schema });
        const { names } = exportTools([tool], "openai.strict");
        const encoding = names.encodingOf("t");
        assertEquals(encoding?.strict, true);
        const wire = plue.encodeArguments(args, encoding?.input);
        const [call] = decodeCalls("openai.strict", [{
          id: "1",
          type: "function",
          function: { name: "t", arguments: JSON.stringify(wire) },
        }], names);
        assert(same(call?.arguments, args), `${canonical(wire)} ${canonical(call?.arguments)}`);
      }),
      cases(300),
    );
  });

  it("returns calls for any JSON, or throws a TypeError that does not quote it", () => {
    const fields = ("choices message tool_calls toolCalls function function_call type content " +
      "candidates parts functionCall toolCall functionCalls output response item toolUse params " +
      "method path operationId body kwargs invalid_tool_calls name id arguments args input custom " +
      "template").split(" ");
    const texts = ("secret tool_use function_call custom_tool_call custom tool-call tools/call " +
      "length response.function_call_arguments.done").split(" ");
    const { json } = fc.letrec<{ json: unknown }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 6 },
        fc.constantFrom<unknown>(null, true, 1, ...texts),
        fc.array(tie("json"), { maxLength: 2 }),
        fc.dictionary(fc.constantFrom(...fields), tie("json"), { minKeys: 1, maxKeys: 5 }),
      ),
    }));
    const { names } = exportTools([makeTool({ name: "t", description: "A tool." })], "openai");
    const target = fc.constantFrom(...FIXTURES.map(({ targets: [first] }) => first as TargetName));
    fc.assert(
      fc.property(target, json, (name, response) => {
        try {
          assert(Array.isArray(decodeCalls(name, response, names)));
        } catch (error) {
          assert(error instanceof TypeError && error.message.startsWith("Cannot read the calls"));
          assert(!error.message.includes("secret"), error.message);
        }
      }),
      cases(1_000),
    );
  });

  it("maps every name back to its own tool, for any ids", () => {
    const part = fc.string({
      unit: fc.constantFrom("a", "A", "_", ".", "-", "0"),
      minLength: 1,
      maxLength: 70,
    });
    const hostile = fc.constantFrom("constructor", "__proto__", "a__b", "a_b", "a.b", "toString");
    const anId = fc.tuple(fc.option(fc.oneof(part, hostile)), fc.oneof(part, hostile));
    const tools = fc.uniqueArray(anId, { maxLength: 12, selector: (id) => id.join(":") })
      .map((ids) =>
        ids.map(([namespace, name]) =>
          makeTool({ name, ...(namespace === null ? {} : { namespace }), description: "A tool." })
        )
      );
    fc.assert(
      fc.property(tools, fc.constantFrom(...FIXTURES), (list, { targets, call }) => {
        for (const target of targets) {
          const { names } = exportTools(list, target as TargetName);
          const raws = names.encodings.map(({ name, namespace }) => {
            const raw = { ...call(name, {}, "abcdefgh1") as object };
            if ("namespace" in raw) delete raw.namespace;
            return namespace === undefined ? raw : { ...raw, namespace };
          });
          const ids = decodeCalls(target, raws, names).map(({ name }) => name);
          assertEquals(ids, names.encodings.map(({ id }) => id));
        }
      }),
      runs,
    );
  });
});

describe("encodeResult()", () => {
  it("writes JSON for every value, and does not change it", () => {
    const target = fc.constantFrom(...FIXTURES.flatMap(({ targets }) => targets));
    fc.assert(
      fc.property(aValue, target, (content, name) => {
        const before = canonical(content);
        const call = { callId: "c", wireName: "t" };
        const answer: unknown = plue.encodeResult<TargetName>(name, call, ToolResult.ok(content));
        assert(same(JSON.parse(JSON.stringify(answer)), answer));
        assertEquals(canonical(content), before);
      }),
      runs,
    );
  });
});

describe("accumulateCalls()", () => {
  const tool = makeTool({ name: "t", description: "A tool." });
  const anArgument = fc.dictionary(fc.constantFrom("a", "b", "é😀"), aValue, { maxKeys: 3 });

  /** Splits a text into pieces at any position, also inside of an escape or a surrogate pair. */
  const pieces = (text: string, cuts: readonly number[]): readonly string[] => {
    const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
    return [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length));
  };

  it("returns the calls of the whole response for any chunks and order of a stream", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(anArgument, fc.array(fc.nat(200), { maxLength: 6 })), {
          minLength: 1,
          maxLength: 4,
        }),
        fc.infiniteStream(fc.nat(3)),
        (calls, picks) => {
          const { names } = exportTools([tool], "anthropic");
          const queues = calls.map(([args, cuts], index) => [
            {
              type: "content_block_start",
              index,
              content_block: { type: "tool_use", id: `${index}`, name: "t" },
            },
            ...pieces(JSON.stringify(args), cuts).map((partial_json) => ({
              type: "content_block_delta",
              index,
              delta: { type: "input_json_delta", partial_json },
            })),
            { type: "content_block_stop", index },
          ]);
          const stream = plue.accumulateCalls("anthropic", names);
          for (let open = queues.filter(({ length }) => length > 0); open.length > 0;) {
            const queue = open[(picks.next().value ?? 0) % open.length];
            stream.push(queue?.shift());
            open = open.filter(({ length }) => length > 0);
          }
          stream.push({ type: "message_delta", delta: { stop_reason: "tool_use" } });
          const found = new Map(stream.end().map((call) => [call.callId, call.arguments]));
          calls.forEach(([args], index) => assert(same(found.get(`${index}`), args)));
          assertEquals(found.size, calls.length);
        },
      ),
      runs,
    );
  });

  it("never throws for events of the right types with any contents", () => {
    const types = ("content_block_start content_block_delta message_delta tool-call-start " +
      "tool-call-delta message-end response.output_item.added response.completed " +
      "response.function_call_arguments.delta response.function_call_arguments.done").split(" ");
    const fields = ["index", "delta", "content_block", "item", "arguments", "choices", "response"];
    const event = fc.tuple(
      fc.constantFrom(...types),
      fc.dictionary(fc.constantFrom(...fields), aValue, { maxKeys: 4 }),
    ).map(([type, rest]) => ({ type, ...rest }));
    const targets = [
      "openai",
      "openai.responses",
      "anthropic",
      "bedrock",
      "cohere",
      "langchain",
    ] as const;
    fc.assert(
      fc.property(
        fc.constantFrom(...targets),
        fc.array(event, { maxLength: 8 }),
        (target, events) => {
          const stream = plue.accumulateCalls(target, exportTools([tool], target).names);
          for (const one of events) stream.push(one);
          stream.end();
        },
      ),
      runs,
    );
  });
});
