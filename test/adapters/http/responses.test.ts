import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { isResponse } from "../../../src/adapters/http/responses.ts";

describe("isResponse()", () => {
  for (
    const [value, expected] of [
      [new Response(), true],
      [{ headers: {}, status: 200 }, true],
      [{ headers: {} }, false],
      [{ status: 200 }, false],
      [null, false],
      ["text", false],
    ] as const
  ) {
    it(`returns ${expected} for ${JSON.stringify(value)}`, () => {
      assertEquals(isResponse(value), expected);
    });
  }
});
