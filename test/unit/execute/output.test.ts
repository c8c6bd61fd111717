import { assert, assertEquals, assertLessOrEqual, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { type StandardSchema, ToolResult } from "../../../mod.ts";
import { utf8Length } from "../../../src/execute/json_value.ts";
import { truncate } from "../../../src/execute/layers/truncation.ts";
import { type FakeTool, fixture, messageOf, outcome } from "./support.ts";

function returning(value: unknown, tool: Partial<FakeTool> = {}): FakeTool {
  return { name: "give", execute: () => value, ...tool };
}

describe("the result of a call", () => {
  it("is null for a tool that returns nothing", async () => {
    assertEquals(outcome(await fixture([returning(undefined)]).call("give")), null);
  });

  it("must be JSON, and the message contains the pointer of the problem", async () => {
    const rows: readonly (readonly [unknown, string])[] = [
      [1n, "it is a bigint, which is not JSON"],
      [{ rows: [{ id: 1n }] }, '"/rows/0/id" is a bigint, which is not JSON'],
    ];
    for (const [value, says] of rows) {
      for (const given of [value, Promise.resolve(value), ToolResult.ok(value)]) {
        const result = await fixture([returning(given)]).call("give");
        assertEquals(outcome(result), "invalid_result");
        assertStringIncludes(messageOf(result), "the tool's result is not JSON: ");
        assertStringIncludes(messageOf(result), says);
      }
    }
  });

  it("takes a bounded number of steps to check", async () => {
    const returns = { allOf: Array.from({ length: 200 }, () => ({ uniqueItems: true })) };
    const ids = Array.from({ length: 20_000 }, (_, id) => id);
    const result = await fixture([returning(ids, { returns })]).call("give");
    assertEquals(outcome(result), "invalid_result");
    assertStringIncludes(messageOf(result), "takes more than 2500000 steps");
    const short = await fixture([returning([1, 2], { returns })]).call("give");
    assertEquals(outcome(short), [1, 2]);
  });

  it("is plain data, as JSON would write it", async () => {
    const result = await fixture([returning({ at: new Date(0), none: undefined })]).call("give");
    assertEquals(outcome(result), { at: "1970-01-01T00:00:00.000Z" });
  });

  it("must fit the tool's own schema", async () => {
    const returns = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    assertEquals(outcome(await fixture([returning({ n: 1 }, { returns })]).call("give")), { n: 1 });
    const result = await fixture([returning({ n: "1" }, { returns })]).call("give");
    assertEquals(outcome(result), "invalid_result");
    assertStringIncludes(
      messageOf(result),
      `Cannot call "give": the tool's result does not fit its own schema: `,
    );
    assertEquals(!result.ok && result.error.issues?.[0]?.path, "/n");
  });

  it("is what the tool's library makes of it", async () => {
    for (const later of [false, true]) {
      const returns: StandardSchema = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: (value) => {
            const answer = typeof value === "number"
              ? { value: { celsius: value } }
              : { issues: [{ message: "not a number" }] };
            return later ? Promise.resolve(answer) : answer;
          },
          jsonSchema: { input: () => ({ type: "number" }), output: () => ({ type: "object" }) },
        },
      };
      assertEquals(outcome(await fixture([returning(4, { returns })]).call("give")), {
        celsius: 4,
      });
      assertEquals(
        outcome(await fixture([returning("4", { returns })]).call("give")),
        "invalid_result",
      );
    }
  });

  it("is rejected when the tool created it incorrectly", async () => {
    const broken = Object.assign(ToolResult.error("denied", "no"), { error: null });
    assertEquals(outcome(await fixture([returning(broken)]).call("give")), "invalid_result");
  });
});

