/**
 * Measures the quality of a search, with questions whose right answers are known.
 *
 * @module
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTool, type Tool } from "../src/tool/mod.ts";
import { SEARCH_QUESTIONS, type SearchQuestion } from "./search_questions.ts";

/** Names of tools for a query, best first. */
export type Search = (query: string) => readonly string[];

/** Means over questions, each 0 to 1. */
export interface SearchQuality {
  /** An acceptable tool is first. */
  readonly hit1: number;
  /** An acceptable tool is among the first five. */
  readonly hit5: number;
  /** The share of the acceptable tools that is among the first five (of five, if there are more). */
  readonly recall5: number;
  /** One over the place of the first acceptable tool. */
  readonly mrr: number;
}

/** The half that was tuned on, and the half that was not. */
export const TUNED: readonly SearchQuestion[] = SEARCH_QUESTIONS.filter((_, place) =>
  place % 2 === 0
);
export const HELD_OUT: readonly SearchQuestion[] = SEARCH_QUESTIONS.filter((_, place) =>
  place % 2 === 1
);

const DATA = join(import.meta.dirname, "../../shared/data/github-mcp-tools.json");

/** The tools of GitHub's MCP server; `undefined` where the file is not there. */
export function readGithubTools(): readonly Tool[] | undefined {
  if (!existsSync(DATA)) return undefined;
  const { tools }: {
    tools: {
      name: string;
      description: string;
      inputSchema: object;
      annotations?: { title?: string };
    }[];
  } = JSON.parse(readFileSync(DATA, "utf8"));
  return tools.map(({ name, description, inputSchema, annotations }) =>
    makeTool({ name, description, title: annotations?.title, parameters: inputSchema })
  );
}

/** Asks every question. */
export function measureQuality(
  search: Search,
  questions: readonly SearchQuestion[],
): SearchQuality {
  const sum = { hit1: 0, hit5: 0, recall5: 0, mrr: 0 };
  for (const { query, accept } of questions) {
    const names = search(query);
    const place = names.findIndex((name) => accept.includes(name));
    const found = names.slice(0, 5).filter((name) => accept.includes(name)).length;
    sum.hit1 += place === 0 ? 1 : 0;
    sum.hit5 += found > 0 ? 1 : 0;
    sum.recall5 += found / Math.min(5, accept.length);
    sum.mrr += place < 0 ? 0 : 1 / (place + 1);
  }
  const count = questions.length;
  return {
    hit1: sum.hit1 / count,
    hit5: sum.hit5 / count,
    recall5: sum.recall5 / count,
    mrr: sum.mrr / count,
  };
}
