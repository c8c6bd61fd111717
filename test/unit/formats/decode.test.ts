import { assertEquals, assertStrictEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  decodeCalls,
  dispatchResponse,
  exportTools,
  listTargets,
  type TargetName,
} from "../../../src/formats/mod.ts";
import { defineTool } from "../../../src/tool/mod.ts";
import { FIXTURES } from "./cases.ts";
import { dispatcherOf, namesFor, WEATHER } from "./call_support.ts";

const ROWS = FIXTURES.flatMap((fixture) => fixture.targets.map((target) => ({ target, fixture })));

describe("decodeCalls()", () => {
  it("has a fixture for every target and alias", () => {
    const all = listTargets().flatMap(({ id, aliases }) => [id, ...aliases]);
    assertEquals(ROWS.map(({ target }) => target).sort(), all.sort());
  });

  for (const { target, fixture } of ROWS) {
    const { name, call, levels, ids } = fixture;
    const names = namesFor(target);

    for (const [level, wrap] of Object.entries(levels)) {
      it(`reads several calls of ${target} out of: ${level}`, () => {
        const raws = [call(name, { city: "Rome" }, "abcdefgh1"), call("clear", {}, "abcdefgh2")];
        const calls = decodeCalls(target, wrap(raws), names);
        // The second call says a namespace too, where there are namespaces: it has none.
        const second = target.startsWith("openai.responses") ? undefined : "clear";
        assertEquals(calls.map((one) => one.name), ["city:weather", second]);
        assertEquals(calls.map((one) => one.wireName), [name, "clear"]);
        assertEquals(calls.map((one) => one.arguments), [{ city: "Rome" }, {}]);
        assertEquals(
          calls.map((one) => one.callId),
          ids ? ["abcdefgh1", "abcdefgh2"] : ["call_1", "call_2"],
        );
      });
    }

    it(`reads one call of ${target} alone`, () => {
      const raw = call(name, { city: "Rome" }, "abcdefgh1");
      const [one, ...others] = decodeCalls(target, raw, names);
      assertEquals([one?.name, one?.arguments, others.length], [
        "city:weather",
        { city: "Rome" },
        0,
      ]);
    });

    it(`finds no calls in a response of ${target} without any`, () => {
      for (const response of fixture.silent) assertEquals(decodeCalls(target, response, names), []);
    });

    it(`returns a problem for an unknown name of ${target}, without an exception`, () => {
      for (const other of ["city:weather", "__proto__", "constructor", "wether", ""]) {
        const [one] = decodeCalls(target, call(other, { city: "Rome" }, "abcdefgh1"), names);
        assertEquals([one?.name, one?.wireName, one?.problem?.code], [
          undefined,
          other,
          "unknown_tool",
        ]);
      }
    });

    it(`keeps "__proto__" in arguments of ${target} as a key`, () => {
      const args: unknown = JSON.parse('{"city":"Rome","__proto__":{"unit":"F"}}');
      const [one] = decodeCalls(target, call(name, args, "abcdefgh1"), names);
      const decoded = one?.arguments as Record<string, unknown>;
      assertEquals(Object.keys(decoded).sort(), ["__proto__", "city"]);
      assertStrictEquals(decoded["unit"], undefined);
    });

    it(`rejects an invalid response of ${target} with a pointer, without quoting it`, () => {
      const wrong: unknown[] = [null, undefined, 1, "secret", { error: { message: "secret" } }, [
        "secret",
      ], [[call(name, {}, "abcdefgh1")]]];
      for (const response of wrong) {
        const error = assertThrows(
          () => decodeCalls(target, response, names),
          TypeError,
          "Cannot read",
        );
        assertEquals(error.message.includes("secret"), false, error.message);
      }
    });
  }

  it("rejects an export instead of its names", () => {
    const result = exportTools([], "openai") as unknown as ReturnType<typeof namesFor>;
    assertThrows(
      () => decodeCalls("openai", [], result),
      TypeError,
      "Cannot decode the calls: names must be the names of an export",
    );
  });

  it("rejects an unknown target", () => {
    const names = namesFor("openai");
    const target = "__proto__" as TargetName;
    assertThrows(
      () => decodeCalls(target, [], names),
      RangeError,
      'Cannot find the target "__proto__"',
    );
  });
});

