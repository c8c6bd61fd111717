import { describe } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { withServer } from "./server.ts";

const ROOT = join(import.meta.dirname, "../..");

describe("bench/nats/faults.ts", () => {
  withServer("loses nothing and does nothing twice", () => {
    const args = ["bench/nats/faults.ts", "1200", "30"];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: ROOT,
      encoding: "utf8",
    });
    assertEquals(status, 0, stdout + stderr);
    assertStringIncludes(stdout, "lost 0, done twice that may not be 0, hung 0");
  });
});