describe("a result that is larger than the limit", () => {
  const limits = { maxOutputBytes: 1_000 };

  it("fails with its size", async () => {
    const result = await fixture([returning("x".repeat(2_000))], limits).call("give");
    assertEquals(outcome(result), "output_too_large");
    assertEquals(
      messageOf(result),
      'Cannot call "give": its result has at least 2002 bytes, and 1000 are allowed; ' +
        "ask for less of it",
    );
    assertEquals(
      outcome(await fixture([returning(Array(400).fill(1.25))], limits).call("give")),
      "output_too_large",
    );
  });

  it("is cut when the host or the caller chose that", async () => {
    const long = "x".repeat(2_000);
    const host = await fixture([returning(long)], { ...limits, outputOverflow: "truncate" })
      .call("give");
    const caller = await fixture([returning(long)], limits)
      .call("give", {}, { outputOverflow: "truncate" });
    for (const result of [host, caller]) {
      assert(result.ok && result.truncated === true && typeof result.content === "string");
      assert(result.content.endsWith("of 2002 bytes]"));
      assertLessOrEqual(JSON.stringify(result.content).length, 1_000);
    }
  });

  it("is validated if it only claims to be truncated", async () => {
    const text = (content: unknown) =>
      fixture([{
        ...{ name: "give", description: "Gives.", returns: { type: "number" } },
        execute: () => Object.assign(ToolResult.ok(content), { truncated: true }),
      }]).call("give");
    assertEquals(outcome(await text("no number")), "invalid_result");
    assertEquals(outcome(await text({ a: "… [truncated: 1 of 2 bytes]" })), "invalid_result");
    const cut = await text("12… [truncated: 2 of 9 bytes]");
    assert(cut.ok && cut.truncated === true);
    const whole = await text(12);
    assert(whole.ok && whole.truncated === undefined);
  });

  it("fails when it is not a text, whatever the option says", async () => {
    const rows = Array.from({ length: 500 }, (_, id) => ({ id }));
    const result = await fixture([returning(rows)], limits)
      .call("give", {}, { outputOverflow: "truncate" });
    assertEquals(outcome(result), "output_too_large");
  });

  it("must contain blocks if it is marked so", async () => {
    for (const wrong of [null, "abc", { content: "abc" }]) {
      const marked = Object.assign(ToolResult.ok(wrong), { blocks: true });
      assertEquals(outcome(await fixture([returning(marked)]).call("give")), "invalid_result");
    }
  });

  it("is cut to the texts of blocks, without their bytes and metadata", async () => {
    const data = "A".repeat(2_000);
    const blocks = ToolResult.blocks([
      { type: "text", text: "a" },
      { type: "image", mimeType: "image/png", data },
      { type: "text", text: "b" },
    ], { metadata: { id: "for-the-application" }, structuredContent: { rows: 5 } });
    const result = await fixture([returning(blocks)], limits)
      .call("give", {}, { outputOverflow: "truncate" });
    assert(result.ok && typeof result.content === "string");
    assertEquals(result.content, "a\n[image left out]\nb… [truncated: 24 of more than 1000 bytes]");
  });

  it("is held to a lower limit of the caller's, and never to a higher one", async () => {
    const { call } = fixture([returning("x".repeat(500))], limits);
    assertEquals(outcome(await call("give")), "x".repeat(500));
    assertEquals(outcome(await call("give", {}, { maxOutputBytes: 400 })), "output_too_large");
    const large = fixture([returning("x".repeat(2_000))], limits);
    assertEquals(
      outcome(await large.call("give", {}, { maxOutputBytes: 1e9 })),
      "output_too_large",
    );
  });

  it("is still validated by the tool's own schema", async () => {
    const { call } = fixture(
      [returning("x".repeat(2_000), { returns: { type: "string", maxLength: 10 } })],
      { ...limits, outputOverflow: "truncate" },
    );
    assertEquals(outcome(await call("give")), "invalid_result");
  });
});

describe("a tool that chooses how its large results are treated", () => {
  const long = "x".repeat(1_000);
  for (
    const [tool, caller, ok] of [
      ["truncate", undefined, true],
      ["truncate", "fail", false],
      ["fail", "truncate", true],
      [undefined, undefined, false],
    ] as const
  ) {
    it(`${tool ?? "nothing"}, and its caller ${caller ?? "nothing"}`, async () => {
      const { call } = fixture([returning(long, { outputOverflow: tool })], {
        maxOutputBytes: 200,
      });
      const result = await call("give", {}, { outputOverflow: caller });
      assertEquals(result.ok, ok);
    });
  }
});

function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value));
}

describe("truncate()", () => {
  it("leaves valid JSON within the limit, whatever the characters", () => {
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
