// The C half by itself: its header, its library, and its conduct towards a tools side in C.
// On one runtime is enough: JavaScript only starts the programs.

import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { maybe } from "../support/skip.ts";
import {
  BUILD,
  exportedSymbols,
  hasProgram,
  make,
  noCompiler,
  PROGRAMS,
  ROOT,
  run,
  said,
} from "./support.ts";

const FFI = join(ROOT, "ffi");
const FAKE_SIDECAR = join(PROGRAMS, "fake_sidecar");
const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
const missing = noCompiler();
const withCompiler = maybe(missing === undefined, missing ?? "");

/** Runs a program that must end well. */
async function succeed(
  command: readonly string[],
  env: { readonly [name: string]: string } = {},
): Promise<string> {
  const outcome = await run(command, { env });
  assertEquals(outcome.code, 0, `${command.join(" ")}: ${said(outcome)}`);
  return outcome.stdout;
}

/** The test programs talk to the sidecar in C. */
async function passWithFake(...command: readonly string[]): Promise<void> {
  await succeed(command, { PLUE_SIDECAR: FAKE_SIDECAR });
}

beforeAll(() => {
  if (missing === undefined) make("-j2", "all", "test-programs");
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
    const withIt = maybe(hasProgram(compiler), `there is no ${compiler}`);
    withIt(`compiles as ${standard}, and lays memory out as ABI 1 promises`, async () => {
      const flags = [
        "-x",
        language,
        `-std=${standard}`,
        ...WARNINGS,
        `-I${FFI}/include`,
      ];
      await succeed([
        compiler,
        ...flags,
        "-fsyntax-only",
        join(FFI, "test", "header.c"),
      ]);
    });
  }

  withCompiler("begins with a program that compiles and calls a tool", async () => {
    const header = readFileSync(join(FFI, "include", "plue.h"), "utf8");
    const lines = header.slice(header.indexOf(" *     #include"), header.indexOf(" * THREADS"))
      .split("\n")
      .filter((line) => line.startsWith(" *     ")).map((line) => line.slice(7));
    const own = mkdtempSync(join(tmpdir(), "plue-header-"));
    const [source, host] = [join(own, "first.c"), join(own, "first")];
    writeFileSync(source, `${lines.join("\n")}\n`);
    const link = [`-I${FFI}/include`, `-L${BUILD}`, "-lplue", `-Wl,-rpath,${BUILD}`];
    await succeed(["cc", ...WARNINGS, source, "-o", host, ...link]);
    const outcome = await run([host], { env: { PLUE_SIDECAR: join(PROGRAMS, "fake_sidecar") } });
    rmSync(own, { recursive: true });
    assertEquals([outcome.code, outcome.stdout], [0, 'result: {"message":"hello"}\n']);
  });

  withCompiler("has the version of the package", () => {
    const header = readFileSync(join(FFI, "include", "plue.h"), "utf8");
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    assertEquals(/#define PLUE_VERSION "(.*)"/.exec(header)?.[1], version);
  });
});

describe("libplue.so", () => {
  const withNm = maybe(
    missing === undefined && process.platform === "linux" && hasProgram("nm"),
    "not a Linux with cc, make and nm",
  );

  withNm("exports what is listed, and nothing else", async () => {
    const table = await succeed(["nm", "-D", "--defined-only", join(BUILD, "libplue.so")]);
    const names = table.split("\n").filter((line) => line.includes(" T "))
      .map((line) => line.split(" ").at(-1)?.replace(/@.*/, ""));
    assertEquals(names.sort(), exportedSymbols());
  });

  withNm("puts no name but its own into what it is linked into", async () => {
    const table = await succeed(["nm", "--defined-only", "-g", join(BUILD, "libplue.a")]);
    const names = table.split("\n").filter((line) => / [A-Z] /.test(line))
      .map((line) => line.split(" ").at(-1) ?? "");
    assertEquals(names.filter((name) => !name.startsWith("plue_")), []);
  });
});

