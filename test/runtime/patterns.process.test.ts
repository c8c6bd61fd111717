import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { RUN } from "../support/program.ts";

const SCRIPT = fileURLToPath(new URL("./pattern_attacks.ts", import.meta.url));
/** A backtracking matcher would take years. */
const LIMIT_MS = 300_000;

describe("patterns", () => {
  it("block no process, at any position in a schema", async () => {
    const child = spawn(process.execPath, [...RUN, SCRIPT], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
    });
    let output = "";
    for await (const chunk of child.stdout.setEncoding("utf8")) output += chunk;
    const [, answered, all] = /^answered (\d+) of (\d+)/.exec(output) ?? [];
    assertEquals(answered, all);
    assertEquals(Number(all) > 0, true);
  }, LIMIT_MS + 10_000);
});
