import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { HTTP_STATUS, isFailureCode, isToolResult, ToolResult } from "../../../src/tool/mod.ts";

describe("ToolResult.ok()", () => {
  it("returns a success with the content, of no duration by default", () => {
    assertEquals(ToolResult.ok({ a: 1 }, 12), { ok: true, content: { a: 1 }, durationMs: 12 });
    assertEquals(JSON.stringify(ToolResult.ok(undefined)), '{"ok":true,"durationMs":0}');
  });

  it("rejects a result, because models would receive data for the application only", () => {
    const blocks = ToolResult.blocks([{ type: "text", text: "a" }], { metadata: { id: 1 } });
    for (const result of [blocks, ToolResult.ok(1), ToolResult.error("The disk is full")]) {
      assertThrows(() => ToolResult.ok(result), TypeError, "the content is a ToolResult; return");
    }
  });
});

describe("ToolResult.error()", () => {
  it("returns a failure with code and message, and no other fields", () => {
    assertEquals(ToolResult.error("denied", "Not you"), {
      ok: false,
      error: { code: "denied", message: "Not you", retryable: false },
      durationMs: 0,
    });
  });

  // Specification: "public static ToolResult Error(string error)".
  for (const message of ["The disk is full", "denied"]) {
    it(`returns a failure with the code threw for the message "${message}" alone`, () => {
      assertEquals(ToolResult.error(message).error, { code: "threw", message, retryable: false });
    });
  }

  for (const message of [undefined, null, 1]) {
    it(`rejects the message ${message}`, () => {
      assertThrows(
        () => ToolResult.error(message as unknown as string),
        TypeError,
        `Cannot make a failure: the message must be a string, not ${message}`,
      );
    });
  }

  it("copies issues, acknowledgement and duration", () => {
    const issues = [{ path: "/a", keyword: "type", expected: "string", message: "a is no string" }];
    assertEquals(
      ToolResult.error("timeout", "Too slow", { issues, acknowledged: false, durationMs: 5 }),
      {
        ok: false,
        error: {
          code: "timeout",
          message: "Too slow",
          issues,
          retryable: true,
          acknowledged: false,
        },
        durationMs: 5,
      },
    );
  });

  it("accepts retryable from the caller", () => {
    assertEquals(ToolResult.error("threw", "", { retryable: true }).error.retryable, true);
    assertEquals(ToolResult.error("timeout", "", { retryable: false }).error.retryable, false);
  });

  for (const code of ["nope", "constructor", undefined]) {
    it(`rejects the code ${String(code)}, and lists the valid codes`, () => {
      assertThrows(
        () => ToolResult.error(code as "threw", ""),
        TypeError,
        "Cannot make a failure: the code must be one of unknown_tool, ",
      );
    });
  }
});

describe("isToolResult()", () => {
  it("accepts results of ToolResult", () => {
    assertEquals(isToolResult(ToolResult.ok(1)), true);
    assertEquals(isToolResult(ToolResult.error("threw", "")), true);
  });

  it("accepts results of another copy of plue", () => {
    const foreign = { ok: true, content: 1, durationMs: 0 };
    Object.defineProperty(foreign, Symbol.for("plue.tool_result"), { value: true });
    assertEquals(isToolResult(foreign), true);
  });

  const lookAlikes: readonly (readonly [string, unknown])[] = [
    ["an object with the same fields", { ok: true, content: 1, durationMs: 0 }],
    ["a result that went through JSON", JSON.parse(JSON.stringify(ToolResult.ok(1)))],
    ["a copy of a result", { ...ToolResult.ok(1) }],
    ["an object that inherits from a result", Object.create(ToolResult.ok(1))],
    ["null", null],
    ["undefined", undefined],
    ["a string", "ok"],
  ];
  for (const [name, value] of lookAlikes) {
    it(`rejects ${name}`, () => assertEquals(isToolResult(value), false));
  }

  it("adds no mark to JSON or to the enumerable fields", () => {
    assertEquals(Object.keys(ToolResult.ok(1)), ["ok", "content", "durationMs"]);
  });
});

describe("the codes of failures", () => {
  const CODES = "unknown_tool unavailable denied not_executable invalid_arguments invalid_result " +
    "approval_required input_required input_unavailable ticket_refused aborted timeout " +
    "transaction_failed output_too_large overloaded threw";

  it("are a closed set, of which the transient ones are retryable", () => {
    const codes = Object.keys(HTTP_STATUS).filter(isFailureCode);
    assertEquals(codes, CODES.split(" "));
    const retryable = codes.filter((code) => ToolResult.error(code, "").error.retryable);
    assertEquals(retryable, ["unavailable", "aborted", "timeout", "overloaded"]);
    const others = ["", "THREW", "constructor", "__proto__", "toString", 1, null, undefined];
    assertEquals(others.filter(isFailureCode), []);
  });
});
