import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import process from "node:process";
import { describe } from "bun:test";
import { maybe } from "../support/skip.ts";
import {
  buildPrograms,
  installKoffi,
  ROOT,
  run,
  RUNTIMES,
  said,
  SUITE_LIBRARY,
} from "./support.ts";

const unbuilt = buildPrograms();
const noKoffi = installKoffi();
/** The duration of the long tests, in seconds: `npm run test:soak` sets it. */
const SOAK = Number(process.env["PLUE_SOAK"] ?? 0);

const GUEST = join(ROOT, "test", "native", "guest.ts");

/** The programs of a guest, in sizes that take about a second. */
const PARTS =
  "basic contract submit tools questions blocks notices big streaming abort shared:20 metadata:20000 race:100 " +
  `stress:8:${SOAK > 0 ? 20_000 : 1_500}:echo stress:8:500:later cancellation`;

const GUESTS = [
  { runtime: "bun", wake: "callback" },
  { runtime: "bun", wake: "fd" },
  { runtime: "deno", wake: "fd" },
  { runtime: "node", wake: "fd" },
] as const;

function guest(runtime: string, ...words: readonly string[]) {
  return run([...RUNTIMES[runtime] ?? [], GUEST, SUITE_LIBRARY, ...words]);
}

for (const { runtime, wake } of GUESTS) {
  const missing = unbuilt ?? (runtime === "node" ? noKoffi : undefined);
  const withGuest = maybe(missing === undefined, missing ?? "");

  describe(`attachNative() on ${runtime}, woken by ${wake}`, () => {
    withGuest("passes the host suite", async () => {
      const outcome = await guest(
        runtime,
        `--wake=${wake}`,
        ...PARTS.split(" "),
      );
      assertEquals(outcome.code, 0, said(outcome));
      assertStringIncludes(outcome.stdout, `attached by ${wake}`);
      assertStringIncludes(outcome.stdout, "suite: ok");
      // The runtime's own thread would wait for itself.
      assertStringIncludes(outcome.stdout, 'on the JavaScript thread: {"error":"would_deadlock"');
    });
  });
}

describe("attachNative()", () => {
  maybe(unbuilt === undefined, unbuilt ?? "")(
    "lets the process end in the middle of calls, on every runtime",
    async () => {
      for (const { runtime, wake } of GUESTS) {
        if (runtime === "node" && noKoffi !== undefined) continue;
        const outcome = await guest(
          runtime,
          `--wake=${wake}`,
          "--exit",
          "soak:8:600",
        );
        assertEquals([outcome.code, outcome.stderr], [42, ""], said(outcome));
      }
    },
  );

  maybe(unbuilt === undefined, unbuilt ?? "")(
    "serves from a worker while native code keeps the main thread",
    async () => {
      const script = join(ROOT, "test", "native", "worker_guest.ts");
      for (const wake of ["callback", "fd"]) {
        const outcome = await run(["bun", script, SUITE_LIBRARY, wake, "stress:4:500:later abort"]);
        assertEquals(outcome.code, 0, said(outcome));
        assertStringIncludes(outcome.stdout, "suite: ok");
      }
    },
  );

  maybe(unbuilt === undefined, unbuilt ?? "")(
    "can detach and attach again, any number of times, while calls run, on every runtime",
    async () => {
      const part = SOAK > 0 ? `soak:8:${SOAK}` : "soak:4:1";
      await Promise.all(GUESTS.map(async ({ runtime, wake }) => {
        if (runtime === "node" && noKoffi !== undefined) return;
        const outcome = await guest(runtime, `--wake=${wake}`, "--cycle", part);
        assertEquals(outcome.code, 0, said(outcome));
        assertMatch(outcome.stdout, /attached ([2-9]|\d{2,}) times/, said(outcome));
      }));
    },
  );

  maybe(unbuilt === undefined, unbuilt ?? "")(
    "lets callers go when the grace period ends, whatever their tool does, on every runtime",
    async () => {
      // Together: they only wait.
      await Promise.all(GUESTS.map(async ({ runtime, wake }) => {
        if (runtime === "node" && noKoffi !== undefined) return;
        const outcome = await guest(runtime, `--wake=${wake}`, "grace");
        assertEquals(outcome.code, 0, said(outcome));
      }));
    },
  );

  for (const runtime of ["bun", "deno", "node"] as const) {
    const missing = unbuilt ?? (runtime === "node" ? noKoffi : undefined);
    maybe(missing === undefined, missing ?? "")(
      `says what is wrong on ${runtime}, and leaves nothing behind`,
      async () => {
        const script = join(ROOT, "test", "native", "attach_errors.ts");
        const outcome = await run([
          ...RUNTIMES[runtime] ?? [],
          script,
          SUITE_LIBRARY,
        ]);
        const lines = outcome.stdout.trim().split("\n");
        assertEquals(lines.length, 6, said(outcome));
        const [wake = "", missingFile = "", twice = "", remote = "", ...end] = lines;
        assertStringIncludes(wake, "TypeError: Cannot attach to libplue: the wake of");
        assertStringIncludes(wake, 'not "pigeon"');
        assertStringIncludes(missingFile, "Error: ");
        assertStringIncludes(twice, "a runtime is attached already");
        assertStringIncludes(remote, "the library must be a file");
        assertEquals(end, ["attached again", "at the end"]);
        assertEquals(outcome.code, 0, said(outcome));
      },
    );
  }
});
