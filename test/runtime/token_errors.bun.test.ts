import { describe } from "bun:test";
import { assertLess } from "@std/assert";
import { CATALOGUES, ourTools, readCatalogue, tokenErrors } from "../../bench/token_errors.ts";
import { maybe } from "../support/skip.ts";

/** The share of large catalogues that is counted: counting real tokens takes long. */
const MAX_TOOLS = 500;

const catalogues = [
  ["this repository", ourTools()] as const,
  ...Object.entries(CATALOGUES).map(([name, file]) => {
    const all = readCatalogue(file);
    const every = Math.ceil((all?.length ?? 0) / MAX_TOOLS);
    return [name, all?.filter((_, at) => at % every === 0)] as const;
  }),
];

describe("the estimate of tokens", () => {
  for (const [name, tools] of catalogues) {
    const withTools = maybe(tools !== undefined, "../shared/data is not there");
    for (const target of ["anthropic", "openai.chat", "mcp@2026-07-28", "gemini"] as const) {
      withTools(`is close to o200k for ${target}, over the tools of ${name}`, () => {
        const { median, p95, whole } = tokenErrors(tools ?? [], target);
        assertLess(median, 0.05);
        assertLess(p95, 0.1);
        assertLess(whole, 0.05);
      });
    }
  }
});
