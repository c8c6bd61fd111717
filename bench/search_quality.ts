/**
 * Measures the quality of search, with questions whose right answers are known. As a program, this
 * file prints a table for each set of questions: plue, a plain BM25, and MiniSearch with its best
 * settings. Run `bun bench/search_quality.ts [part of a set's name]`.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { makeTool, type Tool } from "../src/tool/mod.ts";
import { importOpenApi } from "../src/adapters/openapi/mod.ts";
import { GITHUB_API_QUESTIONS, SEARCH_QUESTIONS, type SearchQuestion } from "./search_questions.ts";
import { miniSearch, plainBm25, plueSearch, type Rival, RIVALS } from "./search_rivals.ts";

/** Ids of tools for a query, best first. */
export type Search = (query: string) => readonly string[];

/** A catalogue, and questions about it. */
export interface SearchSet {
  readonly name: string;
  readonly tools: readonly Tool[];
  readonly questions: readonly SearchQuestion[];
}

/** Means over questions, each 0 to 1. */
export interface SearchQuality {
  /** All wanted tools, or five of more than five, are among the first five. */
  readonly all5: number;
  /** Normalized discounted cumulative gain of the first ten. */
  readonly ndcg10: number;
  /** The share of the wanted tools (of five, if more are wanted) that is among the first five. */
  readonly recall5: number;
  /** A wanted tool is first. */
  readonly hit1: number;
  /** A wanted tool is among the first five. */
  readonly hit5: number;
  /** The reciprocal rank of the first wanted tool. */
  readonly mrr: number;
}

/** The half of the questions on which search was tuned, and the other half. */
export const TUNED: readonly SearchQuestion[] = SEARCH_QUESTIONS.filter((_, place) =>
  place % 2 === 0
);
export const HELD_OUT: readonly SearchQuestion[] = SEARCH_QUESTIONS.filter((_, place) =>
  place % 2 === 1
);

const DATA = join(import.meta.dirname, "../../shared/data");

/** The tools of GitHub's MCP server; `undefined` if there is no such file. */
export function readGithubTools(): readonly Tool[] | undefined {
  const file = join(DATA, "github-mcp-tools.json");
  if (!existsSync(file)) return undefined;
  const { tools }: {
    tools: {
      name: string;
      description: string;
      inputSchema: object;
      annotations?: { title?: string };
    }[];
  } = JSON.parse(readFileSync(file, "utf8"));
  return tools.map(({ name, description, inputSchema, annotations }) =>
    makeTool({ name, description, title: annotations?.title, parameters: inputSchema })
  );
}

/** The two halves of the questions about GitHub's REST API. */
export const API_TUNED: readonly SearchQuestion[] = GITHUB_API_QUESTIONS.filter((_, place) =>
  place % 2 === 0
);
export const API_HELD_OUT: readonly SearchQuestion[] = GITHUB_API_QUESTIONS.filter((_, place) =>
  place % 2 === 1
);

/**
 * Returns the 1,223 operations of GitHub's REST API, or `undefined` if their document is absent:
 * `generated/api.github.com.json` of the npm package `@octokit/openapi` 23.0.2. The environment
 * variable `GITHUB_OPENAPI` may name its path.
 */
export function readGithubApi(): readonly Tool[] | undefined {
  const file = process.env["GITHUB_OPENAPI"] ?? join(DATA, "api.github.com.json");
  return existsSync(file) ? importOpenApi(JSON.parse(readFileSync(file, "utf8"))).tools : undefined;
}

/** The sets of other projects, by name, without sets whose files are missing. */
export function readSearchSets(): readonly SearchSet[] {
  const folder = join(DATA, "search");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((file) => file.endsWith(".json")).sort().map((file) => {
    const { tools, queries }: {
      tools: { name: string; namespace?: string; description: string; parameters: object }[];
      queries: { q: string; want: string[] }[];
    } = JSON.parse(readFileSync(join(folder, file), "utf8"));
    // Some tools have invalid names, or no description.
    const legal = (name: string): string => name.replaceAll(/[^\w.-]+/g, "_");
    const idOf = (id: string): string => id.split(":").map(legal).join(":");
    return {
      name: file.slice(0, -5),
      tools: tools.map(({ name, namespace, description, parameters }) =>
        makeTool({
          name: legal(name),
          namespace: namespace === undefined ? undefined : legal(namespace),
          description: description.trim() || name,
          parameters,
        })
      ),
      questions: queries.map(({ q, want }) => ({ query: q, accept: want.map(idOf) })),
    };
  });
}

