import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  encodeResult,
  encodeResults,
  listTargets,
  type TargetName,
} from "../../../src/formats/mod.ts";
import { ToolResult } from "../../../src/tool/mod.ts";
import { PROVIDERS } from "./cases.ts";

const CALL = { callId: "c1", wireName: "weather" };
const OBJECT = ToolResult.ok({ celsius: 21 });
const TEXT = ToolResult.ok("sunny");
const FAILURE = ToolResult.error("threw", 'Cannot call "weather": the disk is full');
const ROWS = PROVIDERS.flatMap(({ results }) => results);

/** The text that is sent to OpenAI Responses. */
function outputOf(result: ToolResult): string {
  const answer = encodeResult("openai.responses", CALL, result);
  return answer.type === "function_call_output" ? String(answer.output) : "";
}

describe("encodeResult()", () => {
  // In quadratic time this would take minutes.
  it("names a resource with a long URI in linear time", () => {
    const uri = `file:${"a".repeat(1_000_000)}/`;
    const resource = { uri, mimeType: "application/pdf", blob: "QUJD" };
    const result = ToolResult.blocks([{ type: "resource", resource }]);
    const message = JSON.stringify(encodeResult("openai.chat", CALL, result));
    assertStringIncludes(message, "A file of the type application/pdf (3 bytes)");
  });

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

  for (const [targets, object, text, failure] of ROWS) {
    for (const target of targets) {
      it(`writes an object, a text and a failure for ${target}`, () => {
        assertEquals(encodeResult<TargetName>(target, CALL, OBJECT) as unknown, object);
        assertEquals(encodeResult<TargetName>(target, CALL, TEXT) as unknown, text);
        assertEquals(encodeResult<TargetName>(target, CALL, FAILURE) as unknown, failure);
      });
    }
  }

  it("returns a failure if the result is not JSON", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    for (const content of [cycle, 1n, () => 1]) {
      const { content: sent, is_error } = encodeResult("anthropic", CALL, ToolResult.ok(content));
      assertEquals([sent, is_error], ["Cannot send the result: it is not JSON", true]);
    }
  });

  it("truncates the message of a failure to the length that every target accepts", () => {
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
});

describe("encodeResults()", () => {
  const calls = [{ callId: "c1", wireName: "a" }, { callId: "c2", wireName: "b" }];
  const results = [TEXT, FAILURE];

  it("combines all results in one message, in order, if the target requires it", () => {
    const roles = { anthropic: "user", gemini: "user", bedrock: "user", "ai-sdk": "tool" } as const;
    for (const target of Object.keys(roles) as (keyof typeof roles)[]) {
      const parts = calls.map((call, index) =>
        encodeResult<TargetName>(target, call, results[index] ?? TEXT)
      );
      const list = target === "gemini" ? "parts" : "content";
      assertEquals<unknown>(encodeResults<TargetName>(target, calls, results), [
        { role: roles[target], [list]: parts },
      ]);
    }
  });

  it("makes a message of each answer for other targets", () => {
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
