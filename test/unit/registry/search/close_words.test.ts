import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { closeWords } from "../../../../src/registry/search/close_words.ts";

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

  it("gives eight at most", () => {
    const known = Array.from({ length: 100 }, (_, index) => `word${index}`);
    assertEquals(words("wor", known).length, 8);
  });
});
