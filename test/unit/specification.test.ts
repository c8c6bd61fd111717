// The tests that the specification of the registry interface lists, with their names, and its usage
// examples and criteria. The expectations are quoted from the specification.

import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  defineTool,
  FunctionDefinition,
  type RiskLevel,
  ToolAvailabilityContext,
  ToolChange,
  ToolRegistry,
} from "../../mod.ts";

const PARAMETERS = {
  type: "object",
  properties: { path: { type: "string" }, limit: { type: "integer" } },
  required: ["path"],
} as const;

const fileRead = defineTool({
  name: "file-read",
  description: "Read the contents of a file",
  parameters: PARAMETERS,
  category: "filesystem",
  risk: "low",
  tags: ["read-only", "file"],
});

/** The tools that the specification draws in its filtering flow. */
const TOOLS = [
  fileRead,
  ...([
    ["file-write", "filesystem", "medium", ["file"]],
    ["file-delete", "filesystem", "high", ["file"]],
    ["terminal-execute", "terminal", "high", []],
    ["search-grep", "workspace", "safe", ["read-only", "file"]],
    ["git-status", "git", "low", ["read-only"]],
    ["git-commit", "git", "medium", []],
    ["network-fetch", "network", "medium", ["read-only"]],
    ["editor-open", "editor", "safe", []],
  ] as const).map(([name, category, risk, tags]) =>
    defineTool({ name, description: `The tool ${name}`, category, risk, tags })
  ),
];
const ALL = TOOLS.map(({ id }) => id).sort();
const without = (...gone: readonly string[]) => ALL.filter((id) => !gone.includes(id));

/** The tools above that a context keeps. */
const keeps = (context: Parameters<ToolRegistry["getAvailableTools"]>[0]) =>
  new ToolRegistry({ tools: TOOLS }).getAvailableTools(context).map(({ id }) => id);

/** The flags of the workspace, the terminal, the editor and the repository. */
const flagsOf = (context: ToolAvailabilityContext): readonly boolean[] => [
  ...[context.hasWorkspace, context.hasTerminal, context.hasEditor, context.hasGitRepository],
];

describe("ToolAvailabilityContextTests", () => {
  it("Default_HasAllFlagsTrue: the default context allows all", () => {
    assertEquals(flagsOf(ToolAvailabilityContext.default), [true, true, true, true]);
    assertEquals(keeps(ToolAvailabilityContext.default), ALL);
  });

  it("NoWorkspace_DisablesWorkspaceAndGit", () => {
    assertEquals(flagsOf(ToolAvailabilityContext.noWorkspace), [false, true, true, false]);
    assertEquals(
      keeps(ToolAvailabilityContext.noWorkspace),
      without("search-grep", "git-status", "git-commit"),
    );
  });

  it("SafeOnly_SetsMaxRiskLevel", () => {
    assertEquals(ToolAvailabilityContext.safeOnly.maxRiskLevel, "safe");
    assertEquals(keeps(ToolAvailabilityContext.safeOnly), ["editor-open", "search-grep"]);
  });

  it("With_CreatesModifiedCopy: an immutable copy", () => {
    const context = ToolAvailabilityContext.lowRiskOnly;
    const copy = context.with({ hasTerminal: false, disabledToolIds: ["git-status"] });
    assertEquals([context.hasTerminal, copy.hasTerminal], [true, false]);
    assertEquals([...copy.disabledToolIds], ["git-status"]);
    assertEquals(copy.maxRiskLevel, "low");
    assertThrows(() => Object.assign(copy, { hasTerminal: true }), TypeError);
  });

  it("Builder_EnableTools_AddsToWhitelist", () => {
    const context = ToolAvailabilityContext.create()
      .enableTools("file-read").enableTools("git-status", "git-commit").build();
    assertEquals(
      new Set(context.enabledToolIds),
      new Set(["file-read", "git-status", "git-commit"]),
    );
    assertEquals(keeps(context), ["file-read", "git-commit", "git-status"]);
  });

  it("Builder_DisableTools_AddsToBlacklist", () => {
    const context = ToolAvailabilityContext.create()
      .disableTools("file-read").disableTools("git-status").build();
    assertEquals(new Set(context.disabledToolIds), new Set(["file-read", "git-status"]));
    assertEquals(keeps(context), without("file-read", "git-status"));
  });

  it("Builder_WithMaxRiskLevel_SetsLevel", () => {
    const context = ToolAvailabilityContext.create().withMaxRiskLevel("medium").build();
    assertEquals(context.maxRiskLevel, "medium");
    assertEquals(keeps(context), without("file-delete", "terminal-execute"));
  });

  it("Builder_IncludeCategories_SetsCategories", () => {
    const context = ToolAvailabilityContext.create()
      .includeCategories("git").includeCategories("editor").build();
    assertEquals(new Set(context.includedCategories), new Set(["git", "editor"]));
    assertEquals(keeps(context), ["editor-open", "git-commit", "git-status"]);
  });

  it("Builder_ExcludeCategories_SetsCategories", () => {
    const context = ToolAvailabilityContext.create()
      .excludeCategories("git").excludeCategories("editor").build();
    assertEquals(new Set(context.excludedCategories), new Set(["git", "editor"]));
    assertEquals(keeps(context), without("editor-open", "git-commit", "git-status"));
  });

  it("Builder_RequireTags_SetsTags: only tools that have ALL of these tags", () => {
    const context = ToolAvailabilityContext.create()
      .requireTags("read-only").requireTags("file").build();
    assertEquals(new Set(context.requiredTags), new Set(["read-only", "file"]));
    assertEquals(keeps(context), ["file-read", "search-grep"]);
  });

  it("Builder_ImplicitConversion_Works: the builder is accepted as a context", () => {
    const builder = ToolAvailabilityContext.create().withMaxRiskLevel("safe");
    assertEquals(keeps(builder), keeps(builder.build()));
    assertEquals(keeps(builder), ["editor-open", "search-grep"]);
  });
});

