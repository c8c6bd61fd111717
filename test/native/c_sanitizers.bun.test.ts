// The C half under the sanitizers and valgrind, both ends in C.

import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { maybe } from "../support/skip.ts";
import {
  BUILD,
  hasProgram,
  hasSanitizer,
  LONG_LIMIT_MS,
  make,
  noCompiler,
  PROGRAMS,
  ROOT,
  run,
  said,
} from "./support.ts";

/** Seconds for each long run; `npm run test:soak` sets it. */
const SOAK = Number(process.env["PLUE_SOAK"] ?? 0);
const missing = noCompiler();

const STRICT = {
  TSAN_OPTIONS: "halt_on_error=1",
  UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
};

/** A program that runs a line of a shell: `$PLUE_SIDECAR` is the path of one file. */
function program(name: string, line: string): string {
  const file = join(mkdtempSync(join(tmpdir(), "plue-sanitizer-")), name);
  writeFileSync(file, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  return file;
}

/** Runs programs that must end well: side by side, because much of their time is spent waiting. */
async function succeed(
  ...commands: readonly (readonly string[])[]
): Promise<void> {
  const env = { ...STRICT, PLUE_SIDECAR: join(PROGRAMS, "fake_sidecar") };
  const outcomes = await Promise.all(
    commands.map((command) => run(command, { env, limitMs: LONG_LIMIT_MS })),
  );
  const failed = outcomes.map((outcome, at) => `${commands[at]?.join(" ")}: ${said(outcome)}`)
    .filter((_, at) => outcomes[at]?.code !== 0);
  assertEquals(failed.length, 0, failed.join("\n"));
}

const PARTS = [
  "basic",
  "call",
  "submit",
  "metadata:200",
  "abort",
  "shared",
  "race:100",
  "stress:8:200:echo",
  "grace",
];
/** Those of the tests of odd hosts in which threads meet. */
const RACES = [
  "bad_starts",
  "grandchild",
  "refused",
  "start_race",
  "shutdown_race",
  "both_hostings",
  "fork",
  "fork_race",
  "abort_of_start",
  "flood",
  "call_timeout",
  "unread_output",
];

for (const sanitizer of ["thread", "address,undefined"]) {
  describe(`with -fsanitize=${sanitizer}`, () => {
    const build = join(BUILD, sanitizer.replace(",", "-"));
    const programs = join(build, "test");
    const prepare = (): void => {
      make("all", "test-programs");
      make(
        "-j2",
        `BUILD=${build}`,
        `SANITIZE=${sanitizer}`,
        "all",
        "test-programs",
      );
    };
    const withSanitizer = maybe(
      missing === undefined && hasSanitizer(sanitizer),
      missing ?? `the compiler has no -fsanitize=${sanitizer} here`,
    );

    withSanitizer("reports nothing", async () => {
      prepare();
      // AddressSanitizer takes what the C library does at the end of a cancelled thread for an error.
      const parts = sanitizer === "thread" ? [...PARTS, "cancellation"] : PARTS;
      const fakeGuest = join(programs, "fake_guest");
      const fakeSidecar = join(PROGRAMS, "fake_sidecar");
      await succeed(
        [join(programs, "units")],
        [fakeGuest, "callback", "300", ...parts, "shutdown"],
        [fakeGuest, "socket", "300", ...parts],
        [join(programs, "suite"), ...parts, "crash", "shutdown"],
        [join(programs, "edge"), fakeSidecar, ...RACES],
        [join(programs, "process"), fakeSidecar, "no_stdio"],
      );
    });

    withSanitizer("reports nothing of tools in C, with the sidecar on Bun", async () => {
      prepare();
      const main = join(ROOT, "ffi", "sidecar", "main.ts");
      const outcome = await run(
        [
          join(programs, "suite"),
          "tools",
          "tools_restarts",
          "tools_shutdown",
          "questions",
          "waiting",
          "waiting_restarts",
          "blocks",
          "notices",
          "log_left",
          "submit_restarts",
        ],
        {
          limitMs: LONG_LIMIT_MS,
          env: {
            ...STRICT,
            PLUE_SIDECAR: program("sidecar-on-bun", `exec bun '${main}'`),
            PLUE_TOOLS: join(ROOT, "test", "native", "tools.ts"),
          },
        },
      );
      assertEquals(outcome.code, 0, said(outcome));
    });

    const whenLong = maybe(
      SOAK > 0 && missing === undefined && hasSanitizer(sanitizer),
      missing ?? "long: npm run test:soak",
    );
    whenLong(`reports nothing in ${SOAK} seconds of everything`, async () => {
      prepare();
      await succeed([join(programs, "edge"), join(PROGRAMS, "fake_sidecar")]);
      await succeed([join(programs, "suite"), `soak:8:${SOAK}`]);
      await succeed([
        join(programs, "fake_guest"),
        "callback",
        "2000",
        `soak:8:${SOAK}`,
      ]);
    });
  });
}

describe("a host with ThreadSanitizer, and a library without it", () => {
  const withSanitizer = maybe(
    missing === undefined && hasSanitizer("thread"),
    missing ?? "the compiler has no -fsanitize=thread here",
  );
  withSanitizer("runs, and nothing is reported", async () => {
    make("all", "test-programs");
    const folder = mkdtempSync(join(tmpdir(), "plue-thread-host-"));
    const sources = join(ROOT, "ffi", "test");
    const compile = async (name: string, ...files: readonly string[]): Promise<string> => {
      const host = join(folder, name);
      const built = await run([
        ..."cc -g -fsanitize=thread -std=c11 -D_GNU_SOURCE -pthread".split(" "),
        ...[`-I${join(ROOT, "ffi", "include")}`, `-I${sources}`],
        ...files.map((file) => join(sources, `${file}.c`)),
        ...["-o", host, `-L${BUILD}`, "-lplue", `-Wl,-rpath,${BUILD}`],
      ]);
      assertEquals(built.code, 0, said(built));
      return host;
    };
    const suite = ["suite", "suite_events", "suite_waiting", "suite_blocks", "check"];
    const host = await compile("suite", "suite_main", ...suite);
    const guest = await compile("fake_guest", "fake_guest", "fake_tools", ...suite);
    await succeed([host, ...PARTS, "crash", "shutdown"], [guest, "callback", "300", ...PARTS]);
    rmSync(folder, { recursive: true });
  });
});

describe("under valgrind", () => {
  const withValgrind = maybe(
    missing === undefined && hasProgram("valgrind"),
    missing ?? "there is no valgrind",
  );
  const few = [
    "basic",
    "metadata:100",
    "shared",
    "grace",
    "race:30",
    "stress:4:100:echo",
  ];
  const valgrind = [
    "valgrind",
    "-q",
    // One thread runs at a time, and a busy one would keep the others out for long.
    "--fair-sched=yes",
    "--error-exitcode=9",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,possible",
  ];
  withValgrind("memcheck reports nothing of a host with the library as it is shipped", async () => {
    make("all", "test-programs");
    await succeed([
      ...valgrind,
      // The guardian is a copy of the host there, whose memory is nobody's when it ends.
      "--child-silent-after-fork=yes",
      join(PROGRAMS, "suite"),
      ...few,
      "shutdown",
    ]);
  });

  withValgrind("memcheck reports nothing without what only Linux has", async () => {
    const build = join(BUILD, "portable");
    const programs = join(build, "test");
    make("all", "test-programs");
    make("-j2", `BUILD=${build}`, "PORTABLE=1", "all", "test-programs");
    await succeed(
      [...valgrind, join(programs, "fake_guest"), "callback", "50", ...few],
      [...valgrind, join(programs, "suite"), ...few, "shutdown"],
      [
        ...valgrind,
        join(programs, "process"),
        join(PROGRAMS, "fake_sidecar"),
        "no_stdio",
      ],
    );
  });
});

describe("libFuzzer", () => {
  const SECONDS = 60;
  /** True if clang is installed with libFuzzer, which is a separate package. */
  const hasFuzzer = (): boolean => {
    if (missing !== undefined || !hasProgram("clang")) return false;
    const folder = mkdtempSync(join(tmpdir(), "plue-fuzzer-"));
    const source = join(folder, "empty.c");
    writeFileSync(source, "int LLVMFuzzerTestOneInput(void) { return 0; }\n");
    const command = ["-fsanitize=fuzzer,address", source, "-o", join(folder, "empty")];
    const { status } = spawnSync("clang", command);
    rmSync(folder, { recursive: true });
    return status === 0;
  };
  maybe(SOAK > 0 && hasFuzzer(), SOAK > 0 ? "there is no libFuzzer" : "long: npm run test:soak")(
    `finds nothing in ${SECONDS} seconds of what a tools side may send`,
    async () => {
      make("all", "build/test/fuzz");
      const limits = [`-max_total_time=${SECONDS}`, "-max_len=2000", "-timeout=20"];
      await succeed([join(PROGRAMS, "fuzz"), ...limits, "-artifact_prefix=/tmp/plue-"]);
    },
  );
});

describe("over a million calls", () => {
  const whenLong = maybe(
    SOAK > 0 && missing === undefined,
    missing ?? "long: npm run test:soak",
  );
  whenLong("no memory, descriptor or thread is lost", async () => {
    make("all", "test-programs");
    await succeed([join(PROGRAMS, "suite"), "leak:1000000:1024"]);
    await succeed([
      join(PROGRAMS, "fake_guest"),
      "callback",
      "2000",
      "leak:1000000:1024",
    ]);
  });
});
