/** Tools of other frameworks as tools of plue. test/oracles has the real packages. */

import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { fromAiSdkTools, fromLangChainTools } from "../../../src/adapters/frameworks/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { type DispatchContext, ToolDispatcher } from "../../../src/execute/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import type { Tool } from "../../../src/tool/mod.ts";

async function run(
  tools: readonly Tool[],
  name: string,
  args: unknown = {},
  context: DispatchContext = {},
): Promise<unknown> {
  const dispatcher = new ToolDispatcher(buildToolset(tools), { engine: typeboxEngine() });
  const result = await dispatcher.dispatch({ name, arguments: args, callId: "c1" }, context);
  return result.ok ? result.content : `${result.error.code}: ${result.error.message}`;
}

describe("fromAiSdkTools()", () => {
  const SCHEMA = Symbol.for("vercel.ai.schema");
  const jsonSchema = { type: "object", properties: { n: { type: "number" } } };
  const inputSchema = {
    [SCHEMA]: true,
    jsonSchema,
    validate: ({ n }: { n: number }) =>
      n > 0 ? { success: true, value: { n: -n } } : { success: false, error: { message: "n > 0" } },
  };

  it("passes validated arguments, the call's id and the context to execute()", async () => {
    const echo = {
      inputSchema: () => inputSchema,
      execute: (input: object, { toolCallId, context }: Record<string, unknown>) => ({
        ...input,
        toolCallId,
        context,
      }),
    };
    const tools = fromAiSdkTools({ echo }, { namespace: "math", risk: "low" });
    assertEquals(await run(tools, "math:echo", { n: 1 }, { context: 7 }), {
      n: -1,
      toolCallId: "c1",
      context: 7,
    });
    assertEquals(
      await run(tools, "math:echo", { n: -1 }),
      'invalid_arguments: Cannot call "math:echo": its arguments do not fit: n > 0',
    );
  });

  it("returns each kind of model output", async () => {
    const text = { type: "text", text: "a" };
    const blob = { uri: "file:///a.pdf", mimeType: "application/pdf", blob: "AA==" };
    const link = { type: "resource_link", uri: "https://a/", name: "file", mimeType: "image/png" };
    const rows: readonly (readonly [object, unknown])[] = [
      [{ type: "text", value: "a" }, { content: [text], metadata: { output: 1 } }],
      [
        { type: "json", value: [1] },
        { content: [{ type: "text", text: "[1]" }], metadata: { output: 1 } },
      ],
      [
        {
          type: "content",
          value: [
            { type: "file-data", data: "AA==", mediaType: "application/pdf", filename: "a.pdf" },
            {
              type: "file",
              mediaType: "image/png",
              data: { type: "url", url: new URL("https://a") },
            },
            { type: "file", mediaType: "text/plain", data: { type: "text", text: "a" } },
          ],
        },
        { content: [{ type: "resource", resource: blob }, link, text], metadata: { output: 1 } },
      ],
      [{ type: "error-json", value: [1] }, "threw: [1]"],
      [{ type: "error-text", value: "no" }, "threw: no"],
      [{ type: "execution-denied" }, "denied: the call was denied"],
      [
        { type: "content", value: [{ type: "custom" }] },
        'threw: Cannot call "one": the tool threw: Cannot return a part of type "custom": it must ' +
        "have text, base64 or a URL",
      ],
    ];
    for (const [model, expected] of rows) {
      const tools = fromAiSdkTools({ one: { execute: () => 1, toModelOutput: () => model } });
      assertEquals(await run(tools, "one"), expected);
    }
  });

  it("rejects unsupported schemas", () => {
    for (
      const [schema, why] of [
        [{}, "its parameters must be an object schema"],
        [{ [SCHEMA]: true, jsonSchema: Promise.resolve({}) }, "inputSchema: it is a promise"],
      ] as const
    ) {
      assertThrows(() => fromAiSdkTools({ one: { inputSchema: schema } }), TypeError, why);
    }
  });
});

describe("fromLangChainTools()", () => {
  const named = (invoke: (call: object, config: object) => unknown) => [{
    ...{ name: "one", invoke },
    schema: { type: "object" },
  }];

  it("returns each kind of message", async () => {
    const message = { tool_call_id: "c1", status: "success" };
    const rows: readonly (readonly [unknown, unknown])[] = [
      ['{"n":1}', { n: 1 }],
      ['{"n": 1}', '{"n": 1}'],
      [{ ...message, content: "[1]" }, [1]],
      [{ n: 1 }, { n: 1 }],
      [
        { ...message, content: [{ type: "image_url", image_url: "https://a/b.png" }] },
        {
          content: [{
            type: "resource_link",
            uri: "https://a/b.png",
            name: "file",
            mimeType: "application/octet-stream",
          }],
        },
      ],
      [{ ...message, status: "error", content: "no" }, "threw: no"],
    ];
    for (const [output, expected] of rows) {
      const tools = fromLangChainTools(named(() => output) as object[]);
      const result = await run(tools, "one");
      assertEquals(result, expected);
    }
  });

  it("rejects the commands of LangGraph", async () => {
    const tools = fromLangChainTools(named(() => ({ lg_name: "Command" })));
    const result = await run(tools, "one");
    assertEquals(String(result).endsWith("only LangGraph can carry out a Command"), true);
  });
});
