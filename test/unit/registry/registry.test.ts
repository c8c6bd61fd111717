import {
  assert,
  assertEquals,
  assertFalse,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { describe, it } from "bun:test";
import { ToolAvailabilityContext } from "../../../src/select/mod.ts";
import type { Tool, ToolDefinition } from "../../../src/tool/mod.ts";
import type { ToolRegistry } from "../../../mod.ts";
import { fakeRegistry, fakeTool, requiredOnlyEngine } from "./fakes.ts";

/** Names that plain objects have already. */
const PROTOTYPE_NAMES = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"];

function ids(tools: readonly { readonly id: string }[]): string[] {
  return tools.map(({ id }) => id);
}

describe("ToolRegistry.registerTool()", () => {
  it("creates a tool from a plain definition", () => {
    const registry = fakeRegistry();
    const tool = registry.registerTool({ name: "echo", description: "Says it again." });
    assertStrictEquals(registry.getTool("echo"), tool);
    assert(Object.isFrozen(tool));
  });

  it("distinguishes tools of the same name in different namespaces", () => {
    const registry = fakeRegistry({ tools: [fakeTool("status"), fakeTool("chain:status")] });
    assertEquals(registry.ids, ["chain:status", "status"]);
  });

  for (const field of ["parameters", "returns", "config"] as const) {
    it(`rejects invalid ${field}, with a JSON Pointer`, () => {
      const registry = fakeRegistry();
      const schema = { type: "object", properties: { "a/b": { type: "strng" } } };
      const error = assertThrows(
        () => registry.registerTool(fakeTool("x", { [field]: schema })),
        TypeError,
        `Cannot register tool "x": its ${field}: "/properties/a~1b/type"`,
      );
      assert(error.cause instanceof Error);
      assertEquals([registry.count, registry.revision, registry.tools], [0, 0, []]);
    });
  }

  it("rejects 20,000 subschemas before an engine receives them", () => {
    const engine = requiredOnlyEngine();
    const registry = fakeRegistry({ engine });
    const anyOf = Array.from({ length: 20_000 }, () => ({ type: "string" }));
    assertThrows(
      () => registry.registerTool(fakeTool("huge", { parameters: { type: "object", anyOf } })),
      TypeError,
      'Cannot register tool "huge": its parameters',
    );
    assertEquals([registry.count, engine.compiled], [0, 0]);
  });

  for (const name of PROTOTYPE_NAMES) {
    it(`finds a tool named ${name} only after its registration`, () => {
      const registry = fakeRegistry();
      assertEquals(registry.getTool(name), undefined);
      assertFalse(registry.hasTool(name));
      assertEquals(registry.getFunctionDefinition(name), undefined);
      assertFalse(registry.unregisterTool(name));
      const tool = registry.registerTool(fakeTool(name));
      assertStrictEquals(registry.getTool(name), tool);
      assertEquals(registry.ids, [name]);
      assertEquals(ids(registry.searchTools(name)), [name]);
      assert(registry.select().has(name));
      assertEquals(registry.getFunctionDefinition(name)?.name, name);
      assert(registry.unregisterTool(name));
      assertFalse(registry.hasTool(name));
    });
  }
});

describe("ToolRegistry.registerTools()", () => {
  it("registers all tools atomically", () => {
    const registry = fakeRegistry();
    const tools = [fakeTool("b"), fakeTool("a")];
    assertEquals(registry.registerTools(tools), tools);
    assertEquals(registry.ids, ["a", "b"]);
  });

  const bad: readonly (readonly [string, Tool | ToolDefinition, string])[] = [
    ["has a bad schema", {
      name: "bad",
      description: "x",
      parameters: { type: "object", required: "a" },
    }, 'Cannot register tool "bad"'],
    ["repeats an id of the batch", fakeTool("a"), 'Cannot register tool "a": the id is taken'],
    ["has an id that is registered", fakeTool("old"), 'Cannot register tool "old"'],
    ["is not a definition", null as never, "Cannot define a tool"],
  ];
  for (const [what, tool, message] of bad) {
    it(`registers no tool when the last one ${what}`, () => {
      const registry = fakeRegistry({ tools: [fakeTool("old")] });
      const changes: string[] = [];
      registry.subscribe(({ tool }) => changes.push(tool.id));
      assertThrows(() => registry.registerTools([fakeTool("a"), tool]), TypeError, message);
      assertEquals([registry.ids, registry.revision, changes], [["old"], 1, []]);
    });
  }

  it("registers no tool when iterating them registers one of them", () => {
    const registry = fakeRegistry();
    function* tools() {
      yield fakeTool("a");
      registry.registerTool(fakeTool("a"));
      yield fakeTool("b");
    }
    assertThrows(() => registry.registerTools(tools()), TypeError, 'tool "a": the id is taken');
    assertEquals(registry.ids, ["a"]);
  });

  it("notifies listeners of the first tool when all are registered", () => {
    const registry = fakeRegistry();
    const seen: (readonly string[])[] = [];
    registry.subscribe(() => seen.push(registry.ids));
    registry.registerTools([fakeTool("a"), fakeTool("b")]);
    assertEquals(seen, [["a", "b"], ["a", "b"]]);
  });
});

const config = { type: "object", properties: { root: { type: "string" } }, required: ["root"] };

describe("ToolRegistry rejects without a change:", () => {
  const first = fakeTool("a");
  const rejected: readonly (readonly [string, (registry: ToolRegistry) => unknown, string])[] = [
    [
      "an id that is taken",
      (registry) => registry.registerTool(fakeTool("a")),
      'Cannot register tool "a": the id is taken',
    ],
    [
      "an invalid definition",
      (registry) => registry.registerTool({ name: "no spaces", description: "x" }),
      'Cannot define a tool: its name must be 1 to 128 letters, digits, "_", "." or "-", not "no ',
    ],
    [
      "tools that are not a list",
      (registry) => registry.registerTools({ echo: {} } as never),
      "Cannot register tools: the tools must be a list",
    ],
    [
      "an invalid tool, even if that is only tried",
      (registry) => registry.tryRegisterTool(fakeTool("b", { returns: { type: 7 } })),
      'Cannot register tool "b": its returns: "/type"',
    ],
    [
      "an update of an unknown tool",
      (registry) => registry.updateTool(fakeTool("b")),
      'Cannot update tool "b": the tool is not registered',
    ],
    [
      "an update by an invalid tool",
      (registry) => registry.updateTool(fakeTool("a", { returns: { type: 7 } })),
      'Cannot update tool "a": its returns: "/type"',
    ],
    [
      "a category in another spelling",
      (registry) => registry.getToolsByCategory("FileSystem"),
      'is "FileSystem": did you mean "filesystem"?',
    ],
    ["an unknown risk", (registry) => registry.getToolsByRiskLevel("huge" as never), "huge"],
    [
      "a configuration that does not fit",
      register(fakeTool("wrong", { config })),
      'Cannot register tool "wrong": its configuration is invalid: must have the property "root"',
    ],
    [
      "a missing configuration",
      register(fakeTool("b", { config })),
      'Cannot register tool "b": its configuration is missing: must have the property "root"',
    ],
    [
      "a configuration that every object inherits",
      register(fakeTool("constructor", { config })),
      'Cannot register tool "constructor": its configuration is missing',
    ],
    [
      "a configuration that is not JSON",
      register(fakeTool("code", { config })),
      'Cannot register tool "code": its configuration: at "/root" it is a function',
    ],
    [
      "a configuration for a tool that takes none",
      register(fakeTool("wrong")),
      'Cannot register tool "wrong": the tool declares no config',
    ],
  ];
  for (const [what, work, message] of rejected) {
    it(what, () => {
      const registry = fakeRegistry({
        tools: [first],
        config: { wrong: { path: "/" }, code: { root: () => "/" } },
      });
      assertThrows(() => work(registry), TypeError, message);
      assertEquals([registry.tools, registry.revision], [[first], 1]);
    });
  }

  function register(tool: Tool): (registry: ToolRegistry) => unknown {
    return (registry) => registry.registerTool(tool);
  }
});

describe("ToolRegistry.updateTool()", () => {
  it("replaces a tool", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    const next = fakeTool("a", { description: "Another." });
    assertStrictEquals(registry.updateTool(next), next);
    assertStrictEquals(registry.getTool("a"), next);
    assertStrictEquals(registry.tools[0], next);
    assertEquals([registry.count, registry.revision], [1, 2]);
  });
});

