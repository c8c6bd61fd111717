import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import { describe, it } from "bun:test";
import * as plue from "../../../src/formats/mod.ts";
import { accumulateCalls, type DecodedCall } from "../../../src/formats/mod.ts";
import { readPartialJson } from "../../../src/formats/stream.ts";
import { defineTool, isObject, ToolResult } from "../../../src/tool/mod.ts";
import { cases as lawCases } from "../../support/laws.ts";
import { namesFor, PROVIDERS } from "./cases.ts";
import streams from "./cases/streams.json" with { type: "json" };

type Seen = readonly [id: string, name: string | undefined, args: unknown];
const seen = (calls: readonly DecodedCall[]): readonly Seen[] =>
  calls.map(({ callId, name, arguments: args }) => [callId, name, args]);

/** A stream, with the calls that its events complete and all calls at its end. */
interface Row {
  readonly title: string;
  readonly target: plue.TargetName;
  readonly events: readonly object[];
  /** The id, the name and the arguments of each call; for a rejected one `null` and the code. */
  readonly completed: readonly unknown[];
  readonly calls: readonly unknown[];
}

function shown(calls: readonly DecodedCall[]): readonly unknown[] {
  return calls.map(({ callId, name, arguments: args, problem }) =>
    problem === undefined ? [callId, name, args] : [callId, null, problem.code]
  );
}

function pushAll(stream: plue.CallAccumulator, events: readonly unknown[]): readonly DecodedCall[] {
  return events.flatMap((event) => stream.push(event));
}

const chatCall = (index: number, args: string): object => ({
  choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: args } }] } }],
});
const chatOpen = (index: number, id: string, name: string, args = ""): object => ({
  choices: [{
    index: 0,
    delta: { tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }] },
  }],
});
const chatEnd = (finish_reason: string): object => ({
  choices: [{ index: 0, delta: {}, finish_reason }],
});

const blockStart = (index: number, id: string, name: string): object => ({
  type: "content_block_start",
  index,
  content_block: { type: "tool_use", id, name, input: {} },
});
const blockDelta = (index: number, partial_json: string): object => ({
  type: "content_block_delta",
  index,
  delta: { type: "input_json_delta", partial_json },
});
const blockStop = (index: number): object => ({ type: "content_block_stop", index });
const messageDelta = (stop_reason: string): object => ({
  type: "message_delta",
  delta: { stop_reason },
});

describe("accumulateCalls()", () => {
  for (const { stream: cases } of PROVIDERS) {
    if (cases === undefined) continue;
    const { target, events, ids: [a, b] = ["a", "b"] } = cases;
    const first = cases.first ?? Infinity;
    it(`assembles the calls of ${target}`, () => {
      const stream = accumulateCalls(target, namesFor(target));
      const out: DecodedCall[] = [];
      events.forEach((event, index) => {
        out.push(...stream.push(event));
        assertEquals(out.length > 0, index + 1 >= first, `after event ${index + 1}`);
      });
      const expected: readonly Seen[] = [[a, "city:weather", { city: "Rome" }], [b, "clear", {}]];
      assertEquals(seen(stream.end()), expected);
      if (first < Infinity) assertEquals(seen(out), expected);
    });

    // LangChain's streams may end without a final event: a call without arguments is then complete.
    if (target === "langchain") continue;
    it(`never returns an incomplete call of ${target}, wherever the stream breaks off`, () => {
      const names = namesFor(target);
      for (let length = 0; length < events.length; length++) {
        const stream = accumulateCalls(target, names);
        pushAll(stream, events.slice(0, length));
        for (const call of stream.end()) {
          if (call.name === "city:weather") assertEquals(call.arguments, { city: "Rome" });
          else if (call.name === undefined) assertEquals(call.problem.code, "invalid_arguments");
          else assertEquals(call.arguments, {});
        }
      }
    });
  }

  for (const { title, target, events, completed, calls } of streams as unknown as readonly Row[]) {
    it(title, () => {
      const stream = accumulateCalls(target, namesFor(target));
      assertEquals(shown(pushAll(stream, events)), completed);
      assertEquals(shown(stream.end()), calls);
    });
  }

  it("retains the caller of a programmatic call, which the answer repeats", () => {
    const stream = accumulateCalls("openai.responses", namesFor("openai.responses"));
    const caller = { type: "program", caller_id: "p" } as const;
    const item = { type: "function_call", call_id: "a", name: "clear", arguments: "", caller };
    const [call] = pushAll(stream, [
      { type: "response.output_item.added", output_index: 0, item },
      { type: "response.function_call_arguments.done", output_index: 0, arguments: "{}" },
      { type: "response.completed", response: {} },
    ]);
    const answer = plue.encodeResult("openai.responses", call as DecodedCall, ToolResult.ok("x"));
    assertEquals(answer.type === "function_call_output" && answer.caller, caller);
  });
});

