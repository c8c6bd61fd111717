import process from "node:process";
import { join } from "node:path";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { gone, isAlive, testWorkspace } from "../testing.ts";

interface Run {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
}

describe("terminal-execute", () => {
  it("runs a program in the workspace with unchanged arguments", async () => {
    await using test = await testWorkspace({ "a b": "", "$HOME": "" });
    const run = await test.ok<Run>("terminal-execute", { command: "ls", args: ["a b", "$HOME"] });
    assertEquals(run, {
      exitCode: 0,
      signal: null,
      timedOut: false,
      stdout: "$HOME\na b\n",
      stderr: "",
      truncated: false,
    });
  });

  it("uses a shell only with the argument shell", async () => {
    await using test = await testWorkspace({ "a": "" });
    const plain = await test.ok<Run>("terminal-execute", { command: "echo", args: ["*; $(id)"] });
    assertEquals(plain.stdout, "*; $(id)\n");
    const script = { command: 'echo * "$1" | tr a-z A-Z', shell: true, args: ["it's"] };
    assertEquals((await test.ok<Run>("terminal-execute", script)).stdout, "A IT'S\n");
  });

  it("returns the exit code of a program that fails", async () => {
    await using test = await testWorkspace();
    const run = await test.ok<Run>("terminal-execute", {
      command: "echo no >&2; exit 7",
      shell: true,
    });
    assertEquals([run.exitCode, run.stderr], [7, "no\n"]);
  });

  it("starts in the folder of cwd", async () => {
    await using test = await testWorkspace({ "sub/a": "" });
    const run = await test.ok<Run>("terminal-execute", { command: "pwd", cwd: "sub" });
    assertEquals(run.stdout.trim(), join(test.folder.path, "sub"));
  });

  it("does not pass the server's environment to the program", async () => {
    process.env["PLUE_TEST_SECRET"] = "hidden";
    await using test = await testWorkspace();
    const run = await test.ok<Run>("terminal-execute", { command: "env" });
    delete process.env["PLUE_TEST_SECRET"];
    assertEquals(run.stdout.includes("hidden"), false);
    const names = run.stdout.trim().split("\n").map((line) => line.split("=")[0] ?? "").sort();
    const expected = ["HOME", "LANG", "PATH"];
    assertEquals(names.filter((name) => !expected.includes(name)), []);
  });

  it("passes the input to the program, and an empty input by default", async () => {
    await using test = await testWorkspace();
    const run = await test.ok<Run>("terminal-execute", { command: "cat", input: "line\n" });
    assertEquals(run.stdout, "line\n");
    assertEquals((await test.ok<Run>("terminal-execute", { command: "cat" })).stdout, "");
  });

  it("streams the output while the program runs", async () => {
    await using test = await testWorkspace();
    // The program waits for a file that is written only after its first line has been seen.
    const script = "echo first; while [ ! -e go ]; do sleep 0.01; done; echo second >&2";
    const seen: unknown[] = [];
    for await (const event of test.stream("terminal-execute", { command: script, shell: true })) {
      if (event.type === "output") seen.push(event.value);
      if (seen.length === 1) await test.folder.fill({ go: "" });
    }
    assertEquals(seen, [
      { stream: "stdout", text: "first\n" },
      { stream: "stderr", text: "second\n" },
    ]);
  });

  it("joins characters that arrive in pieces", async () => {
    await using test = await testWorkspace();
    const script = String
      .raw`printf '\303'; sleep 0.02; printf '\244\360\237'; sleep 0.02; printf '\230\200'`;
    const texts: string[] = [];
    for await (const event of test.stream("terminal-execute", { command: script, shell: true })) {
      if (event.type === "output") texts.push((event.value as { readonly text: string }).text);
    }
    assertEquals(texts.join(""), "ä😀");
    assertEquals(texts.some((text) => text.includes("\ufffd")), false);
  });

  it("keeps the beginning and the end of a long output", async () => {
    await using test = await testWorkspace();
    const run = await test.ok<Run>("terminal-execute", {
      command: "echo begin; seq 1 100000; echo end",
      shell: true,
    });
    assertEquals(run.truncated, true);
    assertEquals([run.stdout.startsWith("begin\n1\n2\n"), run.stdout.endsWith("100000\nend\n")], [
      true,
      true,
    ]);
    assertStringIncludes(run.stdout, "characters omitted");
    assert(run.stdout.length < 64_100);
  });

  for (const how of ["the call is aborted", "the consumer stops early"]) {
    it(`stops the command with its children when ${how}`, async () => {
      await using test = await testWorkspace();
      const controller = new AbortController();
      const script = "sleep 1000 & (sleep 1000 & echo $! $$; wait) & wait";
      const events = test.stream("terminal-execute", { command: script, shell: true }, {
        signal: controller.signal,
      })[Symbol.asyncIterator]();
      const { value: first } = await events.next();
      assert(first?.type === "output");
      const { text } = first.value as { readonly text: string };
      const pids = text.trim().split(" ").map(Number);
      assertEquals(pids.map(isAlive), [true, true]);
      if (how === "the call is aborted") {
        controller.abort();
        const { value } = await events.next();
        assert(value?.type === "result" && !value.result.ok);
        assertEquals([value.result.error.code, value.result.error.acknowledged], ["aborted", true]);
      } else await events.return?.();
      // Disposal waits for the running calls.
      await test.registry.dispose();
      await gone(pids);
    });
  }

  it("stops the command after timeoutMs and returns its output", async () => {
    await using test = await testWorkspace();
    const run = await test.ok<Run>("terminal-execute", {
      command: "echo $$; sleep 1000",
      shell: true,
      timeoutMs: 1_000,
    });
    assertEquals([run.timedOut, run.exitCode], [true, null]);
    await gone([Number(run.stdout)]);
  });

  it("is unavailable where there is no terminal", async () => {
    await using test = await testWorkspace({}, { terminal: false });
    assertEquals((await test.fails("terminal-execute", { command: "ls" })).code, "unavailable");
    assertEquals(
      test.registry.getAvailableTools().some(({ id }) => id === "terminal-execute"),
      false,
    );
    const context = test.registry.select({ context: { hasTerminal: false } });
    assertEquals(context.has("terminal-execute"), false);
  });
});
