import { assert, assertEquals, assertFalse, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/formats/mod.ts";
import { encodeResult } from "../../../src/formats/mod.ts";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { type ContentBlock, defineTool, ToolResult } from "../../../src/tool/mod.ts";
import { PROVIDERS } from "./cases.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";

const CALL = { callId: "c1", wireName: "draw" };
const GIF = "R0lGODlhAQABAAAAACw=";
const PDF = "JVBERi0xLjQ=";
const WAV = "UklGRiQAAAA=";
const SECRET = "for-the-application-only";
const TEXT: ContentBlock = { type: "text", text: "Two files." };
const IMAGE: ContentBlock = { type: "image", data: GIF, mimeType: "image/png" };
const AUDIO: ContentBlock = { type: "audio", data: WAV, mimeType: "audio/wav" };
const FILE: ContentBlock = {
  type: "resource",
  resource: { uri: "file:///tmp/report.pdf", mimeType: "application/pdf", blob: PDF },
};
const MIXED = ToolResult.blocks([TEXT, IMAGE, FILE], { metadata: { id: SECRET } });
const BYTES = Uint8Array.from(atob(GIF), (character) => character.charCodeAt(0));
const ROWS = PROVIDERS.flatMap(({ blocks }) => blocks);

/** The targets that have a field which no model reads: `artifact` and `_meta`. */
const APART: ReadonlySet<string> = new Set([
  "langchain",
  "mcp@2025-06-18",
  "mcp@2025-11-25",
  "mcp@2026-07-28",
]);

describe("results of blocks", () => {
  it("are written in the blocks of each target", () => {
    for (const [targets, expected] of ROWS) {
      for (const target of targets) {
        const answer: unknown = encodeResult(target, CALL, MIXED);
        assertEquals(JSON.parse(JSON.stringify(answer)), expected, target);
      }
    }
  });

  it("are bytes for the client of Bedrock", () => {
    const { content } = encodeResult("bedrock", CALL, MIXED).toolResult;
    assertEquals(content[1], { image: { format: "png", source: { bytes: BYTES } } });
  });

  it("are a failure with a pointer for every target if a file is not base64", () => {
    const file = (blob: string) => ({ type: "resource", resource: { uri: "file:///a", blob } });
    for (
      const data of [
        "data:image/png;base64,AAAA",
        "_-AA", // base64url
        "QUI", // not padded
        "A===",
        "QUJD\nQUJD",
        "hello",
      ]
    ) {
      for (
        const block of [{ ...IMAGE, data }, { ...AUDIO, data }, file(data)] as ContentBlock[]
      ) {
        const blocks = ToolResult.blocks([TEXT, block]);
        for (const { id } of plue.listTargets()) {
          const answer = JSON.stringify(encodeResult(id as plue.TargetName, CALL, blocks));
          assertStringIncludes(answer, 'Cannot send the result: \\"/content/1\\" is not base64');
          assertEquals(answer.includes(JSON.stringify(data).slice(1, -1)), false, id);
        }
      }
    }
    for (const data of ["", "QQ==", "QUI=", "+/AA", "QUJD".repeat(2_500_000)]) {
      const blocks = ToolResult.blocks([{ ...IMAGE, data } as ContentBlock]);
      assertEquals(encodeResult("anthropic", CALL, blocks).is_error, undefined);
    }
  });

  it("have no metadata in parts that a model reads", () => {
    for (const { id } of plue.listTargets()) {
      const answer = JSON.stringify(encodeResult(id as plue.TargetName, CALL, MIXED));
      assertEquals(answer.includes(SECRET), APART.has(id), id);
    }
  });

  it("may be combined with a value, which the result schema describes", async () => {
    const returns = {
      type: "object",
      properties: { dots: { type: "integer" } },
      required: ["dots"],
    } as const;
    const draw = (structuredContent: unknown) =>
      defineTool({
        name: "draw",
        description: "Draws.",
        returns,
        execute: () => ToolResult.blocks([IMAGE], { structuredContent }),
      });
    const dispatcher = new ToolDispatcher(buildToolset([draw({ dots: 1 })]), {
      engine: typeboxEngine(),
    });
    const right = await dispatcher.dispatch({ name: "draw" });
    assertEquals(right.ok && right.blocks, true);
    for (const value of [undefined, { dots: "many" }]) {
      const wrong = new ToolDispatcher(buildToolset([draw(value)]), { engine: typeboxEngine() });
      const result = await wrong.dispatch({ name: "draw" });
      assertEquals(result.ok ? "right" : result.error.code, "invalid_result");
    }
    const toolset = buildToolset([draw({ dots: 1 })]);
    const { names } = plue.exportTools(toolset, "openai.responses");
    const typed = { ...CALL, name: "draw" };
    // Responses has received the schema of the result, so the value comes first, as JSON.
    const answer = encodeResult("openai.responses", typed, right, names);
    assertEquals("output" in answer && answer.output, [
      { type: "input_text", text: '{"dots":1}' },
      { type: "input_image", image_url: `data:image/png;base64,${GIF}`, detail: "auto" },
    ]);
    assertEquals(JSON.parse(JSON.stringify(encodeResult("mcp", typed, right))).structuredContent, {
      dots: 1,
    });
  });

  it("stay blocks when a turn has been JSON, and values stay values", async () => {
    const looks = { content: [IMAGE] };
    const toolset = buildToolset([
      defineTool({
        name: "draw",
        description: "Draws.",
        execute: () => ToolResult.blocks([IMAGE]),
      }),
      defineTool({ name: "look", description: "Looks.", execute: () => looks }),
    ]);
    const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
    const { names } = plue.exportTools(toolset, "anthropic");
    const options = { dispatcher, names };
    const use = (name: string) => ({ type: "tool_use", id: name, name, input: {} });
    const turn = await plue.dispatchResponse("anthropic", [use("draw"), use("look")], options);
    const kept = await plue.resumeTurn("anthropic", JSON.parse(JSON.stringify(turn)), {}, options);
    assertEquals(kept.messages, turn.messages);
    const [drawn, looked] = turn.messages[0]?.content ?? [];
    assert(Array.isArray(drawn?.content));
    assertEquals(looked?.content, JSON.stringify(looks));
    assertFalse("blocks" in (turn.results[1] as object));
  });

  it("stay blocks through a tool that calls another one", async () => {
    const inner = new ToolDispatcher(
      buildToolset([
        defineTool({
          name: "draw",
          description: "Draws.",
          execute: () => ToolResult.blocks([IMAGE]),
        }),
      ]),
      { engine: typeboxEngine() },
    );
    const result = await inner.dispatch({ name: "draw" });
    const copied = Object.assign(ToolResult.ok(undefined), JSON.parse(JSON.stringify(result)));
    for (const content of [result, copied]) {
      const outer = defineTool({ name: "outer", description: "Calls.", execute: () => content });
      const dispatcher = new ToolDispatcher(buildToolset([outer]), { engine: typeboxEngine() });
      const passed = await dispatcher.dispatch({ name: "outer" });
      assertEquals(passed.ok && [passed.content, passed.blocks], [{ content: [IMAGE] }, true]);
    }
  });
});