describe("the place in a refused response", () => {
  const rows: readonly (readonly [TargetName, unknown, string])[] = [
    ["openai", { choices: {} }, '"/choices" must be a list, and is an object'],
    ["openai", { choices: [{}] }, '"/choices/0/message" must be an object, and is undefined'],
    ["mcp", { jsonrpc: "2.0", id: 1, method: "ping" }, '"/method" must be "tools/call"'],
    ["mcp", { arguments: {} }, '"/name" must be a text'],
    ["langchain", { tool_calls: {} }, '"/tool_calls" must be a list, and is an object'],
    ["openapi", { body: {} }, '"/path" must be a text'],
    ["anthropic", null, "it must be an object or a list, and is null"],
    ["anthropic", [null], '"/0" must be an object, and is null'],
    ["anthropic", { content: [null] }, '"/content/0" must be an object, and is null'],
    ["bedrock", [null], '"/0" must be an object, and is null'],
    ["bedrock", { message: { content: [{ text: "x" }, null] } }, '"/message/content/1" must be'],
    ["gemini", [null], '"/0" must be an object, and is null'],
    ["gemini", { parts: [null] }, '"/parts/0" must be an object, and is null'],
    ["gemini", { candidates: [{ content: { parts: [null] } }] }, '"/candidates/0/content/parts/0"'],
  ];
  for (const [target, response, words] of rows) {
    it(`is ${words.slice(0, 40)} for ${target}`, () => {
      assertThrows(() => decodeCalls(target, response, namesFor(target)), TypeError, words);
    });
  }
});

describe("a call that names no tool, or is none", () => {
  const clear = { name: "clear", arguments: "{}" };
  const rows: readonly (readonly [TargetName, unknown, string])[] = [
    ["openai", { tool_calls: [{ id: "1", function: {} }, { id: "2", function: clear }] }, "1"],
    ["openai", { tool_calls: [{ id: "1" }, { id: "2", function: clear }] }, "1"],
    ["openai", { tool_calls: [null, { id: "2", function: clear }] }, "call_1"],
    ["openai", [{ id: "1", type: "custom", custom: {} }, { id: "2", function: clear }], "1"],
    [
      "openai.responses",
      {
        output: [{ type: "function_call", call_id: "1" }, {
          type: "function_call",
          call_id: "2",
          ...clear,
        }],
      },
      "1",
    ],
    [
      "anthropic",
      {
        content: [{ type: "tool_use", id: "1", name: 1 }, {
          type: "tool_use",
          id: "2",
          name: "clear",
          input: {},
        }],
      },
      "1",
    ],
    [
      "gemini",
      [{ functionCall: { id: "1" } }, { functionCall: { id: "2", name: "clear", args: {} } }],
      "1",
    ],
    [
      "gemini",
      { toolCall: { functionCalls: [null, { id: "2", name: "clear", args: {} }] } },
      "call_1",
    ],
    [
      "bedrock",
      [{ toolUse: { toolUseId: "1" } }, {
        toolUse: { toolUseId: "2", name: "clear", input: {} },
      }],
      "1",
    ],
    [
      "ai-sdk",
      {
        toolCalls: [null, { type: "tool-call", toolCallId: "1" }, {
          type: "tool-call",
          toolCallId: "2",
          toolName: "clear",
          input: {},
        }],
      },
      "call_1",
    ],
    ["langchain", { tool_calls: [{ id: "1" }, { id: "2", name: "clear", args: {} }] }, "1"],
    ["langchain", { tool_calls: [5, { id: "2", name: "clear", args: {} }] }, "call_1"],
  ];
  for (const [target, response, callId] of rows) {
    const text = JSON.stringify(response).slice(0, 60);
    it(`is rejected alone, and the other call is read, in ${text} of ${target}`, () => {
      const calls = decodeCalls(target, response, namesFor(target));
      const [first] = calls;
      assertEquals([first?.callId, first?.name, first?.problem?.code], [
        callId,
        undefined,
        "unknown_tool",
      ]);
      assertEquals(calls.at(-1)?.name, "clear");
      assertEquals(calls.at(-1)?.callId, "2");
    });
  }

  it("is answered with a failure under its id", async () => {
    const response = { tool_calls: [{ id: "1" }, null, { id: "2", function: clear }] };
    const { messages } = await dispatchResponse(
      "openai",
      response,
      { dispatcher: dispatcherOf(), names: namesFor("openai") },
    );
    assertEquals(
      messages.map((message) => "tool_call_id" in message && [message.role, message.tool_call_id]),
      [["tool", "1"], ["tool", "call_1"], ["tool", "2"]],
    );
    assertStringIncludes(messages[0]?.content ?? "", 'Cannot call "": it is not a call of a tool');
    assertEquals(messages[2]?.content, "cleared");
  });
});

