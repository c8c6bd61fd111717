import { assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  type FrameworkOptions,
  toAiSdkTools,
  toLangChainTools,
  toOpenAiAgentsTools,
} from "../../../src/adapters/frameworks/mod.ts";
import type { Exportable } from "../../../src/formats/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { type DispatchContext, ToolDispatcher } from "../../../src/execute/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { memoryCallStore, storedTickets } from "../../../src/execute/durable/mod.ts";
import { defineTool, type SuspendedCall } from "../../../src/tool/mod.ts";

const seen: unknown[] = [];
const wait = defineTool({
  namespace: "clock",
  name: "wait",
  description: "Waits.",
  parameters: { type: "object", properties: { for: { type: "string" } } },
  execute: (_params, { callId, sessionId, signal }) => {
    seen.push([callId, sessionId, signal.aborted]);
    return "waited";
  },
});
const toolset = buildToolset([wait]);
const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
const context: DispatchContext = { sessionId: "s1" };
/** A substitute for LangChain. */
const kit = {
  tool: <Run>(run: Run, fields: object) => ({ ...fields, run }),
  ToolMessage: class {
    constructor(fields: object) {
      Object.assign(this, fields);
    }
  },
};

describe("toAiSdkTools()", () => {
  it("passes on the call's id, the host's context and the signal", async () => {
    seen.length = 0;
    const execute = toAiSdkTools(toolset, { dispatcher, context })["clock__wait"]?.execute;
    const { signal } = new AbortController();
    assertEquals(await execute?.({}, { toolCallId: "c1", abortSignal: signal }), "waited");
    assertEquals(seen, [["c1", "s1", false]]);
    await assertRejects(
      async () => await execute?.({}, { toolCallId: "c2", abortSignal: AbortSignal.abort() }),
      Error,
      'Cannot call "clock__wait": ',
    );
    assertEquals(seen.length, 1);
  });

  it("does not mistake a plain value for blocks, even after it was serialized", async () => {
    const plain = { content: [{ type: "text", text: "a page" }], blocks: true };
    const page = defineTool({ name: "page", description: "Loads.", execute: () => plain });
    const { execute, toModelOutput } = toAiSdkTools([page], {
      dispatcher: new ToolDispatcher(buildToolset([page]), { engine: typeboxEngine() }),
    })["page"] ?? {};
    const output: unknown = await execute?.({}, { toolCallId: "c1" });
    assertEquals((output as { structuredContent: unknown }).structuredContent, plain);
    assertEquals(
      toModelOutput?.({ toolCallId: "c1", output: JSON.parse(JSON.stringify(output)) }),
      { type: "text", value: JSON.stringify(plain) },
    );
  });

  it("returns new, writable tools each time", () => {
    const first = toAiSdkTools(toolset, { dispatcher });
    Object.assign(first["clock__wait"] ?? {}, { description: "Other." });
    assertEquals(toAiSdkTools(toolset, { dispatcher })["clock__wait"]?.description, "Waits.");
  });
});

describe("toLangChainTools()", () => {
  it("returns LangChain's message if a call has an id, and throws otherwise", async () => {
    const [tool] = toLangChainTools(toolset, { dispatcher, ...kit }) as {
      readonly name: string;
      run(args: unknown, config: object): Promise<unknown>;
    }[];
    assertEquals(tool?.name, "clock__wait");
    const message = await tool?.run({}, { toolCall: { id: "c1" } });
    assertEquals({ ...Object(message) }, {
      type: "tool",
      tool_call_id: "c1",
      name: "clock__wait",
      content: "waited",
      status: "success",
    });
    assertEquals(await tool?.run({}, {}), "waited");
    await assertRejects(async () => void await tool?.run({ for: 1 }, {}), Error, '"clock__wait"');
  });

  it("names the missing parameter, `tool` or `ToolMessage`", () => {
    assertThrows(
      () => toLangChainTools(toolset, { dispatcher, ...kit, ToolMessage: undefined as never }),
      TypeError,
      "Cannot make tools for LangChain JS: the option ToolMessage must be the export of LangChain",
    );
  });
});

describe("toOpenAiAgentsTools()", () => {
  it("reverts the changes of strict mode, and returns text", async () => {
    const [tool] = toOpenAiAgentsTools(toolset, { dispatcher });
    assertEquals([tool?.strict, tool?.parameters.required], [true, ["for"]]);
    assertEquals(await tool?.invoke(undefined, '{"for":null}'), "waited");
    assertEquals(
      await tool?.invoke(undefined, "{"),
      'Error (invalid_arguments): Cannot call "clock__wait": its arguments are not JSON',
    );
    assertEquals(await tool?.needsApproval(), false);
    assertEquals(await tool?.isEnabled(), true);
  });
});

describe("tools for frameworks", () => {
  it("reject invalid options, and tools that cannot be exported", () => {
    const makers: ((source: Exportable, options: FrameworkOptions) => unknown)[] = [
      toAiSdkTools,
      toOpenAiAgentsTools,
    ];
    for (const make of makers) {
      assertThrows(() => make(toolset, undefined as never), TypeError, "dispatcher must be");
      assertThrows(
        () => make(toolset, { dispatcher, contxt: 1 } as FrameworkOptions),
        TypeError,
        'did you mean "context"?',
      );
    }
    const many = Array.from(
      { length: 129 },
      (_, index) => defineTool({ name: `t${index}`, description: "One." }),
    );
    assertThrows(() => toOpenAiAgentsTools(many, { dispatcher }), TypeError, "Cannot export");
  });
});

describe("a call that waits for approval", () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    requiresApproval: true,
    execute: () => "paid",
  });
  const paying = buildToolset([pay]);
  const asking = new ToolDispatcher(paying, {
    engine: typeboxEngine(),
    approve: "ask",
    tickets: storedTickets(memoryCallStore()),
  });
  const words = /input_required|Cannot call "pay": .*The call waits for: .*do not repeat it/s;

  it("fails in the AI SDK with its questions, and resumes with the ticket of the cause", async () => {
    const execute = toAiSdkTools(paying, { dispatcher: asking })["pay"]?.execute;
    const error = await assertRejects(() => Promise.resolve(execute?.({}, { toolCallId: "c1" })));
    assertMatch((error as Error).message, words);
    const suspended = (error as Error).cause as SuspendedCall;
    const answers = Object.fromEntries(
      suspended.questions.map(({ key }) => [key, { action: "accept" } as const]),
    );
    const result = await asking.dispatch({ ticket: suspended.ticket, answers });
    assertEquals(result.ok && result.content, "paid");
  });

  it("is an error message for LangChain and the OpenAI Agents SDK", async () => {
    const [langchain] = toLangChainTools(paying, { dispatcher: asking, ...kit }) as unknown as {
      run(args: object, config: object): Promise<{ status: string; content: string }>;
    }[];
    const message = await langchain?.run({}, { toolCall: { id: "c1" } });
    assertEquals(message?.status, "error");
    assertMatch(String(message?.content), words);
    const [agents] = toOpenAiAgentsTools(paying, { dispatcher: asking });
    assertMatch(String(await agents?.invoke(undefined, "{}")), words);
  });
});
