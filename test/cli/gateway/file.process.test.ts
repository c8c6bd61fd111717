import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { readRules, type RuleDocument } from "../../../src/adapters/rules/mod.ts";
import schema from "../../../src/cli/gateway/plue.schema.json" with { type: "json" };
import { readPlueFile } from "../../../src/cli/gateway/file.ts";
import { Changes } from "../../../src/cli/serve/watch.ts";
import { folder, plue } from "../support.ts";

const files = folder();
const write = (text: string): Promise<string> => files.write("plue.json", text);

/** The message of an invalid file, without the folder. */
async function problemOf(text: string, env: Record<string, string> = {}): Promise<string> {
  const path = await write(text);
  const { code, stderr } = await plue(["check", path], { env });
  assertEquals(code, 2);
  return stderr.replace(path, "plue.json").trim();
}

describe("readPlueFile()", () => {
  const token = "sesame-sesame-sesame";
  const cases: readonly [title: string, text: string, message: string][] = [
    ["an unknown field", '{\n  "sourcs": {}\n}', '2:3: it must not have the property "sourcs"'],
    ["the field that was meant", '{ "sourcs": {} }', 'did you mean "sources"?'],
    ["a value of another type", '{"port": "80"}', "1:2: it must be an integer, not a string"],
    ["a missing comma", '{\n"sources": {}\n"port": 0}', "3:1: it is not valid JSON: Missing ,"],
    ["an open object", '{"sources": {', "1:14: it is not valid JSON: Flow map"],
    [
      "a field that occurs twice",
      '{"port": 0, "port": 1}',
      "1:13: another member has this name; remove one",
    ],
    [
      "a comment of another kind in a list",
      '{"skills": [ // ours\n"./a"]}',
      '1:14: a comment begins with "#", and "//" needs quotes',
    ],
    ["an empty file", "", "1:1: it must be an object, not null"],
    ["a text in a wrong place", `{"port": 0} "${token}"`, "1:13: it is not valid JSON: Unexpected"],
    [
      "a tenant that a caller names and the file lacks",
      `{"callers": {"tokens": {"a": {"token": "${token}", "tenant": "b"}}}}`,
      '1:64: there is no tenant "b" in the file',
    ],
    [
      "a source that a tenant uses and the file lacks",
      '{"tenants": {"a": {"use": ["docs"]}}}',
      '1:28: there is no source "docs" in the file',
    ],
    ["an empty list of callers", '{"callers": {"tokens": {}}}', "1:2: it has no caller; add one"],
    ["tenants without callers", '{"tenants": {"a": {}}}', "1:2: tenants need callers"],
    [
      "a rule without an effect",
      '{"rules": [{"tool": "a", "when": {"/b": {"maxx": 1}}}]}',
      '1:35: Cannot read rules: "maxx" in "/0/when/~1b" has no effect',
    ],
    [
      "a source of two kinds",
      '{"sources": {"a": {"command": "x", "url": "https://x"}}}',
      '1:14: it must have exactly one of "command", "url" and "from"',
    ],
    [
      "a source without a kind",
      '{"sources": {"a": {"risk": "low"}}}',
      '1:14: it must have exactly one of "command", "url" and "from"',
    ],
    [
      "a field without an effect",
      '{"sources": {"a": {"command": "x", "headers": {}}}}',
      '1:36: "headers" has no effect without "url" or "from"; remove it',
    ],
    [
      "labels without rules",
      '{"sources": {"a": {"command": "x", "labels": {"sends": true}}}}',
      '1:36: "labels" has no effect without "rules"; remove it',
    ],
    [
      "labels of two sources for the same tools",
      '{"rules": [{"tool": "*"}], "sources": {"a": {"command": "x", "labels": {"sends": true}}, ' +
      '"b": {"command": "x", "namespace": "a", "labels": {"reads": ["private"]}}}}',
      '1:130: another source has labels for "a:*"; merge them',
    ],
    [
      "an operator without pins",
      `{"callers": {"tokens": {"a": {"token": "${token}", "operator": true}}}}`,
      '1:64: "operator" has no effect without "pins" of a source; remove it',
    ],
    [
      "a bridge beside code",
      '{"bridge": true, "code": true}',
      '1:2: "bridge" has no effect with "code"; remove one of them',
    ],
    [
      "a host that others can reach, without callers",
      '{"port": 0, "host": "0.0.0.0"}',
      '1:13: it is "0.0.0.0", and others can reach it; add "callers" to the file',
    ],
    ["a wrong host", '{"host": "a b"}', '1:2: it is "a b", and must be a host name'],
    ["a wrong store", '{"store": "mysql://x"}', "1:2: it must be sqlite:<path>, postgres://…"],
    [
      "a document that does not exist",
      '{"sources": {"a": {"from": "no/such.yaml"}}}',
      '1:20: Cannot use "no/such.yaml": there is no such file',
    ],
    [
      "an MCP server in the field of documents",
      '{"sources": {"a": {"from": "mcp:npx x"}}}',
      '1:20: Cannot use "mcp:npx x": it is an MCP server; name it with "command" or "url"',
    ],
    [
      "a URL of another scheme",
      '{"sources": {"a": {"url": "ftp://x"}}}',
      "1:20: it must be a URL that begins with https:// or http://",
    ],
    [
      "a name that two sources have",
      '{"sources": {"a": {"command": "x"}}, "mcpServers": {"a": {"command": "y"}}}',
      "1:53: another source has this name; rename one",
    ],
    [
      "a missing variable",
      '{"sources": {"a": {"url": "https://x",\n "headers": {"key": "${KEY}"}}}}',
      "2:14: the environment variable KEY is missing; set it",
    ],
    [
      "a token with a wrong name of a variable",
      '{"callers": {"tokens": {"a": {"token": "${A-LONG-TOKEN}"}}}}',
      '1:31: its "${" must begin ${NAME} or ${NAME:-value}',
    ],
    [
      "a variable in the value for a missing variable",
      '{"callers": {"tokens": {"a": {"token": "${ONE:-${ANOTHER_ONE}}"}}}}',
      '1:31: its "${" must begin ${NAME} or ${NAME:-value}',
    ],
    [
      "a header with a line break, without its value",
      `{"sources": {"a": {"from": "x.yaml",\n "headers": {"key": "${token}\\nb"}}}}`,
      "2:14: it is not a valid header;",
    ],
    [
      "an input of a desktop client",
      '{"mcpServers": {"a": {"command": "x",\n "env": {"KEY": "${input:key}"}}}}',
      '2:10: its "${" must begin ${NAME} or ${NAME:-value}, a variable of the environment',
    ],
    [
      "a field of a desktop client that has no effect here",
      '{"mcpServers": {"a": {"command": "x",\n "envFile": ".env"}}}',
      '2:2: it must not have the property "envFile": plue does not read it; write its variables ' +
      'into "env"',
    ],
    [
      "a name with a wrong character",
      '{"mcpServers": {"my server": {"command": "x"}}}',
      '1:17: it must not have the property "my server": its name must be 1 to 64 letters, digits, ' +
      '"_", "." or "-"',
    ],
    [
      "a tenant with a wrong character",
      '{"tenants": {"a.b": {}}}',
      'its name must be 1 to 32 letters, digits or "-"',
    ],
    [
      "a short token",
      '{"callers": {"tokens": {"ann": {"token": "short"}}}}',
      "1:33: Cannot check tokens:",
    ],
    [
      "a token that two callers have",
      `{"callers": {"tokens": {"a": {"token": "${token}"}, "b": {"token": "${token}"}}}}`,
      "another caller has this token; create a new one",
    ],
    [
      "an issuer without keys",
      '{"callers": {"jwt": [{"issuer": "https://x", "audience": "y"}]}}',
      "1:22: Cannot check JSON Web Tokens: set exactly one of keys, jwksUrl and secret",
    ],
  ];
  for (const [title, text, message] of cases) {
    it(`reports ${title} with its line and column`, async () => {
      const problem = await problemOf(text);
      assertStringIncludes(problem, message);
      assertEquals(problem.startsWith("Cannot use plue.json:"), true);
      assertEquals([problem.includes(token), problem.includes("short")], [false, false]);
    });
  }

  it("reads mcpServers of a desktop client, with variables and their defaults", async () => {
    const path = await write(JSON.stringify({
      mcpServers: {
        files: {
          command: "npx",
          args: ["${DIR}", "${env:B:-b}", "${1%/}"],
          autoApprove: ["x"],
          timeout: 60,
        },
        old: { type: "http", url: "https://example.com/mcp", disabled: true },
      },
    }));
    const { sources } = await readPlueFile(path, { DIR: "/data" });
    assertEquals(sources.map(({ name }) => name), ["files"]);
    assertEquals(sources[0]?.settings.args, ["/data", "b", "${1%/}"]);
  });

  it("reads the fields of each desktop client", async () => {
    const path = await write(JSON.stringify({
      mcpServers: {
        windsurf: { serverUrl: "https://${HOST}/mcp", headers: { a: "b" }, disabledTools: ["x"] },
        claude: { type: "http", url: "https://example.com/mcp", alwaysLoad: true, exclude: ["y"] },
        code: { type: "stdio", command: "npx", dev: { watch: "*" }, gallery: true, version: "1" },
        zed: { source: "custom", command: "npx", enabled: true },
        off: { source: "custom", command: "npx", enabled: false },
      },
    }));
    const { sources } = await readPlueFile(path, { HOST: "example.com" });
    assertEquals(
      sources.map((
        { name, settings: { url, command, exclude } },
      ) => [name, url ?? command, exclude]),
      [
        ["windsurf", "https://example.com/mcp", ["x"]],
        ["claude", "https://example.com/mcp", ["y"]],
        ["code", "npx", undefined],
        ["zed", "npx", undefined],
      ],
    );
  });

  it("excludes a disabled source that a tenant uses, with its pins and without its variables", async () => {
    const off = { url: "${MISSING}", pins: "pins.json", labels: {}, disabled: true };
    const tokens = { ann: { token: "ann-ann-ann-ann-ann", operator: true, tenant: "acme" } };
    const path = await write(JSON.stringify({
      sources: { off, gone: off, on: { command: "x" } },
      mcpServers: { off: { command: "y" } },
      tenants: { acme: { use: ["off", "gone", "on"] } },
      callers: { tokens },
    }));
    const { sources, scopes } = await readPlueFile(path, {});
    assertEquals(sources.map(({ settings }) => settings.command), ["x", "y"]);
    assertEquals(scopes.get("acme")?.map(({ name }) => name), ["off", "on"]);
  });

  it("does not replace variables in texts that models read", async () => {
    const view = { tool: "read", description: "Costs ${PRICE}." };
    const path = await write(JSON.stringify({ sources: { a: { command: "x", views: [view] } } }));
    const [source] = (await readPlueFile(path, {})).sources;
    assertEquals(source?.settings.views, [view]);
  });

  it("is called by plue check for a file with sources of any name", async () => {
    const path = await files.write("gateway.json", '{"sources": {"a": {"command": "x"}}}');
    const { code, stdout } = await plue(["check", path]);
    assertEquals(code, 0);
    assertStringIncludes(stdout, `${path} is valid: 1 source, 0 tenants, 0 callers.`);
  });
});

describe("plue.schema.json", () => {
  it("describes all fields of rules", () => {
    const rule: Required<RuleDocument> = {
      ...{ name: "a", tool: "b", when: { "/c": { maximum: 1 } }, else: "ask", perSession: 1 },
      ...{ perDay: 1, between: ["08:00", "18:00"], noTrifecta: true, timeZone: "Europe/Rome" },
    };
    assertEquals(readRules([rule]).length, 1);
    const { properties } = schema.properties.rules.items;
    assertEquals(Object.keys(properties).sort(), Object.keys(rule).sort());
  });
});

describe("Changes", () => {
  it("names --no-watch if a folder cannot be watched", () => {
    assertThrows(() => new Changes(["/no/such/plue.json"]), Error, "Start plue with --no-watch");
  });
});
