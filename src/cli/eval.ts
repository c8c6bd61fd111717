/** `plue eval`: how often search offers the expected tools for recorded turns. No model is called. */

import { measureTokens } from "../finding/mod.ts";
import { exportTools } from "../formats/mod.ts";
import { searchToolsetAsync } from "../registry/search/mod.ts";
import { describeThrown, isListOf, isObject, isWord } from "../tool/mod.ts";
import { targetOf } from "./export.ts";
import { findTool, type Flags, toolsFrom } from "./show.ts";
import { EXIT, parsedJson, readInput, type Terminal, usageError } from "./terminal.ts";

/** A query, and the ids of the tools that fit it. */
interface Turn {
  readonly query: string;
  readonly expected: readonly string[];
}

/** One cell of the confusion matrix. `offered` is the first offered tool, or an empty text. */
interface Confusion {
  readonly expected: string;
  readonly offered: string;
  turns: number;
  /** The query of the first of these turns. */
  readonly query: string;
}

const DEPTHS = [1, 3, 5, 10];

/**
 * Searches for the query of each turn, and compares the offered tools with the expected ones.
 *
 * @param file JSON lines, or `-` for standard input: `{"query": "…", "tool": "id"}`. `tool` may be a
 * list of ids that all fit.
 * @returns The exit code: 1 if the recall is below `minRecall`.
 */
export async function evaluate(
  file: string,
  flags: Flags & { readonly limit?: number; readonly to: string; readonly minRecall?: number },
  terminal: Terminal,
): Promise<number> {
  const { limit = 10, minRecall = 0 } = flags;
  if (minRecall > 100) {
    throw usageError(`Cannot evaluate turns: --min-recall ${minRecall} is above 100 percent`);
  }
  const target = targetOf(flags.to);
  const recorded = await readTurns(file, terminal);
  await using loaded = await toolsFrom([], flags, terminal.io);
  const { registry, toolset } = loaded;
  const measured = measureTokens(exportTools(toolset.available(), target));
  const tokensOf = new Map(measured.tools.map(({ id, tokens }) => [id, tokens]));
  const turns = await Promise.all(recorded.map(async ({ query, expected: names }) => {
    // A tool that does not exist is an error; a hidden one is only never offered.
    const expected = names.map((id) =>
      registry.hasTool(id) ? toolset.resolve(id)?.id ?? id : findTool(registry, toolset, id).id
    );
    const offered = (await searchToolsetAsync(toolset, query, { limit })).map(({ id }) => id);
    const rank = offered.findIndex((id) => expected.includes(id)) + 1 || null;
    const tokens = offered.reduce((sum, id) => sum + (tokensOf.get(id) ?? 0), 0);
    return { query, expected, offered, rank, tokens };
  }));
  const found = (depth: number): number => turns.filter(({ rank }) => rank && rank <= depth).length;
  const percent = (depth: number): number => Math.round(1_000 * found(depth) / turns.length) / 10;
  const depths = [...DEPTHS.filter((depth) => depth < limit), limit];
  const recall = Object.fromEntries(depths.map((depth) => [depth, percent(depth)]));
  const mean = Math.round(turns.reduce((sum, { tokens }) => sum + tokens, 0) / turns.length);
  const tokens = { target, mean, all: measured.total };
  const confusion = confusionOf(turns);
  terminal.printResult({ recall, tokens, confusion, turns }, () => {
    const wrong = confusion.filter(({ expected, offered }) => expected !== offered);
    return [
      terminal.table(
        ["RANK", "TURNS", "RECALL"],
        depths.map((depth) => [`1 to ${depth}`, `${found(depth)}`, `${percent(depth)} %`]),
      ),
      `\n${mean} tokens of ${target} per turn on average, ${measured.total} for all tools`,
      ...wrong.length === 0 ? [] : [
        "",
        terminal.table(
          ["EXPECTED", "OFFERED FIRST", "TURNS", "QUERY"],
          wrong.map((one) => [one.expected, one.offered || "-", `${one.turns}`, one.query]),
        ),
      ],
    ].join("\n");
  });
  if (100 * found(limit) >= minRecall * turns.length) return EXIT.ok;
  terminal.note(`The recall is ${percent(limit)} %, below --min-recall ${minRecall}`);
  return EXIT.failed;
}

function confusionOf(
  turns: readonly (Turn & { readonly offered: readonly string[] })[],
): readonly Confusion[] {
  const cells = new Map<string, Confusion>();
  for (const { query, expected: ids, offered: [offered = ""] } of turns) {
    const expected = ids.includes(offered) ? offered : ids.join(" or ");
    const key = JSON.stringify([expected, offered]);
    const cell = cells.get(key) ?? { expected, offered, turns: 0, query };
    cell.turns++;
    cells.set(key, cell);
  }
  return [...cells.values()].sort((a, b) => b.turns - a.turns);
}

async function readTurns(file: string, { io }: Terminal): Promise<readonly Turn[]> {
  const action = `Cannot evaluate the turns of "${file}"`;
  const content = await readInput(file, io).catch((cause) => {
    throw usageError(`${action}: ${describeThrown(cause)}`, { cause });
  });
  // Trimming also removes a byte order mark.
  const lines = content.split("\n").map((line) => line.trim()).filter(isWord);
  if (lines.length === 0) throw usageError(`${action}: it has no turns`);
  return lines.map((line, at) => {
    const turn = parsedJson(line);
    const { query, tool } = isObject(turn) ? turn : {};
    const expected = isWord(tool) ? [tool] : tool;
    if (isWord(query) && isListOf(expected, isWord) && expected.length > 0) {
      return { query, expected: [...new Set(expected)] };
    }
    throw usageError(`${action}: turn ${at + 1} must be {"query": "…", "tool": "an id"}`);
  });
}
