// The crate for Rust: its tests, which include the programs of its README.

import { describe, it } from "bun:test";
import { assertStringIncludes } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  BUILD,
  buildPrograms,
  lackOf,
  PROGRAMS,
  ROOT,
  sidecarOn,
  succeed,
  temporaryFolder,
  TOOLS,
  unless,
} from "./support.ts";

const folder = temporaryFolder("rust");
const MANIFEST = join(ROOT, "ffi", "rust", "Cargo.toml");

describe("the crate for Rust", () => {
  unless(buildPrograms() ?? lackOf("cargo"))(
    "passes its tests, and compiles without a warning",
    async () => {
      const command = ["cargo", "test", "--quiet", "--offline", "--locked"];
      await succeed([...command, "--manifest-path", MANIFEST, "--", "--nocapture"], {
        env: {
          // Reuses the output of an earlier run, and omits debug information.
          CARGO_TARGET_DIR: join(BUILD, "cargo"),
          CARGO_INCREMENTAL: "0",
          CARGO_PROFILE_DEV_DEBUG: "0",
          LD_LIBRARY_PATH: `${BUILD}:${PROGRAMS}`,
          PLUE_LIB_DIR: BUILD,
          PLUE_SIDECAR: sidecarOn("bun", folder),
          PLUE_TOOLS: TOOLS,
          // contract.rs links with libsuite.
          RUSTFLAGS: `-D warnings -L native=${PROGRAMS}`,
        },
      });
    },
  );

  it("has the version of libplue", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    assertStringIncludes(readFileSync(MANIFEST, "utf8"), `\nversion = "${version}"\n`);
  });
});
