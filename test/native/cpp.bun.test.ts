// plue.hpp: compiled without a warning by each compiler, and its tests in the sanitizers.

import { afterAll, describe } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { maybe } from "../support/skip.ts";
import {
  BUILD,
  buildPrograms,
  hasProgram,
  type Outcome,
  program,
  PROGRAMS,
  ROOT,
  run,
  said,
  sidecarOn,
} from "./support.ts";

const missing = buildPrograms();
const folder = mkdtempSync(join(tmpdir(), "plue-cpp-"));
afterAll(() => rmSync(folder, { recursive: true }));

const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];
const LINK = [`-L${BUILD}`, "-lplue", "-pthread", `-Wl,-rpath,${BUILD}`];

async function succeed(command: readonly string[]): Promise<Outcome> {
  const outcome = await run(command, {
    env: {
      PLUE_SIDECAR: program(join(folder, "sidecar"), sidecarOn("bun")),
      PLUE_TOOLS: join(ROOT, "test", "native", "tools.ts"),
    },
  });
  assertEquals(outcome.code, 0, said(outcome));
  return outcome;
}

function compile(compiler: string, file: string, ...flags: readonly string[]): Promise<Outcome> {
  return succeed([compiler, ...WARNINGS, `-I${join(ROOT, "ffi", "include")}`, file, ...flags]);
}

describe("plue.hpp", () => {
  const tests = join(ROOT, "ffi", "test", "cpp.cpp");

  for (const compiler of ["g++", "clang++"]) {
    const reason = missing ?? (hasProgram(compiler) ? undefined : `there is no ${compiler}`);
    maybe(reason === undefined, reason ?? "")(`is C++17 and C++20 to ${compiler}`, async () => {
      for (const standard of ["-std=c++17", "-std=c++20"]) {
        await compile(compiler, tests, standard, "-fsyntax-only");
      }
    });
  }

  const reason = missing ?? (hasProgram("c++") ? undefined : "there is no c++");
  const test = maybe(reason === undefined, reason ?? "");
  test("passes its tests, without a report of the sanitizers", async () => {
    const binary = join(folder, "tests");
    const objects = ["contract", "check"].map((name) => join(PROGRAMS, `${name}.o`));
    const flags = ["-std=c++17", "-g", "-fsanitize=address,undefined", "-o", binary, ...LINK];
    await compile("c++", tests, ...objects, ...flags);
    assertMatch((await succeed([binary])).stdout, /^contract: \d+ cases\nok\n$/);
  });

  test("works as ffi/README.md says", async () => {
    const readme = readFileSync(join(ROOT, "ffi", "README.md"), "utf8");
    const [, text = ""] = /```cpp\n([^]*?)```/.exec(readme) ?? [];
    assertStringIncludes(text, "plue.hpp");
    const source = join(folder, "readme.cpp");
    const binary = join(folder, "readme");
    writeFileSync(source, text);
    await compile("c++", source, "-std=c++17", "-o", binary, ...LINK);
    assertEquals((await succeed([binary])).stdout, '{"message":"hello"}\n"Hello, Ada"\n');
  });
});
