import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { startProgram } from "../support/program.ts";

// Runs in Deno without permissions, because these examples only compute.
const RUN = "Deno" in globalThis ? ["run", "--no-prompt", "--node-modules-dir=manual"] : [];

const SPECIFICATIONS = "examples/specifications";
const PROGRAMS = [
  "examples/script.ts",
  ...readdirSync(SPECIFICATIONS).map((name) => `${SPECIFICATIONS}/${name}`),
];

describe("the example programs", () => {
  it("are a script and one file of at most 80 lines for each of the five specifications", () => {
    assertEquals(PROGRAMS.length, 6);
    for (const file of PROGRAMS.slice(1)) {
      assert(readFileSync(file, "utf8").split("\n").length <= 81, file);
    }
  });

  for (const file of PROGRAMS) {
    it(`prints the output in its first comment: ${file}`, async () => {
      const [, block = ""] = /^ \* ```text\n([^]*?)^ \* ```$/m.exec(readFileSync(file, "utf8")) ??
        [];
      await using program = startProgram(process.execPath, [...RUN, file]);
      const { code } = await program.ended;
      assertEquals([code, program.output.stderr.includes("rror")], [0, false]);
      assertEquals(program.output.stdout, block.replaceAll(/^ \* /gm, ""));
    });
  }
});
