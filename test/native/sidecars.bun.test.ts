import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "bun:test";
import * as native from "./support.ts";
import { outputOf, ROOT, run, TOOLS } from "./support.ts";

const folder = native.temporaryFolder("sidecar");

const MAIN = join(native.BUNDLES, "main.mjs");
const MODULES = join(ROOT, "test", "native", "modules");
const HOST = join(folder, "host");

const unbuilt = native.buildPrograms();
const withLibrary = native.unless(unbuilt);
if (unbuilt === undefined) {
  const source = join(ROOT, "test", "native", "host.c");
  const link = [`-L${native.BUILD}`, "-lplue", `-Wl,-rpath,${native.BUILD}`];
  await native.succeed(["cc", `-I${join(ROOT, "ffi", "include")}`, source, "-o", HOST, ...link]);
}

const SIDECARS = Object.keys(native.RUNTIMES).map((name) => ({
  name,
  file: native.sidecarOn(name, folder),
}));
const onBun = join(folder, "main-on-bun");

/** `large_arguments` comes first, because earlier parts would raise the sidecar's peak memory. */
const PARTS_OF_SIDECAR = `large_arguments ${native.PARTS} log`;
/** Parts that test only the library, and need many starts. */
const RESTARTS = "taking_back submit_restarts tools_restarts questions_restarts crash shutdown";

async function passSuite(sidecar: string, parts: string): Promise<void> {
  const env = { PLUE_SIDECAR: sidecar, PLUE_TOOLS: TOOLS };
  const config = JSON.stringify({ role: "user" });
  const command = [join(native.PROGRAMS, "suite"), "--config", config, ...parts.split(" ")];
  assertStringIncludes(await native.succeed(command, { env }), "suite: ok");
}

/** The output of a host, line by line. */
async function host(
  tools: string,
  config: unknown,
  calls: readonly string[] = [],
  sidecar: string = onBun,
): Promise<{ readonly lines: readonly string[]; readonly stderr: string }> {
  const env = { PLUE_SIDECAR: sidecar, PLUE_TOOLS: tools };
  const outcome = await run([HOST, JSON.stringify(config), ...calls], { env });
  assertEquals(outcome.code, 0, outputOf(outcome));
  return { lines: outcome.stdout.trim().split("\n"), stderr: outcome.stderr };
}

for (const { name, file } of SIDECARS) {
  describe(`the sidecar on ${name}`, () => {
    withLibrary("passes the host suite", () => {
      const more = name === "bun" ? ` ${native.MORE_PARTS} ${RESTARTS}` : "";
      return passSuite(file, PARTS_OF_SIDECAR + more);
    });
  });
}

