import process from "node:process";
import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { startProgram } from "../support/program.ts";

const isDeno = "Deno" in globalThis;

describe("examples/script.ts", () => {
  it("defines, registers, selects, searches and calls, and prints what came out", async () => {
    // In Deno without a permission: a script that only computes needs none.
    const options = isDeno ? ["run", "--no-prompt", "--node-modules-dir=manual"] : [];
    await using script = startProgram(process.execPath, [...options, "examples/script.ts"]);
    const { code } = await script.ended;
    assertEquals([code, script.output.stderr.includes("rror")], [0, false]);
    assertEquals(script.output.stdout, SAID);
  });
});

const SAID = `registered: note-add, temperature:convert
a reader sees: temperature:convert
note-add: "note-add" is removed by risk: risk medium is above the limit low
search finds: temperature:convert
definition: temperature:convert
100 °C: 212
a wrong call: Cannot call "temperature:convert": its arguments do not fit: /celsius must be a number, not a string
a hidden tool: unknown_tool
`;