describe("ToolRegistry.unregisterTool()", () => {
  it("frees the id for another tool", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    registry.unregisterTool("a");
    assertEquals([registry.tools, registry.revision], [[], 2]);
    const second = registry.registerTool(fakeTool("a"));
    assertStrictEquals(registry.tools[0], second);
  });
});

describe("ToolRegistry.tools", () => {
  it("lists in code-unit order, not in a language's", () => {
    const registry = fakeRegistry({
      tools: ["b", "a", "B", "_", "a:z", "9"].map((id) => fakeTool(id)),
    });
    assertEquals(registry.ids, ["9", "B", "_", "a", "a:z", "b"]);
    assertEquals(ids(registry.tools), registry.ids as string[]);
  });

  it("is frozen, and the same until something changes", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    const { tools, ids } = registry;
    assert(Object.isFrozen(tools) && Object.isFrozen(ids));
    assertStrictEquals(registry.tools, tools);
    assertStrictEquals(registry.ids, ids);
    registry.registerTool(fakeTool("b"));
    assertNotStrictEquals(registry.tools, tools);
    assertEquals([tools.length, ids.length], [1, 1]);
  });
});

describe("ToolRegistry's listings", () => {
  const registry = fakeRegistry({
    tools: [
      fakeTool("file-read", { category: "filesystem", risk: "low", tags: ["files", "read"] }),
      fakeTool("file-write", { category: "filesystem", risk: "high", tags: ["files", "write"] }),
      fakeTool("git-log", { category: "git", risk: "low", tags: ["read"], roles: ["dev"] }),
      fakeTool("off", {
        category: "git",
        risk: "safe",
        tags: ["read", "files"],
        isAvailable: () => false,
      }),
      fakeTool("broken", {
        category: "git",
        risk: "safe",
        tags: ["read"],
        isAvailable: () => {
          throw new Error("The disk is on fire");
        },
      }),
    ],
  });

  const rows:
    readonly (readonly [string, readonly { readonly id: string }[], readonly string[]])[] = [
      ["getAvailableTools()", registry.getAvailableTools(), ["file-read", "file-write", "git-log"]],
      ["getAvailableTools(context)", registry.getAvailableTools({ hasGitRepository: false }), [
        "file-read",
        "file-write",
      ]],
      ["getToolsByCategory()", registry.getToolsByCategory("filesystem"), [
        "file-read",
        "file-write",
      ]],
      ["getToolsByTag()", registry.getToolsByTag("read"), ["file-read", "git-log"]],
      ["getToolsByRiskLevel()", registry.getToolsByRiskLevel("low"), ["file-read", "git-log"]],
      ["getToolsForRole() of a listed role", registry.getToolsForRole("dev"), [
        "file-read",
        "file-write",
        "git-log",
      ]],
      ["getToolsForRole() of another role", registry.getToolsForRole("guest"), [
        "file-read",
        "file-write",
      ]],
      ["getToolsByCategory() of none", registry.getToolsByCategory("constructor"), []],
    ];
  for (const [what, tools, expected] of rows) {
    it(`returns the available tools only: ${what}`, () => assertEquals(ids(tools), [...expected]));
  }
});