describe("the bounds of accumulateCalls()", () => {
  it("reject only the call with too long arguments", () => {
    const stream = accumulateCalls("openai", namesFor("openai"), { maxCharacters: 40 });
    pushAll(stream, [
      chatOpen(0, "a", "clear", '{"only":"x"}'),
      chatOpen(1, "b", "clear", '{"only":"'),
      ...Array.from({ length: 100 }, () => chatCall(1, "y")),
      chatOpen(2, "c", "clear", '{"only":"z"}'),
      chatEnd("tool_calls"),
    ]);
    const calls = stream.end();
    assertEquals(calls.map(({ name }) => name), ["clear", undefined, "clear"]);
    assertStringIncludes(calls[1]?.problem?.message ?? "", "more than 40 characters");
  });

  it("apply to all calls together, including completed ones", () => {
    const stream = accumulateCalls("anthropic", namesFor("anthropic"), { maxCharacters: 20 });
    const one = (index: number): readonly object[] => [
      blockStart(index, `${index}`, "clear"),
      blockDelta(index, '{"only":"x"}'),
      blockStop(index),
    ];
    pushAll(stream, [...one(0), ...one(1), messageDelta("tool_use")]);
    assertEquals(stream.end().map(({ name }) => name), ["clear", undefined]);
  });

  it("end a stream with too many calls, and return the earlier calls", () => {
    const stream = accumulateCalls("openai", namesFor("openai"), { maxCalls: 2 });
    pushAll(stream, [chatOpen(0, "a", "clear", "{}"), chatOpen(1, "b", "clear", "{}")]);
    assertThrows(() => stream.push(chatOpen(2, "c", "clear")), RangeError, "more than 2");
    assertEquals(stream.end().length, 2);
  });

  it("are positive whole numbers", () => {
    for (const bound of [0, -1, 1.5, NaN]) {
      for (const options of [{ maxCalls: bound }, { maxCharacters: bound }]) {
        assertThrows(() => accumulateCalls("openai", namesFor("openai"), options), RangeError);
      }
    }
  });
});

describe("the use of accumulateCalls()", () => {
  it("is rejected for a target without streamed calls", () => {
    const names = namesFor("mcp");
    assertThrows(() => accumulateCalls("mcp", names), TypeError, "they are not streamed");
    const none = "toString" as unknown as plue.TargetName;
    assertThrows(() => accumulateCalls(none, names), RangeError, "Cannot find the target");
  });

  it("is rejected for unparsed events, and after the end", () => {
    const stream = accumulateCalls("openai", namesFor("openai"));
    for (const event of ["data: {}", null, undefined, []]) {
      assertThrows(() => stream.push(event), TypeError, "must be an object");
    }
    const calls = stream.end();
    assertThrows(() => stream.push({}), TypeError, "the stream has ended");
    assertStrictEquals(stream.end().length, calls.length);
  });

  it("ignores unknown events", () => {
    for (const { stream: cases } of PROVIDERS) {
      if (cases === undefined) continue;
      const { target } = cases;
      const stream = accumulateCalls(target, namesFor(target));
      for (
        const event of [{}, { type: "new" }, { choices: null }, { choices: [null] }, { delta: 1 }]
      ) {
        assertEquals(stream.push(event), []);
      }
      assertEquals(stream.end(), []);
    }
  });
});

