import { assertEquals, assertNotEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { fnv1a } from "../../../src/tool/mod.ts";

describe("fnv1a()", () => {
  it("is FNV-1a, for text of one byte to the character", () => {
    // From the reference of the algorithm's authors.
    assertEquals([fnv1a(""), fnv1a("a"), fnv1a("foobar")], [0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
  });

  it("is another hash with another seed and factor", () => {
    assertNotEquals(fnv1a("a", 0x9e3779b9, 0x85ebca6b), fnv1a("a"));
  });
});
