import { ToolRegistry } from "@plue/tools";
import { describe, it } from "bun:test";
import { assertEquals, assertStrictEquals } from "@std/assert";
import { ListingWatch } from "../../../src/adapters/http/mod.ts";

describe("ListingWatch", () => {
  it("compares two listings once for all streams of callers with the same tools", async () => {
    const registry = new ToolRegistry({ tools: [{ name: "one", description: "Is listed." }] });
    const watch = () =>
      new ListingWatch({
        registry,
        list: () => registry.select().available(),
        expiresAt: undefined,
        onStop() {},
      });
    const [first, second] = [watch(), watch()];
    const both = Promise.all([first.changes(), second.changes()]);
    registry.registerTool({ name: "two", description: "Is added." });
    const [left, right] = await both;
    assertEquals(left, [{ type: "added", id: "two" }]);
    assertStrictEquals(left, right);
    first.stop();
    second.stop();
  });
});
