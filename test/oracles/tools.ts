/** Tools for the oracles: with every field, and GitHub's 117 if that list is available. */

import { existsSync, readFileSync } from "node:fs";
import { createToolBridge } from "../../src/finding/mod.ts";
import { importTools } from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { makeTool, type Tool, type ToolDefinition } from "../../src/tool/mod.ts";
import data from "./tools.json" with { type: "json" };

const toolsIn = (list: readonly unknown[]): readonly Tool[] =>
  Object.freeze(list.map((tool) => makeTool(tool as ToolDefinition)));

/** Tools that every strict mode supports. */
export const SIMPLE: readonly Tool[] = toolsIn(data.simple);

/** Tools whose schemas need a transform, or lose something, at most targets. */
export const HARD: readonly Tool[] = toolsIn(data.hard);

/** Tools with hints for providers. */
export const HINTED: readonly Tool[] = toolsIn(data.hinted);
const GITHUB_FILE = new URL("../../../shared/data/github-mcp-tools.json", import.meta.url);

/** The list that GitHub's server returns; `undefined` if the file does not exist. */
export const GITHUB_LIST: { readonly tools: readonly unknown[] } | undefined =
  existsSync(GITHUB_FILE) ? JSON.parse(readFileSync(GITHUB_FILE, "utf8")) : undefined;

/** The reason why tests of GitHub's tools are skipped. */
export const NO_GITHUB = "../shared/data/github-mcp-tools.json is not there";

/** GitHub's tools; empty if the list does not exist. */
export const GITHUB: readonly Tool[] = GITHUB_LIST === undefined
  ? Object.freeze([])
  : importTools("mcp", GITHUB_LIST, { namespace: "github" }).tools;

/** All tools above, and the tools of a bridge. */
export const ALL: readonly Tool[] = Object.freeze([
  ...createToolBridge(buildToolset([])),
  ...SIMPLE,
  ...HARD,
  ...HINTED,
  ...GITHUB,
]);
