import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import type * as plue from "../../../../src/registry/mod.ts";
import { searchToolset, searchToolsetAsync } from "../../../../src/registry/mod.ts";
import { buildToolset, ToolsetBuilder } from "../../../../src/select/mod.ts";
import type { Tool } from "../../../../src/tool/mod.ts";
import { fakeRegistry, fakeTool } from "../fakes.ts";

function ids(tools: readonly { readonly id: string }[]): string[] {
  return tools.map(({ id }) => id);
}

/** An index that finds every tool, the last by id first, and counts its queries. */
class LastFirstIndex implements plue.ToolIndex {
  readonly ids: Set<string> = new Set();
  readonly queries: number[] = [];
  fails = false;

  add({ id }: Tool): void {
    if (this.fails) throw new Error("The index is full");
    this.ids.add(id);
  }

  remove(id: string): void {
    this.ids.delete(id);
  }

  search(_query: string, limit: number, { among = [] }: plue.ToolSearchScope = {}) {
    this.queries.push(limit);
    const seen = new Set(among.map(({ id }) => id));
    return [...this.ids].filter((id) => seen.has(id)).sort().reverse().slice(0, limit)
      .map((id) => ({ id, score: 1 }));
  }
}

/** An asynchronous index that returns all of its tools, including tools hidden from the caller. */
class LateIndex implements plue.ToolIndex<Promise<readonly plue.ToolHit[]>> {
  readonly ids: Set<string> = new Set();
  failure: Error | undefined;

  add({ id }: Tool): void {
    this.ids.add(id);
  }

  remove(id: string): void {
    this.ids.delete(id);
  }

  async search(): Promise<readonly plue.ToolHit[]> {
    await Promise.resolve();
    if (this.failure !== undefined) throw this.failure;
    return [...this.ids].sort().map((id) => ({ id, score: 1 }));
  }
}