describe("FunctionDefinitionTests", () => {
  const definition = FunctionDefinition.fromTool(fileRead);
  const json = {
    name: "file-read",
    description: "Read the contents of a file",
    parameters: PARAMETERS,
  };

  it("FromTool_SetsName: the name from the tool's id", () => {
    assertEquals(definition.name, fileRead.id);
  });

  it("FromTool_SetsDescription: the description from the tool", () => {
    assertEquals(definition.description, fileRead.description);
  });

  it("FromTool_SetsParameters: the schema from the tool", () => {
    assertStrictEquals(definition.parameters, fileRead.parameters);
  });

  it("CanCallWithoutParameters_NoRequired_ReturnsTrue", () => {
    const { required: _, ...parameters } = PARAMETERS;
    assertEquals(new FunctionDefinition({ ...json, parameters }).canCallWithoutParameters, true);
  });

  it("CanCallWithoutParameters_HasRequired_ReturnsFalse", () => {
    assertEquals(definition.canCallWithoutParameters, false);
  });

  it("ToJson_ProducesValidJson: a compact JSON string", () => {
    const text: string = definition.toJson();
    assertEquals(JSON.parse(text), json);
    assertEquals(text, JSON.stringify(json));
  });

  it("ToPrettyJson_IsIndented", () => {
    const text: string = definition.toPrettyJson();
    assertEquals(JSON.parse(text), json);
    assertMatch(text, /^\{\n {2}"name": "file-read",\n/);
  });

  it("ToOpenAIToolJson_HasTypeAndFunction", () => {
    const text: string = definition.toOpenAIToolJson();
    assertEquals(JSON.parse(text), { type: "function", function: json });
    assertEquals(text, JSON.stringify({ type: "function", function: json }));
  });

  it("ToOpenAIToolsJson_ProducesArray", () => {
    const text: string = FunctionDefinition.toOpenAIToolsJson([definition]);
    assertEquals(text, JSON.stringify([{ type: "function", function: json }]));
    assertEquals(FunctionDefinition.toOpenAIToolsJson([]), "[]");
  });
});

describe("ToolRegistryChangedEventArgsTests", () => {
  it("Added_SetsChangeType", () => {
    const { type, tool } = ToolChange.added(fileRead);
    assertEquals(type, "added");
    assertStrictEquals(tool, fileRead);
  });

  it("Removed_SetsChangeType", () => {
    const { type, tool } = ToolChange.removed(fileRead);
    assertEquals(type, "removed");
    assertStrictEquals(tool, fileRead);
  });

  it("Updated_SetsChangeType", () => {
    const { type, tool } = ToolChange.updated(fileRead);
    assertEquals(type, "updated");
    assertStrictEquals(tool, fileRead);
  });

  it("Timestamp_IsPopulated: with the time at which the change is made", () => {
    const before = Date.now();
    for (
      const { timestamp } of [
        ToolChange.added(fileRead),
        ToolChange.removed(fileRead),
        ToolChange.updated(fileRead),
      ]
    ) {
      assert(timestamp >= before && timestamp <= Date.now());
    }
  });
});

describe("the usage examples of the registry interface", () => {
  it("create availability contexts", () => {
    assertEquals(keeps(ToolAvailabilityContext.default), ALL);
    assertEquals(keeps(ToolAvailabilityContext.safeOnly), ["editor-open", "search-grep"]);
    const custom = ToolAvailabilityContext.create().withMaxRiskLevel("medium")
      .excludeCategories("network")
      .disableTools("terminal-execute")
      .withWorkspace(true)
      .withTerminal(false)
      .build();
    assertEquals(keeps(custom), without("file-delete", "network-fetch", "terminal-execute"));
  });

  it("get function definitions, and convert them to OpenAI's format", () => {
    const registry = new ToolRegistry({ tools: TOOLS });
    assertEquals(registry.getFunctionDefinitions().map(({ name }) => name), ALL);
    const context = ToolAvailabilityContext.create().withMaxRiskLevel("low").build();
    const safeFunctions = registry.getFunctionDefinitions(context);
    const toolsJson = FunctionDefinition.toOpenAIToolsJson(safeFunctions);
    assertEquals(
      (JSON.parse(toolsJson) as { type: string; function: { name: string } }[])
        .map((tool) => [tool.type, tool.function.name]),
      ["editor-open", "file-read", "git-status", "search-grep"].map((name) => ["function", name]),
    );
  });
});

describe("the criteria of the registry interface", () => {
  it("AC-1: the registry has every required operation", () => {
    const registry = new ToolRegistry();
    const ids = (tools: readonly { readonly id: string }[]) => tools.map(({ id }) => id);
    const changes: string[] = [];
    registry.subscribe(({ type, tool }) => changes.push(`${type} ${tool.id}`));
    const off = defineTool({ name: "off", description: "x", tags: ["file"], isAvailable: false });

    registry.registerTool(fileRead);
    assertThrows(() => registry.registerTool(fileRead), Error, "file-read");
    assertEquals([registry.tryRegisterTool(off), registry.tryRegisterTool(off)], [true, false]);
    assertEquals([ids(registry.tools), registry.count], [["file-read", "off"], 2]);
    assertStrictEquals(registry.getTool("file-read"), fileRead);
    assertEquals([registry.getTool("x"), registry.hasTool("x")], [undefined, false]);
    assertEquals(registry.hasTool("off"), true);

    // All filters return only available tools.
    const readOnly = ToolAvailabilityContext.readOnly;
    assertEquals(ids(registry.getAvailableTools()), ["file-read"]);
    assertEquals(ids(registry.getAvailableTools(readOnly)), ["file-read"]);
    assertEquals(ids(registry.getToolsByCategory("filesystem")), ["file-read"]);
    assertEquals(ids(registry.getToolsByTag("file")), ["file-read"]);
    const upTo = (risk: RiskLevel) => ids(registry.getToolsByRiskLevel(risk));
    assertEquals([upTo("safe"), upTo("low"), upTo("critical")], [[], ["file-read"], ["file-read"]]);
    for (const query of ["file-read", "contents", "read-only"]) {
      assertEquals(ids(registry.searchTools(query)), ["file-read"]);
    }
    assertEquals(registry.getFunctionDefinitions(readOnly).map(({ name }) => name), ["file-read"]);
    const definition = FunctionDefinition.fromTool(fileRead);
    assertStrictEquals(registry.getFunctionDefinition("file-read"), definition);
    assertEquals(registry.getFunctionDefinition("x"), undefined);

    registry.updateTool(fileRead);
    assertEquals([registry.unregisterTool("off"), registry.unregisterTool("off")], [true, false]);
    assertEquals(changes, ["added file-read", "added off", "updated file-read", "removed off"]);
  });

  const filters: readonly [Parameters<typeof keeps>[0], readonly string[]][] = [
    [{ enabledToolIds: new Set(["file-read", "git-status"]) }, ["file-read", "git-status"]],
    [{ disabledToolIds: new Set(["file-read"]) }, without("file-read")],
    [{ enabledToolIds: ["file-read", "git-status"], disabledToolIds: ["file-read"] }, [
      "git-status",
    ]],
    [{ enabledToolIds: ["file-read", "file-delete"], maxRiskLevel: "low" }, ["file-read"]],
    [{ maxRiskLevel: "low" }, ["editor-open", "file-read", "git-status", "search-grep"]],
    [{ includedCategories: ["git"] }, ["git-commit", "git-status"]],
    [{ excludedCategories: ["git"] }, without("git-commit", "git-status")],
    [{ requiredTags: ["read-only", "file"] }, ["file-read", "search-grep"]],
    [{ hasWorkspace: false }, without("search-grep")],
    [{ hasTerminal: false }, without("terminal-execute")],
    [{ hasEditor: false }, without("editor-open")],
    [{ hasGitRepository: false }, without("git-commit", "git-status")],
  ];
  for (const [context, ids] of filters) {
    const fields = JSON.stringify(context, (_, value) => value instanceof Set ? [...value] : value);
    it(`AC-2: a context with ${fields} keeps ${ids}`, () => assertEquals(keeps(context), ids));
  }

  it("AC-3: each method of the builder returns the builder", () => {
    const builder = ToolAvailabilityContext.create();
    for (
      const answer of [
        builder.enableTools("file-read"),
        builder.disableTools("file-write"),
        builder.withMaxRiskLevel("low"),
        builder.includeCategories("filesystem"),
        builder.excludeCategories("git"),
        builder.requireTags("file"),
        builder.withWorkspace(true),
        builder.withTerminal(true),
        builder.withEditor(true),
        builder.withGitRepository(true),
      ]
    ) assertStrictEquals(answer, builder);
  });

  it("AC-7: fromToolWithContext() appends the text to the description", () => {
    const definition = FunctionDefinition.fromToolWithContext(fileRead, "Only text files.");
    assertEquals(definition.description, "Read the contents of a file\n\nOnly text files.");
    assertEquals([definition.name, definition.parameters], [fileRead.id, fileRead.parameters]);
  });

  it("AC-7: readOnly is the required tag, for any hint and risk", () => {
    assertEquals([...ToolAvailabilityContext.readOnly.requiredTags], ["read-only"]);
    const claims = defineTool({
      name: "claims",
      description: "x",
      risk: "safe",
      annotations: { readOnlyHint: true },
    });
    const registry = new ToolRegistry({ tools: [fileRead, claims] });
    const tools = registry.getAvailableTools(ToolAvailabilityContext.readOnly);
    assertEquals(tools.map(({ id }) => id), ["file-read"]);
  });

  it("AC-7: lowRiskOnly and fileSystemOnly", () => {
    assertEquals(
      keeps(ToolAvailabilityContext.lowRiskOnly),
      ["editor-open", "file-read", "git-status", "search-grep"],
    );
    assertEquals(
      keeps(ToolAvailabilityContext.fileSystemOnly),
      ["file-delete", "file-read", "file-write"],
    );
  });

  it("keeps the fields that with() receives as undefined", () => {
    const context = ToolAvailabilityContext.lowRiskOnly.with({
      maxRiskLevel: undefined,
      hasTerminal: undefined,
      enabledToolIds: undefined,
    });
    assertEquals(context.maxRiskLevel, "low");
  });

  it("makes definitions by hand, with empty defaults, and names them in text", () => {
    const { name, description, parameters } = new FunctionDefinition({});
    assertEquals([name, description, parameters["type"]], ["", "", "object"]);
    assertEquals(String(new FunctionDefinition({ name: "x" })), "FunctionDefinition(x)");
  });
});
