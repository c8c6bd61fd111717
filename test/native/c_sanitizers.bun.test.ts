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
  buildVariant,
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

/** Parts of the suite for a sanitizer, which finds an error or a race however often it happens. */
const PARTS =
  "basic contract:call submit metadata:200 abort shared:10 race:100 stress:8:200:echo grace";
/** Those in which the way to wake a guest counts. */
const WAKES = "submit shared:5 race:50 stress:8:200:echo";
/** Tests of odd hosts in which threads meet. */
const RACES = "bad_starts grandchild refused start_race shutdown_race both_hostings fork_race " +
  "abort_of_start flood call_timeout unread_output bytes_in_flight withdrawn_call";
const TOOLS_IN_C = "contract questions blocks tools tools_restarts tools_shutdown " +
  "questions_restarts notices log_left submit_restarts";

function buildSanitized(sanitizer: string): string {
  make("-j2", "all", "test-programs");
  return buildVariant(sanitizer.replace(",", "-"), `SANITIZE=${sanitizer}`);
}

for (const sanitizer of ["thread", "address,undefined"]) {
  describe(`with -fsanitize=${sanitizer}`, () => {
    const prepare = (): string => buildSanitized(sanitizer);
    const lack = missing ??
      (hasSanitizer(sanitizer) ? undefined : `the compiler has no -fsanitize=${sanitizer} here`);
    const withSanitizer = maybe(lack === undefined, lack ?? "");

    withSanitizer("reports nothing", async () => {
      const programs = prepare();
      // AddressSanitizer takes what the C library does at the end of a cancelled thread for an error.
      const parts = sanitizer === "thread" ? `${PARTS} cancellation` : PARTS;
      const fakeGuest = join(programs, "fake_guest");
      const fakeSidecar = join(PROGRAMS, "fake_sidecar");
      await succeed(
        [fakeGuest, "callback", "300", ...parts.split(" "), "shutdown"],
        [join(programs, "suite"), ...parts.split(" "), "crash", "shutdown"],
        [join(programs, "edge"), fakeSidecar, ...RACES.split(" ")],
        [join(programs, "units")],
        [join(programs, "seam")],
        [join(programs, "fuzz"), "2000"],
        [fakeGuest, "socket", "300", ...WAKES.split(" ")],
        [join(programs, "process"), fakeSidecar, "no_stdio"],
      );
    });

    withSanitizer("reports nothing of tools in C, with the sidecar on Bun", async () => {
      const programs = prepare();
      const main = join(ROOT, "ffi", "sidecar", "main.ts");
      const env = {
        ...STRICT,
        PLUE_SIDECAR: program("sidecar-on-bun", `exec bun '${main}'`),
        PLUE_TOOLS: join(ROOT, "test", "native", "tools.ts"),
      };
      const command = [join(programs, "suite"), ...TOOLS_IN_C.split(" ")];
      const outcome = await run(command, { limitMs: LONG_LIMIT_MS, env });
      assertEquals(outcome.code, 0, said(outcome));
    });

    const whenLong = maybe(SOAK > 0 && lack === undefined, lack ?? "long: npm run test:soak");
    whenLong(`reports nothing in ${SOAK} seconds of everything`, async () => {
      const programs = prepare();
      await succeed([join(programs, "edge"), join(PROGRAMS, "fake_sidecar")]);
      await succeed([join(programs, "suite"), `soak:8:${SOAK}`]);
      await succeed([join(programs, "fake_guest"), "callback", "2000", `soak:8:${SOAK}`]);
    });
  });
}

describe("a host with ThreadSanitizer, and a library without it", () => {
  const lack = missing ??
    (hasSanitizer("thread") ? undefined : "the compiler has no -fsanitize=thread here");
  maybe(lack === undefined, lack ?? "")("runs, and nothing is reported", async () => {
    const objects = buildSanitized("thread");
    const folder = mkdtempSync(join(tmpdir(), "plue-thread-host-"));
    const link = async (name: string, ...parts: readonly string[]): Promise<string> => {
      const suite = ["suite", "suite_events", "contract", "check"];
      const host = join(folder, name);
      const built = await run([
        ...["cc", "-fsanitize=thread", "-pthread", "-o", host],
        ...[...parts, ...suite].map((part) => join(objects, `${part}.o`)),
        ...[`-L${BUILD}`, "-lplue", `-Wl,-rpath,${BUILD}`],
      ]);
      assertEquals(built.code, 0, said(built));
      return host;
    };
    const host = await link("suite", "suite_main");
    const guest = await link("fake_guest", "fake_guest", "fake_tools");
    const parts = PARTS.split(" ");
    await succeed([host, ...parts, "crash", "shutdown"], [guest, "callback", "300", ...parts]);
    rmSync(folder, { recursive: true });
  });
});

describe("under valgrind", () => {
  const lack = missing ?? (hasProgram("valgrind") ? undefined : "there is no valgrind");
  const withValgrind = maybe(lack === undefined, lack ?? "");
  const parts = "basic metadata:100 shared:2 grace race:30 stress:4:100:echo shutdown".split(" ");
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
    make("-j2", "all", "test-programs");
    // The guardian is a copy of the host there, whose memory is nobody's when it ends.
    const ofHost = [...valgrind, "--child-silent-after-fork=yes"];
    await succeed([...ofHost, join(PROGRAMS, "suite"), ...parts]);
  });

  withValgrind("memcheck reports nothing without what only Linux has", async () => {
    const programs = buildVariant("portable", "PORTABLE=1");
    await succeed(
      [...valgrind, join(programs, "suite"), "basic", "race:30", "stress:4:100:echo", "shutdown"],
      [...valgrind, join(programs, "process"), join(PROGRAMS, "fake_sidecar"), "no_stdio"],
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
      make("all", "build/test/libfuzzer");
      const limits = [`-max_total_time=${SECONDS}`, "-max_len=2000", "-timeout=20"];
      await succeed([join(PROGRAMS, "libfuzzer"), ...limits, "-artifact_prefix=/tmp/plue-"]);
    },
  );
});

describe("over a million calls", () => {
  const whenLong = maybe(SOAK > 0 && missing === undefined, missing ?? "long: npm run test:soak");
  whenLong("no memory, descriptor or thread is lost", async () => {
    make("all", "test-programs");
    await succeed([join(PROGRAMS, "suite"), "leak:1000000:1024"]);
    await succeed([join(PROGRAMS, "fake_guest"), "callback", "2000", "leak:1000000:1024"]);
  });
});
