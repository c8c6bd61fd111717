import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { configPath, MCP_CLIENTS } from "../../src/cli/mcp_clients.ts";
import { RUN } from "../support/program.ts";
import { maybe } from "../support/skip.ts";
import { folder, plue, type Ran, rejects } from "./support.ts";

const TOOLS = join(import.meta.dirname, "tools.mjs");
const URL = "http://127.0.0.1:8787/mcp";
const files = folder();
let homes = 0;

/** A user with a home folder of its own. */
function user() {
  const home = join(files.path, `home-${++homes}`);
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, ".config"), APPDATA: join(home, "data") };
  const path = (client: string) => configPath(client, { platform: process.platform, env, home });
  return {
    ...{ env, path },
    write(client: string, text: string): string {
      mkdirSync(dirname(path(client)), { recursive: true });
      writeFileSync(path(client), text);
      return path(client);
    },
    read: (client: string): string => readFileSync(path(client), "utf8"),
    run: (...words: readonly string[]): Promise<Ran> => plue(["mcp", ...words], { env }),
  };
}

describe("configPath()", () => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    ["claude", ".claude.json", ".claude.json", ".claude.json"],
    [
      "claude-desktop",
      ".config/Claude/claude_desktop_config.json",
      "Library/Application Support/Claude/claude_desktop_config.json",
      "AppData\\Roaming\\Claude\\claude_desktop_config.json",
    ],
    ["cursor", ".cursor/mcp.json", ".cursor/mcp.json", ".cursor\\mcp.json"],
    [
      "vscode",
      ".config/Code/User/mcp.json",
      "Library/Application Support/Code/User/mcp.json",
      "AppData\\Roaming\\Code\\User\\mcp.json",
    ],
    [
      ...["windsurf", ...Array<string>(2).fill(".codeium/windsurf/mcp_config.json")],
      ".codeium\\windsurf\\mcp_config.json",
    ] as never,
    [
      ...["zed", ...Array<string>(2).fill(".config/zed/settings.json")],
      "AppData\\Roaming\\zed\\settings.json",
    ] as never,
  ];

  it("returns the path of each client on Linux, macOS and Windows", () => {
    assertEquals(rows.map(([client]) => client), [...MCP_CLIENTS]);
    for (const [client, linux, mac, windows] of rows) {
      const at = (platform: string, home: string) =>
        configPath(client, { platform, home, env: {} });
      assertEquals(at("linux", "/home/ann"), `/home/ann/${linux}`);
      assertEquals(at("darwin", "/Users/ann"), `/Users/ann/${mac}`);
      assertEquals(at("win32", "C:\\Users\\ann"), `C:\\Users\\ann\\${windows}`);
    }
  });
});

