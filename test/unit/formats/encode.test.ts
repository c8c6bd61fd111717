import { assert, assertEquals, assertFalse, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  encodeResult,
  encodeResults,
  listTargets,
  type TargetName,
} from "../../../src/formats/mod.ts";
import { defineTool, ToolResult } from "../../../src/tool/mod.ts";
import { namesFor } from "./call_support.ts";
import { PROVIDERS } from "./cases.ts";

const CALL = { callId: "c1", wireName: "weather" };
const OBJECT = ToolResult.ok({ celsius: 21 });
const TEXT = ToolResult.ok("sunny");
const FAILURE = ToolResult.error("threw", 'Cannot call "weather": the disk is full');

const ROWS = PROVIDERS.flatMap(({ results }) => results);

/** The text that OpenAI Responses is sent. */
function outputOf(result: ToolResult): string {
  const answer = encodeResult("openai.responses", CALL, result);
  return answer.type === "function_call_output" ? String(answer.output) : "";
}

describe("encodeResult()", () => {
  it("rejects a value that is not a result", () => {
    const call = { callId: "1", wireName: "a" };
    for (const value of [42, undefined, { content: 1 }]) {
      assertThrows(
        () => encodeResult("openai", call, value as unknown as ToolResult),
        TypeError,
        "Cannot encode the result: it must be a ToolResult",
      );
    }
  });

  it("has a row for every target and alias", () => {
    const all = listTargets().flatMap(({ id, aliases }) => [id, ...aliases]);
    assertEquals(ROWS.flatMap(([targets]) => targets).sort(), all.sort());
  });

  for (const [targets, object, text, failure] of ROWS) {
    for (const target of targets) {
      it(`writes an object, a text and a failure for ${target}`, () => {
        assertEquals(encodeResult<TargetName>(target, CALL, OBJECT) as unknown, object);
        assertEquals(encodeResult<TargetName>(target, CALL, TEXT) as unknown, text);
        assertEquals(encodeResult<TargetName>(target, CALL, FAILURE) as unknown, failure);
      });

      it(`writes JSON for ${target}, whatever the result is`, () => {
        const contents = [null, undefined, 0, "", [], [{ a: [1] }], JSON.parse('{"__proto__":1}')];
        for (const content of contents) {
          const answer: unknown = encodeResult<TargetName>(target, CALL, ToolResult.ok(content));
          assertEquals(JSON.parse(JSON.stringify(answer)), answer);
        }
      });
    }
  }

  it("returns a failure if the result is not JSON", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    for (const content of [cycle, 1n, () => 1]) {
      const { content: said, is_error } = encodeResult("anthropic", CALL, ToolResult.ok(content));
      assertEquals([said, is_error], ["Cannot send the result: it is not JSON", true]);
    }
  });

  it("returns null for a tool without a result", () => {
    assertEquals(encodeResult("anthropic", CALL, ToolResult.ok(undefined)).content, "null");
  });

  it("cuts the words of a failure to what every target takes", () => {
    const failure = ToolResult.error("threw", "x".repeat(11_000_000));
    const { length } = outputOf(failure);
    assert(length < 20_000, `${length}`);
  });

  it("returns a failure if the text exceeds the target's limit", () => {
    const most = 10_485_760;
    const output = (length: number): string => outputOf(ToolResult.ok("x".repeat(length)));
    assertEquals(output(most).length, most);
    assertStringIncludes(output(most + 1), "Error (output_too_large): Cannot send the result");
  });

  it("adds the issues that the message does not name", () => {
    const issue = {
      path: "/city",
      keyword: "type",
      expected: "a string",
      message: "must be a string",
    };
    const say = (message: string): unknown =>
      encodeResult(
        "anthropic",
        CALL,
        ToolResult.error("invalid_arguments", message, { issues: [issue] }),
      )
        .content;
    assertEquals(
      say("The arguments do not fit"),
      "The arguments do not fit\n- /city: must be a string",
    );
    assertEquals(say("city must be a string"), "city must be a string");
  });

  it("writes JSON for OpenAI Responses if the result schema was sent, even for a text", () => {
    const typed = defineTool({
      name: "typed",
      description: "Answers a text.",
      returns: { type: "string" },
    });
    const call = { callId: "c1", name: "typed", wireName: "typed" };
    const output = (target: "openai.responses" | "openai.chat"): unknown =>
      encodeResult<TargetName>(target, call, TEXT, namesFor(target, [typed]));
    assertEquals(output("openai.responses"), {
      type: "function_call_output",
      call_id: "c1",
      output: '"sunny"',
    });
    assertEquals(output("openai.chat"), { role: "tool", tool_call_id: "c1", content: "sunny" });
  });

  it("repeats the caller of OpenAI's programmatic calls", () => {
    const caller = { type: "program", caller_id: "p1" } as const;
    const raw = { type: "function_call", call_id: "c1", name: "weather", arguments: "{}", caller };
    assertEquals(encodeResult("openai.responses", { ...CALL, raw }, TEXT), {
      type: "function_call_output",
      call_id: "c1",
      output: "sunny",
      caller,
    });
  });

  it("answers calls of OpenAI's custom tools in their own kind", () => {
    const custom = { type: "custom_tool_call", call_id: "c1", name: "weather", input: "" };
    assertEquals(
      encodeResult("openai.responses", { ...CALL, raw: custom }, FAILURE).type,
      "custom_tool_call_output",
    );
  });

  it("gives Gemini the id of a call that had one, and no made-up one", () => {
    const answer = (raw: unknown) =>
      encodeResult("gemini", { ...CALL, raw }, TEXT).functionResponse;
    assertEquals(answer({ id: "f1", name: "weather" }).id, "f1");
    assertFalse("id" in answer({ name: "weather" }));
  });

  it("sends Gemini a result with a $ref as text, since it would be taken for a part's name", () => {
    const content = { schema: { items: [{ $ref: "#/$defs/a" }] } };
    const { response } = encodeResult("gemini", CALL, ToolResult.ok(content)).functionResponse;
    assertEquals(response, { output: JSON.stringify(content) });
    const harmless = ToolResult.ok({ text: "$ref" });
    assertEquals(encodeResult("gemini", CALL, harmless).functionResponse.response, {
      output: { text: "$ref" },
    });
  });

  it("sends Bedrock lists and scalars as text: its json is an object", () => {
    for (const content of [[1], 1, null, true]) {
      const { toolResult } = encodeResult("bedrock", CALL, ToolResult.ok(content));
      assertEquals(toolResult.content, [{ text: JSON.stringify(content) }]);
    }
  });

  it("wraps a result that is not an object for older revisions of MCP, in agreement with the export", () => {
    const list = defineTool({
      name: "list",
      description: "Lists.",
      returns: { type: "array", items: { type: "integer" } },
    });
    const call = { callId: "1", name: "list", wireName: "list" };
    const structured = (target: "mcp@2025-11-25" | "mcp@2026-07-28"): unknown => {
      const answer = encodeResult(target, call, ToolResult.ok([1]), namesFor(target, [list]));
      assert("content" in answer);
      assertEquals(answer.content, [{ type: "text", text: "[1]" }]);
      return answer.structuredContent;
    };
    assertEquals(structured("mcp@2025-11-25"), { result: [1] });
    assertEquals(structured("mcp@2026-07-28"), [1]);
  });

  it("returns a JSON-RPC response with the request's id, even a number", () => {
    const raw = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "weather" } };
    assertEquals(encodeResult("mcp@2025-11-25", { ...CALL, callId: "7", raw }, TEXT), {
      jsonrpc: "2.0",
      id: 7,
      result: { content: [{ type: "text", text: "sunny" }] },
    });
  });
});

