import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { searchToolset, type ToolIndex } from "../../../../src/registry/mod.ts";
import { buildToolset, ToolsetBuilder } from "../../../../src/select/mod.ts";
import type { Tool } from "../../../../src/tool/mod.ts";
import { fakeRegistry, fakeTool } from "../fakes.ts";

function ids(tools: readonly { readonly id: string }[]): string[] {
  return tools.map(({ id }) => id);
}

/** An index that finds every tool, the last by id first, and counts what is asked of it. */
class LastFirstIndex implements ToolIndex {
  readonly ids: Set<string> = new Set();
  readonly asked: number[] = [];
  fails = false;

  add({ id }: Tool): void {
    if (this.fails) throw new Error("The index is full");
    this.ids.add(id);
  }

  remove(id: string): void {
    this.ids.delete(id);
  }

  search(_query: string, limit: number) {
    this.asked.push(limit);
    return [...this.ids].sort().reverse().slice(0, limit).map((id) => ({ id, score: 1 }));
  }
}

describe("ToolRegistry.searchTools()", () => {
  it("finds file-write under all its spellings", () => {
    const registry = fakeRegistry({
      tools: [
        fakeTool("file-read", { description: "Reads a file." }),
        fakeTool("file-write", { description: "Writes a file." }),
        fakeTool("echo"),
      ],
    });
    for (const query of ["file-write", "fileWrite", "write a file", "FILE WRITE!"]) {
      assertEquals(registry.searchTools(query)[0]?.id, "file-write");
    }
  });

  it('"Returns available tools that match any of these fields": all, unless a limit is given', () => {
    const tools = Array.from({ length: 30 }, (_, number) => fakeTool(`file-${number}`));
    const registry = fakeRegistry({ tools });
    assertEquals(registry.searchTools("file").length, 30);
    assertEquals(registry.searchTools("file", { limit: 3 }).length, 3);
  });

  it("follows changes", () => {
    const registry = fakeRegistry({ tools: [fakeTool("echo")] });
    assertEquals(ids(registry.searchTools("parrot")), []);
    registry.registerTool(fakeTool("parrot"));
    assertEquals(ids(registry.searchTools("parrot")), ["parrot"]);
    const next = registry.updateTool(fakeTool("echo", { description: "Is a parrot." }));
    assertStrictEquals(registry.searchTools("parrot")[1], next);
    registry.unregisterTool("parrot");
    assertEquals(ids(registry.searchTools("parrot")), ["echo"]);
  });

  it("asks the index that it was given, which follows one tool at a time", () => {
    const made: LastFirstIndex[] = [];
    const registry = fakeRegistry({
      tools: [fakeTool("a"), fakeTool("b")],
      index: () => {
        const index = new LastFirstIndex();
        made.push(index);
        return index;
      },
    });
    assertEquals(made.length, 0);
    assertEquals(ids(registry.searchTools("x")), ["b", "a"]);
    registry.registerTool(fakeTool("c"));
    registry.unregisterTool("a");
    assertEquals(ids(registry.searchTools("x")), ["c", "b"]);
    assertEquals(made.length, 1);
  });

  it("does not let an index that throws stop a registration", () => {
    const phases: string[] = [];
    const made: LastFirstIndex[] = [];
    const registry = fakeRegistry({
      tools: [fakeTool("a")],
      onError: ({ phase }) => phases.push(phase),
      index: () => {
        made.push(new LastFirstIndex());
        return made.at(-1) as LastFirstIndex;
      },
    });
    registry.searchTools("x");
    (made[0] as LastFirstIndex).fails = true;
    registry.registerTool(fakeTool("b"));
    assertEquals([registry.ids, phases], [["a", "b"], ["index"]]);
    assertEquals(ids(registry.searchTools("x")), ["b", "a"]);
    assertEquals(made.length, 2);
  });
});

describe("ToolRegistry without an index", () => {
  it("refuses to search, and says what it wants", () => {
    const registry = fakeRegistry({ tools: [fakeTool("echo")], index: undefined });
    assertThrows(
      () => registry.searchTools("echo"),
      TypeError,
      "Cannot search: the registry has no index option: createToolIndex makes one",
    );
  });

  it("lets its toolsets be searched", () => {
    const registry = fakeRegistry({ tools: [fakeTool("echo")], index: undefined });
    assertEquals(ids(searchToolset(registry.select(), "echo")), ["echo"]);
    registry.registerTool(fakeTool("echo-two"));
    assertEquals(ids(searchToolset(registry.select(), "echo")), ["echo", "echo-two"]);
  });
});