describe("ToolRegistry.getAvailableTools()", () => {
  it("calls availability functions at each listing", () => {
    let up = false;
    const registry = fakeRegistry({ tools: [fakeTool("a", { isAvailable: () => up })] });
    assertEquals(ids(registry.getAvailableTools()), []);
    up = true;
    assertEquals(ids(registry.getAvailableTools()), ["a"]);
  });

  it("returns the same array for the same context until something changes", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a"), fakeTool("b", { risk: "critical" })] });
    const context = ToolAvailabilityContext.lowRiskOnly;
    const tools = registry.getAvailableTools(context);
    assertStrictEquals(registry.getAvailableTools(context), tools);
    assertStrictEquals(registry.getAvailableTools({ maxRiskLevel: "low" }), tools);
    registry.registerTool(fakeTool("c", { risk: "safe" }));
    assertEquals(ids(registry.getAvailableTools(context)), ["c"]);
  });

  it("accepts a builder, even if it is modified afterwards", () => {
    const registry = fakeRegistry({
      tools: [fakeTool("a", { risk: "safe" }), fakeTool("b", { risk: "high" })],
    });
    const builder = ToolAvailabilityContext.create();
    assertEquals(ids(registry.getAvailableTools(builder)), ["a", "b"]);
    assertEquals(ids(registry.getAvailableTools(builder.withMaxRiskLevel("low"))), ["a"]);
  });

  it("detects that a plain context has changed", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a", { category: "git" })] });
    const context = { hasGitRepository: true };
    assertEquals(ids(registry.getAvailableTools(context)), ["a"]);
    context.hasGitRepository = false;
    assertEquals(ids(registry.getAvailableTools(context)), []);
  });
});

