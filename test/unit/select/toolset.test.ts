import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { buildToolset, listSource, type ToolSource } from "../../../src/select/mod.ts";
import type { Tool } from "../../../src/tool/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const low = fakeTool("low", { risk: "low" });
const high = fakeTool("high", { risk: "high" });

/** A source that can change, as a registry does. */
function changingSource(
  first: readonly Tool[],
): ToolSource & { replace(tools: readonly Tool[]): void } {
  let source = listSource(first);
  let revision = 1;
  return {
    get tools() {
      return source.tools;
    },
    get revision() {
      return revision;
    },
    getTool: (id) => source.getTool(id),
    isAvailable: (tool) => source.isAvailable(tool),
    replace(tools) {
      source = listSource(tools);
      revision++;
    },
  };
}

describe("buildToolset()", () => {
  it("makes a frozen, ordered snapshot", () => {
    const toolset = buildToolset([low, high], {}, "all");
    assertEquals(toolset.ids, ["high", "low"]);
    assertEquals([toolset.name, toolset.size, toolset.revision], ["all", 2, 0]);
    assert(Object.isFrozen(toolset.tools) && Object.isFrozen(toolset.ids));
    assertEquals([...toolset], [high, low]);
  });

  it("returns the source's own array when nothing is removed", () => {
    const source = listSource([low, high]);
    assertStrictEquals(buildToolset(source).tools, source.tools);
    assertStrictEquals(buildToolset(source, { maxRisk: "critical" }).available(), source.tools);
  });

  // "Tools() and IDs() must return tools in stable order: Sort lexicographically."
  it("sorts the tools of an unsorted source, and does not change the source", () => {
    const list = ["b:z", "a:y", "plain", "a:b"].map((id) => fakeTool(id));
    const source: ToolSource = { ...listSource(list), tools: list };
    for (const toolset of [buildToolset(source), buildToolset(source, { maxRisk: "high" })]) {
      assertEquals(toolset.ids, ["a:b", "a:y", "b:z", "plain"]);
      assertEquals(toolset.tools.map((tool) => tool.id), toolset.ids);
      assertStrictEquals(toolset.source, source);
    }
    assertEquals(list.map((tool) => tool.id), ["b:z", "a:y", "plain", "a:b"]);
  });

  it("does not change when its source changes the list", () => {
    const list = [fakeTool("a"), fakeTool("b")];
    const toolset = buildToolset({ ...listSource(list), tools: list });
    list.pop();
    assertEquals(toolset.ids, ["a", "b"]);
  });

  it("treats a source without tools as empty", () => {
    const source = { ...listSource([low]), tools: null };
    assertEquals(buildToolset(source).ids, []);
  });

  it("keeps the source and its revision", () => {
    const source = changingSource([low, high]);
    const toolset = buildToolset(source, { maxRisk: "low" });
    assertStrictEquals(toolset.source, source);
    source.replace([low, high, fakeTool("new", { risk: "low" })]);
    assertEquals([toolset.revision, toolset.ids.join()], [1, "low"]);
    assertEquals([toolset.has("new"), source.revision], [false, 2]);
  });

  it("narrows a toolset that is passed as the source, and keeps the first source", () => {
    const source = listSource([low, high]);
    const toolset = buildToolset(buildToolset(source, { maxRisk: "low" }, "wide"), {}, "narrow");
    assertEquals([toolset.ids.join(), toolset.name], ["low", "narrow"]);
    assertStrictEquals(toolset.source, source);
  });

  it("treats an iterable registry as a registry", () => {
    const source = { ...listSource([low]), [Symbol.iterator]: () => [high].values() };
    assertEquals(buildToolset(source).ids, ["low"]);
  });

  it("rejects an invalid name", () => {
    assertThrows(() => buildToolset([], {}, ""), TypeError, "Cannot make a toolset: the name");
  });
});

