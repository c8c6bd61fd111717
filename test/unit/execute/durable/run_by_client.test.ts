import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as durable from "../../../../src/execute/durable/mod.ts";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../../../src/execute/mod.ts";
import { dispatchResponse, exportTools, resumeTurn } from "../../../../src/formats/mod.ts";
import { buildToolset } from "../../../../src/select/mod.ts";
import { typeboxEngine } from "../../../../src/adapters/typebox/mod.ts";
import { defineTool, isSuspended } from "../../../../src/tool/mod.ts";

const returns = {
  type: "object",
  properties: { latitude: { type: "number" } },
  required: ["latitude"],
} as const;
const locate = defineTool({
  name: "locate",
  description: "Says where the device is.",
  parameters: { type: "object", properties: { exact: { type: "boolean" } } },
  returns,
  execute: durable.runByClient({ returns }),
});
const toolset = buildToolset([locate]);
const CALL = { name: "locate", arguments: { exact: true } };
const HERE = { action: "accept", content: { latitude: 41.9 } } as const;

function dispatcherWith(options: Partial<ToolDispatcherOptions> = {}): ToolDispatcher {
  const tickets = durable.storedTickets(durable.memoryCallStore());
  return new ToolDispatcher(toolset, { engine: typeboxEngine(), tickets, ...options });
}

describe("runByClient()", () => {
  it("rejects invalid options at creation", () => {
    const wrong: readonly (readonly [object, string])[] = [
      [{ return: returns }, '"/return" is not one of its fields: did you mean "returns"?'],
      [{ returns: [] }, '"/returns" must be a JSON Schema'],
      [{ message: 5 }, '"/message" must be a string, not 5'],
    ];
    for (const [options, message] of wrong) {
      assertThrows(() => durable.runByClient(options), TypeError, message);
    }
  });

  it("fails a call whose result has an invalid schema", async () => {
    const execute = durable.runByClient({ returns: { type: "objec" } as never });
    const broken = buildToolset([defineTool({ name: "broken", description: "Broken.", execute })]);
    const dispatcher = dispatcherWith().withToolset(broken);
    const result = await dispatcher.dispatch({ name: "broken" });
    assert(!result.ok && !isSuspended(result));
    assertStringIncludes(result.error.message, "/type");
  });

  it("waits for the result of its caller, and shows the arguments", async () => {
    const dispatcher = dispatcherWith();
    const waiting = await dispatcher.dispatch(CALL);
    assert(isSuspended(waiting));
    const [question] = waiting.questions;
    assertEquals([question?.key, question?.kind, question?.arguments, question?.schema], [
      "client",
      "client",
      { exact: true },
      returns,
    ]);
    const result = await dispatcher.resume(waiting.ticket, { client: HERE });
    assertEquals(result.ok && result.content, { latitude: 41.9 });
  });

  it("repeats the question after an invalid result, and fails if it is declined", async () => {
    const dispatcher = dispatcherWith();
    const first = await dispatcher.dispatch(CALL);
    assert(isSuspended(first));
    const wrong = { action: "accept", content: { latitude: "north" } } as const;
    const second = await dispatcher.resume(first.ticket, { client: wrong });
    assert(isSuspended(second));
    assertEquals(second.questions[0]?.issues?.map(({ path }) => path), ["/latitude"]);
    const last = await dispatcher.resume(second.ticket, { client: { action: "decline" } });
    assertEquals(last.ok ? "ran" : last.error.code, "denied");
  });

  it("receives the result during the call if the caller answers questions", async () => {
    const seen: unknown[] = [];
    const result = await dispatcherWith().dispatch(CALL, {
      onQuestion: ({ kind, arguments: args }) => {
        seen.push([kind, args]);
        return HERE;
      },
    });
    assertEquals([seen, result.ok && result.content], [
      [["client", { exact: true }]],
      { latitude: 41.9 },
    ]);
  });

  it("suspends a call of a turn, and passes the result to the model", async () => {
    const dispatcher = dispatcherWith();
    const { names } = exportTools(toolset, "anthropic");
    const use = { type: "tool_use", id: "t1", name: "locate", input: { exact: true } };
    const options = { dispatcher, names };
    const turn = await dispatchResponse("anthropic", { content: [use] }, options);
    assertEquals([turn.messages, turn.suspended[0]?.questions[0]?.kind], [[], "client"]);
    const kept = JSON.parse(JSON.stringify(turn)) as typeof turn;
    const { messages } = await resumeTurn("anthropic", kept, { t1: { client: HERE } }, options);
    assertEquals(messages[0]?.content, [
      { type: "tool_result", tool_use_id: "t1", content: '{"latitude":41.9}' },
    ]);
  });

  it("fails if the caller cannot be asked", async () => {
    const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
    const result = await dispatcher.dispatch(CALL);
    assertEquals(result.ok ? "ran" : result.error.code, "input_unavailable");
  });
});
