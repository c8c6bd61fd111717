import { describe } from "bun:test";
import { assertEquals, assertGreater, assertGreaterOrEqual } from "@std/assert";
import { HELD_OUT, measureQuality, readGithubTools } from "../../bench/search_quality.ts";
import { SEARCH_QUESTIONS } from "../../bench/search_questions.ts";
import { miniSearch, plueSearch, type Rival, RIVALS } from "../../bench/search_rivals.ts";
import { maybe } from "../support/skip.ts";

const github = readGithubTools();
const tools = github ?? [];
const withData = maybe(github !== undefined, "../shared/data/github-mcp-tools.json is not there");

describe("search over the tools of GitHub's MCP server", () => {
  withData("has only answers that exist, to questions that differ", () => {
    const names = new Set(tools.map((tool) => tool.name));
    assertEquals(
      SEARCH_QUESTIONS.flatMap(({ accept }) => accept.filter((name) => !names.has(name))),
      [],
    );
    assertEquals(new Set(SEARCH_QUESTIONS.map(({ query }) => query)).size, SEARCH_QUESTIONS.length);
  });

  withData("finds an answer among the first five, and most of them", () => {
    const all = measureQuality(plueSearch(tools), SEARCH_QUESTIONS);
    assertGreaterOrEqual(all.recall5, 0.89);
    assertGreaterOrEqual(all.hit5, 0.92);
    assertGreaterOrEqual(all.mrr, 0.8);
  });

  withData("is as good on the questions that it was not tuned on", () => {
    assertGreaterOrEqual(measureQuality(plueSearch(tools), HELD_OUT).recall5, 0.88);
  });

  for (const rival of Object.keys(RIVALS) as Rival[]) {
    withData(`is better than ${rival}, at recall and in order`, () => {
      const plue = measureQuality(plueSearch(tools), SEARCH_QUESTIONS);
      const other = measureQuality(miniSearch(tools, rival), SEARCH_QUESTIONS);
      assertGreater(plue.recall5, other.recall5 + 0.03);
      assertGreater(plue.mrr, other.mrr + 0.05);
    });
  }

  withData("finds every tool by its name first, in four spellings", () => {
    const search = plueSearch(tools);
    for (const { name } of tools) {
      const words = name.split("_");
      const camel = words.map((word, i) => i === 0 ? word : word[0]?.toUpperCase() + word.slice(1));
      for (const query of [name, name.toUpperCase(), words.join(" "), camel.join("")]) {
        assertEquals(search(query)[0], name, query);
      }
    }
  });
});