/** Asks every question. */
export function measureQuality(
  search: Search,
  questions: readonly SearchQuestion[],
): SearchQuality {
  const sum = { all5: 0, ndcg10: 0, recall5: 0, hit1: 0, hit5: 0, mrr: 0 };
  const gain = (place: number): number => 1 / Math.log2(place + 2);
  for (const { query, accept } of questions) {
    const isRight = search(query).map((id) => accept.includes(id));
    const place = isRight.indexOf(true);
    const found = isRight.slice(0, 5).filter(Boolean).length;
    const most = Math.min(5, accept.length);
    sum.all5 += found >= most ? 1 : 0;
    sum.recall5 += found / most;
    sum.hit1 += place === 0 ? 1 : 0;
    sum.hit5 += found > 0 ? 1 : 0;
    sum.mrr += place < 0 ? 0 : 1 / (place + 1);
    const gained = isRight.slice(0, 10).map((right, at) => right ? gain(at) : 0);
    const possible = accept.slice(0, 10).map((_, at) => gain(at));
    sum.ndcg10 += total(gained) / total(possible);
  }
  const mean = (name: keyof SearchQuality): number => sum[name] / questions.length;
  return {
    all5: mean("all5"),
    ndcg10: mean("ndcg10"),
    recall5: mean("recall5"),
    hit1: mean("hit1"),
    hit5: mean("hit5"),
    mrr: mean("mrr"),
  };
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

/** Returns the best figures of several searches. */
export function bestOf(qualities: readonly SearchQuality[]): SearchQuality {
  const best = (name: keyof SearchQuality): number =>
    Math.max(...qualities.map((quality) => quality[name]));
  return {
    all5: best("all5"),
    ndcg10: best("ndcg10"),
    recall5: best("recall5"),
    hit1: best("hit1"),
    hit5: best("hit5"),
    mrr: best("mrr"),
  };
}

const FIGURES = ["all5", "ndcg10", "recall5", "hit1", "mrr"] as const;
const SEARCHES = ["plain BM25", "MiniSearch, best of each", "plue", "plue, minScore 0"] as const;

function printQuality(): void {
  const github = readGithubTools();
  const ours: SearchSet[] = github === undefined ? [] : [
    { name: "ours, tuned half", tools: github, questions: TUNED },
    { name: "ours, untuned half", tools: github, questions: HELD_OUT },
  ];
  const api = readGithubApi();
  if (api !== undefined) {
    ours.push(
      { name: "REST API, tuned half", tools: api, questions: API_TUNED },
      { name: "REST API, untuned half", tools: api, questions: API_HELD_OUT },
    );
  }
  const sets = [...readSearchSets(), ...ours].filter(({ name }) =>
    name.includes(process.argv[2] ?? "")
  );
  if (sets.length === 0) return console.log(`Skipped: there are no sets in ${DATA}`);
  const line = (cells: readonly string[]): void =>
    console.log(`| ${cells.map((cell, at) => cell.padEnd(at === 0 ? 25 : 7)).join(" | ")} |`);
  const results = new Map<string, SearchQuality[]>();
  for (const { name, tools, questions } of sets) {
    console.log(`\n${name}: ${tools.length} tools, ${questions.length} questions\n`);
    line(["", ...FIGURES]);
    const plue = plueSearch(tools);
    const measured: readonly SearchQuality[] = [
      measureQuality(plainBm25(tools), questions),
      bestOf(
        (Object.keys(RIVALS) as Rival[]).map((rival) =>
          measureQuality(miniSearch(tools, rival), questions)
        ),
      ),
      measureQuality(plue, questions),
      measureQuality(plueSearch(tools, { minScore: 0 }), questions),
    ];
    measured.forEach((quality, at) => {
      line([SEARCHES[at] ?? "", ...FIGURES.map((figure) => quality[figure].toFixed(3))]);
      const group = /^(ours|REST)/.test(name)
        ? name.split(",")[0]
        : name.startsWith("dev_")
        ? "dev_*"
        : "others";
      const key = `${group}, ${SEARCHES[at]}`;
      results.set(key, [...results.get(key) ?? [], quality]);
    });
    // The searches are repeated until the engine has compiled the code.
    const all = Array.from({ length: 2_000 }, (_, at) => questions[at % questions.length]?.query);
    for (const query of all) plue(query ?? "");
    const before = process.cpuUsage();
    for (const query of all) plue(query ?? "");
    const { user, system } = process.cpuUsage(before);
    console.log(`\nplue: ${Math.round((user + system) / all.length)} µs of CPU a query`);
    for (const other of sets) {
      if (other.tools === tools) continue;
      const silent = other.questions.filter(({ query }) => plue(query).length === 0).length;
      const share = Math.round(100 * silent / other.questions.length);
      console.log(`no answer to ${share} % of the questions of ${other.name}`);
    }
  }
  console.log("\nmeans over sets\n");
  line(["", ...FIGURES]);
  for (const [name, qualities] of results) {
    line([
      name,
      ...FIGURES.map((figure) =>
        (total(qualities.map((quality) => quality[figure])) / qualities.length).toFixed(3)
      ),
    ]);
  }
}

if (import.meta.main) printQuality();
