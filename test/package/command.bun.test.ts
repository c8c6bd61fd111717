// The published command as a process on every runtime.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { beforeAll, describe } from "bun:test";
import { type Program, startProgram } from "../support/program.ts";
import { importMcpServer } from "../../src/adapters/mcp/mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../src/adapters/typebox/mod.ts";
import { createCommand } from "./app.ts";
import { maybe } from "../support/skip.ts";
import { folder as temporaryFolder, openTerminal } from "../cli/support.ts";

const folder = temporaryFolder().path;
const COMMAND = createCommand("process");
const NOISY = join(folder, "noisy.mjs");
const TOOLS = join(import.meta.dirname, "../cli/tools.mjs");

beforeAll(() => {
  writeFileSync(
    NOISY,
    `console.log("loading");
    export const tool = { name: "noisy", description: "Logs what it does.", execute() {
      console.log("running");
      return { answer: 42 };
    } };`,
  );
});

/** The Node that runs npm is the oldest supported version. */
const npmNode = process.env["npm_node_execpath"];

const RUNTIMES: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ["Bun", "bun"],
  ["Deno", "deno", "run", "--allow-all"],
  ["Node 24", "node"],
  ["the Node that runs npm", npmNode ?? ""],
];

const CTRL_C = "\x03";

for (const [name, command, ...args] of RUNTIMES) {
  const isThere = command !== "" && spawnSync(command, ["--version"]).status === 0;
  const test = maybe(isThere, `${name} is not here`);
  const testFullDisk = existsSync("/dev/full") ? test : maybe(false, "/dev/full is not here");
  const start = (...words: readonly string[]): Program =>
    startProgram(command, [...args, COMMAND, ...words], {}, folder);

  describe(`plue on ${name}`, () => {
    test("prints results on standard output, and logs of tools on standard error", async () => {
      await using program = start("call", "-f", NOISY, "noisy");
      assertEquals(await program.ended, { code: 0, signal: null });
      assertEquals(JSON.parse(program.output.stdout), { answer: 42 });
      assertEquals(program.output.stderr, "loading\nrunning\n");
    });

    test("aborts its call when it is interrupted", async () => {
      await using program = start("call", "-f", TOOLS, "wait");
      await program.printed(/waiting/);
      program.child.kill("SIGINT");
      assertEquals(await program.ended, { code: 130, signal: null });
      assertStringIncludes(program.output.stderr, "aborted: ");
    });

    test("ends when its reader closes the pipe", async () => {
      const words = [command, ...args, COMMAND, "list", TOOLS].map((word) => `'${word}'`);
      await using shell = startProgram("sh", ["-c", `${words.join(" ")} | head -n 1`]);
      await shell.ended;
      assertMatch(shell.output.stdout, /^TOOL +RISK/);
      assertEquals(shell.output.stderr, "");
    });

    testFullDisk("says that it cannot write its result", async () => {
      const words = [command, ...args, COMMAND, "list", TOOLS].map((word) => `'${word}'`);
      await using shell = startProgram("sh", ["-c", `exec ${words.join(" ")} > /dev/full`]);
      assertEquals(await shell.ended, { code: 1, signal: null });
      assertEquals(shell.output.stderr, "Cannot write the result: no space left on device\n");
    });

    test("serves MCP on standard input and output", async () => {
      const registry = new ToolRegistry();
      await using _server = await importMcpServer(
        { command, args: [...args, COMMAND, "serve", TOOLS, NOISY, "--stdio"], stderr: "ignore" },
        { namespace: "far", registry },
      );
      assertEquals(registry.ids, ["far:count", "far:fail", "far:noisy", "far:search", "far:wait"]);
      const steps: number[] = [];
      const dispatcher = new ToolDispatcher(registry);
      const counted = await dispatcher.dispatch({ name: "far:count", arguments: { to: 3 } }, {
        progress: ({ done }) => void steps.push(done),
      });
      assertEquals([counted.ok && counted.content, steps], ["done", [1, 2, 3]]);
      const noisy = await dispatcher.dispatch({ name: "far:noisy" });
      assertEquals(noisy.ok && noisy.content, { answer: 42 });
      const controller = new AbortController();
      const waited = await dispatcher.dispatch({ name: "far:wait" }, {
        signal: controller.signal,
        progress: () => controller.abort(),
      });
      assertEquals(waited.ok ? "ok" : waited.error.code, "aborted");
    });

    test("reloads its tools when a file changes, and retains them if that fails", async () => {
      const file = join(folder, `served-${name.replaceAll(" ", "-")}.mjs`);
      const part = `${file}.part.mjs`;
      writeFileSync(part, 'export const description = "The first description.";');
      writeFileSync(
        file,
        `import { description } from ${JSON.stringify(`./${part.split("/").at(-1)}`)};
        export const tool = { name: "tool", description, risk: "safe", execute: () => "x" };`,
      );
      await using program = start("serve", file, "--port", "0");
      const [, url = ""] = await program.printed(/ on (http:\S+)\n[^]*mcpServers/);
      const described = async (): Promise<string> =>
        (await (await fetch(`${url}/tools/tool`)).json()).description;
      assertEquals(await described(), "The first description.");
      writeFileSync(part, 'export const description = "The second description.";');
      await program.printed(/Loaded again: 1 of 1 tool\n/);
      await untilServed(url);
      assertEquals(await described(), "The second description.");
      writeFileSync(part, "export const description = ;");
      await program.printed(/The changed tools could not be loaded/);
      assertEquals(await described(), "The second description.");
      program.child.kill("SIGTERM");
      assertEquals(await program.ended, { code: 0, signal: null });
    });

    test("stops serving when it is killed", async () => {
      await using program = start("serve", TOOLS, "--port", "0");
      const [, url = ""] = await program.printed(/ on (http:\S+)\n[^]*mcpServers/);
      const call = fetch(`${url}/tools/wait/execute`, { method: "POST", body: "{}" })
        .then(() => "answered", () => "closed");
      await program.printed(/mcpServers/);
      program.child.kill("SIGKILL");
      // The pipes are closed only after the serving process has ended, too.
      await program.ended;
      await call;
      assertEquals(await fetch(url).then(() => "there", () => "gone"), "gone");
    });

    test("shows prompts on a terminal, even if its width is unknown", async () => {
      await using terminal = openTerminal([
        ...["sh", "-c", 'stty cols 0 && exec "$@"', "sh"],
        ...[command, ...args, COMMAND, "call", "-f", TOOLS, "launch"],
      ]);
      await terminal.shown(/Run the tool "launch"\?[^]*Risk high, with \{\}[^]*No/);
      terminal.type("y");
      assertEquals(await terminal.ended, 0);
      assertMatch(terminal.text(), /launched\r\n$/);
    });

    test("ends at Ctrl-C, at a question and during a call", async () => {
      const call = (tool: string) =>
        openTerminal([command, ...args, COMMAND, "call", "-f", TOOLS, tool], { NO_COLOR: "1" });
      const shown = { launch: /Run the tool "launch"[^]*No/, wait: /waiting/ };
      for (const [tool, text] of Object.entries(shown)) {
        await using terminal = call(tool);
        await terminal.shown(text);
        terminal.type(CTRL_C);
        assertEquals(await terminal.ended, 130);
      }
    });

    if (name !== "Node 24") return;
    test("makes a call through itself and the other runtimes for the doctor", async () => {
      await using program = start("doctor", "--json");
      await program.ended;
      const found = JSON.parse(program.output.stdout) as readonly {
        readonly part: string;
        readonly state: string;
        readonly detail: string;
      }[];
      assertEquals(
        found.slice(0, 4).map(({ part, state }) => `${part} ${state}`),
        ["plue works", "node works", "bun works", "deno works"],
      );
    });
  });
}

