// The crate for Rust: its tests, which include the programs of its README.

import { describe, it } from "bun:test";
import { assertStringIncludes } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as native from "./support.ts";

const folder = native.temporaryFolder("rust");
const MANIFEST = join(native.ROOT, "ffi", "rust", "Cargo.toml");

describe("the crate for Rust", () => {
  native.unless(native.buildPrograms() ?? native.lackOf("cargo"))(
    "passes its tests, and compiles without a warning",
    async () => {
      const command = ["cargo", "test", "--quiet", "--offline", "--locked"];
      await native.succeed([...command, "--manifest-path", MANIFEST, "--", "--nocapture"], {
        env: {
          // Reuses the output of an earlier run, and omits debug information.
          CARGO_TARGET_DIR: join(native.BUILD, "cargo"),
          CARGO_INCREMENTAL: "0",
          CARGO_PROFILE_DEV_DEBUG: "0",
          LD_LIBRARY_PATH: `${native.BUILD}:${native.PROGRAMS}`,
          PLUE_LIB_DIR: native.BUILD,
          PLUE_SIDECAR: native.sidecarOn("bun", folder),
          PLUE_TOOLS: native.TOOLS,
          // contract.rs links with libsuite.
          RUSTFLAGS: `-D warnings -L native=${native.PROGRAMS}`,
        },
      });
    },
  );

  it("has the version of libplue", () => {
    const { version } = JSON.parse(readFileSync(join(native.ROOT, "package.json"), "utf8"));
    assertStringIncludes(readFileSync(MANIFEST, "utf8"), `\nversion = "${version}"\n`);
  });
});
