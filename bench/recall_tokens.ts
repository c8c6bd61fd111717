/**
 * Recall and tokens: the percentage of the required tools that a model sees, with search, a budget,
 * the bridge, and all tools. `bun bench/recall_tokens.ts` prints it, and draws
 * `docs/recall_tokens.svg`. The questions are those on which search was not tuned.
 */

import { writeFileSync } from "node:fs";
import { table } from "../scripts/lib/table.mjs";
import { ToolDispatcher, ToolRegistry } from "../mod.ts";
import { countTokens, createToolBridge, fitBudget, measureTokens } from "../src/finding/mod.ts";
import { exportTools } from "../src/formats/mod.ts";
import { searchToolset } from "../src/registry/mod.ts";
import { HELD_OUT, readGithubTools, readSearchSets, type SearchSet } from "./search_quality.ts";

/** The path of the picture. */
export const PICTURE: URL = new URL("../docs/recall_tokens.svg", import.meta.url);

/** This target has no limit on the number of tools. */
const TARGET = "anthropic";
const SHOWN = [1, 2, 3, 5, 10, 20, 50];
const BUDGETS = [125, 500, 2_000, 8_000];

/** The figures of one method: means over the questions. */
export interface Point {
  readonly tokens: number;
  /** The share of the wanted tools that is shown, 0 to 1. */
  readonly recall: number;
}

/** A way to show tools, with points from few tools to many. */
export interface Way {
  readonly name: string;
  readonly points: readonly Point[];
}

/** A catalogue, and the figures of each way for it. */
export interface Panel {
  readonly title: string;
  readonly ways: readonly Way[];
}

/** The existing catalogues with questions. */
export function readPanels(): readonly SearchSet[] {
  const github = readGithubTools();
  const live = readSearchSets().find(({ name }) => name === "dev_livemcp");
  return [
    ...github === undefined ? [] : [{ name: "GitHub", tools: github, questions: HELD_OUT }],
    ...live === undefined ? [] : [{ ...live, name: "LiveMCPBench" }],
  ];
}

/** Measures what is drawn. */
export async function measurePanel({ name, tools, questions }: SearchSet): Promise<Panel> {
  const toolset = new ToolRegistry({ tools }).select();
  const bridge = createToolBridge(toolset, { native: false });
  const bridgeTokens = measureTokens(exportTools(bridge, TARGET)).total;
  const dispatcher = new ToolDispatcher(bridge);
  const answers = await Promise.all(
    SHOWN.map((limit) =>
      Promise.all(questions.map(async ({ query }) => {
        const answer = await dispatcher.dispatch({
          name: "search_tools",
          arguments: { query, limit },
        });
        if (!answer.ok) throw new Error(`Cannot ask the bridge: ${answer.error.message}`);
        return bridgeTokens + countTokens(JSON.stringify(answer.content));
      }))
    ),
  );
  const all = measureTokens(exportTools(toolset, TARGET));
  const costs = new Map(all.tools.map(({ id, tokens }) => [id, tokens]));
  const sum = (ids: readonly string[]): number =>
    ids.reduce((sum, id) => sum + (costs.get(id) ?? 0), 0);
  const found = questions.map(({ query }) =>
    searchToolset(toolset, query, { limit: Math.max(...SHOWN) }).map(({ id }) => id)
  );
  /** The mean over the questions. */
  const mean = (show: (question: number) => { tokens: number; ids: readonly string[] }): Point => {
    let tokens = 0;
    let recall = 0;
    questions.forEach(({ accept }, question) => {
      const shown = show(question);
      tokens += shown.tokens / questions.length;
      recall += accept.filter((id) => shown.ids.includes(id)).length / accept.length /
        questions.length;
    });
    return { tokens, recall };
  };
  return {
    title: `${tools.length} tools of ${name}, ${questions.length} questions`,
    ways: [
      {
        name: "the best tools of a search",
        points: SHOWN.map((count) =>
          mean((question) => {
            const ids = found[question]?.slice(0, count) ?? [];
            return { ids, tokens: sum(ids) };
          })
        ),
      },
      {
        name: "fitBudget with the question",
        points: BUDGETS.map((tokens) =>
          mean((question) => {
            const query = questions[question]?.query ?? "";
            try {
              const fitted = fitBudget(toolset, { tokens, query, target: TARGET });
              return { tokens: fitted.tokens, ids: fitted.tools.map(({ id }) => id) };
            } catch (error) {
              // Not even one tool fits.
              if (error instanceof RangeError) return { tokens: 0, ids: [] };
              throw error;
            }
          })
        ),
      },
      {
        name: "the bridge and one search of it",
        points: SHOWN.map((count, at) =>
          mean((question) => ({
            ids: found[question]?.slice(0, count) ?? [],
            tokens: answers[at]?.[question] ?? 0,
          }))
        ),
      },
      { name: "all tools", points: [{ tokens: all.total, recall: 1 }] },
    ],
  };
}

