/** Tools of real MCP servers, listed by the official client, imported, and exported everywhere. */

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { assert, assertEquals, assertGreater } from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { exportTools, importTools, listTargets } from "../../src/formats/mod.ts";
import type { Tool } from "../../src/tool/mod.ts";
import { GITHUB_LIST, NO_GITHUB } from "./tools.ts";
import { maybe } from "../support/skip.ts";

const require = createRequire(import.meta.url);

type Listed = { readonly name: string };

/** The program of a server's package, which does not export it. */
function programOf(server: string): string {
  const manifest = require.resolve(`@modelcontextprotocol/${server}/package.json`);
  return join(dirname(manifest), "dist/index.js");
}

/** The tools of a server as received, because the client's list has fewer fields. */
async function list(server: string, args: readonly string[]): Promise<readonly Listed[]> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [programOf(server), ...args],
    stderr: "ignore",
  });
  const client = new Client({ name: "plue", version: "1.0.0" });
  await client.connect(transport);
  const arrived: Listed[] = [];
  const deliver = transport.onmessage;
  transport.onmessage = (message) => {
    if ("result" in message) {
      const { tools } = message.result as { readonly tools?: readonly Listed[] };
      // The tools are copied, because the client may change them.
      if (tools !== undefined) arrived.push(...structuredClone(tools));
    }
    deliver?.(message);
  };
  try {
    const { tools } = await client.listTools();
    assertEquals(arrived.map(({ name }) => name), tools.map(({ name }) => name));
    return arrived;
  } finally {
    await client.close();
  }
}

/** Checks that every target accepts the tools, or gives the reason why it rejects one. */
function checkTargets(tools: readonly Tool[]): void {
  for (const { id } of listTargets()) {
    const { names, rejected } = exportTools(tools, id);
    assertEquals(names.encodings.length + rejected.length, tools.length);
    // Only a limit on the size of a request can reject these tools.
    assertEquals(rejected.filter(({ rule }) => !rule.startsWith("max")), []);
    for (const { tool, message } of rejected) {
      assert(message.startsWith(`Cannot export "${tool}" to ${id}: `));
    }
  }
}

const inOrder = (tools: readonly Listed[]): readonly Listed[] =>
  tools.toSorted((a, b) => a.name < b.name ? -1 : 1);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "plue-mcp-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SERVERS:
  readonly (readonly [server: string, args: () => readonly string[], least: number])[] = [
    ["server-everything", () => ["stdio"], 8],
    ["server-filesystem", () => [folder], 10],
    ["server-memory", () => [], 8],
  ];

describe("the tools of the MCP servers", () => {
  for (const [server, args, least] of SERVERS) {
    it(`of ${server} are imported, exported to every target, and unchanged after a second import`, async () => {
      const listed = await list(server, args());
      assertGreater(listed.length, least);
      const { tools, rejected } = importTools("mcp", { tools: listed }, { transport: "stdio" });
      assertEquals(rejected, []);
      assertEquals(tools.length, listed.length);
      checkTargets(tools);

      const { tools: again, losses } = exportTools(tools, "mcp@2025-11-25");
      assertEquals(losses, []);
      assertEquals<unknown>(inOrder(again), inOrder(listed));
    });
  }

  maybe(GITHUB_LIST !== undefined, NO_GITHUB)(
    "of GitHub's are imported, exported to every target, and come back as they were",
    () => {
      const listed = (GITHUB_LIST?.tools ?? []) as readonly Listed[];
      const { tools, rejected } = importTools("mcp", { tools: listed });
      assertEquals([tools.length, rejected], [117, []]);
      checkTargets(tools);
      for (const target of ["mcp@2025-11-25", "mcp@2026-07-28"] as const) {
        const { tools: again, losses } = exportTools(tools, target);
        assertEquals(losses, []);
        assertEquals<unknown>(inOrder(again), inOrder(listed));
      }
    },
  );
});