describe("plue mcp add", () => {
  it("writes an entry with which the official client starts plue and calls a tool", async () => {
    const { run, read } = user();
    const { code, stdout } = await run("add", "claude", TOOLS, "--env", "LANG=C");
    assertEquals(code, 0);
    assertMatch(stdout, /^Added "plue" in .*\.claude\.json\.\nRestart Claude Code to apply/);
    const { command, args, env } = JSON.parse(read("claude")).mcpServers.plue;
    assertEquals([args.slice(-3), env], [["serve", TOOLS, "--stdio"], { LANG: "C" }]);
    // The tests run in another program than plue, which is replaced here.
    const main = join(import.meta.dirname, "../../src/cli/main.ts");
    const own = args.slice(0, args.indexOf("serve") - 1);
    const client = new Client({ name: "test", version: "1.0.0" });
    assertEquals(own, RUN.length > 0 ? ["run", "-A"] : []);
    // With these flags, Deno downloads no packages.
    const words = [...RUN, main, ...args.slice(args.indexOf("serve"))];
    await client.connect(new StdioClientTransport({ command, args: words, stderr: "ignore" }));
    const { tools } = await client.listTools();
    await client.close();
    assert(tools.some(({ name }) => name === "search"));
  }, 60_000);

  it("writes the command that fetched plue, instead of a file in its cache", async () => {
    const { run, read } = user();
    const { argv, execPath } = process;
    const inDeno = "/home/ann/.cache/deno/npm/registry.example/proxy/@plue/cli/0.1.0/dist/main.js";
    const isDeno = process.versions["deno"] !== undefined;
    const rows: readonly (readonly [string, readonly string[]])[] = [
      ["/home/ann/.npm/_npx/1a/node_modules/.bin/plue", ["npx", "-y", "@plue/cli"]],
      ["/tmp/bunx-0-@plue/cli@latest/dist/main.js", ["bunx", "@plue/cli"]],
      ["/home/ann/.bun/install/cache/.bunx-0/@plue/cli/dist/main.js", ["bunx", "@plue/cli"]],
      [inDeno, isDeno ? [execPath, "run", "-A", "npm:@plue/cli"] : [execPath, inDeno]],
    ];
    try {
      for (const [script, expected] of rows) {
        Object.defineProperty(process, "argv", { value: [execPath, script], configurable: true });
        assertEquals((await run("add", "claude", TOOLS, "--force")).code, 0);
        const { command, args } = JSON.parse(read("claude")).mcpServers.plue;
        assertEquals([command, ...args.slice(0, args.indexOf("serve"))], expected);
      }
    } finally {
      Object.defineProperty(process, "argv", { value: argv, configurable: true });
    }
  });

  it("writes an entry whose variables the MCP server of its source receives", async () => {
    const { run, read } = user();
    const source = `node ${join(import.meta.dirname, "changing_server.mjs")} ${TOOLS}`;
    assertEquals((await run("add", "zed", source, "--env", "RESULT=mine", "--env", "B=b")).code, 0);
    const { env } = JSON.parse(read("zed")).context_servers.plue;
    assertEquals(env, { RESULT: "mine", B: "b", PLUE_SOURCE_ENV: "RESULT,B" });
    const { stdout } = await plue(["call", "--from", source, "mcp:read"], { env });
    assertStringIncludes(stdout, "mine");
  });

  it("writes the form of each client for a service, and rejects it for Claude Desktop", async () => {
    const { env, run, read } = user();
    const headers = { authorization: "Bearer ${PLUE_TOKEN}" };
    const rows: readonly (readonly [string, string, object])[] = [
      ["claude", "mcpServers", { type: "http", url: URL, headers }],
      ["cursor", "mcpServers", { url: URL, headers }],
      ["vscode", "servers", { type: "http", url: URL, headers }],
      ["windsurf", "mcpServers", { serverUrl: URL, headers }],
      ["zed", "context_servers", { url: URL, headers }],
    ];
    const words = ["--url", URL, "--header", "Authorization: Bearer ${PLUE_TOKEN}"];
    for (const [client, member, entry] of rows) {
      assertEquals((await run("add", client, ...words)).code, 0);
      assertEquals(JSON.parse(read(client)), { [member]: { plue: entry } });
    }
    const refused = ["mcp", "add", "claude-desktop", "--url", URL];
    await rejects(refused, "it only starts programs; name a source instead of --url", { env });
  });

  it("keeps comments, other entries, the mode and a link, and copies the old file", async () => {
    const { run, read, write, path } = user();
    const before = `{\r
\t// The servers of the team.\r
\t"theme": "dark",\r
\t"context_servers": {\r
\t\t"other": { "command": "other", "env": { "KEY": "secret" } }, /* ours */\r
\t},\r
}\r
`;
    const target = write("cursor", before);
    // Wider than a usual umask permits.
    chmodSync(target, 0o664);
    mkdirSync(dirname(path("zed")), { recursive: true });
    symlinkSync(target, path("zed"));
    const { code, stdout } = await run("add", "zed", "--url", URL);
    assertEquals(code, 0);
    assertStringIncludes(stdout, `The old file is now ${target}.backup.`);
    const after = read("zed");
    for (const kept of ["// The servers of the team.", "/* ours */", '"theme": "dark",\r\n']) {
      assertStringIncludes(after, kept);
    }
    const added = `"plue": {\r\n\t\t\t"url": "${URL}"\r\n\t\t}`;
    assertStringIncludes(after, added);
    assertEquals(after.replaceAll("\r\n", "").includes("\n"), false);
    assertEquals(readFileSync(`${target}.backup`, "utf8"), before);
    assertEquals(statSync(target).mode & 0o777, 0o664);
    // A second copy does not overwrite the first.
    assertEquals((await run("add", "zed", "--url", URL, "--name", "two")).code, 0);
    assertEquals(readFileSync(`${target}.backup`, "utf8"), before);
    assertEquals(readFileSync(`${target}.backup-2`, "utf8"), after);
  });

  it("prints only the entry with --dry-run, and writes nothing", async () => {
    const { run, write, read, path } = user();
    const before = '{"servers":{"a":{"env":{"KEY":"s3cret"}}}}';
    write("vscode", before);
    const { code, stdout, stderr } = await run("add", "vscode", "--url", URL, "--dry-run");
    assertEquals([code, stderr], [0, `${path("vscode")}\n`]);
    assertEquals(stdout, `+  "plue": {\n+    "type": "http",\n+    "url": "${URL}"\n+  }\n`);
    assertEquals([read("vscode"), existsSync(`${path("vscode")}.backup`)], [before, false]);
    const json = await run("add", "vscode", "--url", URL, "--dry-run", "--json");
    assertEquals(JSON.parse(json.stdout).changed, false);
    assertEquals(read("vscode"), before);
  });

  it("leaves a file that is not UTF-8 unchanged", async () => {
    const { run, write, path } = user();
    const bytes = new Uint8Array([...new TextEncoder().encode('{"a":"'), 0xe9, 0x22, 0x7d]);
    writeFileSync(write("cursor", ""), bytes);
    const { code, stderr } = await run("add", "cursor", "--url", URL);
    assertEquals([code, new Uint8Array(readFileSync(path("cursor")))], [2, bytes]);
    assertStringIncludes(stderr, "is unchanged, because it is not UTF-8; convert it first");
  });

  const isRoot = process.getuid?.() === 0;
  maybe(isRoot, "needs root")("leaves the file of another user to that user", async () => {
    const { run, write, path } = user();
    chownSync(write("cursor", "{}"), 4_321, 4_321);
    assertEquals((await run("add", "cursor", "--url", URL)).code, 0);
    assertEquals(statSync(path("cursor")).uid, 4_321);
  });

  it("rejects another entry with the name unless --force is set, and accepts the same entry", async () => {
    const { run, write, read } = user();
    const before = '{ "mcpServers": { "plue": { "url": "http://old.example/mcp" } } }';
    write("cursor", before);
    const refused = await run("add", "cursor", "--url", URL);
    assertEquals([refused.code, read("cursor")], [2, before]);
    assertStringIncludes(refused.stderr, "add --force to replace it, or choose another name");
    assertEquals((await run("add", "cursor", "--url", URL, "--force")).code, 0);
    assertEquals(JSON.parse(read("cursor")), { mcpServers: { plue: { url: URL } } });
    const again = await run("add", "cursor", "--url", URL);
    assertEquals(again.code, 0);
    assertStringIncludes(again.stdout, "has this entry already");
  });

  it("leaves invalid files unchanged, and describes the error", async () => {
    const { run, write, read } = user();
    const rows: readonly (readonly [string, string])[] = [
      ['{\n  "mcpServers": {,}\n}', "line 2, column 18 is not valid JSON: value expected"],
      ["[]", "it must be a JSON object"],
      ['{ "mcpServers": [] }', '"mcpServers" must be an object'],
      ['\uFEFF{ "mcpServers": null }', '"mcpServers" must be an object'],
      ['{ "mcpServers": {}, "mcpServers": { "a": {} } }', "twice; remove one of them"],
    ];
    for (const [text, why] of rows) {
      write("windsurf", text);
      const { code, stderr } = await run("add", "windsurf", "--url", URL);
      assertEquals([code, read("windsurf")], [2, text]);
      assertStringIncludes(stderr, 'Cannot add "plue" to Windsurf: ');
      assertStringIncludes(stderr, why);
    }
    const { path } = user();
    mkdirSync(path("cursor"), { recursive: true });
    const folder = await plue(["mcp", "add", "cursor", "--url", URL], {
      env: { HOME: dirname(dirname(path("cursor"))) },
    });
    assertEquals(folder.code, 2);
    assertMatch(folder.stderr, /mcp\.json cannot be read: /);
  });

  it("rejects command lines in which a flag has no effect, without repeating secrets", async () => {
    const { run } = user();
    const rows: readonly (readonly [string, string])[] = [
      ["add claude", "name a source, such as tools.mjs, or a service with --url"],
      ["add claude /no/such.mjs", 'Cannot use "/no/such.mjs": there is no such file'],
      [`add claude ${TOOLS} --url ${URL}`, "a source has no effect with --url"],
      [`add claude --url ${URL} --bridge`, "--bridge has no effect with --url"],
      [`add claude ${TOOLS} --header a:b`, "--header has no effect without --url"],
      ["add claude ./plue.json", "give a file of sources with -c"],
      [`add claude ${TOOLS} --env s3cret`, 'it must be "NAME=value"'],
      [`add claude ${TOOLS} --name __proto__`, "--name must be letters"],
      ["add claude --url ftp://x", "--url must be an address such as"],
      [`add windsurf ${TOOLS} --project`, "has no file for a project"],
      [`remove claude ${TOOLS}`, "only --name, --project and --dry-run have an effect"],
      ["add emacs", "Allowed choices are claude, claude-desktop"],
    ];
    for (const [line, message] of rows) {
      const { code, stdout, stderr } = await run(...line.split(" "));
      assertEquals([code, stdout], [2, ""], line);
      assertStringIncludes(stderr, message);
      assertEquals(stderr.includes("s3cret"), false);
    }
  });
});

describe("plue mcp remove", () => {
  it("removes the entry only, and reports a missing entry", async () => {
    const { run, write, read } = user();
    write("claude", '{\n  // Mine.\n  "mcpServers": {\n    "plue": {},\n    "a": {}\n  }\n}\n');
    assertEquals((await run("remove", "claude")).code, 0);
    assertEquals(read("claude"), '{\n  // Mine.\n  "mcpServers": {\n    "a": {}\n  }\n}\n');
    const again = await run("remove", "claude");
    assertEquals(again.code, 0);
    assertStringIncludes(again.stdout, "has no such entry already");
  });
});
