import { describe, it } from "bun:test";
import { assertEquals, assertNotEquals } from "@std/assert";
import { stem } from "../../../../src/registry/search/stem.ts";

describe("stem()", () => {
  for (
    const forms of [
      "delete deletes deleted deleting deletion",
      "create creates created creating creation",
      "add adds added adding",
      "file files",
      "issue issues",
      "branch branches",
      "query queries querying queried",
      "repository repositories",
      "copy copies copied copying",
      "run runs running",
      "commit commits committed committing",
      "tag tags tagged tagging",
      "merge merges merged merging",
      "assign assigns assigned assignment assignments",
      "deploy deploys deployed deploying deployment",
      "read reads reading reader readers",
      "filter filters filtered filtering",
      "class classes",
      "status statuses",
      "index indexes indexed indexing",
      "address addresses addressed",
      "tree trees",
      "pr prs",
    ]
  ) {
    it(`gives one stem to ${forms}`, () => {
      const stems = forms.split(" ").map(stem);
      assertEquals(stems, stems.map(() => stems[0] ?? ""));
    });
  }

  for (
    const [a, b] of [
      ["string", "str"],
      ["comment", "com"],
      ["read", "red"],
      ["list", "lister2"],
      ["file", "field"],
      ["status", "state"],
      ["need", "new"],
      ["issue", "is"],
    ] as const
  ) {
    it(`keeps ${a} and ${b} apart`, () => {
      assertNotEquals(stem(a), stem(b));
    });
  }

  for (const word of ["", "a", "is", "md5", "файлы", "検索", "naïves", "s3s", "as"]) {
    it(`leaves "${word}" as it is`, () => {
      assertEquals(stem(word), word);
    });
  }
});
