import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { BoundedMap } from "../../../src/adapters/http/bounded_map.ts";

describe("BoundedMap", () => {
  it("drops the entry that was unused for longest", () => {
    const map = new BoundedMap<string, number>({ maxEntries: 2 });
    map.set("a", 1);
    map.set("b", 2);
    assertEquals(map.get("a"), 1);
    map.set("c", 3);
    assertEquals([map.get("a"), map.get("b"), map.get("c")], [1, undefined, 3]);
    assertEquals(map.size, 2);
  });

  it("does not take a peek for a use", () => {
    const map = new BoundedMap<string, number>({ maxEntries: 2 });
    map.set("a", 1);
    map.set("b", 2);
    assertEquals(map.peek("a"), 1);
    map.set("c", 3);
    assertEquals([map.peek("a"), map.peek("b"), map.peek("c")], [undefined, 2, 3]);
  });

  it("takes a value that is set again for a use", () => {
    const map = new BoundedMap<string, number>({ maxEntries: 2 });
    map.set("a", 1);
    map.set("b", 2);
    map.set("a", 3);
    map.set("c", 4);
    assertEquals([map.peek("a"), map.peek("b"), map.peek("c")], [3, undefined, 4]);
  });

  it("drops as many entries as the weight of a new one needs", () => {
    const map = new BoundedMap<string, string>({ maxWeight: 6, weigh: (text) => text.length });
    map.set("a", "xx");
    map.set("b", "xx");
    map.set("c", "xx");
    map.set("d", "xxxx");
    assertEquals([map.peek("a"), map.peek("b"), map.peek("c"), map.peek("d")], [
      undefined,
      undefined,
      "xx",
      "xxxx",
    ]);
    assertEquals(map.weight, 6);
  });

  it("weighs the key if weigh does", () => {
    const map = new BoundedMap<string, number>({
      maxWeight: 10,
      weigh: (_value, key) => key.length,
    });
    map.set("abc", 1);
    assertEquals(map.weight, 3);
    map.set("abc", 2);
    assertEquals(map.weight, 3);
  });

  it("does not keep an entry that is heavier than the whole map", () => {
    const map = new BoundedMap<string, string>({ maxWeight: 2, weigh: (text) => text.length });
    map.set("a", "xx");
    map.set("b", "xxx");
    assertEquals([map.peek("a"), map.peek("b")], ["xx", undefined]);
    map.set("a", "xxx");
    assertEquals([map.peek("a"), map.size, map.weight], [undefined, 0, 0]);
  });

  it("forgets one entry, and all of them", () => {
    const map = new BoundedMap<string, number>({ maxWeight: 9, weigh: () => 1 });
    map.set("a", 1);
    map.set("b", 2);
    assertEquals([map.delete("a"), map.delete("a"), map.size, map.weight], [true, false, 1, 1]);
    map.clear();
    assertEquals([map.get("b"), map.size, map.weight], [undefined, 0, 0]);
  });

  it("makes a value once", () => {
    const map = new BoundedMap<string, number | undefined>({ maxEntries: 2 });
    let made = 0;
    const make = (): undefined => void made++;
    map.getOrMake("a", make);
    map.getOrMake("a", make);
    assertEquals(made, 1);
    assertThrows(() =>
      map.getOrMake("b", () => {
        throw new Error("no");
      }), Error);
    assertEquals(map.size, 1);
  });
});
