import { readFileSync } from "node:fs";
import { join } from "node:path";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { folder, plue, rejects } from "./support.ts";

const files = folder();
const env = { HOME: files.path, XDG_CONFIG_HOME: files.path };
const EVERYTHING = "everything=npx -y @modelcontextprotocol/server-everything";
const read = (path: string): string => readFileSync(path, "utf8");

describe("plue init", () => {
  it("writes a module whose tool can be called, and adds it to a client", async () => {
    const path = join(files.path, "tools.mjs");
    const words = ["init", "module", "hello", "--out", path, "--client", "cursor"];
    const { code, stdout } = await plue(words, { env });
    assertEquals(code, 0);
    const serve = `npx @plue/cli serve ${path}`;
    assertStringIncludes(stdout, `Wrote ${path}. Serve it: ${serve}\nAdded "plue" in `);
    const called = await plue(["call", "--from", path, "hello", "--who", "Ann"]);
    assertEquals([called.code, called.stdout], [0, "Hello, Ann!\n"]);
    const { args } = JSON.parse(read(join(files.path, ".cursor/mcp.json"))).mcpServers.plue;
    assertEquals(args.slice(-3), ["serve", path, "--stdio"]);
  });

  it("drafts a tool that fits its name", async () => {
    const rows = [
      ["countWords", "--words", "a b", "low", "Count words: a b\n"],
      ["delete-old_file", "--file", "x", "high", "Delete old file: x\n"],
      ["ping", "--input", "1", "medium", "Ping: 1\n"],
    ] as const;
    for (const [name, flag, value, risk, printed] of rows) {
      const path = join(files.path, `${name}.mjs`);
      await plue(["init", "module", name, "--out", path]);
      const { stdout } = await plue(["list", path, "--json"]);
      assertEquals(JSON.parse(stdout).tools[0].risk, risk);
      const called = await plue(["call", "--from", path, name, flag, value]);
      assertEquals([called.code, called.stdout], [0, printed]);
    }
  });

  it("writes a plue.json with the first source, and adds it to a client", async () => {
    const document = await files.write("api.json", "[]");
    const text = await files.write("list.txt", "[]");
    const server = "@modelcontextprotocol/server-everything";
    const rows: readonly (readonly [string, object])[] = [
      [EVERYTHING, { everything: { command: "npx", args: ["-y", server] } }],
      ["notes=node 'my server.js' --x", {
        notes: { command: "node", args: ["my server.js", "--x"] },
      }],
      ["https://example.com/mcp", { first: { url: "https://example.com/mcp" } }],
      ["HTTPS://example.com/mcp", { first: { url: "HTTPS://example.com/mcp" } }],
      ["far=plue:https://example.com", { far: { from: "plue:https://example.com" } }],
      [`list=tools:${text}`, { list: { from: `tools:${text}` } }],
      [`api=${document}`, { api: { from: document } }],
    ];
    for (const [number, [source, sources]] of rows.entries()) {
      const path = join(files.path, `plue-${number}.json`);
      assertEquals((await plue(["init", "gateway", source, "--out", path], { env })).code, 0);
      assertEquals(JSON.parse(read(path)).sources, sources);
      assertEquals((await plue(["check", path])).code, 0);
    }
    const path = join(files.path, "plue.json");
    await plue(["init", "gateway", EVERYTHING, "-o", path, "--client", "claude"], { env });
    const { args } = JSON.parse(read(join(files.path, ".claude.json"))).mcpServers.plue;
    assertEquals(args.slice(-4), ["serve", "--config", path, "--stdio"]);
  });

  it("never overwrites a file, and then changes no client", async () => {
    const path = await files.write("mine.mjs", "mine");
    const words = ["init", "module", "hello", "--out", path, "--client", "windsurf"];
    const { code, stderr } = await plue(words, { env });
    assertEquals([code, read(path)], [2, "mine"]);
    assertStringIncludes(stderr, "it exists already; choose another file with --out");
    const { stdout } = await plue(["mcp", "remove", "windsurf"], { env });
    assertStringIncludes(stdout, "has no such entry already");
  });

  it("prints the complete command without a terminal, and rejects invalid names", async () => {
    const rows = [
      [["init"], "Cannot ask questions without a terminal: run plue init module greet"],
      [["init", "gateway"], "Cannot ask questions without a terminal"],
      [["init", "module", "two words"], "the name of the tool must be 1 to 128 letters"],
    ] as const;
    for (const [words, message] of rows) await rejects(words, message, { env });
  });
});