describe("the sidecar", () => {
  withLibrary("passes the host's configuration to the tools", async () => {
    const config = { config: { greet: { word: "ciao" } } };
    const { lines } = await host(TOOLS, config, ["greet", "{}"]);
    assertEquals(lines.at(-1), 'greet {"word":"ciao"}');
  });

  withLibrary("separates the tools' output from the host's output, on every runtime", async () => {
    for (const { file } of SIDECARS) {
      const { lines, stderr } = await host(
        join(native.BUNDLES, "loud.mjs"),
        {},
        ["shout", "{}"],
        file,
      );
      assertEquals(lines.slice(1), ['shout "quiet"']);
      assertStringIncludes(stderr, "loud: loading");
      assertStringIncludes(stderr, "loud: running");
    }
  });

  withLibrary("survives an unhandled rejection, on every runtime", async () => {
    for (const { name, file } of SIDECARS) {
      const calls = ["now", "{}", "later", "{}", "count", "{}"];
      const { lines, stderr } = await host(join(native.BUNDLES, "stray.mjs"), {}, calls, file);
      const [now, later, count] = lines.slice(1).map((line) => line.replace(/^\w+ /, ""));
      assertMatch(now ?? "", /^\d+$/, name);
      assertEquals([later, count], [now, now], name);
      for (const stray of ["a stray, now", "a stray, later"]) {
        assertStringIncludes(stderr, stray);
      }
      assertStringIncludes(stderr, "plue-sidecar: unhandled rejection of a promise:");
    }
  });

  withLibrary(
    "reports an uncaught exception in a line, on every runtime",
    async () => {
      for (const { name, file } of SIDECARS) {
        const calls = ["whisper", "{}", "late", "{}"];
        const { lines, stderr } = await host(join(MODULES, "late.ts"), {}, calls, file);
        const failure = JSON.parse(lines.at(-1)?.replace("late ", "") ?? "");
        assertEquals(failure.error, "runtime_crashed", name);
        assertMatch(
          failure.message,
          /^The tool process ended: TypeError: late boom \(late\.ts:18:\d+\)$/,
        );
        for (const text of ["a secret of another call", "late boom"]) {
          assertStringIncludes(stderr, text);
        }
      }
    },
  );

  withLibrary("prints the lines of the log that the host has not received", async () => {
    const env = { PLUE_SIDECAR: onBun, PLUE_TOOLS: TOOLS };
    const outcome = await run([join(native.PROGRAMS, "suite"), "log_left"], { env });
    assertEquals(outcome.code, 0, outputOf(outcome));
    const lines = outcome.stderr.split("\n");
    const left = ["left two", "left three", "shut down one", "shut down two"];
    assertEquals(left.filter((line) => !lines.includes(line)), [], outcome.stderr);
  });

  withLibrary("runs the tools of the example workspace", async () => {
    const workspace = mkdtempSync(join(folder, "workspace-"));
    const module = join(ROOT, "examples", "workspace", "mod.ts");
    const env = { PLUE_SIDECAR: onBun, PLUE_TOOLS: module, PLUE_WORKSPACE: workspace };
    const write = JSON.stringify({ path: "note.txt", content: "by the host" });
    const outcome = await run([HOST, "{}", "file-write", write], { env });
    assertMatch(outcome.stdout, /^file-write \{(?!"error")/m, outputOf(outcome));
    assertEquals(readFileSync(join(workspace, "note.txt"), "utf8"), "by the host");
  });

  for (const [name, command] of Object.entries(native.RUNTIMES)) {
    it(`rejects a start by hand on ${name}`, async () => {
      const outcome = await run([...command, MAIN]);
      assertEquals([outcome.code, outcome.stdout], [2, ""], outputOf(outcome));
      assertStringIncludes(outcome.stderr, "only libplue can start it");
    });
  }
});

describe("a sidecar without permissions", () => {
  it("names the missing one, without the message about a start by hand", async () => {
    const [deno = "", ...flags] = native.RUNTIMES["deno"] ?? [];
    const fewer = flags.map((flag) => flag === "--allow-all" ? "--no-prompt" : flag);
    const outcome = await run([deno, ...fewer, MAIN]);
    assertEquals([outcome.code, outcome.stdout], [2, ""], outputOf(outcome));
    assertMatch(outcome.stderr, /^Cannot run the sidecar: Requires .+--allow/m);
  });
});

describe("a compiled sidecar", () => {
  withLibrary("passes the host suite, with tools of the module that the host names", async () => {
    await native.succeed(["node", join(ROOT, "scripts", "build_native.mjs"), "--sidecar"]);
    // The compiled sidecar runs the same code as Bun. This test checks that it contains all of it.
    const parts = "basic contract tools questions log abort crash";
    await passSuite(join(native.BUILD, "plue-sidecar"), parts);
  });

  withLibrary("is found next to the library, even as a script for Bun", async () => {
    const output = await native.succeed([HOST, "{}", "echo", '{"a":1}'], {
      env: { PLUE_TOOLS: TOOLS },
    });
    assertStringIncludes(output, 'echo {"a":1}');
    for (const { name } of SIDECARS) {
      const script = native.program(join(folder, `script-${name}`), [
        ...native.RUNTIMES[name] ?? [],
        join(native.BUILD, "plue-sidecar.js"),
      ]);
      const { lines } = await host(TOOLS, {}, ["echo", '{"a":2}'], script);
      assertEquals(lines.at(-1), 'echo {"a":2}');
    }
  });
});
