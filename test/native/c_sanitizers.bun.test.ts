// The C half under the sanitizers and valgrind, with a tools side in C.

import { beforeAll, describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { join } from "node:path";
import {
  BUILD,
  buildPrograms,
  buildVariant,
  lackOf,
  lackOfSanitizer,
  LONG_LIMIT_MS,
  make,
  outputOf,
  PROGRAMS,
  run,
  sidecarOn,
  SOAK,
  succeed as succeedAlone,
  temporaryFolder,
  TOOLS,
  unless,
  WITH_FAKE,
} from "./support.ts";

const folder = temporaryFolder("sanitizers");
const FAKE_SIDECAR = WITH_FAKE.PLUE_SIDECAR;
const whenLong = (lack: string | undefined) => SOAK > 0 ? lack : "long: npm run test:soak";

const STRICT = {
  TSAN_OPTIONS: "halt_on_error=1",
  UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
};

/** Runs programs that must succeed. They run concurrently, because they mostly wait. */
async function succeed(...commands: readonly (readonly string[])[]): Promise<void> {
  const options = { env: { ...STRICT, ...WITH_FAKE }, limitMs: LONG_LIMIT_MS };
  const outcomes = await Promise.all(commands.map((command) => run(command, options)));
  const failed = outcomes.map((outcome, at) => `${commands[at]?.join(" ")}: ${outputOf(outcome)}`)
    .filter((_, at) => outcomes[at]?.code !== 0);
  assertEquals(failed.length, 0, failed.join("\n"));
}

/** Parts of the suite for sanitizers, which report an error or a race even if it happens rarely. */
const PARTS =
  "basic contract:call submit metadata:200 abort shared:4 race:50 stress:8:200:echo grace";
/** Parts that show whether ThreadSanitizer in a host sees how the library orders its threads. */
const ORDERED = "basic submit metadata:200 shared:4 race:50 stress:8:200:echo";
/** Parts whose behaviour depends on the way to wake a guest. */
const WAKES = "submit shared:2 race:30 stress:8:100:echo";
/** Tests of unusual hosts, in which threads race. */
const RACES = "bad_starts grandchild refused start_race shutdown_race both_hostings " +
  "abort_of_start flood call_timeout unread_output bytes_in_flight withdrawn_call";
/** Unit tests in which several threads take part. */
const SEAMS = "listing stream registration_race refused_removal end_while_told last_event " +
  "endless_stream tool_beside_stream mutual_replacement";
const UNITS = "crowded_outbox signal_references crowd_of_signal signals_without_lock fork";
const TOOLS_IN_C = "contract questions tools tools_restarts tools_shutdown " +
  "questions_restarts notices taking_back log_left submit_restarts";

function words(parts: string): string[] {
  return parts.split(" ");
}

beforeAll(() => void buildPrograms());

for (const sanitizer of ["thread", "address,undefined"]) {
  describe(`with -fsanitize=${sanitizer}`, () => {
    const lack = lackOfSanitizer(sanitizer);
    let programs = "";
    beforeAll(() => {
      if (lack !== undefined) return;
      programs = buildVariant(sanitizer.replace(",", "-"), `SANITIZE=${sanitizer}`);
    });
    const program = (name: string): string => join(programs, name);

    unless(lack)("reports nothing", async () => {
      // AddressSanitizer reports an error in the C library itself when a cancelled thread ends.
      const parts = sanitizer === "thread" ? `${PARTS} cancellation` : PARTS;
      const only = (tests: string) => sanitizer === "thread" ? words(tests) : [];
      // ThreadSanitizer's own malloc() may stay locked in a child of fork().
      const races = sanitizer === "thread" ? RACES : `${RACES} fork_race`;
      await succeed(
        [program("fake_guest"), "callback", "300", ...words(parts), "shutdown"],
        [program("suite"), ...words(parts), "crash", "shutdown"],
        [program("edge"), FAKE_SIDECAR, ...words(races)],
        [program("units"), ...only(UNITS)],
        [program("seam"), ...only(SEAMS)],
        [program("fuzz"), sanitizer === "thread" ? "150" : "1000"],
        [program("fake_guest"), "socket", "300", ...words(WAKES)],
        [program("process"), FAKE_SIDECAR, "no_stdio"],
      );
    });

    unless(lack)("reports nothing of tools in C, with the sidecar on Bun", async () => {
      const env = { ...STRICT, PLUE_SIDECAR: sidecarOn("bun", folder), PLUE_TOOLS: TOOLS };
      await succeedAlone([program("suite"), ...words(TOOLS_IN_C)], { env });
    });

    unless(whenLong(lack))(`reports nothing in ${SOAK} seconds of everything`, async () => {
      await succeed([program("edge"), FAKE_SIDECAR]);
      await succeed([program("suite"), `soak:8:${SOAK}`]);
      await succeed([program("fake_guest"), "callback", "2000", `soak:8:${SOAK}`]);
    });

    if (sanitizer !== "thread") return;
    unless(lack)("reports nothing of a host with it, and a library without it", async () => {
      const link = async (library: readonly string[], ...parts: string[]): Promise<string> => {
        const objects = [...parts, "suite", "suite_events", "contract", "check"];
        const host = join(folder, `of-${parts[0]}`);
        await succeedAlone([
          ...["cc", "-fsanitize=thread", "-pthread", "-o", host],
          ...objects.map((part) => program(`${part}.o`)),
          ...library,
        ]);
        return host;
      };
      const shared = [`-L${BUILD}`, "-lplue", `-Wl,-rpath,${BUILD}`];
      const host = await link(shared, "suite_main");
      const guest = await link([join(BUILD, "libplue.a")], "fake_guest", "fake_tools");
      const parts = words(ORDERED);
      await succeed([host, ...parts, "crash", "shutdown"], [guest, "callback", "300", ...parts]);
    });
  });
}

describe("under valgrind", () => {
  const withValgrind = unless(lackOf("valgrind"));
  const valgrind = [
    "valgrind",
    "-q",
    // One thread runs at a time, and a busy one would keep the others out for long.
    "--fair-sched=yes",
    "--error-exitcode=9",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,possible",
  ];
  withValgrind("memcheck reports nothing for a host with the published library", async () => {
    const parts = words("basic metadata:100 shared:1 race:20 stress:4:50:echo shutdown");
    // In valgrind the guardian is a copy of the host, and does not free the host's memory.
    const ofHost = [...valgrind, "--child-silent-after-fork=yes"];
    await succeed([...ofHost, join(PROGRAMS, "suite"), ...parts]);
  });

  withValgrind("memcheck reports nothing without the parts for Linux only", async () => {
    const programs = buildVariant("portable", "PORTABLE=1");
    await succeed(
      [...valgrind, join(programs, "suite"), ...words("basic race:10 stress:4:50:echo shutdown")],
      [...valgrind, join(programs, "process"), FAKE_SIDECAR, "no_stdio"],
    );
  });
});

describe("libFuzzer", () => {
  const SECONDS = 60;
  const source = "int LLVMFuzzerTestOneInput(void) { return 0; }\n";
  // It is a separate package of clang.
  const lack = SOAK > 0 ? lackOfSanitizer("fuzzer,address", "clang", source) : undefined;
  unless(whenLong(lack))(
    `finds nothing in ${SECONDS} seconds of what a tools side may send`,
    async () => {
      make("all", "build/test/libfuzzer");
      const limits = [`-max_total_time=${SECONDS}`, "-max_len=2000", "-timeout=20"];
      await succeed([join(PROGRAMS, "libfuzzer"), ...limits, "-artifact_prefix=/tmp/plue-"]);
    },
  );
});

describe("over a million calls", () => {
  unless(whenLong(lackOf()))("no memory, descriptor or thread is lost", async () => {
    await succeed([join(PROGRAMS, "suite"), "leak:1000000:1024"]);
    await succeed([join(PROGRAMS, "fake_guest"), "callback", "2000", "leak:1000000:1024"]);
  });
});
