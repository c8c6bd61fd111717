// The package for Swift: its tests where Swift is, and its module map where clang is.

import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { maybe } from "../support/skip.ts";
import {
  buildPrograms,
  hasProgram,
  LONG_LIMIT_MS,
  make,
  program,
  ROOT,
  run,
  said,
  sidecarOn,
} from "./support.ts";

const PACKAGE = join(ROOT, "ffi", "swift");
const folder = mkdtempSync(join(tmpdir(), "plue-swift-"));
const prefix = join(folder, "prefix");
const unbuilt = buildPrograms();
beforeAll(() => {
  if (unbuilt === undefined) make("-s", "install", `PREFIX=${prefix}`);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Why a test cannot run; `undefined` if it can. */
function lack(name: string): string | undefined {
  return unbuilt ?? (hasProgram(name) ? undefined : `there is no ${name}`);
}

describe("the package for Swift", () => {
  const noSwift = lack("swift");
  maybe(noSwift === undefined, noSwift ?? "")("passes its tests", async () => {
    const own = join(folder, "package");
    cpSync(PACKAGE, own, { recursive: true });
    const outcome = await run(["swift", "test", "--package-path", own], {
      limitMs: LONG_LIMIT_MS,
      env: {
        LD_LIBRARY_PATH: join(prefix, "lib"),
        PKG_CONFIG_PATH: join(prefix, "lib", "pkgconfig"),
        PLUE_SIDECAR: program(join(folder, "sidecar"), sidecarOn("bun")),
        PLUE_TOOLS: join(ROOT, "test", "native", "tools.ts"),
      },
    });
    assertEquals(outcome.code, 0, said(outcome));
  });

  const noClang = lack("clang");
  for (const map of [join(PACKAGE, "Sources"), "include"]) {
    maybe(noClang === undefined, noClang ?? "")(
      `imports C by ${map === "include" ? "the installed" : "its own"} module map`,
      async () => {
        const source = join(folder, "import.m");
        writeFileSync(source, `@import CPlue;\nint main(void) { return plue_feature("call"); }\n`);
        const outcome = await run([
          "clang",
          "-fmodules",
          `-fmodules-cache-path=${join(folder, "modules")}`,
          `-fmodule-map-file=${
            join(map === "include" ? join(prefix, map) : map, "CPlue", "module.modulemap")
          }`,
          `-I${join(prefix, "include")}`,
          "-fsyntax-only",
          source,
        ]);
        assertEquals(outcome.code, 0, said(outcome));
      },
    );
  }
});
