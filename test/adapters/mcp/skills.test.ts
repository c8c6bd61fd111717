import { McpServer } from "@modelcontextprotocol/server";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { afterEach, describe, it } from "bun:test";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { createToolBridge } from "@plue/tools/finding";
import {
  createMcpEndpoint,
  type ImportMcpServerOptions,
  type McpEndpoint,
  skillCatalog,
  type SkillCatalogOptions,
} from "@plue/tools/mcp";
import { toolPins } from "@plue/tools/pins";
import { askModern, connect, importFar } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

function manifest(name: string, more = "", body = "Do it."): string {
  return `---\nname: ${name}\ndescription: How to make ${name}.\n${more}---\n${body}\n`;
}

const FILES: Record<string, string> = {
  "hello/SKILL.md": manifest("hello"),
  "refunds/SKILL.md": manifest("refunds", "allowed-tools: bank:pay(euros:*) Bash\n"),
  "refunds/references/limits.md": "At most 50 euros.",
  "refunds/audit/SKILL.md": manifest("audit", "allowed-tools: [bank.wipe]\n"),
  "ghosts/SKILL.md": manifest("ghosts", "allowed-tools: gone\n"),
};

const registry = () =>
  new ToolRegistry({
    tools: [
      toolOf("pay", () => "paid", { namespace: "bank", description: "Pays a refund." }),
      toolOf("wipe", () => "wiped", { namespace: "bank", roles: ["admin"] }),
    ],
  });

/** An endpoint with skills, whose callers have the role in a header. */
async function serving(options: SkillCatalogOptions = {}, more: object = {}, files = FILES) {
  const warnings: string[] = [];
  const skills = await skillCatalog(files, {
    hostTools: ["Bash"],
    onWarning: ({ path, message }) => void warnings.push(`${path} ${message}`),
    ...options,
  });
  const mcp = createMcpEndpoint(registry(), {
    authorize: (request) => ({ role: request.headers.get("role") ?? "user" }),
    skills,
    ...more,
  });
  return { skills, mcp, warnings };
}

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => void await Promise.all(opened.splice(0).map((one) => one.close())));

async function listed(mcp: McpEndpoint, role: string, mode: "auto" | "legacy" = "auto") {
  const client = await connect(mcp, mode, { role });
  opened.push(client);
  const reader = new SkillsClient(client);
  const { skills } = await reader.list();
  /** Reads a file of a listed skill. */
  const read = (index: number, path?: string) => reader.read(skills[index] as never, path);
  return { client, reader, read, skills, uris: skills.map(({ uri }) => uri) };
}

const HELLO = "skill://hello/SKILL.md";
const REFUNDS = "skill://refunds/SKILL.md";
const AUDIT = "skill://refunds/audit/SKILL.md";

