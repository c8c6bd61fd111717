import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { formatsPage, targetEntries } from "../../scripts/docs_formats.ts";

describe("docs/formats.md", () => {
  const page = readFileSync(new URL("../../docs/formats.md", import.meta.url), "utf8");

  it("has the tables of the targets (otherwise run: bun scripts/docs_formats.ts)", () => {
    assertEquals(page, formatsPage(page));
  });

  it("has every table, under the comment with its name", () => {
    const names = [...page.matchAll(/^<!-- table: (\w+) -->\n\n[|-] /gm)].map(([, name]) => name);
    assertEquals(names, ["targets", "names", "fields", "schemas", "formats", "files"]);
  });
});

describe("the entries of the targets", () => {
  it("have the records of all targets (otherwise run: bun scripts/docs_formats.ts)", async () => {
    const folder = new URL("../../src/formats/entries/", import.meta.url);
    const written = readdirSync(folder).sort()
      .map((file) => [file, readFileSync(new URL(file, folder), "utf8")] as const);
    assertEquals(new Map(written), await targetEntries());
  });
});
