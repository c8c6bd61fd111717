// The command in a pseudo terminal: colours, the width, progress, and the questions of calls.

import { join } from "node:path";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { EXIT_CODES } from "../../src/cli/terminal.ts";
import { folder, openTerminal, service, type Terminal } from "./support.ts";

const TOOLS = join(import.meta.dirname, "tools.mjs");
const ASKING = join(import.meta.dirname, "asking_tools.mjs");
const PLAIN = { NO_COLOR: "1" };
const files = folder();

const open = (words: readonly string[], env: Record<string, string> = PLAIN, columns = 100) =>
  openTerminal(["bun", "src/cli/main.ts", ...words], env, columns);

/** Runs the command to its end, without a person. */
async function printed(...args: Parameters<typeof open>): Promise<string> {
  await using terminal = open(...args);
  assertEquals(await terminal.ended, 0);
  return terminal.text();
}

describe("a terminal", () => {
  it("shows colours, and tables in its width, unless NO_COLOR is set", async () => {
    const shown = await printed(["list", TOOLS], {}, 50);
    assertStringIncludes(shown, "\x1b[32msafe");
    assertStringIncludes(shown, "…");
    const plain = await printed(["list", TOOLS], PLAIN, 50);
    assertEquals(plain.includes("\x1b"), false);
    for (const line of plain.split("\r\n")) assertEquals(line.length <= 50, true, line);
  });

  it("shows a bar while a call runs", async () => {
    const shown = await printed(["call", "-f", TOOLS, "count", "--to", "3"]);
    assertStringIncludes(shown, "░ 1/3 number 1");
    assertMatch(shown, /line 3\r\n[^█]*done\r\n$/);
  });
});

const ENTER = "\r";
const DOWN = "\x1b[B";

describe("a person at a terminal", () => {
  /** Types keys after each text that is shown, and returns the whole output. */
  async function answer(
    terminal: Terminal,
    ...steps: readonly (readonly [shown: RegExp, keys: string])[]
  ): Promise<{ readonly code: number; readonly text: string }> {
    for (const [shown, keys] of steps) {
      await terminal.shown(shown);
      terminal.type(keys);
    }
    return { code: await terminal.ended, text: terminal.text() };
  }

  const BEGIN = [/begin with\?[^]*in a plue\.json/, ENTER] as const;
  const NAME = [/name of the first tool\?[^]*greet/, ENTER] as const;

  it("writes the file of plue init after three questions", async () => {
    const path = join(files.path, "first.mjs");
    await using terminal = open(["init", "--out", path], { ...PLAIN, HOME: files.path });
    const client = [/Which MCP client[^]*zed/, `${DOWN}${ENTER}`] as const;
    const { code, text } = await answer(terminal, BEGIN, NAME, client);
    assertEquals(code, 0);
    assertStringIncludes(text, `Wrote ${path}. Serve it: npx @plue/cli serve ${path}`);
    assertStringIncludes(text, `Added "plue" in ${join(files.path, ".claude.json")}.`);
  });

  it("ends plue init at Ctrl-C before a file is written", async () => {
    await using terminal = open(["init", "--out", "/no/such/folder/x.mjs"]);
    const { code, text } = await answer(terminal, BEGIN, [/name of the first tool/, "\x03"]);
    assertEquals(code, 130);
    assertStringIncludes(text, "Cancelled: no file was written");
  });

  it("prompts for the missing required arguments of a call, or ends at Ctrl-C", async () => {
    await using terminal = open(["call", "-f", TOOLS, "search", "--deep"]);
    const { code, text } = await answer(terminal, [/query: What to look for/, `tea${ENTER}`]);
    assertEquals(code, 0);
    assertMatch(text, /"deep": true,\s+"query": "tea"/);
    await using left = open(["call", "-f", TOOLS, "count"]);
    const { code: ended } = await answer(left, [/to: The last number/, "\x03"]);
    assertEquals(ended, 130);
    // A program that reads the JSON gets no question.
    await using program = open(["call", "-f", TOOLS, "--json", "count"]);
    assertEquals(await program.ended, EXIT_CODES.invalid_arguments);
  });

  const ASKED = [/book asks: Which table\?[^]*Decline/, ENTER] as const;
  const OUTSIDE = [/place: Where[^]*outside/, `${DOWN}${ENTER}`] as const;
  const QUIET = [/quiet: Away from the music/, "y"] as const;

  it("answers the questions of a tool, again after an invalid answer", async () => {
    await using terminal = open(["call", "-f", ASKING, "book"]);
    const { code, text } = await answer(
      terminal,
      ASKED,
      [/seats: How many people/, `0${ENTER}`],
      OUTSIDE,
      QUIET,
      [/seats must be at least 1[^]*Which table\?[^]*Decline/, `${DOWN}${ENTER}`],
    );
    assertEquals(code, 0);
    assertStringIncludes(text, '"action": "decline"');
  });

  it("asks the questions of a tool of another service", async () => {
    await using served = await service([ASKING]);
    await using terminal = open(["call", "--json", "-f", served.url, "book"]);
    const { text } = await answer(
      terminal,
      ASKED,
      [/seats: How many people/, `2${ENTER}`],
      OUTSIDE,
      QUIET,
    );
    assertMatch(text, /"seats": 2,\s+"place": "outside",\s+"quiet": true/);
  });

  it("answers two questions of a tool one after the other", async () => {
    await using terminal = open(["call", "-f", ASKING, "tidy"]);
    await terminal.shown(/list[^]*No/);
    assertEquals(terminal.text().includes("erase"), false);
    terminal.type("y");
    const { text } = await answer(terminal, [/erase[^]*No/, "n"]);
    assertMatch(text, /\[\s+"accept",\s+"decline"\s+\]/);
  });

  it("shows all arguments of a call, which the person does not approve", async () => {
    const path = `${"x".repeat(3_000)}/../secret`;
    await using terminal = open(["call", "-f", ASKING, "rm", "--path", path]);
    const { code, text } = await answer(terminal, [/\.\.\/secret"[^]*No/, "n"]);
    assertEquals(code, EXIT_CODES.denied);
    assertStringIncludes(text, "it was not approved");
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`key${i}`, i]));
    const words = ["call", "-f", ASKING, "rm", JSON.stringify({ path: "x", ...many })];
    await using refused = open(words);
    assertEquals(await refused.ended, EXIT_CODES.approval_required);
    assertMatch(refused.text(), /too long to be shown, so you are not asked[^]*Add --yes/);
  });

  it("is offered no default that the terminal cannot show", async () => {
    const offered = JSON.stringify("\x1b]0;owned\x07ann");
    const file = await files.write(
      "offers.mjs",
      `const schema = { type: "object", properties: { name: { type: "string", default: ${offered} } } };
      export const tool = { name: "asks", description: "Asks.", risk: "safe",
        execute: (_, { ask }) => ask("who", { message: "Who?", schema }) };`,
    );
    await using terminal = open(["call", "-f", file, "asks"]);
    const { code, text } = await answer(
      terminal,
      [/asks asks: Who\?[^]*Decline/, ENTER],
      [/name[^]*└/, `Bob${ENTER}`],
    );
    assertEquals(code, 0);
    assertMatch(text, /"name": "Bob"/);
    assertEquals(text.includes("owned"), false);
  });
});
