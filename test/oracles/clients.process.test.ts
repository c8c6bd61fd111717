/**
 * The requests of the providers' own clients: the tools that arrive are the exported tools.
 *
 * @module
 */

import Anthropic from "@anthropic-ai/sdk";
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import { Mistral } from "@mistralai/mistralai";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { assertEquals, assertRejects } from "@std/assert";
import { describe, it } from "bun:test";
import { CohereClientV2 } from "cohere-ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { exportTools } from "../../src/formats/mod.ts";
import { playProvider } from "./provider.ts";
import { ALL } from "./tools.ts";

type Body = Readonly<Record<string, unknown>>;

let arrived: Body | undefined;

// A rejected request is neither repeated nor read further.
const provider = playProvider((sent) => {
  arrived = sent as Body;
  return { status: 400, body: "{}" };
});

const openai = () => new OpenAI({ apiKey: "k", baseURL: provider.url });
const anthropic = () => new Anthropic({ apiKey: "k", baseURL: provider.url });
const google = (vertexai: boolean) =>
  new GoogleGenAI({ apiKey: "k", vertexai, httpOptions: { baseUrl: provider.url } });
const said = [{ role: "user" as const, content: "Hello." }];

interface Request {
  /** The exported tools. */
  readonly tools: unknown;
  /** Sends them; rejected by the server. */
  send(): PromiseLike<unknown>;
  /** The tools in what arrived. */
  find(body: Body): unknown;
}

const inTools = (body: Body): unknown => body["tools"];

function request<Tools>(
  tools: Tools,
  send: (tools: Tools) => PromiseLike<unknown>,
  find: (body: Body) => unknown = inTools,
): Request {
  return { tools, send: () => send(tools), find };
}

const chat = (target: "openai.chat" | "openai.chat.strict") =>
  request(
    exportTools(ALL, target).tools,
    (tools) => openai().chat.completions.create({ model: "m", messages: said, tools }),
  );
const responses = (target: "openai.responses" | "openai.responses.strict") =>
  request(
    exportTools(ALL, target).tools,
    (tools) => openai().responses.create({ model: "m", input: "Hello.", tools }),
  );
const messages = (target: "anthropic" | "anthropic.strict") =>
  request(
    exportTools(ALL, target).tools,
    (tools) => anthropic().messages.create({ model: "m", max_tokens: 9, messages: said, tools }),
  );
const content = (target: "gemini" | "vertex") =>
  request(
    exportTools(ALL, target).tools,
    (tools) =>
      google(target === "vertex").models.generateContent({
        model: "m",
        contents: "Hello.",
        config: { tools },
      }),
  );
const converse = (target: "bedrock" | "bedrock.strict") =>
  request(
    exportTools(ALL, target).tools,
    (tools) =>
      new BedrockRuntimeClient({
        region: "us-east-1",
        endpoint: provider.url,
        credentials: { accessKeyId: "k", secretAccessKey: "s" },
        requestHandler: new NodeHttpHandler(),
        maxAttempts: 1,
      }).send(
        new ConverseCommand({
          modelId: "m",
          messages: [{ role: "user", content: [{ text: "Hello." }] }],
          toolConfig: { tools },
        }),
      ),
    (body) => (body["toolConfig"] as Body)["tools"],
  );

const REQUESTS: Readonly<Record<string, () => Request>> = {
  "openai.chat": () => chat("openai.chat"),
  "openai.chat.strict": () => chat("openai.chat.strict"),
  "openai.responses": () => responses("openai.responses"),
  "openai.responses.strict": () => responses("openai.responses.strict"),
  "openai.realtime": () =>
    request(
      exportTools(ALL, "openai.realtime").tools,
      (tools) => openai().realtime.clientSecrets.create({ session: { type: "realtime", tools } }),
      (body) => (body["session"] as Body)["tools"],
    ),
  "anthropic": () => messages("anthropic"),
  "anthropic.strict": () => messages("anthropic.strict"),
  "gemini": () => content("gemini"),
  "vertex": () => content("vertex"),
  "gemini.typed": () =>
    request(
      exportTools(ALL, "gemini.typed").tools,
      (tools) =>
        google(false).models.generateContent({
          model: "m",
          contents: "Hello.",
          // The names of types are an enum of the SDK's own.
          config: { tools: tools as never },
        }),
    ),
  "bedrock": () => converse("bedrock"),
  "bedrock.strict": () => converse("bedrock.strict"),
  "mistral": () =>
    request(
      exportTools(ALL, "mistral").tools,
      (tools) =>
        new Mistral({ apiKey: "k", serverURL: provider.url }).chat.complete({
          model: "m",
          messages: said,
          tools,
        }),
    ),
  "cohere": () =>
    request(
      exportTools(ALL, "cohere").tools,
      (tools) =>
        new CohereClientV2({ token: "k", environment: provider.url }).chat(
          { model: "m", messages: said, tools },
          { maxRetries: 0 },
        ),
    ),
  "ollama": () =>
    request(
      exportTools(ALL, "ollama").tools,
      (tools) => new Ollama({ host: provider.url }).chat({ model: "m", messages: said, tools }),
    ),
};

describe("the providers' clients", () => {
  for (const [target, make] of Object.entries(REQUESTS)) {
    it(`send the export to ${target} unchanged`, async () => {
      const { tools, send, find } = make();
      const before = JSON.stringify(tools);
      arrived = undefined;
      await assertRejects(async () => await send());
      assertEquals(find(arrived ?? {}), JSON.parse(before));
    });
  }
});
