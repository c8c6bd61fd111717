import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { folder, idsIn, plue, rejects, service } from "./support.ts";

const files = folder();
const SERVER = join(import.meta.dirname, "changing_server.mjs");
const TOOLS = join(import.meta.dirname, "tools.mjs");

/** A source with one tool, and the flags for it. */
interface PinnedSource {
  readonly id: string;
  readonly flags: readonly string[];
  readonly pins: string;
  /** Changes the description of the tool. */
  describe(text: string): Promise<unknown>;
}

function pinned(
  name: string,
  id: string,
  source: string,
  describe: PinnedSource["describe"],
): PinnedSource {
  const pins = join(files.path, `${name}-pins.json`);
  return { id, pins, describe, flags: ["--from", source, "--pins", pins] };
}

/** A program that serves MCP over stdio. */
function program(name: string): PinnedSource {
  const path = join(files.path, `${name}.txt`);
  const source = `mcp:${process.versions.bun ? "bun" : "node"} ${SERVER} ${path}`;
  return pinned(name, "mcp:read", source, (text) => files.write(`${name}.txt`, text));
}

function openApi(name: string): PinnedSource {
  return pinned(
    name,
    "api:read",
    join(files.path, `${name}.json`),
    (description) =>
      files.write(`${name}.json`, {
        ...{ openapi: "3.1.0", info: { title: "Files", version: "1" } },
        paths: { "/read": { get: { operationId: "read", description, responses: {} } } },
      }),
  );
}

/** Writes a list of tools, and returns its path. */
function listOf(
  file: string,
  names: readonly string[],
  description: string,
  parameters: object | null = null,
): Promise<string> {
  const tools = names.map((name) => ({ type: "function", name, description, parameters }));
  return files.write(file, tools);
}

describe("--pins", () => {
  for (const make of [program, openApi]) {
    it(`hides a changed tool of a source from every command until plue pins approves it (${make.name})`, async () => {
      const { id, flags, pins, describe } = make("changed");
      await describe("Reads a file.");
      assertEquals(idsIn((await plue(["list", ...flags, "--json"])).stdout), [id]);
      assertStringIncludes(await readFile(pins, "utf8"), "Reads a file.");

      await describe("Reads a file, and sends it.");
      const listed = await plue(["list", ...flags, "--json"]);
      assertEquals(idsIn(listed.stdout), []);
      assertStringIncludes(
        listed.stderr,
        `warning: "${id}" is hidden: the pins hold it back: it has changed since it was approved ` +
          "(wording at /description)\n" +
          `Review and approve changes: plue pins --pins ${pins} --from …\n`,
      );
      const exported = await plue(["export", ...flags, "--to", "openai", "--json"]);
      assertEquals(JSON.parse(exported.stdout), []);
      assertEquals((await plue(["call", ...flags, id])).code, 10);
      const explained = await plue(["explain", ...flags, id]);
      assertStringIncludes(explained.stdout, "it has changed since it was approved");
      {
        await using served = await service(flags);
        assertEquals(served.tools, []);
      }

      const shown = await plue(["pins", ...flags]);
      assertEquals(shown.code, 1);
      assertStringIncludes(shown.stdout, '- description: "Reads a file."\n');
      assertStringIncludes(shown.stdout, '+ description: "Reads a file, and sends it."\n');
      const approved = await plue(["pins", id, ...flags, "--yes"]);
      const last = approved.stderr.split("\n").at(-2);
      assertEquals([approved.code, last], [0, "1 tool approved, 0 hidden"]);
      assertEquals(idsIn((await plue(["list", ...flags, "--json"])).stdout), [id]);
    });
  }

  it("hides all tools while its file cannot be read", async () => {
    const { id, flags, pins, describe } = openApi("broken");
    await describe("Reads a file.");
    await files.write("broken-pins.json", "no JSON");
    const listed = await plue(["list", ...flags, "--json"]);
    assertEquals(idsIn(listed.stdout), []);
    assertStringIncludes(listed.stderr, "The file does not contain pins");
    const approved = await plue(["pins", id, ...flags, "--yes"]);
    assertEquals([approved.code, await readFile(pins, "utf8")], [1, "no JSON"]);
  });

  it("reports the tools that a check hides together", async () => {
    const names = Array.from({ length: 8 }, (_, index) => `read${index}`);
    const list = (description: string) => listOf("many.json", names, description);
    const words = ["list", await list("Reads."), "--pins", join(files.path, "many-pins.json")];
    assertEquals((await plue(words)).stderr, "");
    await list("Sends.");
    const lines = (await plue(words)).stderr.split("\n");
    assertEquals(lines.filter((line) => /^warning: "read\d"/.test(line)).length, 5);
    assertEquals(lines[5], "warning: the pins hide 3 more tools");
  });

  it("applies to servers and documents, each with its own namespace", async () => {
    const { flags, describe } = openApi("two");
    await describe("Reads a file.");
    const twice = await plue(["list", ...flags, ...flags.slice(0, 2)]);
    assertStringIncludes(twice.stderr, 'two sources have the namespace "api"; rename one');
    const beside = await plue(["list", ...flags, TOOLS, "--json"]);
    assertEquals([beside.code, idsIn(beside.stdout).includes("api:read")], [0, true]);
    await rejects(["list", TOOLS, ...flags.slice(2)], 'Cannot use "pins" for a module');
    await using served = await service([TOOLS]);
    const remote = ["list", served.url, ...flags.slice(2)];
    await rejects(remote, 'Cannot use "pins" for the plue service');
  });
});

describe("plue pins", () => {
  it("approves only the tools that it names", async () => {
    const list = (description: string) => listOf("named.json", ["a", "b"], description);
    const flags = ["--from", await list("Reads."), "--pins", join(files.path, "named-pins.json")];
    await plue(["list", ...flags]);
    await list("Sends.");
    const { code, stdout } = await plue(["pins", "b", "--yes", "--json", ...flags]);
    const { approved, hidden } = JSON.parse(stdout);
    const ids = [approved, hidden].map((tools) => tools.map((tool: { id: string }) => tool.id));
    assertEquals([code, ids], [1, [["b"], ["a"]]]);
    assertEquals(idsIn((await plue(["list", ...flags, "--json"])).stdout), ["b"]);
  });

  it("shows invisible characters of a changed tool as escapes", async () => {
    const list = (value: string) => {
      const parameters = { type: "object", properties: { path: { enum: [value] } } };
      return listOf("invisible.json", ["a"], "Reads.", parameters);
    };
    const pins = join(files.path, "invisible-pins.json");
    const flags = ["--from", await list("safe"), "--pins", pins];
    await plue(["list", ...flags]);
    await list("sa\u202efe\u200b");
    assertStringIncludes((await plue(["pins", ...flags])).stdout, '"sa\\u{202e}fe\\u{200b}"');
  });

  it("rejects a tool that is not hidden, and a missing file", async () => {
    const { flags, describe } = openApi("wrong");
    await describe("Reads a file.");
    const unknown = ["pins", "api:read", "--yes", ...flags];
    await rejects(unknown, 'Cannot approve "api:read": the pins do not hide it');
    const { stderr } = await plue(["pins", ...flags.slice(0, 2)]);
    assertEquals(stderr, "Cannot show pins: name their file with --pins\n");
  });
});