describe("plue on a Node without TypeScript", () => {
  const version = npmNode === undefined
    ? ""
    : spawnSync(npmNode, ["-v"], { encoding: "utf8" }).stdout;
  maybe(/^v(20|21)\./.test(version), "npm does not run on Node 20")(
    "says what reads a module in TypeScript",
    async () => {
      const file = join(folder, "typed.ts");
      writeFileSync(file, "export const tools: readonly object[] = [];");
      await using program = startProgram(npmNode ?? "", [COMMAND, "list", file]);
      assertEquals((await program.ended).code, 2);
      assertStringIncludes(
        program.output.stderr,
        "this Node does not read TypeScript; use Node 22.18",
      );
    },
  );
});

/** Waits until a restarted server listens on the same port again. */
async function untilServed(url: string): Promise<void> {
  while (!await fetch(`${url}/healthz`).then(({ ok }) => ok, () => false));
}

describe("the completion scripts", () => {
  const shells = [
    ["bash", "source <(plue completion bash)\n", ["--norc", "--noprofile", "-i"]],
    ["zsh", "autoload -U compinit; compinit -u; source <(plue completion zsh)\n", ["-f", "-i"]],
    ["fish", "plue completion fish | source\n", ["--no-config", "-i"]],
  ] as const;
  for (const [shell, script, args] of shells) {
    maybe(Bun.which(shell) !== null, `${shell} is not installed`)(
      `complete commands, tools, flags and their values in ${shell}`,
      async () => {
        const bin = mkdtempSync(join(folder, "bin-"));
        writeFileSync(join(bin, "plue"), `#!/bin/sh\nexec node ${COMMAND} "$@"\n`, {
          mode: 0o755,
        });
        const PATH = `${bin}:${process.env["PATH"]}`;
        await using terminal = openTerminal([shell, ...args], { PATH, PS1: "$ ", NO_COLOR: "1" });
        terminal.type(script);
        terminal.type('echo rea""dy\n');
        await terminal.shown(/ready/);
        // One completion of each kind, and the result of the call.
        terminal.type(`plue cal\t-f ${TOOLS} searc\t--query x --opts.ord\tas\t\n`);
        await terminal.shown(/"order": "asc"/);
      },
    );
  }
});