describe("ToolRegistry.isAvailable()", () => {
  it("passes services and configuration to the tool's function", () => {
    const received: unknown[] = [];
    const services = { disk: "full" };
    const tool = fakeTool("a", {
      config: { type: "object" },
      isAvailable: (query) => received.push(query) > 0,
    });
    const registry = fakeRegistry({ tools: [tool], services, config: { a: { root: "/" } } });
    assert(registry.isAvailable(tool));
    assertEquals(received, [{ services, config: { root: "/" } }]);
  });

  for (const answer of [1, "yes", {}, Promise.resolve(true), undefined]) {
    it(`treats ${typeof answer === "object" ? String(answer) : JSON.stringify(answer)} as false`, () => {
      const tool = fakeTool("a", { isAvailable: () => answer as never });
      assertFalse(fakeRegistry({ tools: [tool] }).isAvailable(tool));
    });
  }

  it("returns false for a tool that is not registered, or was replaced", () => {
    const tool = fakeTool("a");
    const registry = fakeRegistry();
    assertFalse(registry.isAvailable(tool));
    registry.registerTool(tool);
    assert(registry.isAvailable(tool));
    registry.updateTool(fakeTool("a"));
    assertFalse(registry.isAvailable(tool));
  });
});

describe("ToolRegistry's function definitions", () => {
  it("contain the available tools, in order", () => {
    const registry = fakeRegistry({
      tools: [fakeTool("b"), fakeTool("a", { risk: "low" }), fakeTool("c", { isAvailable: false })],
    });
    assertEquals(registry.getFunctionDefinitions().map(({ name }) => name), ["a", "b"]);
    const low = registry.getFunctionDefinitions(ToolAvailabilityContext.lowRiskOnly);
    assertEquals(low.map(({ name }) => name), ["a"]);
    assertStrictEquals(registry.getFunctionDefinitions(ToolAvailabilityContext.lowRiskOnly), low);
  });
});

describe("new ToolRegistry()", () => {
  it("registers the passed tools", () => {
    const registry = fakeRegistry({ tools: [fakeTool("b"), { name: "a", description: "x" }] });
    assertEquals([registry.ids, registry.revision], [["a", "b"], 2]);
  });

  // An unknown option is an error, because a misspelled option would have no effect.
  for (
    const [options, words] of [
      [{ lifecycleTimeout: 1 }, '"/lifecycleTimeout" is not one of its fields: did you mean "life'],
      [{ colour: 1 }, '"/colour" is not one of its fields: engine, tools, services, config,'],
    ] as const
  ) {
    it(`rejects unknown options: ${JSON.stringify(options)}`, () => {
      assertThrows(() => fakeRegistry(options as object), TypeError, words);
    });
  }

  for (const engine of [undefined, {}]) {
    it(`rejects ${JSON.stringify(engine)} as an engine`, () => {
      assertThrows(
        () => fakeRegistry({ engine: engine as never }),
        TypeError,
        "Cannot make a registry: the option engine must be a schema engine",
      );
    });
  }

  for (const lifecycleTimeoutMs of [0, -1, Number.NaN, 2 ** 31, Infinity]) {
    it(`rejects a lifecycleTimeoutMs of ${lifecycleTimeoutMs}`, () => {
      assertThrows(() => fakeRegistry({ lifecycleTimeoutMs }), RangeError, "lifecycleTimeoutMs");
    });
  }
});

describe("ToolRegistry's configuration", () => {
  it("reaches the tool as a frozen copy", async () => {
    const source = { root: "/", deep: { list: [1] } };
    const tool = fakeTool("a", { config });
    const registry = fakeRegistry({ tools: [tool], config: { a: source } });
    const runtime = await registry.acquire(tool);
    assertEquals(runtime.config, source);
    source.deep.list.push(2);
    assertEquals(runtime.config, { root: "/", deep: { list: [1] } });
    assert(Object.isFrozen(runtime.config));
  });

  it("is empty for a tool that needs none of it", async () => {
    const tool = fakeTool("a", { config: { type: "object" } });
    const runtime = await fakeRegistry({ tools: [tool] }).acquire(tool);
    assertEquals(runtime.config, {});
  });

  it("finds a tool named __proto__", async () => {
    const tool = fakeTool("__proto__", { config });
    const source = JSON.parse('{ "__proto__": { "root": "/" } }');
    const registry = fakeRegistry({ tools: [tool], config: source });
    assertEquals((await registry.acquire(tool)).config, { root: "/" });
  });
});
