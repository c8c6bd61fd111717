import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readFileSync } from "node:fs";
import { formatsPage } from "../../scripts/docs_formats.ts";

describe("docs/formats.md", () => {
  it("is what the profiles say (else run: bun scripts/docs_formats.ts)", () => {
    const page = readFileSync(new URL("../../docs/formats.md", import.meta.url), "utf8");
    assertEquals(page, formatsPage());
  });
});