describe("createMcpEndpoint({ skills })", () => {
  for (const mode of ["auto", "legacy"] as const) {
    it(`serves verified files to the official client (${mode})`, async () => {
      const { mcp } = await serving();
      const { client, reader, read, uris } = await listed(mcp, "admin", mode);
      assertEquals([reader.supported, reader.directoryRead], [true, true]);
      assertEquals(uris, [HELLO, REFUNDS, AUDIT]);
      const file = await read(1, "references/limits.md");
      assertEquals([file.text, file.verified], ["At most 50 euros.", true]);
      const { resources } = await client.listResources();
      assertEquals(resources.map(({ uri }) => uri), uris);
      const { resources: children } = await reader.readDirectory("skill://refunds");
      assertEquals(children.map(({ name }) => name), ["SKILL.md", "audit", "references"]);
      assertEquals((await client.listTools()).tools.length, 2);
    });
  }

  it("hides a skill, its files and its folder from callers without its tools", async () => {
    const { mcp } = await serving();
    const { client, reader, uris } = await listed(mcp, "user");
    assertEquals(uris, [HELLO, REFUNDS]);
    const { resources } = await reader.readDirectory("skill://refunds");
    assertEquals(resources.map(({ name }) => name), ["SKILL.md", "references"]);
    for (const uri of [AUDIT, "skill://ghosts/SKILL.md"]) {
      await assertRejects(() => reader.get(uri), Error, "No skill is served");
      await assertRejects(() => client.readResource({ uri }), Error);
    }
    await assertRejects(() => reader.readDirectory("skill://refunds/audit"), Error);
  });

  it("reports a skill once whose tool is in no registry, and no hidden tool", async () => {
    const { mcp, warnings } = await serving();
    for (const role of ["user", "user", "admin"]) await listed(mcp, role);
    assertEquals(warnings, [
      'skill://ghosts/SKILL.md is hidden, because its tool "gone" is not registered; add it to ' +
      "hostTools if it is a tool of the clients",
    ]);
  });

  it("serves the stored contents of changed files until the catalog is reloaded", async () => {
    const files = { ...FILES };
    const { mcp, skills } = await serving({}, {}, files);
    files["hello/SKILL.md"] = manifest("hello", "", "Changed.");
    files["late/SKILL.md"] = manifest("late");
    const before = await listed(mcp, "user");
    assertEquals(before.uris[0], "skill://hello/SKILL.md");
    assertEquals((await before.read(0)).body, "Do it.\n");
    await skills.reload();
    const after = await listed(mcp, "user");
    const names = after.skills.map(({ frontmatter: { name } }) => name);
    assertEquals(names, ["hello", "late", "refunds"]);
  });

  it("answers invalid params of a resource with their position", async () => {
    const { mcp } = await serving();
    const { error } = await askModern(mcp, "resources/read", { uri: 1 });
    assertEquals(error?.code, -32602);
    assertMatch(error?.message ?? "", /^Cannot answer resources\/read: \/params\/uri: /);
  });

  it("rejects invalid options", async () => {
    await assertRejects(() => skillCatalog("x" as never), TypeError, "the files must be an object");
    const text = { hostTools: "Bash" } as never;
    await assertRejects(() => skillCatalog({}, text), TypeError, "hostTools");
    const wrong = { skills: {} } as never;
    assertThrows(() => createMcpEndpoint(registry(), wrong), TypeError, "skillCatalog()");
    assertThrows(() => createToolBridge(registry().select(), wrong), TypeError, "a skill catalog");
  });
});

describe("skillCatalog()", () => {
  it("hides a skill whose allowed-tools are too long", async () => {
    const long = manifest("long", `allowed-tools: ${"Bash(".repeat(2_000)}\n`);
    const { mcp, warnings } = await serving({}, {}, { "long/SKILL.md": long });
    assertEquals((await listed(mcp, "user")).uris, []);
    assertMatch(warnings.join(), /its tool "allowed-tools is too long" is not registered/);
  });
});

describe("a bridge with skills", () => {
  it("finds the caller's skills, and returns their texts", async () => {
    const { mcp } = await serving({}, { tools: "bridge" });
    const call = async (role: string, name: string, args: object) => {
      const client = await connect(mcp, "auto", { role });
      const { structuredContent } = await client.callTool({ name, arguments: args as never });
      await client.close();
      return structuredContent as Record<string, readonly Record<string, unknown>[]>;
    };
    const search = { query: "refunds" };
    const found = await call("user", "search_tools", search);
    const refunds = { uri: REFUNDS, name: "refunds", description: "How to make refunds." };
    assertEquals(found["skills"], [refunds]);
    assertEquals(found["tools"]?.length, 1);
    const audit = { query: "audit" };
    assertEquals((await call("user", "search_tools", audit))["skills"], undefined);
    assertEquals((await call("admin", "search_tools", audit))["skills"]?.[0]?.["uri"], AUDIT);
    const names = ["bank:pay", REFUNDS, "skill://refunds/references/limits.md", AUDIT];
    const { skills, tools, missing } = await call("user", "describe_tools", { names });
    assertEquals(skills, [
      { uri: REFUNDS, text: FILES["refunds/SKILL.md"] },
      { uri: names[2], text: "At most 50 euros." },
    ] as never);
    assertEquals([tools?.length, missing], [1, [`There is no tool "${AUDIT}"`]] as never);
  });

  it("has the same texts without skills as before", () => {
    const { description } = createToolBridge(registry().select()).get("search_tools") ?? {};
    assertEquals(description?.includes("skill"), false);
  });

  it("chooses the skills of a caller once, until the skills change", async () => {
    const skills = await skillCatalog(FILES, { onWarning() {} });
    const toolset = registry().select();
    const { resolve } = toolset;
    const counts: number[] = [];
    let count = 0;
    toolset.resolve = (id) => (count++, resolve.call(toolset, id));
    for (const work of [() => {}, () => {}, () => skills.reload()]) {
      await work();
      await skills.attach(new McpServer({ name: "x", version: "1" }), toolset);
      counts.push(count);
    }
    assertEquals(counts.map((one) => one / Number(counts[0])), [1, 1, 2]);
  });
});