const WIDTH = 760;
const HEIGHT = 300;
/** The position of a panel's axes. */
const LEFT = 56;
const RIGHT = WIDTH - 40;
const TOP = 44;
const BOTTOM = HEIGHT - 44;
/** The axis of tokens is logarithmic, from 50 to 100,000. */
const FEWEST = 50;
const MOST = 100_000;

/** Draws panels, one below the other, as SVG. Supports light and dark mode. */
export function drawPanels(panels: readonly Panel[]): string {
  const height = HEIGHT * panels.length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Recall against tokens">`,
    `<style>
  svg { --ink: #1f2328; --grid: #d8dee4; --w0: #0969da; --w1: #bc4c00; --w2: #1a7f37; --w3: #59636e; background: #fff }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --grid: #30363d; --w0: #4493f8; --w1: #f0883e; --w2: #3fb950; --w3: #9198a1; background: #0d1117 }
  }
  text { font: 12px system-ui, sans-serif; fill: var(--ink) }
  .title { font-weight: 600 }
  .grid { stroke: var(--grid) }
  .line { fill: none; stroke-width: 2 }
</style>`,
    ...panels.map((panel, index) =>
      `<g transform="translate(0 ${HEIGHT * index})">${drawPanel(panel)}</g>`
    ),
    "</svg>",
    "",
  ].join("\n");
}

function drawPanel({ title, ways }: Panel): string {
  const text = (x: number, y: number, text: string, rest = ""): string =>
    `<text x="${x}" y="${y}"${rest}>${text}</text>`;
  const rule = (x1: number, y1: number, x2: number, y2: number): string =>
    `<line class="grid" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
  const parts = [text(LEFT, 20, title, ' class="title"')];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(rule(LEFT, yOf(share), RIGHT, yOf(share)));
    parts.push(text(LEFT - 8, yOf(share) + 4, String(share), ' text-anchor="end"'));
  }
  for (const tokens of [100, 1_000, 10_000, 100_000]) {
    parts.push(rule(xOf(tokens), TOP, xOf(tokens), BOTTOM));
    parts.push(
      text(xOf(tokens), BOTTOM + 18, tokens.toLocaleString("en"), ' text-anchor="middle"'),
    );
  }
  parts.push(
    text(
      LEFT,
      BOTTOM + 36,
      "tokens that are shown; upwards, the percentage of the wanted tools among them",
    ),
  );
  ways.forEach(({ name, points }, index) => {
    const places = points.map(({ tokens, recall }) => [xOf(tokens), yOf(recall)] as const);
    const colour = `var(--w${index})`;
    if (places.length > 1) {
      const path = places.map(([x, y]) => `${x},${y}`).join(" ");
      parts.push(`<polyline class="line" stroke="${colour}" points="${path}"/>`);
    }
    for (const [x, y] of places) {
      parts.push(`<circle cx="${x}" cy="${y}" r="3.5" fill="${colour}"/>`);
    }
    const y = BOTTOM - 14 - 18 * (ways.length - 1 - index);
    parts.push(`<circle cx="${RIGHT - 216}" cy="${y - 4}" r="4" fill="${colour}"/>`);
    parts.push(text(RIGHT - 204, y, name));
  });
  return parts.join("\n");
}

function xOf(tokens: number): number {
  const share = Math.log(Math.max(tokens, FEWEST) / FEWEST) / Math.log(MOST / FEWEST);
  return round(LEFT + share * (RIGHT - LEFT));
}

function yOf(recall: number): number {
  return round(BOTTOM - recall * (BOTTOM - TOP));
}

/** Rounds a position, because engines differ in the last bits of a logarithm. */
function round(place: number): number {
  return Math.round(10 * place) / 10;
}

async function main(): Promise<void> {
  const sets = readPanels();
  if (sets.length === 0) return console.log("Skipped: no catalogue exists");
  const panels = await Promise.all(sets.map(measurePanel));
  for (const { title, ways } of panels) {
    console.log(`\n${title}\n`);
    const rows = ways.flatMap(({ name, points }) =>
      points.map(({ tokens, recall }) => [name, String(Math.round(tokens)), recall.toFixed(3)])
    );
    console.log(table(["", "tokens", "recall"], rows));
  }
  writeFileSync(PICTURE, drawPanels(panels));
}

if (import.meta.main) await main();
