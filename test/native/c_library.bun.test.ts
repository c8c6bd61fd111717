// The C half alone: its header, its library, and its behaviour with a tools side in C. One runtime
// is enough, because JavaScript only starts the programs.

import { beforeAll, describe, it } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import * as native from "./support.ts";
import { lackOf, outputOf, PROGRAMS, succeed, unless, WITH_FAKE } from "./support.ts";

const FFI = join(native.ROOT, "ffi");
const FAKE_SIDECAR = WITH_FAKE.PLUE_SIDECAR;
const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
const missing = lackOf();
const withCompiler = unless(missing);
const notLinux = process.platform === "linux" ? undefined : "this is not Linux";
const folder = native.temporaryFolder("c-library");

/** Runs a test program with the sidecar in C. */
async function passWithFake(program: string, parts = ""): Promise<void> {
  const words = parts.split(" ").filter((part) => part !== "");
  await succeed([join(PROGRAMS, program), ...words], { env: WITH_FAKE });
}

const amalgamation = join(folder, "amalgamation");

beforeAll(async () => {
  native.buildPrograms();
  await succeed(["node", join(native.ROOT, "scripts", "amalgamate.mjs"), amalgamation]);
});

describe("plue.h", () => {
  const standards = [
    ["cc", "c", "c99"],
    ["cc", "c", "c11"],
    ["cc", "c", "c17"],
    ["c++", "c++", "c++11"],
    ["c++", "c++", "c++20"],
  ] as const;
  for (const [compiler, language, standard] of standards) {
    unless(lackOf(compiler))(
      `compiles as ${standard}, and lays memory out as ABI 1 promises`,
      async () => {
        const flags = [`-std=${standard}`, ...WARNINGS, `-I${FFI}/include`, "-fsyntax-only"];
        await succeed([compiler, "-x", language, ...flags, join(FFI, "test", "header.c")]);
      },
    );
  }

  withCompiler("begins with a program that compiles and calls a tool", async () => {
    const header = readFileSync(join(FFI, "include", "plue.h"), "utf8");
    const lines = header.slice(header.indexOf(" *     #include"), header.indexOf(" * THREADS"))
      .split("\n")
      .filter((line) => line.startsWith(" *     ")).map((line) => line.slice(7));
    const [source, host] = [join(folder, "first.c"), join(folder, "first")];
    writeFileSync(source, `${lines.join("\n")}\n`);
    const link = [`-I${FFI}/include`, `-L${native.BUILD}`, "-lplue", `-Wl,-rpath,${native.BUILD}`];
    await succeed(["cc", ...WARNINGS, source, "-o", host, ...link]);
    assertEquals(await succeed([host], { env: WITH_FAKE }), 'result: {"message":"hello"}\n');
  });

  it("has the version of the package", () => {
    const header = readFileSync(join(FFI, "include", "plue.h"), "utf8");
    const { version } = JSON.parse(readFileSync(join(native.ROOT, "package.json"), "utf8"));
    assertEquals(/#define PLUE_VERSION "(.*)"/.exec(header)?.[1], version);
  });
});

describe("libplue.so", () => {
  const withNm = unless(lackOf("nm") ?? notLinux);

  withNm("exports exactly the listed functions", async () => {
    const table = await succeed(["nm", "-D", "--defined-only", join(native.BUILD, "libplue.so")]);
    const names = table.split("\n").filter((line) => line.includes(" T "))
      .map((line) => line.split(" ").at(-1)?.replace(/@.*/, ""));
    assertEquals(names.sort(), native.exportedSymbols());
  });

  withNm("adds only its own names to a program that it is linked into", async () => {
    const table = await succeed(["nm", "--defined-only", "-g", join(native.BUILD, "libplue.a")]);
    const names = table.split("\n").filter((line) => / [A-Z] /.test(line))
      .map((line) => line.split(" ").at(-1) ?? "");
    assertEquals(names.filter((name) => !name.startsWith("plue_")), []);
  });
});

describe("the C half", () => {
  unless(lackOf("clang"))(
    "takes its lock where it must, and gives it back, says clang",
    // The sources are in one file, because clang takes longer to start than to check.
    () => native.make("check", `SRC=${amalgamation}`),
  );

  for (const program of ["units", "seam"]) {
    withCompiler(`passes its unit tests (${program})`, () => passWithFake(program));
  }

  const calls = native.SOAK > 0 ? 20_000 : 2_000;
  const parts =
    "basic metadata:1000 abort shared:5 race:100 streaming shutdown grace cancellation " +
    `stress:8:${calls}:echo`;
  withCompiler(
    "passes the suite over a socket",
    () => passWithFake("suite", `${parts} big:16000000 contract:call dropping crash too_big`),
  );

  withCompiler(
    "passes the suite when it is linked statically",
    () => passWithFake("suite_static", "basic shutdown"),
  );

  // Parts that depend on the way to wake a guest run with both ways.
  const woken = {
    callback: `${parts} big:8000000`,
    socket: `submit shared:5 stress:8:${calls}:echo`,
  };
  for (const [wake, parts] of Object.entries(woken)) {
    withCompiler(
      `passes the suite as a guest's library, woken by a ${wake}`,
      () => passWithFake("fake_guest", `${wake} 500 ${parts}`),
    );
  }

  withCompiler("leaks nothing over 40,000 calls", () => passWithFake("suite", "leak:40000:512"));
});

describe("the C half, in an unusual host or with a bad sidecar,", () => {
  const source = readFileSync(join(FFI, "test", "edge.c"), "utf8");
  let outcome: native.Outcome = { code: undefined, stdout: "", stderr: "" };
  beforeAll(async () => {
    if (missing === undefined) outcome = await native.run([join(PROGRAMS, "edge"), FAKE_SIDECAR]);
  });
  const tests = [...source.matchAll(/(?:\/\* ([^/]*?) \*\/\n)?TEST\((\w+)\)/g)];
  for (const [, comment, name = ""] of tests) {
    withCompiler(`${name}: ${(comment ?? name).replaceAll("\n *", "")}`, () => {
      assertMatch(outcome.stdout, new RegExp(`^${name}: ok \\(`, "m"), outputOf(outcome));
    });
  }

  withCompiler("ends successfully, and prints no output of its tools on standard output", () => {
    const isPrinted = outcome.stdout.includes("babble on the standard output");
    assertEquals([outcome.code, isPrinted], [0, false], outputOf(outcome));
  });
});

describe("plue.c and plue.h", () => {
  withCompiler("contain all of libplue, and pass the suite", async () => {
    const objects = ["suite_main", "suite", "suite_events", "contract", "check"]
      .map((name) => join(PROGRAMS, `${name}.o`));
    const suite = join(folder, "suite");
    const flags = ["-std=c11", ...WARNINGS, "-O1", "-pthread", "-fno-asynchronous-unwind-tables"];
    await succeed(["cc", ...flags, join(amalgamation, "plue.c"), ...objects, "-o", suite, "-ldl"]);
    const parts = "basic contract:call submit abort crash shutdown";
    await succeed([suite, ...parts.split(" ")], { env: WITH_FAKE });
  });
});

describe("an exception out of a callback", () => {
  unless(lackOf("c++"))("ends the host at once, and does not go through the library", async () => {
    native.make("all", "build/test/throws");
    const outcome = await native.run([join(PROGRAMS, "throws")], { env: WITH_FAKE });
    assertEquals(outcome.code, undefined, outputOf(outcome));
    assertStringIncludes(outcome.stderr, "out of a callback");
  });
});

describe("a host that ends without plue_shutdown()", () => {
  const isAlive = (id: number): boolean => {
    try {
      // A zombie that was not waited for has ended, too.
      return readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
    } catch {
      return false;
    }
  };
  const spinning = join(folder, "spinning");
  const ways = {
    "is killed": ["kill"],
    "is killed while a tool keeps the sidecar busy": ["kill", spinning],
    "calls exit()": ["exit"],
    "calls _exit()": ["_exit"],
    "crashes": ["crash"],
    "becomes another program by exec()": ["exec"],
  };
  const ofRoot = {
    "has dropped its privileges, and is killed": ["drop-kill", spinning],
    "has dropped its privileges, and calls exit()": ["drop-exit"],
    "has dropped its privileges, and calls plue_shutdown()": ["drop-shutdown", spinning],
  };
  const onLinux = unless(missing ?? notLinux);
  const notRoot = process.getuid?.() === 0 ? undefined : "it takes root";
  const asRoot = unless(missing ?? notLinux ?? notRoot);
  for (const [how, args] of Object.entries({ ...ways, ...ofRoot })) {
    (how in ofRoot ? asRoot : onLinux)(
      `takes everything that its tools have started along when it ${how}`,
      async () => {
        const outcome = await native.run([join(PROGRAMS, "orphan"), ...args], { env: WITH_FAKE });
        // The sidecar, a tool's process, and a process that has left the sidecar's group and
        // parent.
        const processes = outcome.stdout.trim().split("\n").map(Number);
        assertEquals(processes.length, 3, outputOf(outcome));
        assertEquals(processes.every((id) => id > 0), true, outputOf(outcome));
        // Processes that are not killed run for a minute.
        const limit = performance.now() + 30_000;
        let left = processes;
        while (left.length > 0 && performance.now() < limit) {
          // Checked until each has ended once, because the system may reuse a process number.
          left = left.filter(isAlive);
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
        assertEquals(left, []);
        assertEquals(existsSync(spinning), args.includes(spinning));
        rmSync(spinning, { force: true });
      },
    );
  }
});