describe("the arguments of a decoded call", () => {
  const call = (args: unknown): unknown => [
    { id: "1", type: "function", function: { name: "city__weather", arguments: args } },
  ];
  const argumentsOf = (args: unknown, target: TargetName = "openai"): unknown =>
    decodeCalls(target, call(args), namesFor(target))[0]?.arguments;

  it("stay a text if they are not JSON, so that the dispatcher rejects them", () => {
    for (const text of ['{"city":', "{'city':'Rome'}", "Rome", '{"a":1}{"a":2}', '"{}"']) {
      assertStrictEquals(argumentsOf(text), text);
    }
  });

  it("are an empty object if the model wrote none", () => {
    for (const nothing of ["", " \n", "null", null, undefined]) {
      assertEquals(argumentsOf(nothing), {});
    }
  });

  it("are taken as an object where a server sends one", () => {
    assertEquals(argumentsOf({ city: "Rome" }), { city: "Rome" });
  });

  it("lose a null that strict mode added, and no other", () => {
    const text = '{"city":"Rome","unit":null}';
    assertEquals(argumentsOf(text, "openai.strict"), { city: "Rome" });
    assertEquals(argumentsOf('{"city":null,"unit":"C"}', "openai.strict"), {
      city: null,
      unit: "C",
    });
    assertEquals(argumentsOf(text, "openai"), { city: "Rome", unit: null });
  });

  it("get their own keys back", () => {
    const odata = defineTool({
      name: "odata",
      description: "Reads.",
      parameters: {
        type: "object",
        properties: { "$top": { type: "integer" }, "filter[id]": { type: "string" } },
      },
    });
    const names = namesFor("anthropic", [odata]);
    const keys = [...names.encodingOf("odata")?.input?.keys ?? []];
    const input = Object.fromEntries(keys.map(([wire, own]) => [wire, own === "$top" ? 5 : "x"]));
    const [one] = decodeCalls(
      "anthropic",
      { type: "tool_use", id: "1", name: "odata", input },
      names,
    );
    assertEquals(one?.arguments, { "$top": 5, "filter[id]": "x" });
  });
});

