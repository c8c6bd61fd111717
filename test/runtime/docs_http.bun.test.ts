import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { assert, assertEquals } from "@std/assert";
import { afterAll, beforeAll, describe } from "bun:test";
import { type Program, projectFolder, startProgram } from "../support/program.ts";
import { maybe } from "../support/skip.ts";

/** The commands of a page that are for the server at this address. */
function commandsOf(page: string): readonly string[] {
  const text = readFileSync(join(projectFolder, page), "utf8");
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)]
    .flatMap(([, block = ""]) => block.replaceAll("\\\n", " ").split("\n"))
    .filter((line) => line.startsWith("curl ") && line.includes("http://127.0.0.1:8787/"));
}

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

for (
  const [page, entry, environment] of [
    [
      "docs/http.md",
      ["src/cli/main.ts", "serve", "examples/workspace/mod.ts", "--no-watch"],
      {},
    ],
    ["examples/edge/README.md", ["examples/edge/bun.ts"], { PLUE_TOKEN: "correct-horse-battery" }],
  ] as const
) {
  describe(page, () => {
    let program: Program;
    let url = "";
    beforeAll(async () => {
      // Both say where they are.
      program = startProgram(process.execPath, entry, { ...environment, PORT: "0" });
      [, url = ""] = await program.printed(/(http:\/\/\S+?:\d+)/);
    });
    afterAll(() => program[Symbol.asyncDispose]());

    const commands = commandsOf(page);
    maybe(hasCurl, "curl is not installed")("has commands that work as they are", () => {
      assert(commands.length > 0);
      for (const command of commands) {
        const line = command.replace("http://127.0.0.1:8787", url).replace(
          /^curl/,
          "curl -w '\\n%{http_code}'",
        );
        const { stdout, status } = spawnSync("sh", ["-c", line], { encoding: "utf8" });
        assertEquals(
          [status, stdout.trim().split("\n").at(-1)],
          [0, "200"],
          `${command}\n${stdout}`,
        );
      }
    });
  });
}
