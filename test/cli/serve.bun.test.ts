import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertLessOrEqual, assertStringIncludes } from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { type Program, startProgram } from "../support/program.ts";
import { pipe, temporaryFolder } from "../examples/workspace/testing.ts";
import { maybe } from "../support/skip.ts";

/** The program of `npm start`. */
const COMMAND = ["src/cli/main.ts", "serve", "examples/workspace/mod.ts"];

const start = (environment: Record<string, string>, ...words: readonly string[]): Program =>
  startProgram(process.execPath, [...COMMAND, ...words], { PLUE_MAX_RISK: "low", ...environment });

type Server = Awaited<ReturnType<typeof serve>>;

/** Starts a server on a free port, and waits for its address. */
async function serve(
  workspace: string,
  environment: Record<string, string> = {},
  ...words: readonly string[]
) {
  const program = start({ PORT: "0", PLUE_WORKSPACE: workspace, ...environment }, ...words);
  const [, url = ""] = await program.printed(/ on (http:\S+)\n[^]*execute\n/);
  const post = (tool: string, args: unknown, init: RequestInit = {}) =>
    fetch(`${url}/tools/${tool}/execute`, {
      method: "POST",
      body: JSON.stringify({ arguments: args }),
      ...init,
      headers: { "content-type": "application/json", ...init.headers },
    });
  return { program, url, post, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

const TOKEN = "sesame-sesame-sesame";
const authorization = `Bearer ${TOKEN}`;
const HOLD = { command: "exec > pipe; sleep 1000 & echo $!; wait", shell: true };

describe("npm start", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  /** A server of tools up to low risk, and one up to high risk with a token. */
  let low: Server;
  let guarded: Server;

  beforeAll(async () => {
    folder = await temporaryFolder({ "README.md": "# Hello\n" });
    [low, guarded] = await Promise.all([
      serve(folder.path, {}, "--no-watch"),
      serve(
        folder.path,
        { PLUE_TOKEN: TOKEN, PLUE_MAX_RISK: "high", HOST: "0.0.0.0" },
        "--no-watch",
      ),
    ]);
  });
  afterAll(async () => {
    for (const server of [low, guarded]) await server[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it("prints its address, its tools, and example commands", async () => {
    const { stdout } = low.program.output;
    assertStringIncludes(stdout, "plue serves examples/workspace/mod.ts on http://127.0.0.1:");
    assertStringIncludes(stdout, "3 of 9 tools");
    assertStringIncludes(stdout, "file-read    low");
    assertEquals(stdout.includes("terminal-execute"), false);
    const listed = await (await fetch(`${low.url}/tools`)).json();
    assertEquals(listed.tools.map(({ id }: { id: string }) => id), [
      "echo",
      "file-read",
      "search-grep",
    ]);
    const read = await (await low.post("file-read", { path: "README.md" })).json();
    assertEquals(read.content.content, "# Hello\n");
  });

  const hasCurl = spawnSync("curl", ["--version"]).status === 0;
  maybe(hasCurl, "curl is not installed")("prints a curl line that works as it is", async () => {
    await using safe = await serve(folder.path, { PLUE_MAX_RISK: "safe" }, "--no-watch");
    for (const server of [low, guarded, safe]) {
      const [line] = await server.program.printed(/curl .*/);
      await using shell = startProgram("sh", ["-c", line], { PLUE_TOKEN: TOKEN });
      await shell.ended;
      const answer = JSON.parse(shell.output.stdout);
      assertEquals([answer.ok, shell.output.stdout.includes(TOKEN)], [true, false]);
    }
  });

  it("rejects web pages of other sites, and other host names", async () => {
    for (
      const [name, value, status] of [
        ["origin", "https://evil.example", 403],
        ["host", "evil.example", 421],
        ["content-type", "text/plain", 415],
      ] as const
    ) {
      const answer = await low.post("echo", { message: "x" }, { headers: { [name]: value } });
      assertEquals(answer.status, status);
    }
  });

  it("stops running commands and ends with exit code 0 on SIGTERM", async () => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      await using folder = await temporaryFolder();
      const held = pipe(join(folder.path, "pipe"));
      await using server = await serve(folder.path, { PLUE_MAX_RISK: "high" });
      const call = server.post("terminal-execute", HOLD).then(() => "answered", () => "closed");
      await held.line;
      server.program.child.kill(signal);
      assertEquals(await server.program.ended, { code: 0, signal: null });
      await held.end;
      assertEquals(await call, "closed");
    }
  });

  it("closes silent connections, but not the connection of a running call", async () => {
    const head = (path: string): string =>
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
      "Content-Length: 100\r\n\r\n";
    const silent = [
      "",
      "POST /mcp HT",
      head("/tools/echo/execute"),
      head("/mcp"),
      head("/nowhere"),
    ];
    const closed = silent.map(async (text) => {
      const socket = connect(Number(new URL(guarded.url).port), "127.0.0.1");
      socket.on("error", () => {}).resume();
      socket.write(text);
      await once(socket, "close");
    });
    // This call lasts longer than the server keeps a silent connection open.
    const call = guarded.post("terminal-execute", { command: "sleep", args: ["14"] }, {
      headers: { authorization },
    });
    await Promise.all(closed);
    assertEquals((await (await call).json()).ok, true);
  }, 600_000);

  it("requires its token on every route, over HTTP and MCP, and prints no token", async () => {
    const server = guarded;
    await server.program.printed(/"mcpServers"/);
    const { stdout } = server.program.output;
    assertStringIncludes(stdout, `"url":"${server.url}/mcp"`);
    assertEquals(stdout.includes("sesame"), false);
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    for (
      const [path, body, wanted] of [
        ["/tools", undefined, '"id":"file-read"'],
        ["/tools/echo/execute", { arguments: { message: "x" } }, '"content":{"message":"x"}'],
        ["/mcp", list, '"name":"file-read"'],
      ] as const
    ) {
      for (const token of ["", `${TOKEN}s`, TOKEN]) {
        const response = await fetch(server.url + path, {
          headers: {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
          },
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
        });
        const text = await response.text();
        if (token === TOKEN) assertStringIncludes(text, wanted);
        else {
          assertEquals(response.status, 401);
          assertStringIncludes(response.headers.get("www-authenticate") ?? "", "Bearer");
          assertEquals(JSON.parse(text).code, "unauthorized");
        }
      }
    }
  });
});

describe("plue serve with a module", () => {
  const MODULE = `
    let evaluated = 0;
    export const selection = { policies: [{ name: "p", allow: () => ++evaluated > 0 }] };
    const make = (name, scopes, execute) =>
      ({ name, description: "Answers.", risk: "safe", ...(scopes && { scopes }), execute });
    export const tools = [
      make("evaluated", undefined, () => evaluated),
      make("admin", ["admin"], () => "done"),
      {
        ...make("hostile", undefined, () => "done"),
        annotations: { readOnlyHint: true },
        examples: [{ input: { x: "\\x9b2J" } }],
      },
      ...Array.from({ length: 50 }, (_, n) => make("t" + n, undefined, () => n)),
    ];`;

  let served: Awaited<ReturnType<typeof serving>>;
  beforeAll(async () => served = await serving("--scope", "admin"));
  afterAll(() => served[Symbol.asyncDispose]());

  /** Serves the module with a token. Returns a function that requests a path. */
  async function serving(...words: readonly string[]) {
    const folder = await temporaryFolder({ "tools.mjs": MODULE });
    const program = startProgram(
      process.execPath,
      ["src/cli/main.ts", "serve", join(folder.path, "tools.mjs"), "--no-watch", ...words],
      { PORT: "0", PLUE_TOKEN: TOKEN },
    );
    const [, url = ""] = await program.printed(/ on (http:\S+)\n/);
    const headers = { authorization, "content-type": "application/json" };
    const read = async (path: string, body?: string) =>
      await (await fetch(url + path, { headers, ...(body && { method: "POST", body }) })).json();
    const end = async (): Promise<void> => {
      await program[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    };
    return { read, output: program.output, [Symbol.asyncDispose]: end };
  }

  it("prints no example with control characters", () => {
    assertEquals(served.output.stdout.includes("\x9b"), false);
  });

  it("grants the caller with the token the scopes of --scope", async () => {
    assertEquals((await served.read("/tools/admin/execute", "{}")).content, "done");
  });

  it("evaluates the module's policies a few times per tool and request", async () => {
    const count = async (): Promise<number> =>
      (await served.read("/tools/evaluated/execute", "{}")).content;
    const before = await count();
    await served.read("/explain");
    assertLessOrEqual(await count() - before, 52 * 12);
  });
});

describe("plue serve -c", () => {
  it("applies a changed file, or with --no-watch only at SIGHUP", async () => {
    await using folder = await temporaryFolder({ "plue.json": '{"sources": {}}' });
    const path = join(folder.path, "plue.json");
    const words = ["src/cli/main.ts", "serve", "-c", path, "--port", "0"];
    await using watching = startProgram(process.execPath, words);
    await using other = startProgram(process.execPath, [...words, "--no-watch"]);
    for (const program of [watching, other]) await program.printed(/ on http:/);
    // Two changes: a program that follows the file has applied the first one before the second.
    for (
      const [maxRisk, printed] of [["high", /Applied/], ["low", /Applied[^]*Applied/]] as const
    ) {
      await writeFile(path, JSON.stringify({ sources: {}, selection: { maxRisk } }));
      await watching.printed(printed);
    }
    assertEquals(other.output.stderr, "");
    other.child.kill("SIGHUP");
    await other.printed(/Applied/);
  });
});

describe("plue serve --open", () => {
  /** Serves with an opener of the platform that runs a script. */
  async function openWith(folder: string, script: string): Promise<Server> {
    for (const opener of ["xdg-open", "open"]) {
      await writeFile(join(folder, opener), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    }
    const PATH = `${folder}:${process.env["PATH"]}`;
    return await serve(folder, { PATH }, "--no-watch", "--open");
  }

  it("opens the page, and prints its address if no browser opens", async () => {
    await using folder = await temporaryFolder({});
    const path = join(folder.path, "opened");
    const opened = pipe(path);
    await using server = await openWith(folder.path, `echo "$1" > ${path}`);
    assertEquals(await opened.line, [`${server.url}\n`]);
    await using failing = await openWith(folder.path, "exit 3");
    await failing.program.printed(/Cannot open a browser: open http\S+ yourself/);
  });
});
