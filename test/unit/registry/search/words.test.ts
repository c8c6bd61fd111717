import { assertEquals, assertNotEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { closeWords, joinWords, splitWords, stem } from "../../../../src/registry/search/words.ts";
import data from "./words.json" with { type: "json" };

describe("splitWords()", () => {
  for (const [text, words] of data.split as [string, string][]) {
    it(`splits "${text}" into "${words}"`, () => {
      assertEquals(splitWords(text, 100).join(" "), words);
    });
  }

  it("uses pairs of letters in scripts without spaces", () => {
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
    it(`makes "${text}" one word`, () => assertEquals(joinWords(text), "filewrite"));
  }
});

describe("stem()", () => {
  for (const forms of data.stems) {
    it(`returns one stem for ${forms}`, () => {
      const stems = forms.split(" ").map(stem);
      assertEquals(stems, stems.map(() => stems[0] ?? ""));
    });
  }

  for (const [a, b] of data.apart as [string, string][]) {
    it(`distinguishes ${a} and ${b}`, () => assertNotEquals(stem(a), stem(b)));
  }

  for (const word of ["", "a", "is", "md5", "файлы", "検索", "naïves", "s3s", "as"]) {
    it(`does not change "${word}"`, () => assertEquals(stem(word), word));
  }
});

const words = (word: string, known: readonly string[]): string[] =>
  closeWords(word, known).map(([other]) => other);

describe("closeWords()", () => {
  for (const [error, typed, meant] of data.errors as [string, string, string][]) {
    it(`recognises ${error}`, () => assertEquals(words(typed, ["other", meant, "thing"]), [meant]));
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
