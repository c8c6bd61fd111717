// Every command of docs/command.md works, and prints what the page says.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertGreater } from "@std/assert";
import { describe, it } from "bun:test";
import { folder as temporaryFolder, plue } from "./support.ts";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/command.md"), "utf8");
const BLOCK = /^```(js|sh|text)\n(.*?)^```$/gms;
const folder = temporaryFolder().path;
writeFileSync(
  join(folder, "plue"),
  `#!/bin/sh\nexec '${process.execPath}' '${ROOT}/src/cli/main.ts' "$@"\n`,
  { mode: 0o755 },
);
const env = {
  PATH: `${folder}:${process.env["PATH"]}`,
  HOME: process.env["HOME"] ?? "",
  PLUE_TOOLS: "tools.mjs",
};

describe("docs/command.md", () => {
  const blocks = [...PAGE.matchAll(BLOCK)].map(([, kind, text = ""]) => ({ kind, text }));

  it("has a module, commands, and their output", () => {
    assertEquals(blocks[0]?.kind, "js");
    writeFileSync(join(folder, "tools.mjs"), blocks[0]?.text ?? "");
    assertGreater(blocks.filter(({ kind }) => kind === "sh").length, 6);
  });

  for (const [at, { kind, text }] of blocks.entries()) {
    if (kind !== "sh") continue;
    const next = blocks[at + 1];
    const wanted = next?.kind === "text" ? next.text : undefined;
    it(`is right about: ${text.trim().split("\n")[0]}`, async () => {
      let printed = "";
      for (const line of text.trim().split("\n")) {
        const { status, stdout, stderr } = await run(line);
        assertEquals([line, status, status === 0 ? "" : stderr], [line, 0, ""]);
        printed += stdout;
      }
      if (wanted !== undefined) assertEquals(printed, wanted);
    });
  }
});

/** Runs one line: in this process, unless it needs a shell. */
async function run(
  line: string,
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  if (!/^plue [^|&<>$]*$/.test(line)) {
    return spawnSync("sh", ["-ec", line], { cwd: folder, env, encoding: "utf8" });
  }
  const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map((found) =>
    found[1] ?? found[2] ?? found[3] ?? ""
  );
  const before = process.cwd();
  process.chdir(folder);
  try {
    const { code: status, ...output } = await plue(words.slice(1), { env });
    return { status, ...output };
  } finally {
    process.chdir(before);
  }
}
