// Every command of docs/command.md works, and prints what the page says.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertGreater } from "@std/assert";
import { afterAll, describe, it } from "bun:test";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/command.md"), "utf8");
const BLOCK = /^```(js|sh|text)\n(.*?)^```$/gms;

const folder = mkdtempSync(join(tmpdir(), "plue-docs-"));
writeFileSync(
  join(folder, "plue"),
  `#!/bin/sh\nexec '${process.execPath}' '${ROOT}/src/cli/main.ts' "$@"\n`,
  { mode: 0o755 },
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("docs/command.md", () => {
  const blocks = [...PAGE.matchAll(BLOCK)].map(([, kind, text = ""]) => ({ kind, text }));

  it("has a module, commands, and their output", () => {
    assertEquals(blocks[0]?.kind, "js");
    writeFileSync(join(folder, "tools.mjs"), blocks[0]?.text ?? "");
    assertGreater(blocks.filter(({ kind }) => kind === "sh").length, 6);
  });

  const env = {
    PATH: `${folder}:${process.env["PATH"]}`,
    HOME: process.env["HOME"] ?? "",
    PLUE_TOOLS: "tools.mjs",
  };
  for (const [at, { kind, text }] of blocks.entries()) {
    if (kind !== "sh") continue;
    const next = blocks[at + 1];
    const wanted = next?.kind === "text" ? next.text : undefined;
    it(`is right about: ${text.trim().split("\n")[0]}`, () => {
      const { status, stdout, stderr } = spawnSync("sh", ["-ec", text], {
        ...{ cwd: folder, env, encoding: "utf8" },
      });
      assertEquals(status, 0, stderr);
      if (wanted !== undefined) assertEquals(stdout, wanted);
    });
  }
});
