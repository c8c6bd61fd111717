import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { assert, assertEquals } from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { type Program, projectFolder, startProgram } from "../support/program.ts";
import { maybe } from "../support/skip.ts";

/** The commands of a page that send requests to the server at this address. */
function commandsOf(page: string): readonly string[] {
  const text = readFileSync(join(projectFolder, page), "utf8");
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)]
    .flatMap(([, block = ""]) => block.replaceAll("\\\n", " ").split("\n"))
    .filter((line) => line.startsWith("curl ") && line.includes("http://127.0.0.1:8787/"));
}

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

for (
  const [page, entry, environment] of [
    ["docs/http.md", ["src/cli/main.ts", "serve", "examples/workspace/mod.ts", "--no-watch"], {}],
    ["examples/edge/README.md", ["examples/edge/bun.ts"], { PLUE_TOKEN: "correct-horse-battery" }],
  ] as const
) {
  describe(page, () => {
    let program: Program;
    let url = "";
    beforeAll(async () => {
      // Both programs print their addresses.
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

describe("docs/first-tool.md", () => {
  const folder = mkdtempSync(join(tmpdir(), "plue-deno-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it("has a command with which Deno runs a file outside the clone", () => {
    const [, command = ""] =
      /`(deno run .*?)`/.exec(readFileSync(join(projectFolder, "docs/first-tool.md"), "utf8")) ??
        [];
    writeFileSync(
      join(folder, "first.ts"),
      'import { ToolRegistry } from "@plue/tools";\nconsole.log(new ToolRegistry().count);\n',
    );
    const args = command.replace("../plue", projectFolder).split(" ").slice(1);
    const { stdout, stderr } = spawnSync("deno", args, { cwd: folder, encoding: "utf8" });
    assertEquals(stdout, "0\n", stderr);
  });
});
