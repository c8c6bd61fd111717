// plue.hpp, compiled without warnings by each compiler, and its tests under the sanitizers.

import { describe } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as native from "./support.ts";

const missing = native.buildPrograms();
const folder = native.temporaryFolder("cpp");
const env = { PLUE_SIDECAR: native.sidecarOn("bun", folder), PLUE_TOOLS: native.TOOLS };

const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];
const LINK = [`-L${native.BUILD}`, "-lplue", "-pthread", `-Wl,-rpath,${native.BUILD}`];

function compile(compiler: string, file: string, ...flags: readonly string[]): Promise<string> {
  return native.succeed([
    compiler,
    ...WARNINGS,
    `-I${join(native.ROOT, "ffi", "include")}`,
    file,
    ...flags,
  ]);
}

describe("plue.hpp", () => {
  const tests = join(native.ROOT, "ffi", "test", "cpp.cpp");

  // The tests below are compiled as C++17 by the system's compiler.
  for (const [compiler, standard] of [["g++", 20], ["clang++", 17], ["clang++", 20]] as const) {
    native.unless(missing ?? native.lackOf(compiler))(
      `is C++${standard} to ${compiler}`,
      async () => void await compile(compiler, tests, `-std=c++${standard}`, "-fsyntax-only"),
    );
  }

  const test = native.unless(missing ?? native.lackOf("c++"));
  test("passes its tests, without a report of the sanitizers", async () => {
    const binary = join(folder, "tests");
    const objects = ["contract", "check"].map((name) => join(native.PROGRAMS, `${name}.o`));
    const flags = ["-std=c++17", "-g1", "-fsanitize=address,undefined", "-o", binary, ...LINK];
    await compile("c++", tests, ...objects, ...flags);
    assertMatch(await native.succeed([binary], { env }), /^contract: \d+ cases\nok\n$/);
  });

  test("works as documented in ffi/README.md", async () => {
    const readme = readFileSync(join(native.ROOT, "ffi", "README.md"), "utf8");
    const [, text = ""] = /```cpp\n([^]*?)```/.exec(readme) ?? [];
    assertStringIncludes(text, "plue.hpp");
    const source = join(folder, "readme.cpp");
    const binary = join(folder, "readme");
    writeFileSync(source, text);
    await compile("c++", source, "-std=c++17", "-o", binary, ...LINK);
    assertEquals(await native.succeed([binary], { env }), '{"message":"hello"}\n"Hello, Ada"\n');
  });
});
