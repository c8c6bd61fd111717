import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { describe, it } from "bun:test";
import { searchFields } from "../../../../src/registry/search/fields.ts";
import { createToolIndex, type ToolIndex } from "../../../../src/registry/search/mod.ts";
import { makeTool, type Tool } from "../../../../src/tool/mod.ts";
import { describeToolIndex } from "../../../contract/tool_index_contract.ts";

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

describe("createToolIndex()", () => {
  const index = indexOf(catalogue);
  const first = (query: string): string | undefined => index.search(query, 1)[0]?.id;

  for (
    const [why, query, id] of [
      ["an id", "file-write", "file-write"],
      ["an id in another spelling", "fileWrite", "file-write"],
      ["an id in another spelling", "file.write", "file-write"],
      ["an id in one word", "filewrite", "file-write"],
      ["an id in capitals", "FILE_WRITE", "file-write"],
      ["a sentence", "write a file", "file-write"],
      ["a sentence with punctuation", "Please, write a file!", "file-write"],
      ["other forms of the words", "writing files", "file-write"],
      ["a camel-case id", "issue comment", "issueComment"],
      ["an id with an abbreviation and a number", "http server 2", "HTTPServer2Restart"],
      ["a synonym: remove", "remove a file", "file-delete"],
      ["a synonym: folder", "show folder", "file-list"],
      ["a synonym: change for commit text", "list the history of a branch", "git-log"],
      ["a synonym: shell", "shell", "terminal-execute"],
      ["a synonym: reply", "reply to an issue", "issueComment"],
      ["an abbreviation", "merge the PR", "pull_request_merge"],
      ["its plural", "open PRs", "pull_request_create"],
      ["an abbreviation in two words", "open a PR in my repo", "pull_request_create"],
      ["what CI means", "start the CI", "workflow_run"],
      ["words that are one word", "who am I", "user_me"],
      ["words that are one word", "look up a pattern", "search-grep"],
      ["a typing error", "mrege pull requst", "pull_request_merge"],
      ["two typing errors", "termnial exceute", "terminal-execute"],
      ["the beginning of a word", "netw", "network-fetch"],
      ["the beginning of a word", "downl pag", "network-fetch"],
      ["letters with accents", "fïlé dëlete", "file-delete"],
    ] as const
  ) {
    it(`finds a tool by ${why}: "${query}"`, () => {
      assertEquals(first(query), id);
    });
  }

  it("finds every tool by its own id first", () => {
    assertEquals(catalogue.map((tool) => first(tool.id)), catalogue.map((tool) => tool.id));
  });

  it("finds a tool by namespace, title, tag, category, parameter and parameter's text", () => {
    const rich = indexOf([
      ...catalogue,
      makeTool({
        name: "x1",
        namespace: "zebra",
        title: "Giraffe",
        description: "d",
        tags: ["lion"],
        category: "tiger",
        parameters: {
          type: "object",
          properties: {
            panther: { type: "string", description: "The walrus", enum: ["otter"] },
          },
        },
      }),
    ]);
    for (
      const word of ["zebra", "giraffe", "lion", "tiger", "panther", "walrus", "otter", "zebra:x1"]
    ) {
      assertEquals(rich.search(word, 1)[0]?.id, "zebra:x1", word);
    }
  });

  it("prefers a word in the name to the same word in a description", () => {
    const found = indexOf(tools("alpha: Handles a beta.", "beta: Handles an alpha."));
    assertEquals(found.search("beta", 2).map((hit) => hit.id), ["beta", "alpha"]);
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

  it("weighs what an unknown word may mean as one word", () => {
    const found = indexOf([
      makeTool({ name: "file-write", description: "Makes it new, if need be." }),
      makeTool({ name: "file-read", description: "A tool.", tags: ["read"] }),
      makeTool({ name: "git-log", description: "A tool.", tags: ["read"] }),
    ]);
    assertEquals(found.search("open a file", 1).map(({ id }) => id), ["file-read"]);
  });

  it("prefers the word itself to its synonym", () => {
    const found = indexOf(tools("drop-it: d", "remove-it: d", "delete-it: d"));
    assertEquals(found.search("remove", 1)[0]?.id, "remove-it");
  });

  it("prefers the tool that has more of what was asked for", () => {
    const found = indexOf(tools(
      "a-lists: Rare rare rare words, rare.",
      "b: Has rare and common words.",
      "c: Common words.",
    ));
    assertEquals(found.search("rare common", 1)[0]?.id, "b");
  });

  it("guesses only words that no tool has", () => {
    const found = indexOf(tools("form: Fills.", "from-x: Fills.", "fork: Fills."));
    assertEquals(found.search("fork", 5).map((hit) => hit.id), ["fork"]);
  });

  it("does not let a change of one tool show in the scores of words it lacks", () => {
    const before = indexOf(catalogue);
    const [hit] = before.search("terminal", 1);
    before.add(makeTool({ name: "file-write", description: "Something else entirely." }));
    assertEquals(before.search("terminal", 1)[0], hit);
  });

  it("finds tools in scripts without spaces and in other alphabets", () => {
    const found = indexOf(
      tools("t1: 检索代码中的文件", "t2: Ищет файлы по имени", "t3: ファイルを検索する"),
    );
    assertEquals(found.search("文件", 1)[0]?.id, "t1");
    assertEquals(found.search("ФАЙЛЫ", 1)[0]?.id, "t2");
    assertEquals(found.search("検索", 1)[0]?.id, "t3");
  });

  it("finds nothing for words that say nothing, nor for none", () => {
    assertEquals(index.search("what is it that you would do", 10), []);
    assertEquals(index.search("?!", 10), []);
    assertEquals(indexOf(tools("-: Punctuation only.")).search("", 10), []);
  });

  it("reads no more of a query than 512 characters and 32 words", () => {
    const far = `${"q ".repeat(32)} terminal`;
    assertEquals(index.search(far, 10), []);
    const long = `${"-".repeat(512)}terminal`;
    assertEquals(index.search(long, 10), []);
    assertEquals(index.search(`${"-".repeat(500)} terminal`, 1)[0]?.id, "terminal-execute");
  });

  it("gives the best of a thousand, the same ones for any limit", () => {
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

  it("keeps indexes apart", () => {
    const other = createToolIndex();
    other.add(makeTool({ name: "file-write", description: "d" }));
    other.remove("file-write");
    assert(index.search("file-write", 1).length === 1);
    assertEquals(other.search("file-write", 1), []);
  });
});

function texts(parameters?: object, more: object = {}): string[] {
  return searchFields(makeTool({ name: "n", description: "d", parameters, ...more }))
    .map(([text]) => text);
}

const NAMES = 6;
const TEXTS = 7;

describe("searchFields()", () => {
  it("gives every field of a tool", () => {
    assertEquals(
      texts(
        { type: "object", properties: { path: { type: "string", description: "Where it is" } } },
        { title: "Title", namespace: "space", tags: ["one", "two"], category: "git" },
      ),
      ["n", "Title", "space", "one two", "git", "d", "path", "Where it is"],
    );
  });

  it("reads nested parameters, in whatever way they are nested", () => {
    const deep = (name: string) => ({ type: "object", properties: { [name]: { type: "string" } } });
    const fields = texts({
      type: "object",
      properties: { top: deep("inner"), list: { type: "array", items: deep("item") } },
      anyOf: [deep("either"), deep("or")],
      $defs: { shared: deep("defined") },
    });
    assertEquals(
      fields[NAMES]?.split(" ").sort(),
      ["defined", "either", "inner", "item", "list", "or", "top"],
    );
  });

  it("reads the values that a parameter lists", () => {
    const fields = texts({
      type: "object",
      properties: {
        method: { enum: ["squash", "rebase", 3, null] },
        kind: { const: "fixed" },
      },
    });
    assertEquals(fields[NAMES]?.split(" ").sort(), ["fixed", "kind", "method", "rebase", "squash"]);
  });

  it("takes parameters with the names of keywords for parameters", () => {
    const fields = texts({
      type: "object",
      properties: {
        description: { type: "string", description: "Says what it is" },
        properties: { type: "object" },
        enum: { type: "string" },
      },
    });
    assertEquals(fields[NAMES], "description properties enum");
    assertEquals(fields[TEXTS], "Says what it is");
  });

  it("reads a large schema from its root, and not to its end", () => {
    const wide = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, index) => [`p${index}`, { description: "x".repeat(50) }]),
    );
    const fields = texts({ type: "object", properties: { ...wide, last: { properties: wide } } });
    assertEquals(fields[NAMES]?.startsWith("p0 p1 p2 "), true);
    assertLessOrEqual(fields[NAMES]?.split(" ").length ?? 0, 256);
    assertLessOrEqual(fields[TEXTS]?.length ?? 0, 8_192);
  });

  it("cuts texts that are too long", () => {
    assertEquals(texts(undefined, { description: "word ".repeat(10_000) })[5]?.length, 8_192);
  });
});
