/**
 * The errors of the token estimate relative to OpenAI's o200k: relative errors per tool and of the
 * whole, by catalogue and target; and the time to count.
 */

import { countTokens as countO200k } from "gpt-tokenizer/encoding/o200k_base";
import { table } from "../scripts/lib/table.mjs";
import { countTokens } from "../src/finding/mod.ts";
import type { Tool } from "../src/tool/mod.ts";
import { CATALOGUES, ourTools, readCatalogue, tokenErrors } from "./token_errors.ts";

const TARGETS = ["anthropic", "mcp@2026-07-28", "gemini"] as const;

const catalogues: [string, readonly Tool[] | undefined][] = [
  ["ours", ourTools()],
  ...Object.entries(CATALOGUES).map(([name, file]): [string, readonly Tool[] | undefined] => [
    name,
    readCatalogue(file),
  ]),
];
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const rows = catalogues.flatMap(([name, tools]) =>
  tools === undefined ? [[name, "-", "not here", "", "", "", ""]] : TARGETS.map((target) => {
    const { tools: count, median, p95, max, whole } = tokenErrors(tools, target);
    return [name, target, String(count), ...[median, p95, max, whole].map(percent)];
  })
);
console.log(table(["catalogue", "target", "tools", "median", "p95", "max", "whole"], rows));

const text = JSON.stringify(ourTools()).repeat(10);
for (const [name, count] of Object.entries({ countTokens, "gpt-tokenizer": countO200k })) {
  count(text);
  const start = performance.now();
  count(text);
  console.log(`${name}: ${(text.length / 1_000 / (performance.now() - start)).toFixed(1)} MB/s`);
}
