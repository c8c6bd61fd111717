// Each of the four runtimes has its own test runner. The suite relies on this behaviour in all.

import { assertEquals } from "@std/assert";
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from "bun:test";
import { maybe } from "../../support/skip.ts";

describe("the test runner", () => {
  const steps: string[] = [];
  const note = (step: string) => () => void steps.push(step);

  describe("with hooks", () => {
    beforeAll(note("before all"));
    afterAll(note("after all"));
    beforeEach(note("before each"));
    afterEach(note("after each"));

    it("runs the first test", note("first"));

    describe("in a nested group", () => {
      beforeAll(note("inner before all"));
      afterAll(note("inner after all"));
      beforeEach(note("inner before each"));
      afterEach(note("inner after each"));

      it("runs the second test", async () => {
        await Promise.resolve();
        note("second")();
      });
    });

    it("runs the third test", note("third"));
    maybe(true, "it is not skipped")("runs a wanted test", note("wanted"));
  });

  it("runs tests in their order, each between the hooks of the groups around it", () => {
    const each = (...inside: readonly string[]) => ["before each", ...inside, "after each"];
    assertEquals(steps, [
      "before all",
      ...each("first"),
      "inner before all",
      ...each("inner before each", "second", "inner after each"),
      "inner after all",
      ...each("third"),
      ...each("wanted"),
      "after all",
    ]);
  });
});
