import { assertEquals, assertNotEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { closeWords, joinWords, splitWords, stem } from "../../../../src/registry/search/words.ts";

describe("splitWords()", () => {
  for (
    const [text, words] of [
      ["", ""],
      ["file-write", "file write"],
      ["file_write.now", "file write now"],
      ["fileWrite", "file write filewrite"],
      ["FileWrite", "file write filewrite"],
      ["HTTPServer2", "http server 2 httpserver2"],
      ["getURL", "get url geturl"],
      ["list PRs and IDs", "list prs and ids"],
      ["sha256", "sha 256 sha256"],
      ["Write a FILE!", "write a file"],
      ["chain:status", "chain status"],
      ["don't", "don t"],
      ["Café CAFÉ cafe\u0301", "cafe cafe cafe"],
      ["ＦＵＬＬ ｗｉｄｔｈ ﬁle", "full width file"],
      ["Поиск файла", "поиск фаила"],
      ["ΑΡΧΕΙΟ", "αρχειο"],
      ["हिन्दी खोज", "हिन्दी खोज"],
      ["파일 쓰기", "파일 쓰기"],
      ["İstanbul", "istanbul"],
    ] as const
  ) {
    it(`splits "${text}" into "${words}"`, () => {
      assertEquals(splitWords(text, 100).join(" "), words);
    });
  }

  it("takes pairs of letters where words are not spaced", () => {
    assertEquals(splitWords("検索する", 100), ["検索", "索す", "する"]);
    assertEquals(splitWords("文", 100), ["文"]);
    assertEquals(splitWords("𠮷野家", 100), ["𠮷野", "野家"]);
  });

  it("stops at the limit, also within an identifier and a run of letters", () => {
    assertEquals(splitWords("one two three four", 3), ["one", "two", "three"]);
    assertEquals(splitWords("oneTwoThreeFour", 3), ["one", "two", "three"]);
    assertEquals(splitWords("文".repeat(50), 3).length, 3);
  });

  it("cuts a word that is too long", () => {
    assertEquals(splitWords("x".repeat(1_000), 10).map((word) => word.length), [48]);
  });
});

describe("joinWords()", () => {
  for (const text of ["file-write", "fileWrite", "FILE WRITE", "file.write", " File_Write! "]) {
    it(`makes "${text}" one word`, () => {
      assertEquals(joinWords(text), "filewrite");
    });
  }
});

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
    it(`leaves "${word}" unchanged`, () => {
      assertEquals(stem(word), word);
    });
  }
});

const words = (word: string, known: readonly string[]): string[] =>
  closeWords(word, known).map(([other]) => other);

describe("closeWords()", () => {
  for (
    const [error, typed, meant] of [
      ["a letter swapped with the next", "mrege", "merge"],
      ["a missing letter", "brnch", "branch"],
      ["a letter too many", "fileld", "field"],
      ["a wrong letter", "serch", "sarch"],
      ["a missing first letter", "elete", "delete"],
      ["two errors in a long word", "reposotiry", "repository"],
      ["a missing end", "repos", "repository"],
    ] as const
  ) {
    it(`sees ${error}`, () => {
      assertEquals(words(typed, ["other", meant, "thing"]), [meant]);
    });
  }

  it("allows no error below four letters, one below eight, two from there on", () => {
    assertEquals(words("cat", ["cut"]), []);
    assertEquals(
      words("colour", ["cloors", "color", "colouring"]),
      ["colouring", "color"].toSorted((a) => a === "color" ? -1 : 1),
    );
    assertEquals(words("workflow", ["werkflaw"]), ["werkflaw"]);
    assertEquals(words("workflow", ["werkflaws"]), []);
  });

  it("prefers fewer errors, then a longer beginning, then code-unit order", () => {
    assertEquals(
      closeWords("abcdefgh", ["abcdefxy", "abcdefgz", "abcdefghijkl", "abcdefga"]),
      [["abcdefga", 1], ["abcdefgz", 1], ["abcdefghijkl", 0.5 + 8 / 12 / 2], ["abcdefxy", 0.5]],
    );
  });

  it("guesses nothing for numbers, nor for the beginnings of one or two letters", () => {
    assertEquals(words("v12", ["v123"]), []);
    assertEquals(words("40", ["404"]), []);
    assertEquals(words("wo", ["word"]), []);
    assertEquals(words("文", ["文件"]), ["文件"]);
  });
});
