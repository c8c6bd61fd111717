import { assert, assertEquals, assertLessOrEqual, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { type DispatchContext, type ToolDispatcherOptions, ToolResult } from "../../../mod.ts";
import { utf8Length } from "../../../src/execute/json_value.ts";
import { truncate } from "../../../src/execute/layers/truncation.ts";
import { type FakeTool, messageOf, outcome, single, standardSchema } from "./support.ts";

/** Calls a tool that returns a value. */
function give(
  value: unknown,
  tool: Partial<FakeTool> = {},
  options: ToolDispatcherOptions = {},
  context: DispatchContext = {},
): Promise<ToolResult> {
  return single({ execute: () => value, ...tool }, options).call({}, context);
}

describe("the result of a call", () => {
  it("is null for a tool that returns nothing", async () => {
    assertEquals(outcome(await give(undefined)), null);
  });

  it("must be JSON, and the message contains the pointer of the problem", async () => {
    for (
      const [value, why] of [
        [1n, "it is a bigint, which is not JSON"],
        [{ rows: [{ id: 1n }] }, '"/rows/0/id" is a bigint, which is not JSON'],
      ] as const
    ) {
      for (const returned of [value, Promise.resolve(value), ToolResult.ok(value)]) {
        const result = await give(returned);
        assertEquals(outcome(result), "invalid_result");
        assertStringIncludes(messageOf(result), `the tool's result is not JSON: ${why}`);
      }
    }
  });

  it("takes a bounded number of steps to check", async () => {
    const returns = { allOf: Array.from({ length: 200 }, () => ({ uniqueItems: true })) };
    const result = await give(Array.from({ length: 20_000 }, (_, id) => id), { returns });
    assertEquals(outcome(result), "invalid_result");
    assertStringIncludes(messageOf(result), "takes more than 2500000 steps");
    assertEquals(outcome(await give([1, 2], { returns })), [1, 2]);
  });

  it("is plain data, converted as by JSON", async () => {
    const result = await give({ at: new Date(0), none: undefined });
    assertEquals(outcome(result), { at: "1970-01-01T00:00:00.000Z" });
  });

  it("must fit the tool's own schema", async () => {
    const returns = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    assertEquals(outcome(await give({ n: 1 }, { returns })), { n: 1 });
    const result = await give({ n: "1" }, { returns });
    assert(!result.ok);
    assertEquals([result.error.code, result.error.issues?.[0]?.path], ["invalid_result", "/n"]);
    assertStringIncludes(messageOf(result), "the tool's result does not fit its own schema: ");
  });

  it("is converted by a library's schema, synchronously or later", async () => {
    for (const later of [false, true]) {
      const returns = standardSchema((value) => {
        const answer = typeof value === "number"
          ? { value: { celsius: value } }
          : { issues: [{ message: "not a number" }] };
        return later ? Promise.resolve(answer) : answer;
      });
      assertEquals(outcome(await give(4, { returns })), { celsius: 4 });
      assertEquals(outcome(await give("4", { returns })), "invalid_result");
    }
  });

  it("is rejected if the tool created it incorrectly", async () => {
    const error = Object.assign(ToolResult.error("denied", "no"), { error: null });
    assertEquals(outcome(await give(error)), "invalid_result");
    for (const wrong of [null, "abc", { content: "abc" }]) {
      const marked = Object.assign(ToolResult.ok(wrong), { blocks: true });
      assertEquals(outcome(await give(marked)), "invalid_result");
    }
  });
});

describe("a result that is larger than the limit", () => {
  const LIMITS = { maxOutputBytes: 1_000 };
  const CUT = { outputOverflow: "truncate" } as const;
  const LONG = "x".repeat(2_000);
  const cut = (value: unknown): Promise<ToolResult> => give(value, {}, LIMITS, CUT);

  it("fails with its size", async () => {
    const result = await give(LONG, {}, LIMITS);
    assertEquals(outcome(result), "output_too_large");
    assertEquals(
      messageOf(result),
      'Cannot call "t": its result has at least 2002 bytes, and 1000 are allowed; request less of it',
    );
    assertEquals(outcome(await give(Array(400).fill(1.25), {}, LIMITS)), "output_too_large");
  });

  it("is truncated if the host or the caller chose that", async () => {
    for (const result of [await give(LONG, {}, { ...LIMITS, ...CUT }), await cut(LONG)]) {
      assert(result.ok && result.truncated === true && typeof result.content === "string");
      assert(result.content.endsWith("of 2002 bytes]"));
      assertLessOrEqual(JSON.stringify(result.content).length, 1_000);
    }
  });

  it("is validated if it only claims to be truncated", async () => {
    const text = (content: unknown) =>
      give(Object.assign(ToolResult.ok(content), { truncated: true }), {
        returns: { type: "number" },
      });
    assertEquals(outcome(await text("no number")), "invalid_result");
    assertEquals(outcome(await text({ a: "… [truncated: 1 of 2 bytes]" })), "invalid_result");
    const truncated = await text("12… [truncated: 2 of 9 bytes]");
    assert(truncated.ok && truncated.truncated === true);
    const whole = await text(12);
    assert(whole.ok && whole.truncated === undefined);
  });

  it("fails if it is not a text, independent of the option", async () => {
    const rows = Array.from({ length: 500 }, (_, id) => ({ id }));
    assertEquals(outcome(await cut(rows)), "output_too_large");
  });

  it("is measured against a lower limit of the caller, and never a higher one", async () => {
    const text = "x".repeat(500);
    assertEquals(outcome(await give(text, {}, LIMITS)), text);
    assertEquals(
      outcome(await give(text, {}, LIMITS, { maxOutputBytes: 400 })),
      "output_too_large",
    );
    assertEquals(
      outcome(await give(LONG, {}, LIMITS, { maxOutputBytes: 1e9 })),
      "output_too_large",
    );
  });

  it("is still validated by the tool's own schema", async () => {
    const returns = { type: "string", maxLength: 10 };
    assertEquals(outcome(await give(LONG, { returns }, { ...LIMITS, ...CUT })), "invalid_result");
  });

  for (
    const [tool, caller, ok] of [
      ["truncate", undefined, true],
      ["truncate", "fail", false],
      ["fail", "truncate", true],
      [undefined, undefined, false],
    ] as const
  ) {
    it(`is treated by the caller's setting (${caller}), else by the tool's (${tool})`, async () => {
      const result = await give(LONG, { outputOverflow: tool }, LIMITS, { outputOverflow: caller });
      assertEquals(result.ok, ok);
    });
  }
});

function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value));
}

describe("truncate()", () => {
  it("produces valid JSON within the limit, for any characters", () => {
    for (const letter of ["x", '"', "\\", "\n", "\u0001", "é", "€", "😀", "\ud800"]) {
      for (const limit of [128, 129, 130, 131, 1_000]) {
        const cut = truncate(letter.repeat(5_000), limit);
        assertLessOrEqual(jsonBytes(cut), limit);
      }
    }
  });

  it("does not cut a code point in two", () => {
    for (const limit of [128, 129, 130, 131, 132]) {
      assert(truncate("😀".repeat(1_000), limit).isWellFormed());
    }
  });
});
