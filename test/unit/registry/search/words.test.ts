import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { joinWords, splitWords } from "../../../../src/registry/search/words.ts";

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
