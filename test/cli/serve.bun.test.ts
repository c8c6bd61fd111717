import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { type Program, startProgram } from "../support/program.ts";
import { pipe, temporaryFolder } from "../examples/workspace/testing.ts";
import { maybe } from "../support/skip.ts";

/** The program of `npm start`. */
const COMMAND = ["src/cli/main.ts", "serve", "examples/workspace/mod.ts"];

const start = (environment: Record<string, string>): Program =>
  startProgram(process.execPath, COMMAND, { PLUE_MAX_RISK: "low", ...environment });

/** Starts a server on a free port, and waits for its address. */
async function serve(workspace: string, environment: Record<string, string> = {}) {
  const program = start({ PORT: "0", PLUE_WORKSPACE: workspace, ...environment });
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

const HOLD = { command: "exec > pipe; sleep 1000 & echo $!; wait", shell: true };

describe("npm start", () => {
  it("serves the same tools to MCP clients at the printed address, with the token only", async () => {
    await using folder = await temporaryFolder();
    await using server = await serve(folder.path, { PLUE_TOKEN: "sesame-sesame-sesame" });
    await server.program.printed(/"mcpServers"/);
    const { stdout } = server.program.output;
    assertStringIncludes(stdout, `"url":"${server.url}/mcp"`);
    assertEquals(stdout.includes("sesame"), false);
    const list = (token: string): Promise<Response> =>
      fetch(`${server.url}/mcp`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          authorization: `Bearer ${token}`,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
      });
    assertEquals((await list("wrong")).status, 401);
    assertStringIncludes(await (await list("sesame-sesame-sesame")).text(), '"name":"file-read"');
  });

  for (
    const [name, value] of [
      ["PORT", "abc"],
      ["PORT", "99999"],
      ["PLUE_MAX_RISK", "extreme"],
      ["PLUE_ROLE", "two words"],
      ["HOST", "0.0.0.0"],
      ["HOST", "127.999.0.1"],
    ] as const
  ) {
    it(`answers ${name}=${value} with one clear line and exit code 2`, async () => {
      await using program = start({ PORT: "0", [name]: value });
      assertEquals(await program.ended, { code: 2, signal: null });
      const { stdout, stderr } = program.output;
      assertEquals([stdout, stderr.trim().split("\n").length], ["", 1]);
      assertStringIncludes(stderr, `Cannot serve: ${name} is "${value}", `);
    });
  }

  const isLinux = process.platform === "linux";
  for (
    const [workspace, why] of [
      ["/", "it contains the system's own files"],
      ["/no/such/folder", "it must be a folder that exists"],
    ] as const
  ) {
    maybe(isLinux, "only Linux has /proc")(`serves no tools for ${workspace}`, async () => {
      await using program = start({ PORT: "0", PLUE_WORKSPACE: workspace });
      assertEquals(await program.ended, { code: 2, signal: null });
      const message = 'Cannot load the tools of "examples/workspace/mod.ts": ' +
        `Cannot use "${workspace}" as the workspace: ${why}`;
      // The message ends with the position of the error in the module.
      const { stderr } = program.output;
      assertMatch(stderr.replace(message, "message"), /^message \(\/\S+\.ts:\d+:\d+\)\n$/);
    });
  }

  it("reports a used port, and ends with exit code 2", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = other.address();
    assert(typeof address === "object" && address !== null);
    await using program = start({ PORT: String(address.port) });
    assertEquals((await program.ended).code, 2);
    assertEquals(
      program.output.stderr,
      `Cannot serve on 127.0.0.1, port ${address.port}: the port is in use; choose another one with --port or PORT\n`,
    );
    other.close();
  });

  it("prints its address, its tools, and example commands", async () => {
    await using folder = await temporaryFolder({ "README.md": "# Hello\n" });
    await using server = await serve(folder.path);
    const { stdout } = server.program.output;
    assertStringIncludes(stdout, "plue serves examples/workspace/mod.ts on http://127.0.0.1:");
    assertStringIncludes(stdout, "3 of 9 tools");
    assertStringIncludes(stdout, "file-read    low");
    assertEquals(stdout.includes("terminal-execute"), false);
    const listed = await (await fetch(`${server.url}/tools`)).json();
    assertEquals(listed.tools.map(({ id }: { id: string }) => id), [
      "echo",
      "file-read",
      "search-grep",
    ]);
    const read = await (await server.post("file-read", { path: "README.md" })).json();
    assertEquals(read.content.content, "# Hello\n");
  });

  const hasCurl = spawnSync("curl", ["--version"]).status === 0;
  maybe(hasCurl, "curl is not installed")("prints a curl line that works as it is", async () => {
    await using folder = await temporaryFolder({ "notes.md": "" });
    for (
      const environment of [{}, { PLUE_TOKEN: "s3cret-s3cret-s3cret" }, { PLUE_MAX_RISK: "safe" }]
    ) {
      await using server = await serve(folder.path, environment);
      const [line] = await server.program.printed(/curl .*/);
      await using shell = startProgram("sh", ["-c", line], environment);
      await shell.ended;
      const answer = JSON.parse(shell.output.stdout);
      assertEquals([answer.ok, shell.output.stdout.includes("s3cret-s3cret-s3cret")], [
        true,
        false,
      ]);
    }
  });

  it("treats a tool above the served risk as unknown, and explains it", async () => {
    await using folder = await temporaryFolder();
    await using server = await serve(folder.path);
    const refused = await server.post("terminal-execute", { command: "touch", args: ["made"] });
    assertEquals([refused.status, (await refused.json()).code], [404, "unknown_tool"]);
    assertEquals((await server.post("no-such-tool", {})).status, 404);
    const explained = await (await fetch(`${server.url}/tools/terminal-execute/explain`)).json();
    assertStringIncludes(explained.reason, "risk high is above the limit low");
    assertEquals(await folder.list(), []);
  });

  it("rejects web pages of other sites, and other host names", async () => {
    await using folder = await temporaryFolder();
    await using server = await serve(folder.path);
    const page = await server.post("echo", { message: "x" }, {
      headers: { origin: "https://evil.example" },
    });
    assertEquals(page.status, 403);
    const rebound = await server.post("echo", { message: "x" }, {
      headers: { host: "evil.example" },
    });
    assertEquals(rebound.status, 421);
    const form = await server.post("echo", { message: "x" }, {
      headers: { "content-type": "text/plain" },
    });
    assertEquals(form.status, 415);
  });

  it("stops a command with its children when the client goes away", async () => {
    await using folder = await temporaryFolder();
    const held = pipe(join(folder.path, "pipe"));
    await using server = await serve(folder.path, { PLUE_MAX_RISK: "high" });
    const controller = new AbortController();
    const call = server.post("terminal-execute", HOLD, { signal: controller.signal })
      .then(() => "answered", (error: Error) => error.name);
    await held.line;
    controller.abort();
    assertEquals(await call, "AbortError");
    // The end of the pipe: the shell and its child have both gone.
    await held.end;
    assertEquals((await fetch(`${server.url}/healthz`)).status, 200);
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
    await using folder = await temporaryFolder();
    const token = "s3cret-s3cret-s3cret";
    await using server = await serve(folder.path, { PLUE_TOKEN: token, PLUE_MAX_RISK: "high" });
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
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      socket.on("error", () => {}).resume();
      socket.write(text);
      await once(socket, "close");
    });
    // Longer than a silent connection lives.
    const call = server.post("terminal-execute", { command: "sleep", args: ["14"] }, {
      headers: { authorization: `Bearer ${token}` },
    });
    await Promise.all(closed);
    assertEquals((await (await call).json()).ok, true);
  }, 600_000);

  it("turns away who guesses at its token", async () => {
    await using folder = await temporaryFolder();
    await using server = await serve(folder.path, { PLUE_TOKEN: "s3cret-s3cret-s3cret" });
    const guess = async (token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` };
      const { status, body } = await fetch(`${server.url}/tools`, { headers });
      await body?.cancel();
      return status;
    };
    for (let tries = 0; tries < 10; tries++) assertEquals(await guess(`guess-${tries}`), 401);
    assertEquals(await guess("guess-10"), 429);
    // The right token is never rejected: behind a proxy, all clients have one address.
    assertEquals(await guess("s3cret-s3cret-s3cret"), 200);
  });

  it("requires its token on every route", async () => {
    await using folder = await temporaryFolder();
    await using server = await serve(folder.path, {
      HOST: "0.0.0.0",
      PLUE_TOKEN: "s3cret-s3cret-s3cret",
    });
    const asked = await fetch(`${server.url}/tools`);
    assertEquals([asked.status, asked.headers.get("www-authenticate")], [401, "Bearer"]);
    assertEquals((await asked.json()).code, "unauthorized");
    assertEquals((await server.post("echo", { message: "x" })).status, 401);
    const headers = { authorization: "Bearer s3cret-s3cret-s3cret" };
    const listed = await fetch(`${server.url}/tools`, { headers });
    assertEquals(listed.status, 200);
    await listed.body?.cancel();
    const answer = await server.post("echo", { message: "x" }, { headers });
    assertEquals((await answer.json()).content, { message: "x" });
    const wrong = await server.post("echo", { message: "x" }, {
      headers: { authorization: "Bearer s3cret-s3cret-s3cres" },
    });
    assertEquals(wrong.status, 401);
    assertEquals(server.program.output.stdout.includes("s3cret-s3cret-s3cret"), false);
  });

  it("answers under every loopback address that it listens on", async () => {
    await using folder = await temporaryFolder();
    // Only Linux has the whole network 127.0.0.0/8.
    for (const HOST of ["localhost", process.platform === "linux" ? "127.0.0.2" : "127.0.0.1"]) {
      await using server = await serve(folder.path, { HOST });
      assertStringIncludes(server.url, `http://${HOST}:`);
      assertEquals((await server.post("echo", { message: "x" })).status, 200);
    }
  });

  it("reports a body that is too large", async () => {
    await using folder = await temporaryFolder();
    await using server = await serve(folder.path);
    const answer = await server.post("echo", { message: "x".repeat(5 * 1024 * 1024) });
    assertEquals([answer.status, (await answer.json()).code], [413, "payload_too_large"]);
  });

  it("writes files when it serves tools of medium risk", async () => {
    await using folder = await temporaryFolder();
    await using server = await serve(folder.path, { PLUE_MAX_RISK: "medium" });
    const answer = await server.post("file-write", { path: "a", content: "x" });
    assertEquals([answer.status, await folder.list()], [200, ["a"]]);
  });
});
