import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { join } from "node:path";
import { folder, plue, type Ran } from "./support.ts";

const tools = new URL("tools.mjs", import.meta.url).pathname;
const files = folder();

async function run(program: string, ...words: readonly string[]): Promise<Ran> {
  const file = await files.write(`${program.length}.js`, program);
  return await plue(["code", file, "--from", tools, ...words]);
}

describe("plue code", () => {
  it("prints the value of a program, and its log and its failed calls on standard error", async () => {
    const program = `console.log("begun");
      const found = await tools.search({ query: "a" });
      await tools.fail().catch(() => {});
      return found.query;`;
    const { code, stdout, stderr } = await run(program);
    assertEquals([code, stdout], [0, "a\n"]);
    assertMatch(stderr, /^begun\nwarning: fail failed: .*The disk is full\n$/);
    const { content } = JSON.parse((await run(program, "--json")).stdout);
    assertEquals([content.value, content.log], ["a", "begun"]);
  });

  it("approves the calls of a program only with --yes", async () => {
    const program = "return await tools.launch();";
    const { code, stderr } = await run(program);
    assertEquals(code, 20);
    assertStringIncludes(stderr, "needs approval");
    assertStringIncludes(stderr, "or add --yes\n");
    assertEquals((await run(program, "--yes")).stdout, "launched\n");
  });

  it("exits with 20 and the line if the program throws, and with 2 without a program", async () => {
    const { code, stderr } = await run('\nthrow new Error("no");');
    assertEquals(code, 20);
    assertStringIncludes(stderr, "the program threw in line 2: Error: no");
    for (const words of [[], [join(files.path, "absent.js")]]) {
      const { code, stderr } = await plue(["code", ...words, "--from", tools]);
      assertEquals([code, /name its file|no such file$/m.test(stderr)], [2, true]);
    }
  });

  it("reads a program from standard input", async () => {
    const { stdout } = await plue(["code", "-", "--from", tools], { stdin: "return 7;" });
    assertEquals(stdout, "7\n");
  });

  it("prints the declarations of the selected tools with --types", async () => {
    const words = ["code", "--types", "--from", tools, "--max-risk", "safe"];
    const { code, stdout } = await plue(words);
    assertEquals([code, stdout.match(/^ {2}\w+\(/gm)], [0, ["  count(", "  fail(", "  wait("]]);
  });
});
