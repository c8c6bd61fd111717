/** The requests of the providers' own clients: the tools that arrive are the exported tools. */

import { assertEquals, assertRejects } from "@std/assert";
import { describe, it } from "bun:test";
import OpenAI from "openai";
import { exportTools, type TargetName } from "../../src/formats/mod.ts";
import { clientsOf } from "./clients.ts";
import { playProvider } from "./provider.ts";
import { ALL } from "./tools.ts";

type Body = Readonly<Record<string, unknown>>;

let arrived: Body | undefined;

// A rejected request is neither repeated nor read further.
const provider = playProvider((sent) => {
  arrived = sent as Body;
  return { status: 400, body: "{}" };
});

/** Sends the tools of an export, and returns what arrives. */
type Send = (tools: unknown) => Promise<unknown>;

const SENDS: readonly (readonly [TargetName, Send])[] = [
  ...clientsOf(provider).flatMap(({ target, send }) => {
    const variants: Readonly<Record<string, TargetName>> = {
      "openai.chat": "openai.chat.strict",
      "openai.responses": "openai.responses.strict",
      "anthropic": "anthropic.strict",
      "bedrock": "bedrock.strict",
      "gemini": "gemini.typed",
    };
    const targets = [target, variants[target]].filter((one) => one !== undefined);
    return targets.map((one) => [one, (tools: unknown) => send([], tools)] as const);
  }),
  ...clientsOf(provider, true).filter(({ target }) => target === "gemini")
    .map(({ send }) => ["vertex", (tools: unknown) => send([], tools)] as const),
  ["openai.realtime", (tools) => {
    const session = { type: "realtime" as const, tools: tools as never[] };
    return new OpenAI({ apiKey: "k", baseURL: provider.url }).realtime.clientSecrets
      .create({ session });
  }],
];

describe("the providers' clients", () => {
  for (const [target, send] of SENDS) {
    it(`send the export to ${target} unchanged`, async () => {
      const { tools } = exportTools(ALL, target);
      const before = JSON.stringify(tools);
      arrived = undefined;
      await assertRejects(async () => await send(tools));
      const holder = arrived?.["toolConfig"] ?? arrived?.["session"] ?? arrived;
      assertEquals((holder as Body | undefined)?.["tools"], JSON.parse(before));
    });
  }
});
