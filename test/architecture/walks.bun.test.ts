import { assertEquals, assertLessOrEqual } from "@std/assert";
import { describe, it } from "bun:test";
import { readFileSync } from "node:fs";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");

/** The functions that each walk enters, by file below `src`. */
type Walks = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const { stdout } = await promisify(execFile)(
  join(ROOT, "scripts/runtimes/bin/node"),
  [join(import.meta.dirname, "walk.mjs")],
  // V8 counts the functions of compiled sources less precisely.
  { cwd: ROOT, maxBuffer: 16_777_216, env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" } },
);
const WALKS: Walks = JSON.parse(stdout);

/** The section of each walk in ARCHITECTURE.md, and how many files and functions it may enter. */
const SECTIONS = [
  ["dispatch", "### `dispatcher.dispatch(call)`", 14, 55],
  ["execute", "### `POST /tools/:id/execute`", 23, 104],
  ["mcp", "### MCP `tools/call`", 33, 135],
  ["export", '### `exportTools(toolset, "openai.strict")`', 32, 178],
  ["register", "### `registry.registerTool(definition)`", 20, 87],
] as const;

const GUIDE = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");

function filesNamedIn(heading: string): readonly string[] {
  const section = GUIDE.slice(GUIDE.indexOf(heading) + heading.length).split(/\n##/)[0] ?? "";
  return [...new Set([...section.matchAll(/`([\w/]+\.ts)`/g)].map(([, file = ""]) => file))].sort();
}

describe("the walks in ARCHITECTURE.md", () => {
  const dispatched = Object.keys(WALKS["dispatch"] ?? {});

  for (const [name, heading, maxFiles, maxFunctions] of SECTIONS) {
    const walk = WALKS[name] ?? {};
    const files = Object.keys(walk).sort();

    it(`name the files that ${name} enters`, () => {
      // Calls over HTTP and MCP dispatch "as above".
      const isAbove = name === "execute" || name === "mcp";
      const rest = files.filter((file) => !isAbove || !dispatched.includes(file));
      const named = filesNamedIn(heading).filter((file) => !isAbove || !dispatched.includes(file));
      assertEquals(named, rest);
    });

    it(`let ${name} enter a bounded number of files and functions`, () => {
      assertLessOrEqual(files.length, maxFiles);
      assertLessOrEqual(Object.values(walk).flat().length, maxFunctions);
    });
  }
});
