import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { listSource } from "../../../src/select/mod.ts";
import type { Tool, ToolAvailabilityQuery } from "../../../src/tool/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

describe("listSource()", () => {
  it("returns the tools frozen, in code-unit order of id", () => {
    const { tools, revision } = listSource(
      new Set([fakeTool("b"), fakeTool("a:z"), fakeTool("B")]),
    );
    assertEquals(tools.map((tool) => tool.id), ["B", "a:z", "b"]);
    assertEquals([Object.isFrozen(tools), revision], [true, 0]);
  });

  it("finds exactly the passed tools, by id", () => {
    const odd = fakeTool("__proto__");
    const source = listSource([odd]);
    assertStrictEquals(source.getTool("__proto__"), odd);
    assertEquals(source.getTool("constructor"), undefined);
  });

  it("calls availability functions without services and configuration", () => {
    const queries: ToolAvailabilityQuery[] = [];
    const tool = fakeTool("a", { isAvailable: (query) => queries.push(query) > 0 });
    assertEquals(listSource([tool]).isAvailable(tool), true);
    assertEquals(queries, [{ services: {}, config: undefined }]);
  });

  it("treats a tool as unavailable if its function throws or does not return true", () => {
    const source = listSource([]);
    const throwing = fakeTool("a", {
      isAvailable: () => {
        throw new Error("no");
      },
    });
    const promise = fakeTool("b", { isAvailable: (() => Promise.resolve(true)) as never });
    assertEquals([source.isAvailable(throwing), source.isAvailable(promise)], [false, false]);
    assertEquals(source.isAvailable(fakeTool("c", { isAvailable: false })), false);
    assertEquals(source.isAvailable(fakeTool("d")), true);
  });

  it("rejects a value that is not a list", () => {
    for (const list of [undefined, {}, 5]) {
      assertThrows(
        () => listSource(list as unknown as Tool[]),
        TypeError,
        "Cannot make a toolset: the source must be a registry, a toolset or a list of tools",
      );
    }
  });

  it("rejects two tools with one id", () => {
    assertThrows(
      () => listSource([fakeTool("x:a"), fakeTool("x:a")]),
      TypeError,
      'Cannot make a toolset: two tools have the id "x:a"',
    );
  });

  it("converts a tool of another copy of plue, and rejects other values", () => {
    const foreign = { ...fakeTool("x:a", { risk: "low" }) };
    const [tool] = listSource([foreign]).tools;
    assert(tool !== undefined && Object.isFrozen(tool));
    assertEquals([tool.id, tool.risk], ["x:a", "low"]);
    assertThrows(
      () => listSource([tool, { id: "x" } as unknown as Tool]),
      TypeError,
      "Cannot make a toolset: item 1 is invalid. Cannot define a tool: its name must be",
    );
    for (const list of [[null], "abc"]) {
      assertThrows(
        () => listSource(list as unknown as Tool[]),
        TypeError,
        "Cannot make a toolset: item 0 is invalid. Cannot define a tool: the definition must be an",
      );
    }
  });
});
