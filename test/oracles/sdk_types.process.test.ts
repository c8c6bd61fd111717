/** The types of an export are compared with the SDKs' types. */

import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

describe("the types of the SDKs", () => {
  it("accept the types of exports, and no other types", () => {
    const compiler = join("node_modules", "typescript", "bin", "tsc");
    const { status, stdout } = spawnSync(
      process.execPath,
      // Several checkers would each infer most of the types again.
      [compiler, "-p", "test/oracles", "--checkers", "1"],
      { cwd: ROOT, encoding: "utf8" },
    );
    assertEquals({ status, stdout }, { status: 0, stdout: "" });
  });
});
