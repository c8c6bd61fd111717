/**
 * The errors of the token estimate relative to OpenAI's o200k, tool by tool, over several
 * catalogues. `tokens.bench.ts` prints the errors, and `test/runtime/token_errors.bun.test.ts`
 * limits them.
 */

import { countTokens as countO200k } from "gpt-tokenizer/encoding/o200k_base";
import { existsSync, readFileSync } from "node:fs";
import { workspaceTools } from "../examples/workspace/mod.ts";
import { measureTokens } from "../src/finding/mod.ts";
import { exportTools, type TargetName } from "../src/formats/mod.ts";
import { makeTool, type Tool } from "../src/tool/mod.ts";
import { makeCatalogue } from "./search_catalogue.ts";

/** The folder of other projects' catalogues. */
const DATA = new URL("../../shared/data/", import.meta.url);

/** Catalogues of other projects: the name and the file of each. */
export const CATALOGUES: Readonly<Record<string, string>> = {
  GitHub: "github-mcp-tools.json",
  LiveMCPBench: "search/dev_livemcp.json",
  MetaTool: "search/dev_metatool.json",
  "Seal-Tools": "search/dev_sealtools.json",
};

interface FileTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: object;
  readonly inputSchema?: object;
}

/** The tools of a catalogue, each with a unique name; `undefined` if its file does not exist. */
export function readCatalogue(file: string): readonly Tool[] | undefined {
  const url = new URL(file, DATA);
  if (!existsSync(url)) return undefined;
  const { tools } = JSON.parse(readFileSync(url, "utf8")) as { readonly tools: FileTool[] };
  const seen = new Set<string>();
  return tools.flatMap(({ name, description, parameters, inputSchema }) => {
    const id = name.replace(/[^\w.-]/g, "_").slice(0, 128);
    if (seen.has(id)) return [];
    seen.add(id);
    return [makeTool({
      name: id,
      description: description?.trim() || name,
      parameters: { ...(parameters ?? inputSchema), type: "object" },
    })];
  });
}

/** The tools of an example of this repository, and generated tools. */
export function ourTools(): readonly Tool[] {
  return [...workspaceTools, ...makeCatalogue(100)];
}

/** The relative errors for the tools of an export, and for the whole export. */
export interface TokenErrors {
  readonly tools: number;
  readonly median: number;
  readonly p95: number;
  readonly max: number;
  readonly whole: number;
}

/** The number of tools per export: some targets accept at most 128. */
const AT_ONCE = 100;

/** Compares the estimate with o200k, over exports of the tools to a target. */
export function tokenErrors(tools: readonly Tool[], target: TargetName): TokenErrors {
  const error = (estimate: number, truth: number): number => Math.abs(estimate - truth) / truth;
  const errors: number[] = [];
  let estimate = 0;
  let truth = 0;
  for (let from = 0; from < tools.length; from += AT_ONCE) {
    const exported = exportTools(tools.slice(from, from + AT_ONCE), target);
    const estimated = measureTokens(exported);
    const real = measureTokens(exported, countO200k);
    estimated.tools.forEach(({ tokens }, index) => {
      errors.push(error(tokens, real.tools[index]?.tokens ?? NaN));
    });
    estimate += estimated.total;
    truth += real.total;
  }
  errors.sort((a, b) => a - b);
  return {
    tools: errors.length,
    median: errors[errors.length >> 1] ?? NaN,
    p95: errors[Math.floor(errors.length * 0.95)] ?? NaN,
    max: errors.at(-1) ?? NaN,
    whole: error(estimate, truth),
  };
}