describe("partial()", () => {
  it("shows only incomplete calls", () => {
    const stream = accumulateCalls("anthropic", namesFor("anthropic"));
    assertEquals(stream.partial(), []);
    stream.push(blockStart(0, "toolu_1", "city__weather"));
    const shown = { callId: "toolu_1", wireName: "city__weather", tool: "city:weather" };
    assertEquals(stream.partial(), [{ ...shown, partialArguments: undefined }]);
    stream.push(blockDelta(0, '{"city":"Par'));
    assertEquals(stream.partial(), [{ ...shown, partialArguments: { city: "Par" } }]);
    stream.push(blockDelta(0, 'is"}'));
    assertEquals(seen(stream.push(blockStop(0))), [["toolu_1", "city:weather", { city: "Paris" }]]);
    assertEquals(stream.partial(), []);
  });

  it("reverts the changes of the export in them", () => {
    const odd = defineTool({
      name: "odd",
      description: "Has a key that strict modes rename or take null for.",
      parameters: {
        type: "object",
        properties: { note: { type: "string" }, more: { type: "string" } },
        required: ["more"],
      },
    });
    const stream = accumulateCalls("openai.chat.strict", namesFor("openai.chat.strict", [odd]));
    stream.push(chatOpen(0, "call_1", "odd", '{"note":null,"more":"ab'));
    assertEquals(stream.partial().map((one) => one.partialArguments), [{ more: "ab" }]);
  });

  it("shows the received part of a name, and the id of a tool with that name", () => {
    const stream = accumulateCalls("openai.chat", namesFor("openai.chat"));
    stream.push(chatOpen(0, "call_1", "nothing_of_this_name", '{"a":"b'));
    assertEquals(stream.partial(), [{
      callId: "call_1",
      wireName: "nothing_of_this_name",
      tool: undefined,
      partialArguments: { a: "b" },
    }]);
  });
});

/** True if `part` may be the beginning of `whole`. */
function begins(part: unknown, whole: unknown): boolean {
  if (typeof part === "string" && typeof whole === "string") return whole.startsWith(part);
  if (Array.isArray(part)) {
    return Array.isArray(whole) && part.every((item, at) => begins(item, whole[at]));
  }
  if (isObject(part)) {
    return isObject(whole) &&
      Object.keys(part).every((name) =>
        Object.hasOwn(whole, name) && begins(part[name], whole[name])
      );
  }
  return Object.is(part, whole);
}

describe("readPartialJson()", () => {
  it("reads from every beginning only values that the whole text confirms", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.boolean(), (value, spaced) => {
        const whole = JSON.parse(JSON.stringify(value));
        const text = JSON.stringify(value, null, spaced ? 2 : undefined);
        let before: unknown;
        for (let end = 0; end <= text.length; end++) {
          const part = readPartialJson(text.slice(0, end));
          if (part === undefined) {
            assertEquals(before, undefined);
            continue;
          }
          assert(begins(part, whole), `${text.slice(0, end)} gave ${JSON.stringify(part)}`);
          assert(before === undefined || begins(before, part));
          before = part;
        }
        // A number may continue until another character follows it.
        assertEquals(readPartialJson(`${text} `), whole);
      }),
      lawCases(300),
    );
  });

  const CASES: readonly (readonly [text: string, value: unknown])[] = [
    ["", undefined],
    [" ", undefined],
    ["12", undefined],
    ["tru", undefined],
    ['"', ""],
    ['"a\\', "a"],
    ['"a\\u00', "a"],
    ['"a\\ud83d', "a"],
    ["{", {}],
    ['{"a', {}],
    ['{"a"', {}],
    ['{"a":', {}],
    ['{"a":1', {}],
    ['{"a":1,', { a: 1 }],
    ['{"a":[1,2', { a: [1] }],
    ['{"a":"x","__proto__":{"b":"y', { a: "x", ["__proto__"]: { b: "y" } }],
    ['{"a":"x"} and more', { a: "x" }],
    ['{"a":"x" "b":1}', { a: "x" }],
    ["[,1]", []],
    ['{"text":"two\nlines', { text: "two\nlines" }],
  ];
  for (const [text, value] of CASES) {
    it(`reads ${JSON.stringify(text)} as ${JSON.stringify(value)}`, () => {
      assertEquals(readPartialJson(text), value as never);
    });
  }

  it("reads texts of millions of escapes", () => {
    const text = "\n".repeat(3_000_000);
    assertEquals(readPartialJson(JSON.stringify(text)) === text, true);
    assertEquals(
      readPartialJson(JSON.stringify(`a${text}b`).slice(0, -3)) === `a${text.slice(1)}`,
      true,
    );
  });

  it("reads 64 levels, and ends on more", () => {
    const value = readPartialJson("[".repeat(100_000));
    assertEquals(JSON.stringify(value).length, 2 * 65);
  });
});
