import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import { describe } from "bun:test";
import * as native from "./support.ts";

const unbuilt = native.buildPrograms();
const noKoffi = native.installKoffi();
const lackOn = (runtime: string) => unbuilt ?? (runtime === "node" ? noKoffi : undefined);

const GUESTS = [
  { runtime: "bun", wake: "callback" },
  { runtime: "bun", wake: "fd" },
  { runtime: "deno", wake: "fd" },
  { runtime: "node", wake: "fd" },
] as const;

/** The path from which a bundle on Node imports koffi. */
const env = { NODE_PATH: join(native.ROOT, "test", "native", "node_modules") };

function scriptOn(runtime: string, name: string): readonly string[] {
  return [
    ...native.RUNTIMES[runtime] ?? [],
    join(native.BUNDLES, `${name}.mjs`),
    native.SUITE_LIBRARY,
  ];
}

function guest(
  runtime: string,
  wake: string,
  ...words: readonly string[]
): Promise<native.Outcome> {
  return native.run([...scriptOn(runtime, "guest"), `--wake=${wake}`, ...words], { env });
}

for (const { runtime, wake } of GUESTS) {
  const test = native.unless(lackOn(runtime));

  describe(`attachNative() on ${runtime}, woken by ${wake}`, () => {
    test("passes the host suite", async () => {
      const more = wake === "callback" ? native.MORE_PARTS : "";
      const parts = `${native.PARTS} stress:8:200:later ${more}`.trim().split(" ");
      const outcome = await guest(runtime, wake, ...parts);
      assertEquals(outcome.code, 0, native.outputOf(outcome));
      assertStringIncludes(outcome.stdout, `attached by ${wake}`);
      assertStringIncludes(outcome.stdout, "suite: ok");
      // The call must fail, because the runtime's own thread would wait for itself.
      assertStringIncludes(outcome.stdout, 'on the JavaScript thread: {"error":"would_deadlock"');
    });

    test("does not prevent the end of the process during calls", async () => {
      const outcome = await guest(runtime, wake, "--exit", "soak:8:600");
      assertEquals([outcome.code, outcome.stderr], [42, ""], native.outputOf(outcome));
    });

    test("can detach and attach again, any number of times, while calls run", async () => {
      const outcome = await guest(runtime, wake, "--cycle", `soak:2:${Math.max(native.SOAK, 1)}`);
      assertEquals(outcome.code, 0, native.outputOf(outcome));
      assertMatch(outcome.stdout, /attached ([2-9]|\d{2,}) times/, native.outputOf(outcome));
    });
  });
}

describe("attachNative()", () => {
  native.unless(unbuilt)(
    "serves from a worker while native code keeps the main thread",
    async () => {
      for (const wake of ["callback", "fd"]) {
        const command = [...scriptOn("bun", "worker_guest"), wake, "stress:4:500:later abort"];
        assertStringIncludes(await native.succeed(command), "suite: ok");
      }
    },
  );

  for (const runtime of Object.keys(native.RUNTIMES)) {
    native.unless(lackOn(runtime))(
      `says what is wrong on ${runtime}, and leaves nothing behind`,
      async () => {
        const printed = await native.succeed(scriptOn(runtime, "attach_errors"), { env });
        const lines = printed.trim().split("\n");
        const [wake = "", unknown = "", missingFile = "", twice = "", remote = "", ...end] = lines;
        assertStringIncludes(wake, "TypeError: Cannot attach to libplue: on ");
        assertStringIncludes(wake, 'not "pigeon"');
        assertStringIncludes(unknown, '"/dispatcher" is not one of its fields');
        assertStringIncludes(missingFile, "Error: ");
        assertStringIncludes(twice, "a runtime is attached already");
        assertStringIncludes(remote, "the library must be a file");
        assertEquals(end, ["attached again", "at the end"]);
      },
    );
  }
});
