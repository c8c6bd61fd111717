/** A text, an image and a PDF file as a result, through clients and frameworks. */

import { Agent, type Model, Runner, setTracingDisabled, Usage } from "@openai/agents-core";
import { assertEquals, assertFalse } from "@std/assert";
import { generateText, stepCountIs } from "ai";
import { generateText as generateText6, stepCountIs as stepCountIs6 } from "ai6";
import { MockLanguageModelV3 } from "ai6/test";
import { MockLanguageModelV4 } from "ai/test";
import { describe, it } from "bun:test";
import { AIMessage, createAgent, fakeModel, tool, ToolMessage } from "langchain";
import * as plue from "../../src/adapters/frameworks/mod.ts";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import { encodeResults } from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { defineTool, ToolResult } from "../../src/tool/mod.ts";
import { aiAnswers } from "./ai_models.ts";
import { clientsOf, type Message } from "./clients.ts";
import { playProvider } from "./provider.ts";

const GIF = "R0lGODlhAQABAAAAACw=";
const PDF = "JVBERi0xLjQ=";
const SECRET = "for-the-application-only";
const CONTENT = ToolResult.blocks([
  { type: "text", text: "Two files." },
  { type: "image", data: GIF, mimeType: "image/png" },
  { type: "resource", resource: { uri: "f:/a.pdf", mimeType: "application/pdf", blob: PDF } },
], { metadata: { id: SECRET } });

let received: unknown;

const provider = playProvider((sent) => {
  received = sent;
  return { status: 400, body: "{}" };
});

/** The request of a client. The server rejects it, so that no response is needed. */
async function sent(request: Promise<unknown>): Promise<string> {
  received = undefined;
  await request.then(() => {}, () => {});
  const text = JSON.stringify(received);
  assertFalse(text.includes(SECRET));
  return text;
}

const STAND_INS = "[A file of the type image/png (14 bytes) cannot be shown here.]\\n" +
  '[A file \\"a.pdf\\" of the type application/pdf (8 bytes) cannot be shown here.]';

/** The pieces of JSON in the requests to the providers that take files. */
const PIECES: Readonly<Record<string, readonly unknown[]>> = {
  "openai.responses": [
    { type: "input_text", text: "Two files." },
    { type: "input_image", image_url: `data:image/png;base64,${GIF}`, detail: "auto" },
    { type: "input_file", filename: "a.pdf", file_data: `data:application/pdf;base64,${PDF}` },
  ],
  anthropic: [
    { type: "image", source: { type: "base64", media_type: "image/png", data: GIF } },
    { type: "base64", media_type: "application/pdf", data: PDF },
  ],
  gemini: [
    { output: "Two files." },
    [
      { inlineData: { mimeType: "image/png", data: GIF } },
      { inlineData: { mimeType: "application/pdf", data: PDF } },
    ],
  ],
  bedrock: [
    { image: { format: "png", source: { bytes: GIF } } },
    { document: { name: "a pdf (call-1-2)", source: { bytes: PDF }, format: "pdf" } },
  ],
};

describe("a result of blocks through the client of", () => {
  for (const { name, target, send } of clientsOf(provider)) {
    const pieces = PIECES[target];
    it(`${name} has ${pieces === undefined ? "words for the files" : "the files"}`, async () => {
      const messages = encodeResults(target, [{ callId: "call_1", wireName: "draw" }], [CONTENT]);
      const text = await sent(send([...messages] as unknown as Message[]));
      for (const piece of pieces ?? [STAND_INS]) {
        const json = typeof piece === "string" ? piece : JSON.stringify(piece);
        assertEquals(text.includes(json) ? json : text, json);
      }
      const files = pieces !== undefined;
      assertEquals([text.includes(GIF), text.includes(PDF)], [files, files]);
    });
  }
});

