import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HOOK_CASES, NO_HOOKS, OUTCOMES } from "../runtime/hook_cases.ts";
import { HookFinder } from "./find_hooks.ts";
import { reportNames, REPORTS } from "./public_names.ts";

const hooks = new HookFinder();
const reports = await reportNames((exported, checker) => hooks.readExports(exported, checker));

describe("the exported names", () => {
  it("have one report per entry", () => {
    assertEquals(readdirSync(REPORTS).sort(), [...reports.keys()].sort());
  });

  for (const [name, text] of reports) {
    it(`of ${name.replace(".txt", "")} equal their report`, () => {
      // After an intended change, run: bun test/architecture/public_names.ts
      assertEquals(text, readFileSync(join(REPORTS, name), "utf8"));
    });
  }
});

describe("the functions that a host may pass to plue", () => {
  it("each have a case in test/runtime/hook_cases.ts", () => {
    const found = [...hooks.names].sort();
    const known = new Set([...Object.keys(HOOK_CASES), ...NO_HOOKS]);
    assertEquals(found.filter((name) => !known.has(name)), []);
    assertEquals(Object.keys(OUTCOMES), Object.keys(HOOK_CASES));
    // A case without a hook tests nothing.
    assertEquals([...known].filter((name) => !found.includes(name)), []);
  });
});
