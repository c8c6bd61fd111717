import { assert, assertEquals, assertLess, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { type Tool, ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { memoryCallStore, storedTickets } from "../../../src/execute/durable/mod.ts";
import * as formats from "../../../src/formats/mod.ts";
import { dispatchResponse, resumeTurn } from "../../../src/formats/mod.ts";
import { defineTool, ToolResult } from "../../../src/tool/mod.ts";
import { dispatcherOf, FIXTURES, namesFor, TOOLS } from "./cases.ts";

const chat = (
  ...calls: readonly (readonly [name: string, args: string, id?: string])[]
): unknown => ({
  role: "assistant",
  tool_calls: calls.map(([name, args, id], index) => ({
    id: id ?? `c${index}`,
    type: "function",
    function: { name, arguments: args },
  })),
});
const names = namesFor("openai");
const options = { dispatcher: dispatcherOf(), names };

describe("dispatchResponse()", () => {
  it("returns a result for every call, in order", async () => {
    const { results, messages } = await dispatchResponse(
      "openai",
      chat(
        ["nope", "{}"],
        ["clear", "{}"],
        ["city__weather", '{"city":'],
        ["city__weather", "{}"],
        ["fails", "{}"],
      ),
      options,
    );
    assertEquals(results.map((result) => result.ok ? "ok" : result.error.code), [
      "unknown_tool",
      "ok",
      "invalid_arguments",
      "invalid_arguments",
      "threw",
    ]);
    assertEquals(messages.map((message) => message.tool_call_id), ["c0", "c1", "c2", "c3", "c4"]);
    assertStringIncludes(messages[2]?.content ?? "", "not JSON");
  });

  it("validates against the tool's own schema, not against what was exported", async () => {
    const bounded = defineTool({
      name: "bounded",
      description: "Takes a short text.",
      parameters: {
        type: "object",
        properties: { text: { type: "string", maxLength: 2 } },
        required: ["text"],
      },
      execute: ({ text }) => text,
    });
    const { results } = await dispatchResponse("ollama", [
      { function: { name: "bounded", arguments: { text: "long" } } },
    ], { dispatcher: dispatcherOf([bounded]), names: namesFor("ollama", [bounded]) });
    const [result] = results;
    assertEquals(result?.ok === false && result.error.issues?.[0]?.path, "/text");
  });

  it("does nothing for a response without calls", async () => {
    const dispatcher: formats.CallDispatcher = {
      dispatchAll: () => Promise.reject(new Error("must not be asked")),
    };
    const turn = await dispatchResponse("openai", { role: "assistant", content: "Hi" }, {
      dispatcher,
      names,
    });
    assertEquals(turn, { calls: [], results: [], messages: [], suspended: [], losses: [] });
  });

  it("runs calls that share an id, and answers each under it", async () => {
    const { results, messages } = await dispatchResponse(
      "openai",
      chat(["clear", "{}", "same"], ["city__weather", '{"city":"Rome"}', "same"]),
      options,
    );
    assertEquals(results.map((result) => result.ok && result.content), [
      "cleared",
      { city: "Rome", celsius: 21 },
    ]);
    assertEquals(messages.map((message) => message.tool_call_id), ["same", "same"]);
  });

  it("does not run a call that was cut off, even of a tool without arguments", async () => {
    const received: unknown[] = [];
    const dispatcher: formats.CallDispatcher = {
      dispatchAll: (calls) => {
        received.push(...calls);
        return Promise.resolve(calls.map(() => ToolResult.ok("ran")));
      },
    };
    const choices = [{ message: chat(["clear", "{}"], ["clear", ""]), finish_reason: "length" }];
    const { results } = await dispatchResponse("openai", { choices }, { dispatcher, names });
    assertEquals(received, [{ name: "clear", arguments: {}, callId: "c0" }]);
    assertEquals(results[1]?.ok === false && results[1].error.code, "invalid_arguments");
  });

  it("does not call a tool whose id is a name that the model invented", async () => {
    const { results } = await dispatchResponse(
      "openai",
      chat(["city:weather", '{"city":"Rome"}']),
      options,
    );
    assertEquals(results[0]?.ok === false && results[0].error.code, "unknown_tool");
  });

  it("uses the exported names in failures", async () => {
    const response = chat(["city__weather", "{}"]);
    const { results, messages } = await dispatchResponse("openai", response, options);
    assertStringIncludes(
      results[0]?.ok === false ? results[0].error.message : "",
      'Cannot call "city:weather": ',
    );
    assertStringIncludes(
      messages[0]?.content ?? "",
      'Error (invalid_arguments): Cannot call "city__weather": ',
    );
    const spaced = namesFor("openai.responses");
    const item = { type: "function_call", call_id: "c", namespace: "city", name: "weather" };
    const turn = await dispatchResponse("openai.responses", [{ ...item, arguments: "{}" }], {
      dispatcher: options.dispatcher,
      names: spaced,
    });
    const [answer] = turn.messages;
    assertStringIncludes(
      String(answer !== undefined && "output" in answer && answer.output),
      'Cannot call "weather" in namespace "city": ',
    );
  });

  it("passes the context to the dispatcher", async () => {
    const context = { sessionId: "s1" };
    const seen: unknown[] = [];
    const dispatcher: formats.CallDispatcher<{ readonly sessionId: string }> = {
      dispatchAll: (calls, context) => {
        seen.push(context);
        return Promise.resolve(calls.map(() => ToolResult.ok(null)));
      },
    };
    await dispatchResponse("openai", chat(["clear", "{}"]), { dispatcher, names, context });
    assertEquals(seen, [context]);
  });

  it("rejects a response of another shape", async () => {
    await assertRejects(() => dispatchResponse("openai", "hi", options), TypeError, "Cannot read");
  });
});

describe("dispatchCalls()", () => {
  it("rejects options without a dispatcher, and options that belong into the context", async () => {
    const dispatcher = { dispatchAll: () => Promise.resolve([]) };
    for (
      const [options, message] of [
        [{ names }, "the option dispatcher must be a ToolDispatcher"],
        [
          { dispatcher, names, services: {} },
          '"/services" is not one of its fields: what the host ',
        ],
      ] as const
    ) {
      await assertRejects(
        () => formats.dispatchCalls("openai", [], options as never),
        TypeError,
        `Cannot dispatch the calls: ${message}`,
      );
    }
  });

  it("adds a result for a call that the dispatcher omitted", async () => {
    const dispatcher: formats.CallDispatcher = { dispatchAll: () => Promise.resolve([]) };
    const call = { name: "clear", wireName: "clear", callId: "1", arguments: {}, raw: undefined };
    const { results } = await formats.dispatchCalls("anthropic", [call], { dispatcher, names });
    assertEquals(results[0]?.ok === false && results[0].error.code, "threw");
  });
});

const YES = { "plue:approval": { action: "accept" } } as const;

/** Dispatchers over the same tools that require approval for each call of `city:weather`. */
function asking(
  tickets = storedTickets(memoryCallStore()),
): { readonly dispatcher: ToolDispatcher } {
  const registry = new ToolRegistry({ tools: [...TOOLS] });
  const requiresApproval = ({ id }: Tool): boolean => id === "city:weather";
  const toolset = registry.select({ policies: [{ allow: () => true, requiresApproval }] });
  return { dispatcher: new ToolDispatcher(toolset, { approve: "ask", tickets }) };
}

describe("resumeTurn()", () => {
  for (const { targets, name, call, levels } of FIXTURES) {
    for (const target of targets) {
      it(`returns the same messages of ${target} for a resumed turn, even in another process`, async () => {
        const wrap = Object.values(levels)[0];
        assert(wrap !== undefined);
        const response = wrap([
          call(name, { city: "Rome" }, "abcdefgh1"),
          call(name, { city: "Oslo" }, "abcdefgh2"),
        ]);
        const names = namesFor(target);
        const wanted = await dispatchResponse(target, response, {
          dispatcher: dispatcherOf(),
          names,
        });
        const store = memoryCallStore();
        const waiting = await dispatchResponse(target, response, {
          dispatcher: asking(storedTickets(store)).dispatcher,
          names,
        });
        const content = (city: string) => ({ city, celsius: 21 });
        assertEquals(
          wanted.results.map((result) => result.ok && result.content),
          ["Rome", "Oslo"].slice(0, wanted.calls.length).map(content),
        );
        assertEquals([waiting.messages, waiting.suspended.length], [[], waiting.calls.length]);
        const kept = JSON.parse(JSON.stringify(waiting));
        const ids = waiting.suspended.map(({ callId }) => callId);
        const { messages, suspended } = await resumeTurn(
          target,
          kept,
          Object.fromEntries(ids.map((id) => [id, YES])),
          { dispatcher: asking(storedTickets(store)).dispatcher, names },
        );
        assertEquals(suspended, []);
        // A target whose calls have no ids gets new ids in each response.
        const text = (list: readonly unknown[], known: readonly string[]): string =>
          known.reduce((text, id) => text.replaceAll(id, "id"), JSON.stringify(list));
        assertEquals(
          text(messages, ids),
          text(wanted.messages, wanted.calls.map(({ callId }) => callId)),
        );
      });
    }
  }

  it("keeps a call suspended, with its ticket, if it cannot be resumed now", async () => {
    const store = memoryCallStore();
    let isDown = false;
    const { dispatcher } = asking(storedTickets({
      ...store,
      get: (key) => isDown ? Promise.reject(new Error("The disk is full")) : store.get(key),
    }));
    const response = chat(["city__weather", '{"city":"Rome"}']);
    const turn = await dispatchResponse("openai", response, { dispatcher, names });
    isDown = true;
    const later = await resumeTurn("openai", turn, { c0: YES }, { dispatcher, names });
    const [waiting] = later.suspended;
    assertEquals([later.messages, waiting?.ticket], [[], turn.suspended[0]?.ticket]);
    assertStringIncludes(waiting?.error?.message ?? "", "cannot be looked up now");
    isDown = false;
    const whole = await resumeTurn("openai", later, { c0: YES }, { dispatcher, names });
    assertEquals([whole.messages.length, whole.suspended], [1, []]);
  });

  it("suspends only one of several calls with an id, because answers are assigned by id", async () => {
    const { dispatcher } = asking();
    const twice = chat(
      ["city__weather", '{"city":"Rome"}', "same"],
      ["city__weather", '{"city":"Oslo"}', "same"],
    );
    const turn = await dispatchResponse("openai", twice, { dispatcher, names });
    assertEquals(turn.suspended.map(({ callId }) => callId), ["same"]);
    const [first, second] = turn.results;
    assert(second?.ok === false && first !== undefined);
    assertStringIncludes(second.error.message, "another call with its id waits for an answer");
    const made = { ...turn, results: [first, first] };
    await assertRejects(
      () => resumeTurn("openai", made, { same: YES }, { dispatcher, names }),
      TypeError,
      "several suspended calls have that id",
    );
  });

  it("resumes the answered calls; the others continue to wait", async () => {
    const { dispatcher } = asking();
    const turn = await dispatchResponse(
      "openai",
      chat(
        ["city__weather", '{"city":"Rome"}'],
        ["clear", "{}"],
        ["city__weather", '{"city":"Oslo"}'],
      ),
      { dispatcher, names },
    );
    assertEquals(
      turn.suspended.map(({ callId, questions: [first] }) => [callId, first?.key]),
      [["c0", "plue:approval"], ["c2", "plue:approval"]],
    );
    assertEquals(turn.messages.length, 1);
    const half = await resumeTurn("openai", turn, { c2: YES }, { dispatcher, names });
    assertEquals([half.messages.length, half.suspended.map(({ callId }) => callId)], [2, ["c0"]]);
    const no = { "plue:approval": { action: "decline" } } as const;
    const whole = await resumeTurn("openai", half, { c0: no, c2: YES }, { dispatcher, names });
    assertEquals(whole.suspended, []);
    assertEquals(
      whole.messages.map((message) => (message as { tool_call_id: string }).tool_call_id),
      ["c0", "c1", "c2"],
    );
    assertStringIncludes(JSON.stringify(whole.messages[0]), "it was not approved");
  });

  it("reads each result a constant number of times", async () => {
    const { dispatcher } = asking();
    const count = 200;
    const calls = Array.from(
      { length: count },
      () => ["city__weather", '{"city":"Rome"}'] as const,
    );
    const turn = await dispatchResponse("openai", chat(...calls), { dispatcher, names });
    let reads = 0;
    const counted = <T extends object>(list: T): T =>
      new Proxy(list, { get: (own, key) => (reads++, Reflect.get(own, key)) });
    const { calls: made, results } = turn;
    const answers = Object.fromEntries(turn.suspended.map(({ callId }) => [callId, YES]));
    await resumeTurn("openai", { calls: counted(made), results: counted(results) }, answers, {
      ...{ dispatcher, names },
    });
    assertLess(reads, 10 * count);
  });

  it("throws for answers without a question, and runs nothing", async () => {
    const { dispatcher } = asking();
    const options = { dispatcher, names };
    const turn = await dispatchResponse(
      "openai",
      chat(["city__weather", '{"city":"Rome"}']),
      options,
    );
    for (
      const [answers, words] of [
        [{ c0: { other: { action: "accept" } } }, 'it has no question "other"'],
        [{ c0: { "plue:approval": true } }, 'the answer to "plue:approval" must be'],
        [{ c0: 5 }, 'resume the call "c0": its answers must be an object'],
        [{ zzz: YES }, 'resume the call "zzz": the turn has no call with that id'],
        [null, "the answers must be an object"],
      ] as const
    ) {
      const error = await assertRejects(
        () => resumeTurn("openai", turn, answers as never, options),
        TypeError,
      );
      assertStringIncludes(error.message, words);
    }
    assertEquals((await resumeTurn("openai", turn, { c0: YES }, options)).suspended, []);
  });
});

describe("arguments that were text and are repaired", () => {
  const seen: unknown[] = [];
  const page = (requiresApproval: boolean) => {
    const tool = defineTool({
      name: "page",
      description: "Shows a page.",
      parameters: {
        type: "object",
        properties: { of: { type: "string" }, size: { type: "number" } },
        required: ["of"],
        additionalProperties: false,
      },
      requiresApproval,
      execute: (args) => {
        seen.push(args);
        return "shown";
      },
    });
    const toolset = new ToolRegistry({ tools: [tool] }).select();
    const dispatcher = new ToolDispatcher(toolset, {
      approve: "ask",
      tickets: storedTickets(memoryCallStore()),
      // A model often forgets the last brace.
      repair: ({ arguments: args }) =>
        typeof args === "string" ? { arguments: `${args}}` } : undefined,
    });
    return { dispatcher, names: formats.exportTools(toolset, "openai.chat.strict").names };
  };
  const response = chat(["page", '{"of":"a","size":null']);

  it("lose the nulls that strict mode added", async () => {
    seen.length = 0;
    const { results } = await dispatchResponse("openai.chat.strict", response, page(false));
    assertEquals(results.map(({ ok, repaired }) => [ok, repaired?.length]), [[true, 1]]);
    assertEquals(seen, [{ of: "a" }]);
  });

  it("lose them even after a suspension and a turn that was JSON", async () => {
    seen.length = 0;
    const options = page(true);
    const turn = await dispatchResponse("openai.chat.strict", response, options);
    assertEquals([turn.suspended.length, seen.length], [1, 0]);
    const kept = JSON.parse(JSON.stringify(turn));
    await resumeTurn("openai.chat.strict", kept, { c0: YES }, options);
    assertEquals(seen, [{ of: "a" }]);
  });
});
