import process from "node:process";
import { assertEquals, assertRejects } from "@std/assert";
import { describe, it } from "bun:test";
import { Refusal } from "../../../examples/workspace/refusal.ts";
import {
  collectProcess,
  type ProcessOptions,
  runProcess,
} from "../../../examples/workspace/run_process.ts";
import { gone, temporaryFolder } from "./testing.ts";

const env = { PATH: process.env["PATH"] ?? "" };

function shell(script: string, more: Partial<ProcessOptions> = {}): ProcessOptions {
  return {
    command: "sh",
    args: ["-c", script],
    cwd: "/",
    env,
    signal: new AbortController().signal,
    ...more,
  };
}

/** Runs until the script has printed a line, and returns the line and the generator. */
async function firstLine(options: ProcessOptions) {
  const output = runProcess(options);
  const { value } = await output.next();
  if (value === undefined || !("data" in value)) throw new Error("Cannot go on: there is no line");
  return { output, line: new TextDecoder().decode(value.data).trim() };
}

describe("runProcess()", () => {
  it("passes arguments unchanged, without a shell", async () => {
    const args = ["%s|", "a b", "$HOME", "; rm -rf /", "*", ""];
    const done = await collectProcess({ ...shell(""), command: "printf", args, maxBytes: 100 });
    assertEquals(done.stdout, "a b|$HOME|; rm -rf /|*||");
  });

  it("rejects a command that does not exist or is not executable", async () => {
    await using folder = await temporaryFolder({ "plain.txt": "text" });
    const run = (command: string) => collectProcess({ ...shell(""), command, maxBytes: 10 });
    const missing = await assertRejects(() => run("no-such-command-here"), Refusal);
    assertEquals(missing.message, 'Cannot run "no-such-command-here": there is no such command');
    await assertRejects(() => run(`${folder.path}/plain.txt`), Refusal, "not executable");
  });

  it("names the signal that ended the program", async () => {
    const done = await collectProcess({ ...shell("kill -KILL $$"), maxBytes: 10 });
    assertEquals([done.exitCode, done.signal], [null, "SIGKILL"]);
  });

  it("keeps at most maxBytes of the output", async () => {
    const done = await collectProcess({ ...shell("head -c 3000000 /dev/zero"), maxBytes: 1000 });
    assertEquals([done.stdout.length, done.isCut, done.exitCode], [1000, true, 0]);
  });

  it("pauses the program for a slow consumer and loses no output", async () => {
    await using folder = await temporaryFolder();
    // The file is written only when all output has been taken.
    const output = runProcess(
      shell("head -c 8000000 /dev/zero; echo done > mark", { cwd: folder.path }),
    );
    let size = 0;
    for await (const chunk of output) {
      if (size === 0) {
        await new Promise((resolve) => setImmediate(resolve));
        assertEquals(await folder.list(), []);
      }
      size += chunk.data.length;
    }
    assertEquals([size, await folder.list()], [8_000_000, ["mark"]]);
  });

  it("kills a group that does not stop after SIGTERM", async () => {
    const controller = new AbortController();
    const { output, line } = await firstLine(
      shell("trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! $$; wait; wait", {
        signal: controller.signal,
      }),
    );
    controller.abort(new Error("enough"));
    await assertRejects(() => output.next(), Error, "enough");
    await gone(line.split(" ").map(Number));
  });

  it("kills the background processes of a program that has ended", async () => {
    const done = await collectProcess({ ...shell("sleep 1000 & echo $!"), maxBytes: 100 });
    assertEquals(done.exitCode, 0);
    await gone([Number(done.stdout)]);
  });

  it("does not start when the call is aborted already", async () => {
    await using folder = await temporaryFolder();
    const signal = AbortSignal.abort(new Error("too late"));
    const output = runProcess(shell("touch started", { signal, cwd: folder.path }));
    await assertRejects(() => output.next(), Error, "too late");
    assertEquals(await folder.list(), []);
  });
});
