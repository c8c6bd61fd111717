import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { reportNames, REPORTS } from "./public_names.ts";

const reports = await reportNames();

describe("the exported names", () => {
  it("have one report per entry", () => {
    assertEquals(readdirSync(REPORTS).sort(), [...reports.keys()].sort());
  });

  for (const [name, text] of reports) {
    it(`of ${name.replace(".txt", "")} equal their report`, () => {
      // After an intended change: bun test/architecture/public_names.ts
      assertEquals(text, readFileSync(join(REPORTS, name), "utf8"));
    });
  }
});
