import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { BoundedMap } from "../../../src/tool/mod.ts";

describe("BoundedMap", () => {
  it("evicts the least recently used entry", () => {
    const map = new BoundedMap<string, number>({ maxEntries: 2 });
    map.set("a", 1);
    map.set("b", 2);
    assertEquals(map.get("a"), 1);
    map.set("c", 3);
    assertEquals([map.get("b"), map.get("c"), map.get("a")], [undefined, 3, 1]);
    map.set("c", 4);
    map.set("d", 5);
    assertEquals([map.get("a"), map.get("c"), map.get("d")], [undefined, 4, 5]);
  });

  it("evicts as many entries as the weight of a new one needs", () => {
    const map = new BoundedMap<string, string>({
      maxWeight: 9,
      weigh: (text, key) => key.length + text.length,
    });
    for (const key of ["a", "b", "c"]) map.set(key, "xx");
    map.set("a", "xx");
    assertEquals(map.weight, 9);
    map.set("d", "xxxx");
    assertEquals(["a", "b", "c", "d"].map((key) => map.get(key)), [
      "xx",
      undefined,
      undefined,
      "xxxx",
    ]);
    assertEquals(map.weight, 8);
  });

  it("does not store an entry that exceeds the maximum weight", () => {
    const map = new BoundedMap<string, string>({ maxWeight: 2, weigh: (text) => text.length });
    map.set("a", "xx");
    map.set("b", "xxx");
    assertEquals([map.get("a"), map.get("b")], ["xx", undefined]);
    map.set("a", "xxx");
    assertEquals([map.get("a"), map.weight], [undefined, 0]);
  });

  it("subtracts the weight of a removed entry once", () => {
    const map = new BoundedMap<string, number>({ weigh: () => 1 });
    map.set("a", 1);
    map.set("b", 2);
    assertEquals([map.delete("a"), map.delete("a"), map.weight], [true, false, 1]);
  });
});
