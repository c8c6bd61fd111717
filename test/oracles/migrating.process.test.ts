/** Runs the listings of docs/migrating.md with the real packages. */

import { assertEquals } from "@std/assert";
import { afterAll, describe, it } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const page = readFileSync(new URL("../../docs/migrating.md", import.meta.url), "utf8");
const listings = [...page.matchAll(/^```ts ignore\n(.*?)^```/gms)].map(([, code = ""]) => code);
// The folder is inside the project, so that the listings can import the installed packages.
const folder = mkdtempSync(join(import.meta.dirname ?? "", "listings-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("the guide to migration", () => {
  it("has listings for each source", () => assertEquals(listings.length, 7));

  for (const [index, code] of listings.entries()) {
    it(`has a listing ${index + 1} that runs`, async () => {
      const file = join(folder, `${index}.ts`);
      writeFileSync(file, `${code}export {};\n`);
      await import(pathToFileURL(file).href);
    });
  }
});