describe("the C half", () => {
  maybe(hasProgram("clang") && missing === undefined, "there is no clang")(
    "takes its lock where it must, and gives it back, says clang",
    () => make("check"),
  );

  for (const program of ["units", "seam"]) {
    withCompiler(
      `passes its unit tests (${program})`,
      () => passWithFake(join(PROGRAMS, program)),
    );
  }

  withCompiler("passes the suite over a socket", () =>
    passWithFake(
      join(PROGRAMS, "suite"),
      ...[
        "basic",
        "contract:call",
        "big",
        "metadata:5000",
        "streaming",
        "dropping",
        "abort",
        "shared:20",
        "race:500",
      ],
      ...["crash", "shutdown", "stress:8:20000:echo", "grace", "cancellation"],
    ));

  withCompiler(
    "passes the suite when it is linked statically",
    () => passWithFake(join(PROGRAMS, "suite_static"), "basic", "abort", "shutdown"),
  );

  const parts = "basic big metadata:5000 abort shared:20 race:500 stress:8:20000:echo streaming " +
    "shutdown grace cancellation";
  for (const wake of ["callback", "socket"]) {
    withCompiler(
      `passes the suite as a guest's library, woken by a ${wake}`,
      () => passWithFake(join(PROGRAMS, "fake_guest"), wake, "2000", ...parts.split(" ")),
    );
  }

  withCompiler(
    "keeps no memory, descriptor or thread over 100,000 calls",
    () => passWithFake(join(PROGRAMS, "suite"), "leak:100000:512"),
  );

  withCompiler(
    "refuses 300 MB of arguments",
    () => passWithFake(join(PROGRAMS, "suite"), "too_big"),
  );

  const cases = {
    bad_starts: "says why a sidecar did not start",
    bad_programs: "says why there is no sidecar",
    babble: "is not disturbed by a sidecar that sends what nobody asked for",
    garble: "fails all calls of a sidecar that breaks the protocol in the middle of them",
    bad_text: "hands a host no text that is empty, cut short or not UTF-8",
    failed_later: "kills a sidecar that gives up while calls run, and stays",
    grandchild:
      "notices a crash although a child of the sidecar holds its socket, and ends what it started",
    stay: "kills a sidecar that does not end when asked to",
    refused: "passes on why the tools refuse config_json",
    bad_environment: "refuses a name of tools in the environment that is not UTF-8",
    backoff: "pauses between starts that fail",
    sigchld_ignored: "works where SIGCHLD is ignored",
    thief: "works where the host waits for children that are not its own",
    inherited: "hands the sidecar four descriptors, and no other",
    start_stop: "leaves no descriptor and no thread behind",
    start_race: "starts one sidecar for many first calls",
    shutdown_race: "survives shutdowns among calls",
    both_hostings: "tells a guest and a sidecar of a shutdown at once, and owes no wake after it",
    fork_race: "may be forked while one sidecar takes the place of another",
    abort_of_start: "aborts a call that waits for the sidecar's start",
    wedge: "kills a sidecar whose thread no longer answers after an abort",
    no_wedge: "leaves a sidecar alone whose tool merely does not listen",
    flood:
      "neither waits for the end of a tool's events after an abort, nor trusts its sidecar then",
    call_timeout: "ends a call that takes longer than it may, and leaves the others alone",
    stopped:
      "kills a sidecar that has stopped, also in the middle of a frame, after call_timeout_ms",
    unread_output:
      "waits for no reader of what tools print, and says nothing of it in the message about a crash",
    dropped_output: "counts what it drops of what tools print",
    two_users: "ends the tools when the last of several users calls plue_shutdown()",
    bytes_in_flight: "bounds the bytes of the arguments of running calls",
    withdrawn_call: "takes the arguments of a call back that is given up while it waits",
    options: "checks its options, and takes those of older and newer callers",
  };
  for (const [name, does] of Object.entries(cases)) {
    withCompiler(does, async () => {
      const output = await succeed([join(PROGRAMS, "edge"), FAKE_SIDECAR, name]);
      assertEquals(output.includes(`${name}: ok`), true, output);
      assertEquals(output.includes("babble on the standard output"), false);
    });
  }
});

describe("plue.c and plue.h", () => {
  const folder = mkdtempSync(join(tmpdir(), "plue-amalgamation-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  withCompiler("are all of libplue, and pass the suite", async () => {
    const script = join(ROOT, "scripts", "amalgamate.mjs");
    await succeed(["node", script, folder]);
    const suite = join(folder, "suite");
    const sources = readdirSync(join(FFI, "test"))
      .filter((name) => /^(suite(?!_library).*|contract|check)\.c$/.test(name))
      .map((name) => join(FFI, "test", name));
    const flags = ["-std=c11", ...WARNINGS, "-O2", "-pthread", "-fno-asynchronous-unwind-tables"];
    const plue = join(folder, "plue.o");
    await succeed(["cc", ...flags, "-c", join(folder, "plue.c"), "-o", plue]);
    const test = ["-D_GNU_SOURCE", `-I${folder}`, `-I${join(FFI, "test")}`, ...sources, plue];
    await succeed(["cc", ...flags, ...test, "-o", suite, "-ldl"]);
    await passWithFake(
      suite,
      "basic",
      "contract:call",
      "submit",
      "big",
      "metadata:1000",
      "abort",
      "crash",
      "shutdown",
    );
  });
});

describe("an exception out of a callback", () => {
  maybe(missing === undefined && hasProgram("c++"), "there is no c++")(
    "ends the host at once, and does not go through the library",
    async () => {
      make("all", "test-programs", "build/test/throws");
      const outcome = await run([join(PROGRAMS, "throws")], {
        env: { PLUE_SIDECAR: FAKE_SIDECAR },
      });
      assertEquals(outcome.code, undefined, said(outcome));
      assertStringIncludes(outcome.stderr, "out of a callback");
    },
  );
});

describe("a host that ends without plue_shutdown()", () => {
  const onLinux = maybe(
    missing === undefined && process.platform === "linux",
    "the guardian is Linux's",
  );
  const isAlive = (id: number): boolean => {
    try {
      // A zombie that was not waited for has ended, too.
      return readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1]?.[0] !==
        "Z";
    } catch {
      return false;
    }
  };
  const folder = mkdtempSync(join(tmpdir(), "plue-orphan-"));
  afterAll(() => rmSync(folder, { recursive: true }));
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
  const asRoot = maybe(
    missing === undefined && process.platform === "linux" && process.getuid?.() === 0,
    missing ?? "it takes root, and Linux",
  );
  for (const [how, args] of Object.entries({ ...ways, ...ofRoot })) {
    (how in ofRoot ? asRoot : onLinux)(
      `takes everything that its tools have started along when it ${how}`,
      async () => {
        const outcome = await run([join(PROGRAMS, "orphan"), ...args], {
          env: { PLUE_SIDECAR: FAKE_SIDECAR },
        });
        // The sidecar, a tool's process, and a process that has left the sidecar's group and
        // parent.
        const processes = outcome.stdout.trim().split("\n").map(Number);
        assertEquals(processes.length, 3, said(outcome));
        assertEquals(processes.every((id) => id > 0), true, said(outcome));
        // Otherwise they would run for a minute.
        const limit = performance.now() + 30_000;
        while (processes.some(isAlive) && performance.now() < limit) {
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
        assertEquals(processes.filter(isAlive), []);
        assertEquals(existsSync(spinning), args.includes(spinning));
        rmSync(spinning, { force: true });
      },
    );
  }
});