describe("a call that was cut off", () => {
  const decode = (target: TargetName, response: unknown) =>
    decodeCalls(target, response, namesFor(target)).map((
      { name, problem },
    ) => [name, problem?.code]);
  const refused = [[undefined, "invalid_arguments"]];

  it("is rejected, since a tool might run with a part of its arguments", () => {
    const call = { id: "1", type: "function", function: { name: "clear", arguments: "" } };
    const message = { role: "assistant", tool_calls: [call] };
    const choices = [{ message, finish_reason: "length" }];
    assertEquals(decode("openai", { choices }), refused);
    assertEquals(decode("mistral", { choices: [{ message, finishReason: "length" }] }), refused);
    assertEquals(decode("cohere", { message, finish_reason: "MAX_TOKENS" }), refused);
    const item = {
      type: "function_call",
      call_id: "1",
      name: "clear",
      arguments: "",
      status: "incomplete",
    };
    assertEquals(decode("openai.responses", { output: [item] }), refused);
    const content = [{ type: "tool_use", id: "1", name: "clear", input: {} }];
    assertEquals(decode("anthropic", { content, stop_reason: "max_tokens" }), refused);
    const use = [{ toolUse: { toolUseId: "1", name: "clear", input: {} } }];
    assertEquals(
      decode("bedrock", { output: { message: { content: use } }, stopReason: "max_tokens" }),
      refused,
    );
  });

  it("is the last item of an incomplete response of OpenAI's, unless the item says otherwise", () => {
    const item = { type: "function_call", call_id: "1", name: "clear", arguments: "" };
    const incomplete = (more: object) =>
      decode("openai.responses", { status: "incomplete", output: [{ ...item, ...more }] });
    assertEquals(incomplete({}), refused);
    assertEquals(incomplete({ status: "completed" }), [["clear", undefined]]);
  });

  it("is rejected even if the SDK completed it", () => {
    const part = { type: "tool-call", toolCallId: "1", toolName: "clear", input: {} };
    assertEquals(decode("ai-sdk", { toolCalls: [part], finishReason: "length" }), refused);
    const call = { id: "1", name: "clear", args: {} };
    const message = { content: "", tool_calls: [call] };
    const stopped = (reason: object) => decode("langchain", { ...message, ...reason });
    assertEquals(stopped({ response_metadata: { finish_reason: "length" } }), refused);
    assertEquals(stopped({ additional_kwargs: { stop_reason: "max_tokens" } }), refused);
    assertEquals(stopped({ response_metadata: { finish_reason: "tool_calls" } }), [[
      "clear",
      undefined,
    ]]);
  });

  it("is not the one before other content", () => {
    const use = { type: "tool_use", id: "1", name: "clear", input: {} };
    const content = [use, { type: "text", text: "And so" }];
    assertEquals(decode("anthropic", { content, stop_reason: "max_tokens" }), [[
      "clear",
      undefined,
    ]]);
    const block = { toolUse: { toolUseId: "1", name: "clear", input: {} } };
    const message = { role: "assistant", content: [block, { text: "And so" }] };
    assertEquals(decode("bedrock", { output: { message }, stopReason: "max_tokens" }), [[
      "clear",
      undefined,
    ]]);
  });

  it("is run if it is closed, and so are those before it", () => {
    const call = (args: string) => ({
      id: args,
      type: "function",
      function: { name: "clear", arguments: args },
    });
    const choice = (...calls: unknown[]) => ({
      choices: [{ message: { role: "assistant", tool_calls: calls }, finish_reason: "length" }],
    });
    assertEquals(decode("openai", choice(call('{"only":"a"}'))), [["clear", undefined]]);
    assertEquals(decode("openai", choice(call(""), call('{"only":'))), [
      ["clear", undefined],
      [undefined, "invalid_arguments"],
    ]);
  });
});

