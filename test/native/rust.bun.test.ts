// The crate for Rust: their tests, which include the programs of their README.

import { afterAll, describe } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { maybe } from "../support/skip.ts";
import {
  BUILD,
  buildPrograms,
  hasProgram,
  LONG_LIMIT_MS,
  program,
  PROGRAMS,
  ROOT,
  run,
  said,
  sidecarOn,
} from "./support.ts";

const WORKSPACE = join(ROOT, "ffi", "rust");
const missing = buildPrograms() ?? (hasProgram("cargo") ? undefined : "there is no cargo");
const test = maybe(missing === undefined, missing ?? "");
const folder = mkdtempSync(join(tmpdir(), "plue-rust-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("the crate for Rust", () => {
  test("passes its tests, and compiles without a warning", async () => {
    const manifest = join(WORKSPACE, "Cargo.toml");
    const command = ["cargo", "test", "--quiet", "--offline", "--locked"];
    const outcome = await run([...command, "--manifest-path", manifest, "--", "--nocapture"], {
      limitMs: LONG_LIMIT_MS,
      env: {
        CARGO_TARGET_DIR: join(folder, "target"),
        LD_LIBRARY_PATH: `${BUILD}:${PROGRAMS}`,
        PLUE_LIB_DIR: BUILD,
        PLUE_SIDECAR: program(join(folder, "sidecar"), sidecarOn("bun")),
        PLUE_TOOLS: join(ROOT, "test", "native", "tools.ts"),
        // contract.rs links with libsuite.
        RUSTFLAGS: `-D warnings -L native=${PROGRAMS}`,
      },
    });
    assertEquals(outcome.code, 0, said(outcome));
  });

  maybe(true, "")("has the version of libplue", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const manifest = readFileSync(join(WORKSPACE, "Cargo.toml"), "utf8");
    assertStringIncludes(manifest, `\nversion = "${version}"\n`);
  });
});
