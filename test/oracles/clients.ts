/** The providers' own clients, each with one way to send messages and to stream. */

import Anthropic from "@anthropic-ai/sdk";
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import { Mistral } from "@mistralai/mistralai";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { CohereClientV2 } from "cohere-ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import type { TargetName } from "../../src/formats/mod.ts";

export type Message = Record<string, unknown>;

/** A provider's client. */
export interface Provider {
  readonly name: string;
  readonly target: TargetName;
  /** How the provider streams. */
  readonly streams: "events" | "named events" | "lines" | "nothing";
  /** The field of a request with the messages. */
  readonly field: string;
  /** Sends messages, and the tools of an export. */
  send(messages: Message[], tools?: unknown): Promise<unknown>;
  stream(): Promise<AsyncIterable<unknown>>;
}

/** Two SDKs write camel case where their API does not. */
const inCamelCase = (messages: Message[]): never[] =>
  messages.map(({ tool_call_id: toolCallId, ...rest }) => ({ ...rest, toolCallId })) as never[];

// The types of messages and tools are checked in `sdk_messages.ts` and `sdk_types.ts`.
const sent = (tools: unknown): { tools?: never[] } =>
  tools === undefined ? {} : { tools: tools as never[] };

/** The clients of a server that simulates all providers. They do not repeat failed requests. */
export function clientsOf(
  provider: { readonly url: string },
  vertexai = false,
): readonly Provider[] {
  const openai = (): OpenAI => new OpenAI({ apiKey: "k", baseURL: provider.url, maxRetries: 0 });
  const anthropic = (): Anthropic =>
    new Anthropic({ apiKey: "k", baseURL: provider.url, maxRetries: 0 });
  const gemini = (): GoogleGenAI =>
    new GoogleGenAI({ apiKey: "k", vertexai, httpOptions: { baseUrl: provider.url } });
  const mistral = (): Mistral =>
    new Mistral({ apiKey: "k", serverURL: provider.url, retryConfig: { strategy: "none" } });
  const cohere = (): CohereClientV2 =>
    new CohereClientV2({ token: "k", environment: provider.url, maxRetries: 0 });
  const ollama = (): Ollama => new Ollama({ host: provider.url });

  return [
    {
      name: "OpenAI Chat",
      target: "openai.chat",
      streams: "events",
      field: "messages",
      send: (list, tools) =>
        openai().chat.completions.create({ model: "m", messages: list as never[], ...sent(tools) }),
      stream: () => openai().chat.completions.create({ model: "m", messages: [], stream: true }),
    },
    {
      name: "OpenAI Responses",
      target: "openai.responses",
      streams: "named events",
      field: "input",
      send: (list, tools) =>
        openai().responses.create({ model: "m", input: list as never[], ...sent(tools) }),
      stream: () => openai().responses.create({ model: "m", input: "", stream: true }),
    },
    {
      name: "Anthropic",
      target: "anthropic",
      streams: "named events",
      field: "messages",
      send: (list, tools) => {
        const messages = list as never[];
        return anthropic().messages.create({ model: "m", max_tokens: 9, messages, ...sent(tools) });
      },
      stream: () =>
        anthropic().messages.create({ model: "m", max_tokens: 9, messages: [], stream: true }),
    },
    {
      name: "Gemini",
      target: "gemini",
      streams: "events",
      field: "contents",
      send: (messages, tools) =>
        gemini().models.generateContent({
          model: "m",
          contents: messages.length === 0 ? "1 + 2?" : messages,
          config: sent(tools),
        }),
      stream: () => gemini().models.generateContentStream({ model: "m", contents: "" }),
    },
    {
      name: "Bedrock",
      target: "bedrock",
      streams: "nothing",
      field: "messages",
      async send(list, tools) {
        const client = new BedrockRuntimeClient({
          region: "us-east-1",
          endpoint: provider.url,
          maxAttempts: 1,
          credentials: { accessKeyId: "k", secretAccessKey: "s" },
          requestHandler: new NodeHttpHandler(),
        });
        const toolConfig = tools === undefined ? {} : { toolConfig: { tools: tools as never[] } };
        const request = { modelId: "m", messages: list as never[], ...toolConfig };
        const response = await client.send(new ConverseCommand(request));
        client.destroy();
        return response;
      },
      stream: () => Promise.reject(new Error("Bedrock streams no events")),
    },
    {
      name: "Mistral",
      target: "mistral",
      streams: "events",
      field: "messages",
      send: (list, tools) =>
        mistral().chat.complete({ model: "m", messages: inCamelCase(list), ...sent(tools) }),
      stream: () => mistral().chat.stream({ model: "m", messages: [] }),
    },
    {
      name: "Cohere",
      target: "cohere",
      streams: "events",
      field: "messages",
      send: (list, tools) =>
        cohere().chat({ model: "m", messages: inCamelCase(list), ...sent(tools) }),
      stream: () => cohere().chatStream({ model: "m", messages: [] }),
    },
    {
      name: "Ollama",
      target: "ollama",
      streams: "lines",
      field: "messages",
      send: (list, tools) =>
        ollama().chat({ model: "m", messages: list as never[], ...sent(tools) }),
      stream: () => ollama().chat({ model: "m", messages: [], stream: true }),
    },
  ];
}
