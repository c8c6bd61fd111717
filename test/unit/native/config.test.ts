import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { buildToolset, type Selection } from "../../../src/select/mod.ts";
import { defineTool } from "../../../src/tool/mod.ts";
import { NativeConfigError, readNativeConfig } from "../../../src/adapters/native/host_tools.ts";
import data from "./config.json" with { type: "json" };

describe("readNativeConfig()", () => {
  for (const text of [undefined, "", "  \n", "{}"]) {
    it(`reads ${JSON.stringify(text)} as the defaults`, () => {
      assertEquals(readNativeConfig(text), { selection: {}, config: undefined });
    });
  }

  it("separates the selection from the tools' configuration", () => {
    const selection = data.selection as Selection;
    const config = { a: { root: "/" } };
    assertEquals(readNativeConfig(JSON.stringify({ ...selection, config })), { selection, config });
  });

  it("reads whether the host requests a bridge, and its options", () => {
    const bridgeOf = (text: string): unknown => readNativeConfig(text).bridge;
    assertEquals(bridgeOf('{"bridge":true}'), {});
    assertEquals(bridgeOf('{"bridge":{"limit":3}}'), { limit: 3 });
    assertEquals(bridgeOf('{"bridge":false}'), undefined);
  });

  it("reads a context by the specification's field names, like every other reader", () => {
    const text = '{"context":{"hasGitRepository":false,"enabledToolIds":["a","b","c"],' +
      '"disabledToolIds":["c"],"requiredTags":["x","y"]}}';
    const tools = [
      defineTool({ name: "a", description: "Has both tags.", tags: ["x", "y"] }),
      defineTool({ name: "b", description: "Has one.", tags: ["x"] }),
      defineTool({ name: "c", description: "Is disabled.", tags: ["x", "y"] }),
      defineTool({ name: "d", description: "Is not enabled.", tags: ["x", "y"] }),
    ];
    assertEquals(buildToolset(tools, readNativeConfig(text).selection).ids, ["a"]);
  });

  for (const [text, why] of data.rejected as [string, string][]) {
    it(`rejects ${text}`, () => {
      assertThrows(
        () => readNativeConfig(text),
        NativeConfigError,
        `Cannot read config_json: ${why}`,
      );
    });
  }

  it("does not repeat a long field", () => {
    const error = assertThrows(
      () => readNativeConfig(JSON.stringify({ ["x".repeat(10_000)]: 1 })),
      NativeConfigError,
      "",
    );
    assertEquals(error.message.length < 400, true);
  });
});
