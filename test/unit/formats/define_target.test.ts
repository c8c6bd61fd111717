import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  accumulateCalls,
  defineTarget,
  encodeResult,
  encodeResults,
  exportTools,
  listTargets,
  type Target,
  targetOf,
} from "../../../src/formats/mod.ts";
import { makeTool, ToolResult } from "../../../src/tool/mod.ts";

const ECHO = {
  name: "echo",
  description: "Repeats a text.",
  parameters: {
    type: "object",
    properties: { text: { type: "string" }, times: { type: "integer" } },
    required: ["text"],
  },
  execute: (args: unknown) => args,
} as const;
const echo = makeTool(ECHO);
const spaced = makeTool({ ...ECHO, namespace: "text" });

const chat = targetOf("openai.chat");
const { wire: _wire, assemble: _assemble, calls: _calls, ...rules } = chat;

/** A provider in one record: OpenAI's chat, with a dot after the namespace. */
const dotted = defineTarget({
  ...chat,
  id: "dotted",
  title: "Dotted",
  names: { ...chat.names, also: "-.", separator: "." },
});

/** A target with OpenAI's rules and its own shape. */
const reshaped = defineTarget({
  ...rules,
  id: "reshaped",
  wire: (view) => ({ SAY: view.name, WITH: view.parameters }),
  calls: {
    read: chat.calls.read,
    write: (call, answer) => ({ SAY: call.wireName, ANSWER: answer.text }),
    gather: (parts) => [{ ANSWERS: parts }],
  },
});

/** A target with only the required fields. */
const least = defineTarget({
  id: "least",
  wire: (view) => ({ name: view.name }),
  calls: { read: () => [], write: (_call, answer) => answer.text },
});

