import { assertEquals, assertStrictEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  accumulateCalls,
  type CallAccumulator,
  type DecodedCall,
  encodeResult,
  type StreamTarget,
} from "../../../src/formats/mod.ts";
import { defineTool, ToolResult } from "../../../src/tool/mod.ts";
import { namesFor } from "./call_support.ts";
import { PROVIDERS } from "./cases.ts";

type Seen = readonly [id: string, name: string | undefined, args: unknown];
const seen = (calls: readonly DecodedCall[]): readonly Seen[] =>
  calls.map(({ callId, name, arguments: args }) => [callId, name, args]);

function pushAll(stream: CallAccumulator, events: readonly unknown[]): readonly DecodedCall[] {
  return events.flatMap((event) => stream.push(event));
}

const chatCall = (index: number, args: string, more: object = {}): object => ({
  choices: [{
    index: 0,
    delta: { tool_calls: [{ index, ...more, function: { arguments: args } }] },
  }],
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

const item = (id: string, name: string, args: string, namespace?: string): object => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: args,
  ...(namespace === undefined ? {} : { namespace }),
});
const added = (output_index: number, id: string, name: string, namespace?: string): object => ({
  type: "response.output_item.added",
  output_index,
  item: item(id, name, "", namespace),
});
const argsDelta = (output_index: number, delta: string): object => ({
  type: "response.function_call_arguments.delta",
  output_index,
  item_id: `random_${delta.length}`,
  delta,
});
const argsDone = (output_index: number, args: string): object => ({
  type: "response.function_call_arguments.done",
  output_index,
  arguments: args,
});
const itemDone = (output_index: number, inner: object): object => ({
  type: "response.output_item.done",
  output_index,
  item: inner,
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
    it(`puts the calls of ${target} together`, () => {
      const stream = accumulateCalls(target, namesFor(target));
      const out: DecodedCall[] = [];
      events.forEach((event, index) => {
        out.push(...stream.push(event));
        assertEquals(out.length > 0, index + 1 >= first, `after event ${index + 1}`);
        assertEquals(new Set(stream.calls()), new Set(out));
      });
      const expected: readonly Seen[] = [[a, "city:weather", { city: "Rome" }], [b, "clear", {}]];
      assertEquals(seen(stream.end()), expected);
      if (first < Infinity) assertEquals(seen(out), expected);
    });

    // LangChain's streams may end without a word: there, a call without arguments is whole.
    if (target === "langchain") continue;
    it(`never gives out a half of a call of ${target}, wherever the stream breaks off`, () => {
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

  it("takes a call whose arguments never came for cut off if the stream broke off", () => {
    for (
      const [target, open] of [
        ["openai", chatOpen(0, "a", "clear")],
        ["openai.responses", added(0, "a", "clear")],
        ["anthropic", blockStart(0, "a", "clear")],
      ] as const
    ) {
      const stream = accumulateCalls(target, namesFor(target));
      assertEquals(stream.push(open), []);
      const [call] = stream.end();
      assertEquals([call?.callId, call?.name, call?.problem?.code], [
        "a",
        undefined,
        "invalid_arguments",
      ]);
      assertStringIncludes(
        call?.problem?.message ?? "",
        "ended before its arguments were complete",
      );
    }
  });

  it("takes a call for cut off that the token limit left empty", () => {
    const anthropic = accumulateCalls("anthropic", namesFor("anthropic"));
    assertEquals(pushAll(anthropic, [blockStart(0, "a", "clear"), blockStop(0)]), []);
    const [call] = anthropic.push(messageDelta("max_tokens"));
    assertEquals([call?.name, call?.problem?.code], [undefined, "invalid_arguments"]);

    const chat = accumulateCalls("openai", namesFor("openai"));
    const calls = pushAll(chat, [
      chatOpen(0, "a", "clear", '{"only":"x"}'),
      chatOpen(1, "b", "clear"),
      chatEnd("length"),
    ]);
    assertEquals(calls.map(({ name }) => name), ["clear", undefined]);
  });

  it("takes a call for whole whose end was seen, though the stream broke off after it", () => {
    const stream = accumulateCalls("anthropic", namesFor("anthropic"));
    assertEquals(pushAll(stream, [blockStart(0, "a", "clear"), blockStop(0)]), []);
    assertEquals(seen(stream.end()), [["a", "clear", {}]]);
  });

  it("takes a call for cut off whose realtime response was", () => {
    for (const status of ["cancelled", "failed", "incomplete"]) {
      const stream = accumulateCalls("openai.realtime", namesFor("openai.realtime"));
      const done = { type: "response.done", response: { status, output: [] } };
      assertEquals(pushAll(stream, [added(0, "a", "clear"), done]).map(({ name }) => name), [
        undefined,
      ]);
    }
  });

  it("has no call where arguments came and no call", () => {
    const stream = accumulateCalls("openai.responses", namesFor("openai.responses"));
    const events = [argsDelta(0, '{"only":"a"}'), { type: "response.completed", response: {} }];
    assertEquals([...pushAll(stream, events), ...stream.end()], []);
  });

  it("makes up no id that another call has", () => {
    const stream = accumulateCalls("gemini", namesFor("gemini"));
    const chunk = (functionCall: object): object => ({
      candidates: [{ content: { parts: [{ functionCall }] } }],
    });
    pushAll(stream, [chunk({ id: "call_1", name: "clear" }), chunk({ name: "clear" })]);
    assertEquals(stream.end().map(({ callId }) => callId), ["call_1", "call_2"]);
  });

  it("treats a call of LangChain as truncated if a chunk marks it", () => {
    const chunk = { tool_call_chunks: [{ index: 0, id: "a", name: "clear", args: "" }] };
    for (const [reason, name] of [["length", undefined], ["tool_calls", "clear"]] as const) {
      const stream = accumulateCalls("langchain", namesFor("langchain"));
      const calls = pushAll(stream, [chunk, { response_metadata: { finish_reason: reason } }]);
      assertEquals(calls.map((call) => call.name), [name]);
    }
  });

  it("keeps interleaved calls apart, in the order in which they began", () => {
    const stream = accumulateCalls("openai", namesFor("openai"));
    pushAll(stream, [
      chatOpen(1, "b", "clear"),
      chatOpen(0, "a", "clear"),
      chatCall(0, '{"only":'),
      chatCall(1, '{"only":'),
      chatCall(0, '"a"}'),
      chatCall(1, '"b"}'),
      chatEnd("tool_calls"),
    ]);
    assertEquals(seen(stream.end()), [["b", "clear", { only: "b" }], ["a", "clear", {
      only: "a",
    }]]);
  });

  it("takes arguments that come before their call", () => {
    const stream = accumulateCalls("openai.responses", namesFor("openai.responses"));
    pushAll(stream, [argsDelta(0, '{"only":'), added(0, "a", "clear"), argsDelta(0, '"a"}')]);
    const [call] = stream.push(itemDone(0, item("a", "clear", '{"only":"a"}')));
    assertEquals(call?.arguments, { only: "a" });
  });

  it("reads calls out of the last event whose own events were missed", () => {
    const stream = accumulateCalls("openai.responses", namesFor("openai.responses"));
    const output = [item("a", "clear", "{}"), item("b", "clear", '{"only":"b"}')];
    pushAll(stream, [itemDone(0, item("a", "clear", "{}"))]);
    const calls = stream.push({ type: "response.completed", response: { output } });
    assertEquals(seen(calls), [["b", "clear", { only: "b" }]]);
    assertEquals(stream.end().length, 2);
  });

  it("takes the item that is done for the call, whatever its deltas said", () => {
    const stream = accumulateCalls("openai.responses", namesFor("openai.responses"));
    pushAll(stream, [added(0, "a", "clear"), argsDelta(0, '{"only":"wro')]);
    const [call] = stream.push(itemDone(0, item("a", "clear", '{"only":"right"}')));
    assertEquals(call?.arguments, { only: "right" });
    assertEquals(stream.push(argsDelta(0, "late")), []);
    assertEquals(stream.end(), [call as DecodedCall]);
  });

  it("distinguishes calls with the same or no index by their ids", () => {
    for (const index of [{ index: 0 }, {}]) {
      const delta = (id: string, only: string): object => ({
        choices: [{
          delta: {
            tool_calls: [{
              ...index,
              id,
              function: { name: "clear", arguments: `{"only":"${only}"}` },
            }],
          },
        }],
      });
      const stream = accumulateCalls("openai", namesFor("openai"));
      pushAll(stream, [delta("a", "x"), delta("b", "y"), chatEnd("tool_calls")]);
      assertEquals(seen(stream.end()), [["a", "clear", { only: "x" }], ["b", "clear", {
        only: "y",
      }]]);
    }
  });

  it("keeps a call together whose server sends another id, or the name again, with each chunk", () => {
    const stream = accumulateCalls("openai", namesFor("openai"));
    pushAll(stream, [
      chatOpen(0, "a", "clear", '{"only":'),
      chatCall(0, '"x"', { id: "random" }),
      {
        choices: [{
          delta: { tool_calls: [{ index: 0, function: { name: "clear", arguments: "}" } }] },
        }],
      },
      chatEnd("stop"),
    ]);
    assertEquals(seen(stream.end()), [["a", "clear", { only: "x" }]]);
  });

  it("reads OpenAI's legacy function_call, and its answer is one", () => {
    const stream = accumulateCalls("openai", namesFor("openai"));
    const [call] = pushAll(stream, [
      { choices: [{ delta: { function_call: { name: "clear", arguments: "" } } }] },
      { choices: [{ delta: { function_call: { arguments: "{}" } } }] },
      chatEnd("function_call"),
    ]);
    assertEquals(call?.name, "clear");
    const answer = encodeResult("openai", call as DecodedCall, ToolResult.ok("x"));
    assertEquals(answer.role, "function");
  });

  it("reads the first choice only", () => {
    const stream = accumulateCalls("openai", namesFor("openai"));
    const other = {
      index: 1,
      delta: { tool_calls: [{ index: 0, id: "z", function: { name: "clear", arguments: "{}" } }] },
    };
    pushAll(stream, [{ choices: [other] }, chatOpen(0, "a", "clear", "{}"), chatEnd("stop")]);
    assertEquals(stream.end().map(({ callId }) => callId), ["a"]);
  });

  it("leaves out the calls that Anthropic runs itself", () => {
    const stream = accumulateCalls("anthropic", namesFor("anthropic"));
    pushAll(stream, [
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "server_tool_use", id: "s", name: "clear", input: {} },
      },
      blockDelta(0, '{"query":"x"}'),
      blockStop(0),
      messageDelta("end_turn"),
    ]);
    assertEquals(stream.end(), []);
  });

  it("keeps what an answer repeats: the caller of a programmatic call", () => {
    const stream = accumulateCalls("openai.responses", namesFor("openai.responses"));
    const caller = { type: "program", caller_id: "p" } as const;
    const [call] = pushAll(stream, [
      { ...added(0, "a", "clear"), item: { ...item("a", "clear", ""), caller } },
      argsDone(0, "{}"),
      { type: "response.completed", response: {} },
    ]);
    const answer = encodeResult("openai.responses", call as DecodedCall, ToolResult.ok("x"));
    assertEquals(answer.type === "function_call_output" && answer.caller, caller);
  });

  it("leaves a text that is not JSON to the dispatcher", () => {
    const stream = accumulateCalls("anthropic", namesFor("anthropic"));
    const [call] = pushAll(stream, [
      blockStart(0, "a", "clear"),
      blockDelta(0, '{"only"'),
      blockStop(0),
    ]);
    assertEquals([call?.name, call?.arguments], ["clear", '{"only"']);
  });

  it("has a problem for a name that was not exported", () => {
    const stream = accumulateCalls("openai", namesFor("openai"));
    const [call] = pushAll(stream, [chatOpen(0, "a", "__proto__", "{}"), chatEnd("stop")]);
    assertEquals([call?.name, call?.problem?.code], [undefined, "unknown_tool"]);
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

  it("end the stream of more calls than allowed, and keep those before", () => {
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
    const mcp = "mcp" as unknown as StreamTarget;
    assertThrows(() => accumulateCalls(mcp, names), TypeError, "they are not streamed");
    const none = "toString" as unknown as StreamTarget;
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

  it("undoes in them what the export has changed", () => {
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

  it("shows a name as far as it has come, and the id of a tool that has it", () => {
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