describe("ToolRegistry.searchTools()", () => {
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

  it("queries the passed index, which follows each change", () => {
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

  it("registers a tool even if its index throws", () => {
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
  it("rejects a search without an index, with the required option", () => {
    const registry = fakeRegistry({ tools: [fakeTool("echo")], index: undefined });
    assertThrows(
      () => registry.searchTools("echo"),
      TypeError,
      "Cannot search: the registry has no index; set the option index, such as to createToolIndex",
    );
  });

  it("supports search in its toolsets", () => {
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
    // The index receives the candidates, so one query is enough.
    assertEquals(index.queries, [3]);
  });

  it("skips currently unavailable tools", () => {
    let up = false;
    const registry = fakeRegistry({
      tools: [fakeTool("echo-one", { isAvailable: () => up }), fakeTool("echo-two")],
    });
    const toolset = registry.select();
    assertEquals(ids(searchToolset(toolset, "echo", { limit: 1 })), ["echo-two"]);
    up = true;
    assertEquals(searchToolset(toolset, "echo").length, 2);
  });

  it("does not find tools that were added or removed after the toolset was created", () => {
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

  it("returns nothing for a limit of 0, or an empty toolset", () => {
    const toolset = buildToolset([fakeTool("echo")]);
    assertEquals(ids(searchToolset(toolset, "echo", { limit: 0 })), []);
    assertEquals(ids(searchToolset(buildToolset([]), "echo")), []);
    assertEquals(ids(searchToolset(toolset, "")), []);
  });

  it("returns at most ten tools by default", () => {
    const toolset = buildToolset(Array.from({ length: 30 }, (_, n) => fakeTool(`echo-${n}`)));
    assertEquals(searchToolset(toolset, "echo").length, 10);
    assertEquals(searchToolset(toolset, "echo", { limit: 1000 }).length, 30);
  });

  it("rejects a query that is not a text", () => {
    assertThrows(
      () => searchToolset(buildToolset([]), 5 as unknown as string),
      TypeError,
      "Cannot search: the query must be a string, not 5",
    );
  });

  for (const options of [null, 5]) {
    it(`rejects the options ${options}`, () => {
      const why = "Cannot search: the options must be an object";
      const untyped = options as unknown as object;
      assertThrows(() => searchToolset(buildToolset([]), "echo", untyped), TypeError, why);
      assertThrows(() => fakeRegistry().searchTools("echo", untyped), TypeError, why);
    });
  }

  it("rejects an unknown option", () => {
    const options = { limt: 3 } as object;
    const why = 'Cannot search: "/limt" is not one of its fields: did you mean "limit"?';
    assertThrows(() => searchToolset(buildToolset([]), "echo", options), TypeError, why);
    assertThrows(() => fakeRegistry().searchTools("echo", options), TypeError, why);
  });

  for (const limit of [-1, 1.5, Number.NaN, Infinity]) {
    it(`rejects a limit of ${limit}`, () => {
      assertThrows(
        () => searchToolset(buildToolset([]), "echo", { limit }),
        RangeError,
        `Cannot search: the limit must be a whole number, 0 or above, not ${limit}`,
      );
    });
  }
});

describe("the hits of a search", () => {
  const toolset = buildToolset([
    fakeTool("file-read", { description: "Reads a file." }),
    fakeTool("file-write", { description: "Writes a file." }),
  ]);

  it("belong to the tools at the same index, and are not enumerable", () => {
    const found = searchToolset(toolset, "write a file");
    assertEquals(found.hits.map(({ id }) => id), ids(found));
    assertEquals(found.hits[0]?.matches?.map(({ word }) => word), ["write", "file"]);
    assertEquals([JSON.stringify(found), Object.isFrozen(found)], [
      JSON.stringify([...found]),
      true,
    ]);
  });

  it("exist if nothing is found", () => {
    assertEquals(searchToolset(toolset, "?").hits, []);
    assertEquals(fakeRegistry().searchTools("x").hits, []);
  });

  it("are dropped below the minScore of the search", () => {
    const query = "write poems in the manner of Petrarch";
    const [best] = searchToolset(toolset, query, { minScore: 0 }).hits;
    const score = best?.score ?? 0;
    assertEquals(ids(searchToolset(toolset, query, { minScore: score })).length > 0, true);
    assertEquals(ids(searchToolset(toolset, query, { minScore: score + 0.01 })), []);
  });

  for (const minScore of [-1, Number.NaN, "0.5"]) {
    it(`rejects a minScore of ${minScore}`, () => {
      assertThrows(
        () => searchToolset(toolset, "file", { minScore: minScore as number }),
        RangeError,
        "Cannot search: the minScore must be a number from 0 to Infinity, not",
      );
    });
  }
});

describe("a search with hidden tools", () => {
  it("does not change when an unavailable tool has a word", () => {
    let up = false;
    const tools = [
      fakeTool("one", { description: "Has alpha." }),
      fakeTool("two", { description: "Has alpha and gamma.", isAvailable: () => up }),
    ];
    const toolset = fakeRegistry({ tools }).select();
    const down = searchToolset(toolset, "alpha gamma").hits;
    up = true;
    assertEquals(searchToolset(toolset, "alpha gamma").length, 2);
    up = false;
    assertEquals(searchToolset(toolset, "alpha gamma").hits, down);
  });
});

describe("an asynchronous index", () => {
  const registryWith = (index: LateIndex) =>
    fakeRegistry({
      index: () => index,
      tools: [fakeTool("a"), fakeTool("b", { risk: "high" }), fakeTool("c")],
    });

  it("is awaited, and filtered by the caller's tools", async () => {
    const registry = registryWith(new LateIndex());
    const toolset = registry.select({ maxRisk: "medium" });
    const found = await searchToolsetAsync(toolset, "x", { limit: 1 });
    assertEquals([ids(found), found.hits], [["a"], [{ id: "a", score: 1 }]]);
    assertEquals(ids(await searchToolsetAsync(registry.select(), "x")), ["a", "b", "c"]);
  });

  it("does not return a tool that was removed during the query", async () => {
    const registry = registryWith(new LateIndex());
    const searching = searchToolsetAsync(registry.select(), "x");
    registry.unregisterTool("a");
    assertEquals(ids(await searching), ["b", "c"]);
  });

  it("is rejected by synchronous searches, which name the function to call", () => {
    const registry = registryWith(new LateIndex());
    const why = "Cannot search: the index is asynchronous: use searchToolsetAsync";
    assertThrows(() => registry.searchTools("x"), TypeError, why);
    assertThrows(() => searchToolset(registry.select(), "x"), TypeError, why);
  });

  it("rejects the search with its own error", async () => {
    const index = new LateIndex();
    index.failure = new Error("The provider is down");
    const registry = registryWith(index);
    await assertRejects(
      () => searchToolsetAsync(registry.select(), "x"),
      Error,
      "provider is down",
    );
    assertThrows(() => registry.searchTools("x"), TypeError);
  });

  it("is not needed: searchToolsetAsync queries any index", async () => {
    assertEquals(ids(await searchToolsetAsync(buildToolset([fakeTool("echo")]), "echo")), ["echo"]);
    await assertRejects(
      () => searchToolsetAsync(buildToolset([]), "x", { limit: -1 }),
      RangeError,
      "Cannot search: the limit must be",
    );
  });
});