describe("defineTarget()", () => {
  it("makes a target for exports", () => {
    const { target, tools, names, losses, rejected } = exportTools([spaced], dotted);
    const sent: { type: "function"; function: { name: string } }[] = tools;
    assertEquals(target, "dotted");
    assertEquals(sent.map((tool) => tool.function.name), ["text.echo"]);
    assertEquals([losses, rejected], [[], []]);
    assertEquals([names.idOf("text.echo"), names.nameOf("text:echo")], ["text:echo", "text.echo"]);
  });

  it("makes a target with custom shapes and their types", () => {
    const tools: { SAY: string; WITH: unknown }[] = exportTools([echo], reshaped).tools;
    assertEquals(tools, [{ SAY: "echo", WITH: echo.parameters }]);
    const call = { callId: "c1", wireName: "echo" };
    const part: { SAY: string; ANSWER: string } = encodeResult(reshaped, call, ToolResult.ok(1));
    assertEquals(part, { SAY: "echo", ANSWER: "1" });
    assertEquals(encodeResults(reshaped, [call], [ToolResult.ok(1)])[0]?.ANSWERS, [part]);
  });

  it("makes a target whose calls are read from a stream", () => {
    const { names } = exportTools([spaced], dotted);
    const stream = accumulateCalls(dotted, names);
    const chunk = (delta: unknown, finish_reason?: string) =>
      stream.push({ choices: [{ index: 0, delta, finish_reason }] });
    const called = { name: "text.echo", arguments: '{"te' };
    chunk({ tool_calls: [{ index: 0, id: "c1", function: called }] });
    chunk({ tool_calls: [{ index: 0, function: { arguments: 'xt":"hi"}' } }] });
    const [call] = chunk({}, "tool_calls");
    assertEquals([call?.name, call?.arguments], ["text:echo", { text: "hi" }]);
  });

  it("keeps the strict mode of the target that it extends", () => {
    const strict = makeTool({ ...ECHO, meta: { provider: { strict: true } } });
    const { tools, names } = exportTools([strict], dotted);
    assertEquals(tools[0]?.function.parameters["required"], ["text", "times"]);
    assertEquals(names.encodingOf("echo")?.strict, true);
  });

  it("can have a separate strict mode, as a record", () => {
    const plain = defineTarget({ ...least, id: "plain" });
    const strict = defineTarget({
      ...least,
      id: "firm",
      input: { ...least.input, map: { action: "reject", enforcement: "ignored" } },
      features: ["strict"],
      fallback: plain,
    });
    const open = makeTool({
      name: "open",
      description: "Takes all.",
      parameters: { type: "object", additionalProperties: true },
    });
    const { names, losses } = exportTools([echo, open], strict);
    assertEquals(names.encodings.map((one) => [one.id, one.strict]), [
      ["echo", true],
      ["open", false],
    ]);
    assertEquals(losses.map(({ tool, keyword }) => [tool, keyword]), [["open", "strict"]]);
  });

  it("fills in omitted fields", () => {
    assertEquals(exportTools([echo], least).tools, [{ name: "echo" }]);
    assertEquals([least.title, least.names.max, least.limits], ["least", 64, []]);
    assertEquals(least.features, []);
    assertEquals(least.input["type"], { action: "keep", enforcement: "advisory" });
    assertEquals(encodeResults(least, [{ callId: "1", wireName: "echo" }], [ToolResult.ok("a")]), [
      "a",
    ]);
  });

  it("returns a target whose exports are cached", () => {
    const list = Object.freeze([echo]);
    const first = exportTools(list, dotted).names;
    assertEquals(exportTools(list, dotted).names === first, true);
    assertEquals(exportTools(list, least).names === first, false);
  });

  it("rejects an incomplete definition, and names the missing part", () => {
    const calls = { read: () => [], write: () => "" };
    const wire = () => ({});
    const some = { id: "a", wire, calls };
    const names = { also: "-", max: 64, separator: "_" };
    const limit = { name: "maxTools", value: 1 };
    const wrong: readonly (readonly [unknown, string])[] = [
      [undefined, "Cannot define the target: id must be a string that is not empty"],
      [{ id: "" }, "id must be a string that is not empty"],
      [{ id: "a" }, '"a": wire must be a function'],
      [{ id: "a", wire }, '"a": calls must be an object'],
      [{ id: "a", wire, calls: {} }, '"a": calls.read must be a function'],
      [{ id: "a", wire, calls: { read: calls.read } }, '"a": calls.write must be a function'],
      [{ ...some, nmes: names }, '"a": "/nmes" is not one of its fields: did you mean "names"?'],
      [{ ...some, assemble: 1 }, '"a": assemble must be a function'],
      [{ ...some, names: null }, '"a": names must be an object'],
      [{ ...some, names: { ...names, max: 3 } }, '"a": names.max must be a whole number, 16'],
      [{ ...some, names: { ...names, letterFirst: 1 } }, "names.letterFirst must be true or false"],
      [{ ...some, names: { also: "", max: 64, separator: "::" } }, 'names.separator has ":"'],
      [{ ...some, keys: { ...names, also: 1 } }, '"a": keys.also must be a string'],
      [{ ...some, input: { typo: {} } }, '"a": input: "typo" is not a form'],
      [{ ...some, input: { allOf: "x" } }, '"a": input["allOf"] must be an object'],
      [
        { ...some, input: { allOf: { action: "keep" } } },
        'input["allOf"].enforcement must be one of enf',
      ],
      [{ ...some, output: { root: "any", keywords: {} } }, 'output.keywords["root composition"]'],
      [{ ...some, features: ["typo"] }, '"a": features[0] must be one of title, namespace'],
      [{ ...some, limits: 5 }, '"a": limits must be a list'],
      [{ ...some, limits: [{ ...limit, name: "typo" }] }, '"a": limits[0].name must be one of'],
      [{ ...some, limits: [limit, { ...limit, value: "ten" }] }, "limits[1].value must be a whole"],
      [{ ...some, calls: { ...calls, stream: 1 } }, '"a": calls.stream must be a function'],
      [{ ...some, calls: { ...calls, gather: 5 } }, '"a": calls.gather must be a function'],
      [{ ...some, calls: { ...calls, gathr: 5 } }, 'calls: "/gathr" is not one of its fields'],
      [{ ...some, fallback: "nope" }, `"a": fallback must be a target's record, or made by`],
    ];
    for (const [definition, message] of wrong) {
      assertThrows(() => defineTarget(definition as never), Error, message);
    }
  });

  it("accepts every target of the package", () => {
    for (const { id } of listTargets()) {
      const target: Target = targetOf(id);
      assertEquals(defineTarget(target).id, id);
    }
  });

  it("returns a checked record; functions reject other objects", () => {
    assertThrows(
      () => exportTools([echo], { id: "half" } as unknown as Target),
      RangeError,
      "Cannot find the target an object: it must be one of",
    );
  });
});