describe("importMcpServer({ skills })", () => {
  /** A server with skills, imported into a catalog. */
  async function imported(files: Record<string, string>, pins = toolPins()) {
    const far = await skillCatalog(files, { onWarning() {} });
    const server = createMcpEndpoint(
      new ToolRegistry({ tools: [toolOf("pay", () => "paid"), toolOf("wipe", () => "wiped")] }),
      { skills: far, openExecution: true },
    );
    const { skills } = await serving();
    const near = new ToolRegistry();
    const source = await importFar(server, { registry: near, skills, pins });
    opened.push(source);
    const mcp = createMcpEndpoint(near, {
      skills,
      authorize: (request) => ({ role: request.headers.get("role") ?? "user" }),
      selection: { denyIds: ["far:wipe"] },
    });
    return { far, server, near, skills, source, mcp };
  }

  /** Imports a server that writes its texts with a replacement. */
  const importReplaced = (
    server: McpEndpoint,
    [text, other]: readonly [string, string],
    options: Partial<ImportMcpServerOptions>,
  ) =>
    importFar({
      async fetch(request) {
        const response = await server.fetch(request);
        if (response.headers.get("content-type") !== "application/json") return response;
        return new Response((await response.text()).replace(text, other), response);
      },
    }, options);

  const theirs = {
    "pay-well/SKILL.md": manifest("pay-well", "allowed-tools: pay\n"),
    "pay-well/a b.md": "A note.",
    "wipe-well/SKILL.md": manifest("wipe-well", "allowed-tools: wipe\n"),
  };

  it("serves them in a folder of the namespace, for callers with the server's tools", async () => {
    const { mcp, near, skills, source } = await imported({ ...theirs });
    const { read, uris } = await listed(mcp, "user");
    assertEquals(uris, ["skill://far/pay-well/SKILL.md", HELLO]);
    assertEquals((await read(0, "a b.md")).text, "A note.");
    assertEquals(near.tools.map(({ id }) => id), ["far:pay", "far:wipe"]);
    await source.close();
    assertEquals(skills.skills.some(({ uri }) => uri.includes("far")), false);
  });

  it("holds a changed skill back until it is approved", async () => {
    const files = { ...theirs };
    const { far, mcp, near, source, server } = await imported(files);
    files["pay-well/a b.md"] = "Another note.";
    await far.reload();
    server.notify.resourcesChanged();
    await source.refresh();
    assertEquals(source.held.map(({ id }) => id), ["far.skills:pay-well"]);
    assertEquals((await listed(mcp, "user")).uris, [HELLO]);
    assertEquals(near.tools.map(({ id }) => id), ["far:pay", "far:wipe"]);
    await source.approve("far.skills:pay-well");
    const { read, uris } = await listed(mcp, "user");
    assertEquals(uris.length, 2);
    assertEquals((await read(0, "a b.md")).text, "Another note.");
  });

  it("hides a server's skill for client tools from callers without tools of the server", async () => {
    const { mcp, skills } = await serving();
    const file = new TextEncoder().encode(manifest("notes", "allowed-tools: Bash\n"));
    for (const server of ["bank", "far"]) await skills.import(server, { "notes/SKILL.md": file });
    const { uris } = await listed(mcp, "user");
    assertEquals(uris.filter((uri) => uri.includes("notes")), ["skill://bank/notes/SKILL.md"]);
  });

  it("removes the skills of a closed server, although the catalog cannot be read again", async () => {
    let list = (): Promise<[]> => Promise.resolve([]);
    const files = { list: () => list(), read: () => Promise.resolve("") };
    const { mcp, skills } = await serving({}, {}, files as never);
    await skills.import("far", { "a/SKILL.md": new TextEncoder().encode(manifest("a")) });
    list = () => Promise.reject(new Error("The folder is gone"));
    await assertRejects(() => skills.reload(), Error, "The folder is gone");
    assertEquals(skills.skills.length, 1);
    await skills.import("far");
    assertEquals([(await listed(mcp, "user")).uris, skills.skills], [[], []]);
  });

  it("removes a skill that the server removes, and registers no tool for it", async () => {
    const files: Record<string, string> = { ...theirs };
    const { far, near, mcp, source } = await imported(files);
    delete files["pay-well/SKILL.md"];
    await far.reload();
    await source.refresh();
    const held = source.held.map(({ id, kind }) => `${id} ${kind}`);
    assertEquals(held, ["far.skills:pay-well vanished"]);
    assertEquals([(await listed(mcp, "user")).uris, near.count], [[HELLO], 2]);
  });

  it("omits a skill with a file that does not match its digest", async () => {
    const errors: string[] = [];
    const { server } = await imported({ ...theirs });
    const { skills } = await serving();
    const onError = (error: unknown) => void errors.push(String(error));
    await using _source = await importReplaced(server, ["A note.", "A lie!!"], { skills, onError });
    assertEquals(errors, ['Error: Cannot import the skill "skill://pay-well/SKILL.md"']);
    assertEquals(skills.skills.filter(({ uri }) => uri.includes("far")).length, 1);
  });

  it("omits a skill whose path means the same to the pins as an approved one", async () => {
    const files: Record<string, string> = { "a/b/c/SKILL.md": manifest("c") };
    const { far, mcp, source } = await imported(files);
    files["a.b/c/SKILL.md"] = manifest("c", "", "Do something else.");
    await far.reload();
    await source.refresh();
    assertEquals((await listed(mcp, "user")).uris.length, 1);
  });

  it("omits a skill with more folders than a catalog can load in a bounded time", async () => {
    const deep = `pay-well/${"more/".repeat(20)}x.md`;
    const { mcp } = await imported({ ...theirs, [deep]: "Hello." });
    assertEquals((await listed(mcp, "user")).uris, [HELLO]);
  });

  it("omits a skill whose paths cannot be loaded, and serves the other skills", async () => {
    const { server } = await imported({ ...theirs });
    const { skills } = await serving();
    const paths = ["pay-well/a%20b", "pay-well/../a%20b"] as const;
    await using _source = await importReplaced(server, paths, { skills });
    const files = { "x/../SKILL.md": new Uint8Array() };
    await assertRejects(() => skills.import("other", files), Error, "..");
    await skills.reload();
    const theirUris = skills.skills.map(({ uri }) => uri).filter((uri) => uri.includes("far"));
    assertEquals(theirUris, ["skill://far/wipe-well/SKILL.md"]);
  });

  it("imports the tools of a server without skills as before", async () => {
    const { skills } = await serving();
    const near = new ToolRegistry();
    const server = createMcpEndpoint(registry(), { openExecution: true });
    await using _source = await importFar(server, { registry: near, skills });
    const result = await new ToolDispatcher(near).dispatch({ name: "far:bank.pay" });
    assertEquals(result.ok && result.content, "paid");
  });
});