describe("the calls of each provider's own kind", () => {
  it("are read from OpenAI's legacy function_call", () => {
    const message = { role: "assistant", function_call: { name: "clear", arguments: "{}" } };
    const [one] = decodeCalls("openai", { choices: [{ message }] }, namesFor("openai"));
    assertEquals([one?.name, one?.callId], ["clear", "call_1"]);
  });

  it("of OpenAI's custom tools are rejected", () => {
    const chat = [{ id: "1", type: "custom", custom: { name: "clear", input: "all" } }];
    const item = [{ type: "custom_tool_call", call_id: "1", name: "clear", input: "all" }];
    for (const [target, response] of [["openai", chat], ["openai.responses", item]] as const) {
      const [one] = decodeCalls(target, response, namesFor(target));
      assertEquals([one?.name, one?.problem?.code], [undefined, "unknown_tool"]);
      assertStringIncludes(one?.problem?.message ?? "", "custom tool");
    }
  });

  it("are found by namespace and name in OpenAI Responses, never by a name joined of both", () => {
    const names = namesFor("openai.responses");
    const item = { type: "function_call", call_id: "1", arguments: '{"city":"Rome"}' };
    const idOf = (more: object): unknown =>
      decodeCalls("openai.responses", [{ ...item, ...more }], names)[0]?.name;
    assertEquals(idOf({ namespace: "city", name: "weather" }), "city:weather");
    assertEquals(idOf({ name: "weather" }), undefined);
    assertEquals(idOf({ name: "city__weather" }), undefined);
    assertEquals(idOf({ name: "clear" }), "clear");
  });

  it("get ids that no other call of the response has", () => {
    const parts = [{ name: "clear", args: {} }, { id: "call_1", name: "clear", args: {} }, {
      name: "clear",
    }];
    const response = { parts: parts.map((functionCall) => ({ functionCall })) };
    const calls = decodeCalls("gemini", response, namesFor("gemini"));
    assertEquals(calls.map(({ callId }) => callId), ["call_2", "call_1", "call_3"]);
  });

  it("are read from LangChain's invalid_tool_calls, with the text that could not be read", () => {
    const message = {
      content: "",
      tool_calls: [],
      invalid_tool_calls: [{
        type: "invalid_tool_call",
        name: "clear",
        args: "{",
        id: "1",
        error: "bad",
      }],
    };
    const [one] = decodeCalls("langchain", message, namesFor("langchain"));
    assertEquals([one?.name, one?.arguments], ["clear", "{"]);
  });

  it("of Gemini with partial arguments are rejected", () => {
    const response = { parts: [{ functionCall: { name: "clear", willContinue: true } }] };
    const [one] = decodeCalls("gemini", response, namesFor("gemini"));
    assertEquals(one?.name, undefined);
    assertStringIncludes(one?.problem?.message ?? "", "streamed in parts");
  });

  it("are found by OpenAPI's path, with the template of the export", () => {
    const names = namesFor("openapi");
    const idOf = (request: unknown): unknown => decodeCalls("openapi", request, names)[0]?.name;
    assertEquals(idOf({ path: "/tools/city:weather/execute", body: {} }), "city:weather");
    assertEquals(idOf({ path: "/tools/city%3Aweather/execute?trace=1" }), "city:weather");
    assertEquals(idOf({ path: "/v1/call/clear", template: "/v1/call/{id}" }), "clear");
    for (
      const path of [
        "/toolz/clear/execute",
        "/tools/clear/perform",
        "/toolz/clear/execute",
        "/tools/clear/perform",
        "/tools/nope/execute",
        "/tools/%E0%A4%A/execute",
        "/",
        "/clear",
        "",
      ]
    ) {
      assertEquals(idOf({ path }), undefined);
    }
  });

  it("suggest exported names for a misspelled one", () => {
    const [one] = decodeCalls("openai", [
      { id: "1", type: "function", function: { name: "cleer", arguments: "{}" } },
    ], namesFor("openai"));
    assertEquals(
      one?.problem?.message,
      'Cannot call "cleer": no tool of this name was offered. Did you mean "clear"?',
    );
  });

  it("suggest names for the first of many misspelled ones only", () => {
    const calls = Array.from({ length: 1_000 }, (_, index) => ({
      ...{ id: `${index}`, type: "function" },
      function: { name: "cleer", arguments: "{}" },
    }));
    const hinted = decodeCalls("openai", calls, namesFor("openai")).map(({ problem }) =>
      problem?.message.endsWith('Did you mean "clear"?')
    );
    assertEquals([hinted.length, hinted.lastIndexOf(true)], [1_000, 15]);
  });

  it("name the namespace too, where there is one", () => {
    const item = { type: "function_call", call_id: "1", namespace: "town", name: "weather" };
    const [one] = decodeCalls("openai.responses", [item], namesFor("openai.responses"));
    assertEquals(
      one?.problem?.message,
      'Cannot call "weather" in namespace "town": no tool of this name was offered. ' +
        'Did you mean "weather" in namespace "city"?',
    );
  });

  it("are not found under a tool's id where the export gave it another name", () => {
    const names = namesFor("openai", [WEATHER]);
    const call = { id: "1", type: "function", function: { name: "city:weather", arguments: "{}" } };
    assertEquals(decodeCalls("openai", [call], names)[0]?.problem?.code, "unknown_tool");
  });
});
