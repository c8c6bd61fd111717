import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { ToolHooks } from "../../../../mod.ts";
import { fixture } from "../support.ts";

/** Calls a tool with a hook that returns this value, and returns the reported error. */
async function report(part: "before" | "after", answer: unknown): Promise<string> {
  let runs = 0;
  const hook = { name: "audit", [part]: () => answer } as ToolHooks;
  const { call, reports } = fixture([{ name: "t", execute: () => ++runs }], { hooks: hook });
  const result = await call("t");
  const outcome = part === "before"
    ? 'the hook "audit" failed, so the call is rejected'
    : 'the tool has run, but the hook "audit" failed, so the result is hidden';
  assert(!result.ok && result.error.code === "denied");
  assertEquals(result.error.message, `Cannot call "t": ${outcome}`);
  assertEquals(runs, part === "after" ? 1 : 0);
  assertEquals(reports.map(({ phase }) => phase), [part]);
  const [{ error } = {}] = reports;
  assert(error instanceof TypeError);
  assertStringIncludes(error.message, 'Cannot use the return value of the hook "audit": ');
  return error.message.split(": ").slice(1).join(": ");
}

describe("a hook that returns an invalid value", () => {
  const ONE = 'it must have one of "/arguments", "/result" and "/refuse", and has ';
  for (
    const [answer, problem] of [
      [false, "it is not an object"],
      ["no", "it is not an object"],
      [{}, `${ONE}none`],
      [{ argument: {} }, `${ONE}"/argument"`],
      [{ denied: "No" }, `${ONE}"/denied"`],
      [{ arguments: {}, refuse: "No" }, `${ONE}"/arguments", "/refuse"`],
      [{ arguments: {}, approve: true }, `${ONE}"/arguments", "/approve"`],
      [{ ok: true, content: 1, durationMs: 0 }, `${ONE}"/ok", "/content", "/durationMs"`],
      [{ refuse: true }, '"/refuse" must be a sentence for the model'],
      [{ refuse: "" }, '"/refuse" must be a sentence for the model'],
      [{ result: 7 }, '"/result" is not a result'],
      [{ result: { ok: false } }, '"/result" is not a result'],
      [{ arguments: undefined }, '"/arguments" is not JSON, or is too large'],
      [{ arguments: () => 1 }, '"/arguments" is not JSON, or is too large'],
    ] as const
  ) {
    it(`before a call fails it, and onError receives why: ${problem}`, async () => {
      assertEquals(await report("before", answer), problem);
    });
  }

  it("after a call fails it, and onError receives why", async () => {
    for (const answer of [7, "done", {}, { ok: "yes" }, { ok: false, error: "No" }]) {
      assertEquals(await report("after", answer), "it is not a ToolResult");
    }
  });
});
