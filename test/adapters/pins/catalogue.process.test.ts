// Real definitions, which are not in this repository: the tests are skipped where they are absent.

import { describe } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { maybe } from "../../support/skip.ts";
import { holdsBackChanges, letsOrdersIn } from "./catalogue_laws.ts";
import type { ListedTool } from "./mutate.ts";

const FILE = new URL("../../../../shared/data/github-mcp-tools.json", import.meta.url);
const there = existsSync(FILE);
const withData = maybe(there, "../shared/data/github-mcp-tools.json is not there");
const tools: readonly ListedTool[] = there ? JSON.parse(readFileSync(FILE, "utf8")).tools : [];

describe("toolPins() and the tools of GitHub's MCP server", () => {
  withData("holds back every changed tool", () => holdsBackChanges(tools));

  withData("holds back no tool whose lists have another order", () => letsOrdersIn(tools));
});
