import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { describe, it } from "bun:test";
import { buildToolset, ToolAvailabilityContext } from "../../../src/select/mod.ts";
import { defineTool, type ToolReader } from "../../../src/tool/mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { exportTools } from "../../../src/formats/mod.ts";
import { createToolBridge, viewOf } from "../../../src/finding/mod.ts";

const WORDS: { readonly [locale: string]: string } = {
  de: "Liest eine Datei.",
  fr: "Lit un fichier.",
};

const read = {
  name: "read",
  description: ({ locale, provider, model }: ToolReader) =>
    `${WORDS[locale ?? ""] ?? "Reads a file."}${provider ? ` For ${provider}.` : ""}${
      model ? ` By ${model}.` : ""
    }`,
  execute: () => "text",
};

function inLocale(locale: string) {
  return { context: { locale } };
}

describe("a description that is a function", () => {
  const registry = new ToolRegistry({ tools: [read, { name: "rm", description: "Deletes." }] });

  it("is the text for an unknown reader if the selection names none", () => {
    assertEquals(registry.getTool("read")?.description, "Reads a file.");
    assertEquals(registry.select().get("read")?.description, "Reads a file.");
    assertEquals(registry.select(inLocale("xx")).get("read")?.description, "Reads a file.");
    assertStrictEquals(registry.select(inLocale("xx")).get("read"), registry.getTool("read"));
  });

  it("receives the model, the provider and the locale of the context", () => {
    const context = ToolAvailabilityContext.create()
      .withLocale("de").withProvider("anthropic").withModel("claude-x").build();
    const toolset = registry.select({ context });
    assertEquals(
      toolset.tools.map(({ description }) => description),
      ["Liest eine Datei. For anthropic. By claude-x.", "Deletes."],
    );
    assertEquals(ToolAvailabilityContext.fromJSON(context.toJSON()).key, context.key);
  });

  it("calls the function once for each tool of a toolset, which is the same until a change", () => {
    let calls = 0;
    const counted = new ToolRegistry({
      tools: [{ name: "a", description: ({ locale }) => `${locale ?? "none"} ${calls++}` }],
    });
    const toolset = counted.select(inLocale("de"));
    assertEquals(toolset.get("a")?.description, "de 1");
    assertStrictEquals(counted.select(inLocale("de")).get("a"), toolset.get("a"));
    assertNotStrictEquals(counted.select(inLocale("fr")).get("a"), toolset.get("a"));
    assertEquals(calls, 3);
  });

  it("keeps the same list where no description is a function", () => {
    const plain = [defineTool({ name: "a", description: "Says so." })];
    const toolset = buildToolset(plain);
    assertStrictEquals(toolset.narrow(inLocale("de")).tools, toolset.tools);
  });

  it("follows a narrower selection that describes the reader further", () => {
    const german = registry.select(inLocale("de"));
    assertEquals(
      german.narrow({ maxRisk: "medium" }).get("read")?.description,
      "Liest eine Datei.",
    );
    assertEquals(
      german.narrow({ context: { provider: "google" } }).get("read")?.description,
      "Liest eine Datei. For google.",
    );
    assertEquals(german.narrow(inLocale("fr")).get("read")?.description, "Lit un fichier.");
  });

  it("shows filters and policies the tool itself", () => {
    const seen: string[] = [];
    const filters = [({ description }: { description: string }) => (seen.push(description), true)];
    registry.select({ ...inLocale("de"), filters }).narrow({ filters });
    assertEquals([...new Set(seen)].sort(), ["Deletes.", "Reads a file."]);
    assert(registry.select(inLocale("de")).explain("read").available);
  });

  it("is exported with the reader's description", () => {
    const { tools } = exportTools(registry.select(inLocale("de")), "openai.chat");
    assertEquals(tools.map((tool) => tool.function.description), ["Liest eine Datei.", "Deletes."]);
    assertEquals(
      exportTools(registry.select(), "openai.chat").tools[0]?.function.description,
      "Reads a file.",
    );
  });

  it("is adapted to the reader even by a bridge", async () => {
    const bridge = createToolBridge(registry.select(inLocale("de")), {});
    const dispatcher = new ToolDispatcher(bridge);
    for (
      const call of [
        { name: "describe_tools", arguments: { names: ["read"] } },
        { name: "search_tools", arguments: { query: "reads a file" } },
      ]
    ) {
      const result = await dispatcher.dispatch(call);
      assertStringIncludes(JSON.stringify(result), "Liest eine Datei.");
    }
    const called = await dispatcher.dispatch({ name: "call_tool", arguments: { name: "read" } });
    assertEquals(called.ok && called.content, "text");
  });

  it("is searched by its text for an unknown reader", () => {
    assertEquals(registry.searchTools("file").map(({ id }) => id), ["read"]);
    assertEquals(registry.searchTools("Datei").map(({ id }) => id), []);
  });

  it("does not affect calls", async () => {
    const toolset = registry.select(inLocale("de"));
    const result = await new ToolDispatcher(toolset).dispatch({ name: "read" });
    assertEquals(result.ok && result.content, "text");
    const tool = toolset.get("read");
    assert(tool !== undefined && toolset.isAvailable(tool));
    assertStrictEquals(toolset.resolve("read"), registry.getTool("read"));
    registry.updateTool({ ...read, execute: () => "other" });
    assertEquals(toolset.isAvailable(tool), false);
  });

  it("checks the availability of the tool itself", () => {
    let open = true;
    const asking = new ToolRegistry({ tools: [{ ...read, isAvailable: () => open }] });
    const toolset = asking.select(inLocale("de"));
    assertEquals(toolset.available().map(({ description }) => description), ["Liest eine Datei."]);
    open = false;
    assertEquals(toolset.available(), []);
  });

  it("applies to a view without a description of its own", () => {
    const tool = defineTool(read);
    const tools = [viewOf(tool, { name: "a" }), viewOf(tool, { name: "b", description: "Mine." })];
    assertEquals(
      buildToolset(tools, inLocale("de")).tools.map(({ description }) => description),
      ["Liest eine Datei.", "Mine."],
    );
  });

  it("does not apply to a copy of the tool with another text", () => {
    const copy = defineTool({ ...defineTool(read), description: "Mine." } as never);
    assertEquals(buildToolset([copy], inLocale("de")).get("read")?.description, "Mine.");
    const same = defineTool({ ...defineTool(read) } as never);
    assertEquals(
      buildToolset([same], inLocale("de")).get("read")?.description,
      "Liest eine Datei.",
    );
  });

  it("falls back to the text for an unknown reader if it fails, for its tool only", () => {
    const errors: string[] = [];
    const failing = new ToolRegistry({
      tools: [
        read,
        ...[() => "", () => 1, () => Promise.resolve("x"), () => {
          throw new Error("no such model");
        }].map((bad, index) => ({
          name: `bad${index}`,
          description: (reader: ToolReader) => reader.model ? bad() as string : "Default.",
        })),
      ],
      onError: ({ phase, toolId, error }) =>
        errors.push(`${phase} ${toolId} ${(error as Error).message}`),
    });
    const toolset = failing.select({ context: { model: "m", locale: "de" } });
    assertEquals(toolset.tools.map(({ description }) => description), [
      ...Array<string>(4).fill("Default."),
      "Liest eine Datei. By m.",
    ]);
    const prefix = 'its description for the reader {"model":"m","locale":"de"}';
    assertEquals(errors.length, 4);
    assertEquals(
      errors[0],
      `description bad0 Cannot describe tool "bad0": ${prefix} must be a string that describes the ` +
        'tool, not ""',
    );
    assertStringIncludes(errors[2] ?? "", "the result must not be a promise");
    assertStringIncludes(errors[3] ?? "", `${prefix}: no such model`);
  });

  it("is rejected if it has no text without a reader", () => {
    for (
      const [description, problem] of [
        [() => undefined, "must be a string that describes the tool, not undefined"],
        [({ locale }: ToolReader) => WORDS[locale as string]?.trim(), "must be a string"],
        [
          () => {
            throw new Error("no locale");
          },
          "its description for the reader {}: no locale",
        ],
      ] as const
    ) {
      assertThrows(
        () => defineTool({ name: "a", description: description as () => string }),
        TypeError,
        problem,
      );
    }
  });

  it("rejects a reader with long or invalid fields", () => {
    for (const model of ["", "a b", "x".repeat(129), 1]) {
      assertThrows(
        () => registry.select({ context: { model: model as string } }),
        TypeError,
        '"/model" must be 1 to 128 visible ASCII characters',
      );
    }
  });
});
