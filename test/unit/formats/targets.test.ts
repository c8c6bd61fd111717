import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import * as formats from "../../../src/formats/mod.ts";
import { listTargets } from "../../../src/formats/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";
import { PROVIDERS } from "./cases.ts";

const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const description = "Tells the weather.";
const returns = {
  type: "array",
  items: { $ref: "#/$defs/day" },
  $defs: { day: { type: "number" } },
};

const weather = makeTool({
  name: "get",
  namespace: "weather",
  title: "Weather",
  description,
  parameters,
  returns,
  examples: [{ input: { city: "Rome" }, description: "In Rome" }],
  icons: [{ src: "https://example.com/i.png" }],
  annotations: {
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: true,
  },
  meta: {
    "example.com/x": 1,
    provider: {
      deferLoading: true,
      allowedCallers: ["direct", "programmatic"],
      async: false,
      cacheControl: { type: "ephemeral" },
      eagerInputStreaming: true,
      taskSupport: "optional",
      namespaceDescription: "About weather.",
    },
  },
});

describe("the cases of the providers", () => {
  it("cover every target, and every alias if names are read", () => {
    const ids = listTargets().map(({ id }) => id);
    const names = new Set<string>([...ids, ...Object.keys(formats.TARGET_ALIASES)]);
    const targetsOf = (rows: readonly (readonly [readonly formats.TargetName[], ...unknown[]])[]) =>
      new Set(rows.flatMap(([targets]) => targets));
    assertEquals(new Set<string>(PROVIDERS.flatMap(({ targets }) => targets)), names);
    assertEquals(targetsOf(PROVIDERS.flatMap(({ results }) => results)), names);
    assertEquals(targetsOf(PROVIDERS.flatMap(({ blocks }) => blocks)), names);
    const settings = targetsOf(PROVIDERS.flatMap((cases) => cases.settings));
    assertEquals(ids.filter((id) => !settings.has(id)), []);
  });
});

describe("a tool with long texts", () => {
  const expected = Object.assign({}, ...PROVIDERS.map(({ exported }) => exported));
  for (const { id } of listTargets()) {
    it(`is written for ${id}`, () => {
      const result: formats.ExportResult = formats.exportTools([weather], id);
      // The schemas of the AI SDK have functions and a symbol, which JSON cannot contain.
      const { tools } = id === "ai-sdk" ? JSON.parse(JSON.stringify(result)) : result;
      assertEquals(tools, expected[id]);
      assertEquals(result.rejected, []);
      const wraps = id === "mcp@2025-06-18" || id === "mcp@2025-11-25";
      assertEquals(result.names.encodings[0]?.wrapsResult, wraps);
    });
  }

  it("is written without namespaces if the option is off", () => {
    const { tools, names } = formats.exportTools([weather], "openai.responses", {
      namespaces: false,
    });
    assertEquals(tools.map((tool) => "name" in tool && tool.name), ["weather__get"]);
    assertEquals(names.idOf("weather__get"), "weather:get");
    assertEquals(names.idOf("get", "weather"), undefined);
  });

  it("is called by namespace and name together only", () => {
    const { names } = formats.exportTools([weather], "openai.responses");
    assertEquals(names.idOf("get", "weather"), "weather:get");
    assertEquals(names.idOf("get"), undefined);
    assertEquals(names.idOf("weather__get"), undefined);
  });
});

describe("listTargets()", () => {
  it("has a rule for every form, and a target for every fallback", () => {
    for (const { id, input, fallback, source, title } of listTargets()) {
      assertEquals(Object.keys(input).sort(), Object.keys(formats.KEYWORD_FORMS).sort(), id);
      assert(title !== "" && source !== "", id);
      assert(
        fallback === undefined || formats.targetOf(fallback.id as formats.TargetName) === fallback,
        id,
      );
      for (const rule of Object.values(input)) {
        assertEquals(rule.action === "transform", rule.into !== undefined, id);
      }
    }
  });

  it("has the records of all names and aliases", () => {
    for (const target of listTargets()) assertEquals<unknown>(formats.targetOf(target.id), target);
    for (const [alias, id] of Object.entries(formats.TARGET_ALIASES)) {
      assertEquals(formats.targetOf(alias as formats.TargetName).id, id);
    }
    assertEquals(formats.isTargetName("openai.unknown"), false);
  });
});

describe("nullable: true in a tool's own schema", () => {
  // The tool rejects null, and a model that reads "nullable" would send it.
  const maybe = makeTool({
    name: "maybe",
    description,
    parameters: {
      type: "object",
      properties: { city: { type: "string", nullable: true } },
      required: ["city"],
      additionalProperties: false,
    },
  });
  for (const { id } of listTargets()) {
    it(`is not sent to ${id}, and reported`, () => {
      const { tools, losses, rejected } = formats.exportTools([maybe], id);
      assertEquals(rejected, []);
      assertEquals(JSON.stringify(tools).includes("nullable"), false);
      const reported = losses.filter(({ keyword }) => keyword === "nullable");
      assertEquals(
        reported.map(({ path, action, widens, narrows }) => [path, action, widens, narrows]),
        [["/properties/city/nullable", "dropped", false, false]],
      );
    });
  }
});
