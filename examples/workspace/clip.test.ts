import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { clip, HeadAndTail } from "./clip.ts";

describe("clip()", () => {
  it("cuts, but not within a pair", () => {
    assertEquals(clip("abc", 3), "abc");
    assertEquals(clip("abcd", 3), "abc");
    assertEquals(clip("ab😀", 3), "ab");
  });
});

describe("HeadAndTail", () => {
  it("keeps everything up to its limit", () => {
    const text = new HeadAndTail(10);
    for (const part of ["abc", "def", "ghij"]) text.add(part);
    assertEquals([text.isCut, text.toString()], [false, "abcdefghij"]);
  });

  it("keeps the beginning and the end of more, and counts what is missing", () => {
    const text = new HeadAndTail(10);
    for (let index = 0; index < 100; index++) text.add(String(index).padStart(3, "0"));
    assertEquals(text.isCut, true);
    assertEquals(text.toString(), "00000\n… [290 characters left out] …\n98099");
  });

  it("does not tear a pair apart at either cut", () => {
    const text = new HeadAndTail(6);
    text.add("ab😀cdefg😀h");
    assertEquals(text.toString().isWellFormed(), true);
    assertStringIncludes(text.toString(), "characters left out");
  });
});