describe("a result of blocks through", () => {
  const toolset = buildToolset([
    defineTool({ name: "draw", description: "Draws.", execute: () => CONTENT }),
  ]);
  const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
  const { whole } = aiAnswers([["c1", "draw", "{}"]]);
  const outputIn = (prompt: unknown): unknown => {
    const [last] = (prompt as { content: { output: unknown }[] }[]).slice(-1);
    assertFalse(JSON.stringify(prompt).includes(SECRET));
    return JSON.parse(JSON.stringify(last?.content[0]?.output));
  };

  it("ai 7: the model receives files, and the application the metadata", async () => {
    const model = new MockLanguageModelV4({ doGenerate: whole });
    const tools = plue.toAiSdkTools(toolset, { dispatcher });
    const { steps } = await generateText({ model, tools, prompt: "?", stopWhen: stepCountIs(3) });
    assertEquals(outputIn(model.doGenerateCalls[1]?.prompt), {
      type: "content",
      value: [
        { type: "text", text: "Two files." },
        // The SDK checks that the bytes have this type.
        { type: "file", mediaType: "image/gif", data: { type: "data", data: GIF } },
        {
          type: "file",
          mediaType: "application/pdf",
          filename: "a.pdf",
          data: { type: "data", data: PDF },
        },
      ],
    });
    const output: unknown = steps[0]?.toolResults[0]?.output;
    assertEquals(output, { ...CONTENT.content, blocks: true });
    // The conversation is encoded again after it was stored as JSON.
    const kept: unknown = JSON.parse(JSON.stringify(output));
    const again = tools["draw"]?.toModelOutput({ toolCallId: "c1", output: kept });
    assertEquals(again?.type, "content");
  });

  it("ai 6: the model receives files in its form", async () => {
    const model = new MockLanguageModelV3({ doGenerate: whole });
    const tools = plue.toAiSdkTools(toolset, { dispatcher, version: 6 });
    await generateText6({ model, tools, prompt: "?", stopWhen: stepCountIs6(3) });
    assertEquals(outputIn(model.doGenerateCalls[1]?.prompt), {
      type: "content",
      value: [
        { type: "text", text: "Two files." },
        { type: "image-data", data: GIF, mediaType: "image/png" },
        { type: "file-data", data: PDF, mediaType: "application/pdf", filename: "a.pdf" },
      ],
    });
  });

  it("LangChain: blocks that its core supports, and the metadata as the artifact", async () => {
    const model = fakeModel().respondWithTools([{ id: "c1", name: "draw", args: {} } as never])
      .respond(new AIMessage("seen"));
    const tools = plue.toLangChainTools(toolset, { dispatcher, tool, ToolMessage });
    const { messages } = await createAgent({ model, tools })
      .invoke({ messages: [{ role: "user", content: "?" }] });
    const [answer] = messages.filter((message) => ToolMessage.isInstance(message));
    assertEquals(answer?.artifact, { metadata: { id: SECRET } });
    assertEquals(answer?.contentBlocks.map(({ type }) => type), ["text", "image", "file"]);
    const [, image, file] = JSON.parse(JSON.stringify(answer?.contentBlocks));
    assertEquals([image.mimeType, image.data, file.mimeType, file.data], [
      "image/png",
      GIF,
      "application/pdf",
      PDF,
    ]);
    assertFalse(JSON.stringify(answer?.content).includes(SECRET));
  });

  it("the OpenAI Agents SDK, as it sends them to the Responses API", async () => {
    setTracingDisabled(true);
    const inputs: unknown[] = [];
    const model: Model = {
      getResponse: (request) => {
        inputs.push(request.input);
        return Promise.resolve({
          usage: new Usage(),
          output: [
            inputs.length === 1
              ? {
                type: "function_call",
                callId: "c1",
                name: "draw",
                status: "completed",
                arguments: "{}",
              }
              : {
                type: "message",
                role: "assistant",
                status: "completed",
                content: [{ type: "output_text", text: "seen" }],
              },
          ],
        });
      },
      getStreamedResponse: () => {
        throw new Error("not streamed");
      },
    };
    const tools = plue.toOpenAiAgentsTools(toolset, { dispatcher });
    const agent = new Agent({ name: "a", instructions: "i", model, tools });
    await new Runner().run(agent, "?");
    const items = inputs[1] as { type: string; output: unknown }[];
    const output = items.find(({ type }) => type === "function_call_result")?.output;
    assertEquals(JSON.parse(JSON.stringify(output)), [
      { type: "input_text", text: "Two files." },
      { type: "input_image", image: `data:image/png;base64,${GIF}` },
      { type: "input_file", file: `data:application/pdf;base64,${PDF}`, filename: "a.pdf" },
    ]);
  });
});
