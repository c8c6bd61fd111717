/** The types of this folder's files, which only its own packages can settle. */

import { it } from "bun:test";
import { assertEquals } from "@std/assert";
import { execFile } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { ROOT } from "../servers.ts";

it("the files of this folder type-check", async () => {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const said = await new Promise((resolve) => {
    execFile(
      process.execPath,
      [
        tsc,
        "-p",
        join(import.meta.dirname, "../tsconfig.json"),
        "--pretty",
        "false",
      ],
      (_error, stdout, stderr) => resolve(stdout + stderr),
    );
  });
  assertEquals(said, "");
});