describe("Toolset", () => {
  it("finds members by id, and nothing else", () => {
    const toolset = buildToolset([low, high], { maxRisk: "low" });
    assertStrictEquals(toolset.get("low"), low);
    assertEquals([toolset.get("high"), toolset.get("constructor")], [undefined, undefined]);
    assertEquals([toolset.has("low"), toolset.has("high"), toolset.has("__proto__")], [
      true,
      false,
      false,
    ]);
  });

  it("reports a tool as available only if it is a member and available itself", () => {
    let answer = true;
    const moody = fakeTool("moody", { risk: "low", isAvailable: () => answer });
    const toolset = buildToolset([low, high, moody], { maxRisk: "low" });
    assertEquals([low, high, moody].map((tool) => toolset.isAvailable(tool)), [true, false, true]);
    answer = false;
    assertEquals(toolset.isAvailable(moody), false);
    assertEquals(toolset.isAvailable(fakeTool("low")), false);
  });

  it("calls each availability function once per listing", () => {
    let count = 0;
    const moody = fakeTool("moody", { isAvailable: () => ++count > 0 });
    const toolset = buildToolset([low, moody]);
    assertEquals(count, 0);
    toolset.available();
    toolset.available();
    assertEquals(count, 2);
  });

  it("lists the same array until an answer changes", () => {
    const answers = new Map([["a", true], ["b", true]]);
    const moody = (id: string) => fakeTool(id, { isAvailable: () => answers.get(id) === true });
    const toolset = buildToolset([moody("a"), moody("b"), fakeTool("c")]);
    const ids = () => toolset.available().map((tool) => tool.id).join();

    assertStrictEquals(toolset.available(), toolset.tools);
    answers.set("a", false);
    const withoutA = toolset.available();
    assertEquals(ids(), "b,c");
    assert(Object.isFrozen(withoutA));
    assertStrictEquals(toolset.available(), withoutA);
    // One tool is removed and another is added, so only the number of tools stays the same.
    answers.set("a", true).set("b", false);
    assertEquals(ids(), "a,c");
    answers.set("b", true);
    assertStrictEquals(toolset.available(), toolset.tools);
  });

  it("does not list a tool whose function throws", () => {
    const broken = fakeTool("broken", {
      isAvailable: () => {
        // deno-lint-ignore no-throw-literal -- anything can be thrown
        throw "no reason";
      },
    });
    const toolset = buildToolset([broken, low]);
    assertEquals(toolset.available(), [low]);
    assertEquals(toolset.isAvailable(broken), false);
  });

  it("is narrowed to the tools that both selections keep", () => {
    const tools = [low, high, fakeTool("x:a", { risk: "low" }), fakeTool("x:b", { risk: "high" })];
    const toolset = buildToolset(tools, { maxRisk: "low" }, "wide");
    const narrow = toolset.narrow({ namespace: "x", maxRisk: "critical" });
    assertEquals(narrow.ids, ["x:a"]);
    assertEquals([narrow.name, narrow.narrow({}, "third").name], ["wide", "third"]);
    assertStrictEquals(narrow.source, toolset.source);
    assertEquals(narrow.explain("x:b").removedBy, "risk");
    assertEquals(narrow.explain("low").removedBy, "namespace");
    assertThrows(() => toolset.narrow({ maxRisk: "x" as "low" }), TypeError, "/maxRisk");
  });

  it("applies a filter whose results change, even in narrower toolsets, and adds no tool", () => {
    const denied = new Set(["b"]);
    const calls: string[] = [];
    const wide = buildToolset([fakeTool("a"), fakeTool("b"), fakeTool("c")], {
      filters: [({ id }) => calls.push(id) > 0 && !denied.has(id)],
    });
    const narrow = wide.narrow({ denyIds: ["c"] });
    assertEquals([wide.ids, narrow.ids], [["a", "c"], ["a"]]);
    assert(wide.isCurrent() && narrow.isCurrent());
    denied.clear();
    denied.add("a");
    for (const toolset of [wide, narrow]) {
      assertEquals(toolset.isCurrent(), false);
      assertEquals([toolset.get("a"), toolset.resolve("a"), toolset.has("b")], [
        undefined,
        undefined,
        false,
      ]);
    }
    assertEquals(narrow.available(), []);
    assertEquals(wide.explain("a").removedBy, "filter");
    assertEquals(
      wide.explain("b").reason,
      '"b" was removed when this toolset was made; select again',
    );
    assertEquals([wide.explain("b").selected, wide.explain("b").available], [false, false]);
    calls.length = 0;
    assertEquals([wide.has("c"), calls], [true, ["c"]]);
    denied.clear();
    assertEquals(narrow.available(), narrow.tools);
    assertStrictEquals(wide.available(), wide.tools);
  });

  it("is not current, although a narrower toolset that the change does not affect is", () => {
    const denied = new Set<string>();
    const filter = Object.assign(({ id }: Tool) => !denied.has(id), {
      revision: () => denied.size,
    });
    const wide = buildToolset([fakeTool("a"), fakeTool("b")], { filters: [filter] });
    const narrow = wide.narrow({ denyIds: ["b"] });
    denied.add("b");
    assertEquals([narrow.isCurrent(), narrow.has("a")], [true, true]);
    assertEquals([wide.isCurrent(), wide.has("a"), wide.has("b")], [false, true, false]);
  });
});