describe("searchToolset()", () => {
  it("finds only what is in the toolset, and fills the limit with it", () => {
    const index = new LastFirstIndex();
    const registry = fakeRegistry({ index: () => index });
    for (let number = 100; number < 200; number++) {
      registry.registerTool(fakeTool(`tool-${number}`, { risk: number < 105 ? "low" : "high" }));
    }
    const toolset = registry.select({ maxRisk: "low" });
    assertEquals(ids(searchToolset(toolset, "tool", { limit: 3 })), [
      "tool-104",
      "tool-103",
      "tool-102",
    ]);
    // A few questions, each for more: not all tools at once, and not one after another.
    assertEquals(index.asked, [3, 12, 48, 192]);
  });

  it("asks once where nothing is hidden", () => {
    const index = new LastFirstIndex();
    const registry = fakeRegistry({
      tools: ["a", "b", "c"].map((id) => fakeTool(id)),
      index: () => index,
    });
    assertEquals(ids(searchToolset(registry.select(), "x", { limit: 2 })), ["c", "b"]);
    assertEquals(index.asked, [2]);
  });

  it("passes over tools that are unavailable now", () => {
    let up = false;
    const registry = fakeRegistry({
      tools: [fakeTool("echo-one", { isAvailable: () => up }), fakeTool("echo-two")],
    });
    const toolset = registry.select();
    assertEquals(ids(searchToolset(toolset, "echo", { limit: 1 })), ["echo-two"]);
    up = true;
    assertEquals(searchToolset(toolset, "echo").length, 2);
  });

  it("does not find what came after the toolset was made, nor what is gone", () => {
    const registry = fakeRegistry({ tools: [fakeTool("echo-one"), fakeTool("echo-two")] });
    const toolset = registry.select();
    registry.registerTool(fakeTool("echo-three"));
    registry.unregisterTool("echo-one");
    assertEquals(ids(searchToolset(toolset, "echo")), ["echo-two"]);
  });

  it("searches a toolset that was made of a list", () => {
    const toolset = new ToolsetBuilder("list").fromTools([
      fakeTool("file-read", { risk: "low" }),
      fakeTool("file-write", { risk: "high" }),
    ]).withFilter(({ risk }) => risk === "low").build();
    assertEquals(ids(searchToolset(toolset, "file write")), ["file-read"]);
  });

  it("searches one that was narrowed", () => {
    const toolset = buildToolset([fakeTool("echo-a"), fakeTool("echo-b")]).narrow({
      denyIds: ["echo-a"],
    });
    assertEquals(ids(searchToolset(toolset, "echo", { limit: 1 })), ["echo-b"]);
  });

  it("answers nothing for a limit of 0, or nothing to search", () => {
    const toolset = buildToolset([fakeTool("echo")]);
    assertEquals(ids(searchToolset(toolset, "echo", { limit: 0 })), []);
    assertEquals(ids(searchToolset(buildToolset([]), "echo")), []);
    assertEquals(ids(searchToolset(toolset, "")), []);
  });

  it("answers at most ten tools by default", () => {
    const toolset = buildToolset(Array.from({ length: 30 }, (_, n) => fakeTool(`echo-${n}`)));
    assertEquals(searchToolset(toolset, "echo").length, 10);
    assertEquals(searchToolset(toolset, "echo", { limit: 1000 }).length, 30);
  });

  it("refuses a query that is no text", () => {
    assertThrows(
      () => searchToolset(buildToolset([]), 5 as unknown as string),
      TypeError,
      "Cannot search: the query must be a string, not 5",
    );
  });

  it("refuses an option that it does not know", () => {
    const options = { limt: 3 } as object;
    const why = 'Cannot search: "/limt" is not one of its fields: did you mean "limit"?';
    assertThrows(() => searchToolset(buildToolset([]), "echo", options), TypeError, why);
    assertThrows(() => fakeRegistry().searchTools("echo", options), TypeError, why);
  });

  for (const limit of [-1, 1.5, Number.NaN, Infinity]) {
    it(`refuses a limit of ${limit}`, () => {
      assertThrows(
        () => searchToolset(buildToolset([]), "echo", { limit }),
        RangeError,
        `Cannot search: the limit must be a whole number, 0 or above, not ${limit}`,
      );
    });
  }
});
