import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { MAX_ISSUES, validateStandard } from "../../../src/schema/mod.ts";
import type { StandardResult, StandardSchema } from "../../../src/tool/mod.ts";

type Answer = StandardResult<unknown> | Promise<StandardResult<unknown>>;

/** A library schema of which only `validate` matters. */
function fakeSchema(validate: (value: unknown) => Answer): StandardSchema {
  return { "~standard": { version: 1, vendor: "fake", validate } };
}

const NOT_CHECKED = {
  issues: [{
    path: "",
    keyword: "standard",
    expected: "a value that its schema can validate",
    message: "The value could not be validated: the validate function of its schema failed",
  }],
};

describe("validateStandard()", () => {
  it("returns the value that the library made", () => {
    const schema = fakeSchema((value) => ({ value: { ...value as object, added: 1 } }));
    assertEquals(validateStandard(schema, { a: 2 }), { value: { a: 2, added: 1 } });
  });

  it("returns synchronously if the library does, and a promise otherwise", async () => {
    assert(!(validateStandard(fakeSchema((value) => ({ value })), 1) instanceof Promise));
    const later = validateStandard(fakeSchema((value) => Promise.resolve({ value })), 1);
    assert(later instanceof Promise);
    assertEquals(await later, { value: 1 });
  });

  it("adds a JSON Pointer to each issue, from keys and from segments", () => {
    const schema = fakeSchema(() => ({
      issues: [
        { message: "must be even", path: ["list", 2, { key: "a/b" }, "c~d"] },
        { message: "is odd" },
        { message: "strange", path: [Symbol("s")] },
      ],
    }));
    assertEquals(validateStandard(schema, {}), {
      issues: [
        {
          path: "/list/2/a~1b/c~0d",
          keyword: "standard",
          expected: "must be even",
          message: "/list/2/a~1b/c~0d: must be even",
        },
        { path: "", keyword: "standard", expected: "is odd", message: "is odd" },
        {
          path: "/Symbol(s)",
          keyword: "standard",
          expected: "strange",
          message: "/Symbol(s): strange",
        },
      ],
    });
  });

  it("reports 8 issues at most, and clips a library's messages", () => {
    const path = Array(1_000).fill("key ".repeat(1_000));
    const issues = Array(1_000).fill({ message: "long ".repeat(10_000), path });
    const schema = fakeSchema(() => ({ issues }));
    const outcome = validateStandard(schema, {});
    assert(!(outcome instanceof Promise) && outcome.issues !== undefined);
    assertEquals(outcome.issues.length, MAX_ISSUES);
    assert(outcome.issues.every((issue) => issue.message.length < 5_000));
  });

  const BROKEN: readonly (readonly [string, (value: unknown) => Answer])[] = [
    ["throws", () => {
      throw new Error("secret");
    }],
    ["throws undefined", () => {
      throw undefined;
    }],
    ["rejects", () => Promise.reject(new Error("secret"))],
    ["answers nothing", () => undefined as never],
    ["answers nothing, later", () => Promise.resolve(undefined as never)],
    ["answers an empty list of issues", () => ({ issues: [] })],
    ["answers an issue that cannot be read", () => ({ issues: [null as never] })],
  ];
  for (const [what, validate] of BROKEN) {
    it(`rejects the value when the library ${what}`, async () => {
      assertEquals(await validateStandard(fakeSchema(validate), 1), NOT_CHECKED);
    });
  }
});
