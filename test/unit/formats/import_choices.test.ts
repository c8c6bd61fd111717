import { importTools } from "@plue/tools/formats";
import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";

const LIST = {
  tools: ["read", "write", "wipe"].map((name) => ({ name, inputSchema: { type: "object" } })),
};

/** The ids, and the rules of warnings and rejections. */
function outcome({ tools, warnings, rejected }: ReturnType<typeof importTools>) {
  return [
    tools.map(({ id }) => id),
    warnings.map(({ rule }) => rule),
    rejected.map(({ rule }) => rule),
  ];
}

describe("importTools() with include and exclude", () => {
  it("omits excluded tools, even if they are included", () => {
    const options = { include: ["read", "wipe"], exclude: (name: string) => name.startsWith("w") };
    assertEquals(outcome(importTools("mcp", LIST, options)), [["read"], [], []]);
  });

  it("keeps no tool if a function does not return a boolean", () => {
    // Values that only JavaScript can pass.
    const include = (() => "yes") as unknown as (name: string) => boolean;
    assertEquals(importTools("mcp", LIST, { include }).tools, []);
  });
});

describe("importTools() with roles, scopes and risk", () => {
  it("calls a function for each tool", () => {
    const { tools } = importTools("mcp", LIST, {
      scopes: ({ id, sourceName }) => [id, `do:${sourceName}`],
      namespace: "x",
    });
    assertEquals(tools[0]?.scopes, ["x:read", "do:read"]);
  });

  for (
    const [options, what] of [
      [{ include: "read" }, "include must be a list of names, or a function"],
      [{ exclude: [1] }, "exclude must be a list of names, or a function"],
      [{ roles: "dev" }, "the roles must be a list of strings"],
      [{ roles: { read: "dev" } }, 'the roles of "read" must be a list of strings'],
      [{ scopes: () => [1] }, "the scopes must be a list of strings"],
      [{ risk: () => "huge" }, "the risk must be one of safe, low"],
      [{ risk: { read: "huge" } }, 'the risk of "read" must be one of'],
      [{ risk: () => Promise.reject(new Error("late")) }, "it is a promise"],
      [{ exclude: () => Promise.reject(new Error("late")) }, "it is a promise"],
    ] as const
  ) {
    it(`rejects ${JSON.stringify(options)}, because ${what}`, () => {
      assertThrows(() => importTools("mcp", LIST, options as never), TypeError, what);
    });
  }
});

describe("importTools() of icons", () => {
  const icons = (...sources: readonly string[]) => ({
    tools: [{
      name: "draw",
      inputSchema: { type: "object" },
      icons: sources.map((src) => ({ src })),
    }],
  });

  it("omits icons that run code or read files, or are too large or too many", () => {
    const bad = [
      "javascript:alert(1)",
      "file:///etc/passwd",
      `data:image/png,${"A".repeat(70_000)}`,
    ];
    const many = Array.from({ length: 20 }, (_, index) => `https://a.example/${index}`);
    const { tools, warnings } = importTools("mcp", icons(...bad, ...many));
    assertEquals(tools[0]?.icons.map(({ src }) => src), many.slice(0, 16));
    assertEquals(warnings.map(({ rule }) => rule), ["icons"]);
  });
});