describe("encodeResults()", () => {
  const calls = [{ callId: "c1", wireName: "a" }, { callId: "c2", wireName: "b" }];
  const results = [TEXT, FAILURE];

  it("combines all results in one message, in order, if the target requires it", () => {
    const one = {
      "anthropic": "user",
      "gemini": "user",
      "bedrock": "user",
      "ai-sdk": "tool",
    } as const;
    for (const target of ["anthropic", "gemini", "bedrock", "ai-sdk"] as const) {
      const messages = encodeResults<TargetName>(target, calls, results) as readonly {
        role: string;
        parts?: unknown[];
        content?: unknown[];
      }[];
      assertEquals(messages.length, 1);
      assertEquals(messages[0]?.role, one[target]);
      const parts: unknown = messages[0]?.parts ?? messages[0]?.content;
      assertEquals(
        parts,
        calls.map((call, index) =>
          encodeResult<TargetName>(target, call, results[index] ?? TEXT) as unknown
        ),
      );
    }
  });

  it("makes a message of each answer elsewhere", () => {
    const ids = encodeResults("openai", calls, results).map((message) =>
      message.role === "tool" && message.tool_call_id
    );
    assertEquals(ids, ["c1", "c2"]);
  });

  it("makes no message for no calls, for every target", () => {
    for (const { id } of listTargets()) {
      assertEquals(encodeResults<TargetName>(id, [], []).length, 0);
    }
  });

  it("rejects a number of results that differs from the number of calls", () => {
    assertThrows(
      () => encodeResults("openai", calls, [TEXT]),
      TypeError,
      "there are 1 for 2 calls",
    );
  });
});
