import { assert, assertEquals, assertGreater, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { createToolIndex, type ToolIndex } from "../../../../src/registry/search/mod.ts";
import { makeTool, type Tool } from "../../../../src/tool/mod.ts";
import { describeToolIndex } from "../../../contract/tool_index_contract.ts";
import data from "./bm25_index.json" with { type: "json" };

describeToolIndex("createToolIndex()", createToolIndex);

function indexOf(tools: readonly Tool[]): ToolIndex {
  const index = createToolIndex();
  for (const tool of tools) index.add(tool);
  return index;
}

/** Tools by `id: description`. */
function tools(...lines: string[]): Tool[] {
  return lines.map((line) => {
    const [name = "", description = ""] = line.split(": ");
    return makeTool({ name, description });
  });
}

const catalogue = tools(
  "file-read: Reads the text of a file in the workspace.",
  "file-list: Lists the files of a directory.",
  "file-write: Writes text to a file.",
  "file-delete: Deletes a file.",
  "search-grep: Searches the files of the workspace for a pattern.",
  "terminal-execute: Runs a command in a terminal.",
  "git-status: Shows what has changed since the last commit.",
  "git-log: Lists the commits of a branch.",
  "git-commit: Commits the changes that are staged.",
  "network-fetch: Downloads a page from the web.",
  "pull_request_create: Opens a pull request in a repository.",
  "pull_request_merge: Merges a pull request.",
  "issueComment: Adds a comment to an issue.",
  "workflow_run: Starts a workflow of GitHub Actions.",
  "user_me: Gives the account of the caller.",
  "HTTPServer2Restart: Stops and starts the web server.",
);

type Ranked = [what: string, query: string, limit: number, ids: string[], tools: string[]];

describe("createToolIndex()", () => {
  const index = indexOf(catalogue);
  const first = (query: string): string | undefined => index.search(query, 1)[0]?.id;

  for (const [why, query, id] of data.found as [string, string, string][]) {
    it(`finds a tool by ${why}: "${query}"`, () => assertEquals(first(query), id));
  }

  // In quadratic time this would take minutes.
  it("reads a long run of full stops in linear time", () => {
    const description = `Sends${".".repeat(1_000_000)}x`;
    const stops = indexOf([...catalogue, makeTool({ name: "stops", description })]);
    assertEquals(stops.search("stops", 1)[0]?.id, "stops");
  });

  for (const [what, query, limit, ids, lines] of data.ranked as Ranked[]) {
    it(`prefers ${what}: "${query}"`, () => {
      const found = indexOf(tools(...lines)).search(query, limit);
      assertEquals(found.map((hit) => hit.id), ids);
      const scores = found.map(({ score }) => score);
      assertEquals(scores, scores.toSorted((a, b) => b - a));
    });
  }

  for (const [query, id] of data.scripts.found as [string, string][]) {
    it(`finds "${query}" in any script`, () => {
      assertEquals(indexOf(tools(...data.scripts.tools)).search(query, 1)[0]?.id, id);
    });
  }

  it("finds every tool by its own id first", () => {
    assertEquals(catalogue.map((tool) => first(tool.id)), catalogue.map((tool) => tool.id));
  });

  it("finds a tool by namespace, title, tag, category, parameter and parameter's text", () => {
    const rich = indexOf([...catalogue, makeTool(data.rich)]);
    for (
      const word of ["zebra", "giraffe", "lion", "tiger", "panther", "walrus", "otter", "zebra:x1"]
    ) {
      assertEquals(rich.search(word, 1)[0]?.id, "zebra:x1", word);
    }
  });

  it("prefers the word itself in a name to a synonym that fewer tools have", () => {
    // Most tools are tagged "read"; only one has "list" anywhere.
    const found = indexOf(
      ["file-read", "file-list", "search-grep", "git-status"].map((name) =>
        makeTool({ name, description: "A tool.", tags: ["read", "file"] })
      ),
    );
    assertEquals(found.search("read a file", 1).map(({ id }) => id), ["file-read"]);
    assertEquals(found.search("list files", 1).map(({ id }) => id), ["file-list"]);
  });

  const titled = (...titles: string[]): ToolIndex =>
    indexOf(
      titles.map((title, number) =>
        makeTool({ name: `t${number}`, title, description: "Calls the API." })
      ),
    );

  it("prefers the tool whose title has no other words than the query", () => {
    const found = titled("List pull request stacks", "List pull requests", "List stacks");
    assertEquals(found.search("list pull requests of a repository", 1)[0]?.id, "t1");
  });

  it("prefers the tool with the action of the query's verb", () => {
    const found = titled("Delete an issue comment", "Create an issue comment");
    assertEquals(found.search("comment on an issue", 1)[0]?.id, "t1");
    assertEquals(found.search("remove a comment on an issue", 1)[0]?.id, "t0");
  });

  it('takes "my" for the authenticated user', () => {
    const found = titled("List repositories", "List repositories for the authenticated user");
    assertEquals(found.search("list my repositories", 1)[0]?.id, "t1");
    assertEquals(found.search("repositories assigned to me", 1)[0]?.id, "t1");
    assertEquals(found.search("list repositories", 1)[0]?.id, "t0");
  });

  it("weighs what an unknown word may mean as one word", () => {
    const found = indexOf([
      makeTool({ name: "file-write", description: "Makes it new, if need be." }),
      makeTool({ name: "file-read", description: "A tool.", tags: ["read"] }),
      makeTool({ name: "git-log", description: "A tool.", tags: ["read"] }),
    ]);
    assertEquals(found.search("open a file", 1).map(({ id }) => id), ["file-read"]);
  });

  it("does not change the scores of words that a changed tool lacks", () => {
    const before = indexOf(catalogue);
    const [hit] = before.search("terminal", 1);
    before.add(makeTool({ name: "file-write", description: "Something else entirely." }));
    assertEquals(before.search("terminal", 1)[0], hit);
  });

  it("finds nothing for stop words or an empty query", () => {
    assertEquals(index.search("what is it that you would do", 10), []);
    assertEquals(index.search("?!", 10), []);
    assertEquals(indexOf(tools("-: Punctuation only.")).search("", 10), []);
  });

  it("reads no more than 8,192 characters of a query, and 512 words of a sentence", () => {
    assertEquals(index.search(`${"q ".repeat(511)} terminal`, 1)[0]?.id, "terminal-execute");
    assertEquals(index.search(`${"q ".repeat(512)} terminal`, 10), []);
    assertEquals(index.search(`${"-".repeat(8_183)} terminal`, 1)[0]?.id, "terminal-execute");
    assertEquals(index.search(`${"-".repeat(8_192)}terminal`, 10), []);
  });

  it("finds the tools for each sentence of a long question", () => {
    const question =
      "I have been at this since the morning and would like to finish it before lunch. " +
      "First, delete the temporary file that the last run has left behind in the workspace. " +
      "Then download the page that my colleague wrote about in her message. " +
      "Finally, merge the pull request.";
    const found = index.search(question, 3).map((hit) => hit.id).sort();
    assertEquals(found, ["file-delete", "network-fetch", "pull_request_merge"]);
  });

  it("finds a word with re- for a query with re-", () => {
    assertEquals(first("restart the HTTP server"), "HTTPServer2Restart");
  });

  it("returns the best of a thousand, the same ones for any limit", () => {
    const many = indexOf(
      Array.from(
        { length: 1_000 },
        (_, i) => makeTool({ name: `t${i}`, description: `${"cat ".repeat(i % 40 + 1)} and dog` }),
      ),
    );
    const all = many.search("cat dog", Infinity);
    assertEquals(all.length, 1_000);
    for (const limit of [1, 2, 7, 100, 999]) {
      assertEquals(many.search("cat dog", limit), all.slice(0, limit));
    }
  });

  it("separates indexes", () => {
    const other = createToolIndex();
    other.add(makeTool({ name: "file-write", description: "d" }));
    other.remove("file-write");
    assert(index.search("file-write", 1).length === 1);
    assertEquals(other.search("file-write", 1), []);
  });
});

describe("the hits of createToolIndex()", () => {
  const index = indexOf(catalogue);

  it("contain the found words, as typed, and their fields", () => {
    const [hit] = index.search("Show the Files of a folder", 1);
    assertEquals(hit?.id, "file-list");
    assertEquals(hit?.matches, [
      { word: "show", fields: ["name", "description"] },
      { word: "files", fields: ["name", "description"] },
      { word: "folder", fields: ["description"] },
    ]);
    assertEquals(index.search("mrege", 1)[0]?.matches, [
      { word: "mrege", fields: ["name", "description"] },
    ]);
  });

  it("score 1 for a tool with all words, and less for missing words", () => {
    assertEquals(index.search("terminal", 1)[0]?.score, 1);
    const scores = ["merge a pull request", "merge a pull request tomorrow in Rome"]
      .map((query) => index.search(query, 1)[0]?.score ?? 0);
    assertEquals(scores[0], 1);
    assertGreater(1, scores[1] ?? 1);
    assertGreater(scores[1] ?? 0, 0.1);
  });

  // The numbers are exact: different arithmetic in a runtime would change the order of some tools.
  it("are the same to the last bit on every runtime", () => {
    const query =
      "Please open a pull request for the branch. Then list the commits, and shel 检索.";
    assertEquals(index.search(query, 4).map(({ id, score }) => [id, score]), [
      ["pull_request_create", 0.2938915353565792],
      ["git-log", 0.19984747366986355],
      ["pull_request_merge", 0.16967744284128924],
      ["file-list", 0.11938082160350162],
    ]);
  });
});

describe("words that are neighbours in the query", () => {
  it("count once, however often a tool repeats them", () => {
    const [hit, other] = indexOf(tools(
      "a: Sales report, page, sales report, sales page report.",
      "b: Sales report, page, sales page, report sales report.",
      "c: Page report sales, page report sales, page report sales.",
    )).search("sales report", 3);
    assertEquals([hit?.id, other?.id], ["a", "b"]);
    assertEquals(hit?.score, other?.score);
  });

  it("do not count at the end of one field and the beginning of the next", () => {
    const index = createToolIndex();
    index.add(makeTool({ name: "x-sales", description: "Report of people." }));
    index.add(makeTool({ name: "y-sales", description: "People of a report." }));
    const [first, second] = index.search("sales report", 2);
    assertEquals([first?.id, second?.id], ["x-sales", "y-sales"]);
    assertEquals(first?.score, second?.score);
  });

  it("keep their order with a larger limit", () => {
    const words = ["sales", "report", "order", "people", "branch", "file", "page"];
    const pick = (number: number): string => words[number % words.length] ?? "";
    const index = indexOf(Array.from({ length: 300 }, (_, number) =>
      makeTool({
        name: `tool-${number}`,
        description: `${pick(number)} ${pick(number * 3 + 1)} ${pick(Math.floor(number / 7))}`,
      })));
    const query = "sales report of people. order a branch, file a page";
    const all = index.search(query, 300);
    assertGreater(all.length, 100);
    for (const limit of [1, 5, 16, 17, 40]) {
      assertEquals(index.search(query, limit), all.slice(0, limit));
    }
    assertEquals(all.map((hit) => hit.score), all.map((hit) => hit.score).sort((x, y) => y - x));
  });
});

describe("minScore", () => {
  const index = indexOf(catalogue);
  const foreign =
    "What is the weather in Lisbon on Sunday, and which restaurant near the sea has a " +
    "table for four people who do not eat fish? Answer in one page.";

  it("returns nothing for a query without a good match, by default", () => {
    assertEquals(index.search(foreign, 10), []);
    assertGreater(index.search(foreign, 10, { minScore: 0 }).length, 0);
  });

  it("applies to the best hit: the others may score less", () => {
    const scores = index.search("file text workspace", 10).map((hit) => hit.score);
    assertGreater(scores.length, 1);
    const least = scores[0] ?? 0;
    assertEquals(
      index.search("file text workspace", 10, { minScore: least }).map((hit) => hit.score),
      scores,
    );
    assertEquals(index.search("file text workspace", 10, { minScore: least + 0.001 }), []);
  });

  it("is the index's own if a search has none", () => {
    const strict = createToolIndex({ minScore: 1 });
    for (const tool of catalogue) strict.add(tool);
    assertEquals(strict.search("terminal", 1).length, 1);
    assertEquals(strict.search("terminal in Lisbon", 1), []);
    assertEquals(strict.search("terminal in Lisbon", 1, { minScore: 0 }).length, 1);
  });
});

describe("a search among the tools of a caller", () => {
  const visible = tools(
    "one: Has alpha, and a long tail of words besides it.",
    "two: Has gamma, and a long tail of words besides it.",
    "three: Has neither.",
  );
  const hidden = [
    // The query "alpha gamma" is the whole name of this tool.
    makeTool({ name: "alpha-gamma", description: "Has neither." }),
    ...Array.from(
      { length: 200 },
      (_, number) => makeTool({ name: `hidden-${number}`, description: "Has alpha. Secretword." }),
    ),
  ];
  const alone = indexOf(visible);
  const crowded = indexOf([...hidden, ...visible]);

  for (
    const query of ["alpha gamma", "gamma alpha tail", "secretword", "secretwrd alpha", "hidden"]
  ) {
    it(`answers "${query}" as if there were no others, to the last bit`, () => {
      const scope = { among: visible, minScore: 0 };
      assertEquals(crowded.search(query, 10, scope), alone.search(query, 10, { minScore: 0 }));
    });
  }

  it("guesses among their words, however many close ones others have", () => {
    const others = Array.from(
      { length: 100 },
      (_, number) =>
        makeTool({
          name: `h${number}`,
          description: `Has zebr${"abcdefghij"[number % 10]}${number}x.`,
        }),
    );
    const own = tools("mine: Has a zebracorn.");
    assertEquals(
      indexOf([...others, ...own]).search("zebr", 10, { among: own }),
      indexOf(own).search("zebr", 10),
    );
  });

  it("uses the eight most similar words for an unknown word", () => {
    const many = indexOf(
      Array.from(
        "bcdfghjklmnp",
        (letter) => makeTool({ name: `t-${letter}`, description: `Zebra${letter}o.` }),
      ),
    );
    assertEquals(many.search("zebra", 20).length, 8);
  });

  it("follows changes of the tools in it", () => {
    const index = indexOf([...hidden, ...visible]);
    const before = index.search("alpha", 10, { among: visible });
    assertEquals(before.map((hit) => hit.id), ["one"]);
    index.remove("one");
    assertEquals(index.search("alpha", 10, { among: visible }), []);
    for (const tool of visible) index.add(tool);
    assertEquals(index.search("alpha", 10, { among: visible }), before);
  });

  it("finds nothing among no tools", () => {
    assertEquals(crowded.search("alpha", 10, { among: [] }), []);
  });
});

describe("synonyms", () => {
  const lists = [
    ...catalogue,
    makeTool({ name: "order-ship", description: "Ships a sales order." }),
    makeTool({ name: "invoice-send", description: "Sends an invoice." }),
  ];
  const index = createToolIndex({ synonyms: ["Bill  invoice, receipt", "SO = sales order"] });
  for (const tool of lists) index.add(tool);
  const first = (query: string): string | undefined => index.search(query, 1)[0]?.id;

  it("are added to plue's own words", () => {
    assertEquals(first("the bills"), "invoice-send");
    assertEquals(first("receipt"), "invoice-send");
    assertEquals(first("ship the SO"), "order-ship");
    assertEquals(first("remove a file"), "file-delete");
  });

  it("belong to one index", () => assertEquals(indexOf(lists).search("receipt", 1), []));

  for (const [what, synonyms] of data.synonyms as [string, unknown][]) {
    it(`are rejected: ${what}`, () => {
      assertThrows(
        () => createToolIndex({ synonyms: synonyms as unknown as string[] }),
        TypeError,
        'Cannot make a search index: "/synonyms" must be a list of texts like "bill invoice" or ' +
          '"so = sales order"',
      );
    });
  }

  it("and minScore are the only options", () => {
    assertThrows(
      () => createToolIndex({ synonym: [] } as object),
      TypeError,
      'Cannot make a search index: "/synonym" is not one of its fields: did you mean "synonyms"?',
    );
    assertThrows(
      () => createToolIndex({ minScore: 2 }),
      RangeError,
      "must be a number from 0 to 1",
    );
  });
});
