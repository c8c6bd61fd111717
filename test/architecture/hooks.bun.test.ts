import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import deno from "../../deno.json" with { type: "json" };
import { HOOK_CASES, NO_HOOKS, OUTCOMES } from "../runtime/hook_cases.ts";
import { findHooks } from "./find_hooks.ts";

/** The sources of the package's entries. */
const ENTRIES = Object.values(deno.exports);

describe("the hooks that an owner may hand in", () => {
  it("each have a case in test/runtime/hook_cases.ts", async () => {
    const found = await findHooks(ENTRIES);
    const known = new Set([...Object.keys(HOOK_CASES), ...NO_HOOKS]);
    assertEquals(found.filter((name) => !known.has(name)), []);
    assertEquals(Object.keys(OUTCOMES), Object.keys(HOOK_CASES));
    // A case without a hook tests nothing.
    assertEquals([...known].filter((name) => !found.includes(name)), []);
  }, 600_000);
});
