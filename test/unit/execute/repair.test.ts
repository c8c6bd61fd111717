import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { jsonrepair } from "jsonrepair";
import { z } from "zod";
import {
  defineTool,
  type Issue,
  isSuspended,
  type RepairHook,
  ToolDispatcher,
  ToolRegistry,
} from "../../../mod.ts";
import {
  coerceArguments,
  memoryCallStore,
  storedTickets,
} from "../../../src/adapters/calls/mod.ts";
import { broken, messageOf, outcome, single } from "./support.ts";
import data from "./repair.json" with { type: "json" };

const COUNT = {
  parameters: {
    type: "object",
    properties: { n: { type: "integer" } },
    required: ["n"],
    additionalProperties: false,
  },
  execute: (args: unknown) => args,
} as const;

/** Returns these arguments, and records its parameters. */
function answering(args: unknown, received: unknown[] = []): RepairHook {
  return (call, issues: readonly Issue[]) => {
    received.push([call.arguments, issues.map(({ keyword }) => keyword)]);
    return { arguments: args };
  };
}

describe("the option repair", () => {
  it("is called once for invalid arguments, and its result runs", async () => {
    const received: unknown[] = [];
    const { call } = single(COUNT, { repair: answering({ n: 3 }, received) });
    const result = await call({ n: "three" });
    assertEquals(outcome(result), { n: 3 });
    assertEquals(result.repaired, [{ path: "", message: "the arguments were repaired" }]);
    assertEquals(received, [[{ n: "three" }, ["type"]]]);
  });

  it("is not called for valid arguments", async () => {
    const received: unknown[] = [];
    const { call } = single(COUNT, { repair: answering({ n: 3 }, received) });
    const result = await call({ n: 1 });
    assertEquals([outcome(result), "repaired" in result, received], [{ n: 1 }, false, []]);
  });

  it("is called for text that is not JSON, and may return JSON text", async () => {
    const received: unknown[] = [];
    const { call } = single(COUNT, { repair: answering('{"n":3}', received) });
    assertEquals(outcome(await call("{n:3")), { n: 3 });
    assertEquals(received, [["{n:3", ["json"]]]);
  });

  it("has no effect if its return value is invalid", async () => {
    const received: unknown[] = [];
    const { call } = single(COUNT, { repair: answering({ n: "four" }, received) });
    const result = await call({ n: "three" });
    assertEquals([outcome(result), received.length], ["invalid_arguments", 1]);
    assertEquals(result.repaired?.length, 1);
    for (const repair of [answering("{n:"), () => undefined]) {
      const { call } = single(COUNT, { repair });
      assertStringIncludes(messageOf(await call("{n:3")), "are not JSON");
    }
  });

  it("repairs nothing if it throws or returns an invalid value", async () => {
    const results = [{ arguments: 5n }, { arguments: "[" }, 5 as never];
    for (const repair of [broken, async () => await broken(), ...results.map((one) => () => one)]) {
      const { call, reports } = single(COUNT, { repair });
      const result = await call({ n: "three" });
      assertStringIncludes(messageOf(result), "/n");
      assertEquals(reports.map(({ phase }) => phase), ["repair"]);
    }
  });

  it("runs before hooks and approvers, which receive the repaired arguments", async () => {
    const seen: unknown[] = [];
    const { call } = single({ ...COUNT, requiresApproval: true }, {
      repair: answering({ n: 3 }),
      hooks: {
        before: ({ arguments: args }) => void seen.push(args),
        after: ({ arguments: args }) => void seen.push(args),
      },
      approve: ({ arguments: args }) => seen.push(args) > 0,
    });
    assertEquals(outcome(await call({ n: "three" })), { n: 3 });
    assertEquals(seen, [{ n: 3 }, { n: 3 }, { n: 3 }]);
  });

  it("cannot bypass a hook that rejects the repaired arguments", async () => {
    const { call } = single(COUNT, {
      repair: answering({ n: 3 }),
      hooks: {
        before: ({ arguments: args }) =>
          (args as { n: number }).n === 3 ? { refuse: "Not 3" } : undefined,
      },
    });
    assertEquals(outcome(await call({ n: "three" })), "denied");
  });

  it("is called in order if there are several, until the arguments are valid", async () => {
    const seen: unknown[] = [];
    const repair = [answering({ n: "3" }, seen), coerceArguments(), answering({ n: 9 }, seen)];
    const { call } = single(COUNT, { repair });
    const result = await call("{n:3");
    assertEquals([outcome(result), seen.length], [{ n: 3 }, 1]);
    assertEquals(result.repaired?.map(({ path }) => path), ["", "/n"]);
  });

  it("uses the original arguments for the idempotency key", async () => {
    let n = 0;
    const { call } = single(COUNT, { repair: () => ({ arguments: { n: ++n } }) });
    const key = { idempotencyKey: "k" };
    await call({ n: "x" }, key);
    const again = await call({ n: "x" }, key);
    assertEquals([outcome(again), again.replayed, again.repaired?.length], [{ n: 1 }, true, 1]);
    assertStringIncludes(messageOf(await call({ n: "y" }, key)), "other arguments");
  });

  it("requires another approval if a call resumes with other arguments", async () => {
    let n = 0;
    const { call } = single({ ...COUNT, requiresApproval: true }, {
      repair: () => ({ arguments: { n: ++n } }),
      approve: "ask",
    });
    const shown: unknown[] = [];
    const onQuestion = (question: { readonly arguments?: unknown }) => {
      shown.push(question.arguments);
      return { action: "accept" } as const;
    };
    const result = await call({ n: "x" }, { onQuestion });
    assertEquals([outcome(result), shown], [{ n: 1 }, [{ n: 1 }]]);
  });

  it("shows the approver the arguments before a library's conversion, and runs with them", async () => {
    let day = 0;
    const taken: unknown[] = [];
    const tool = defineTool({
      name: "delete_until",
      description: "Deletes.",
      requiresApproval: true,
      // A `Map` is not JSON, so the value itself cannot be shown.
      parameters: z.object({ day: z.string().transform((text) => new Map([[text, true]])) }),
      execute: (args) => void taken.push([...args.day.keys()]),
    });
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [tool] }), {
      repair: () => ({ arguments: { day: `day ${++day}` } }),
      approve: "ask",
      tickets: storedTickets(memoryCallStore()),
    });
    const yes = { "plue:approval": { action: "accept" } } as const;
    const first = await dispatcher.dispatch({ name: "delete_until", arguments: { day: 7 } });
    assert(isSuspended(first));
    assertEquals(first.questions[0]?.arguments, { day: "day 1" });
    const second = await dispatcher.resume(first.ticket, yes);
    assertEquals([second.ok, second.repaired, taken], [true, first.repaired, [["day 1"]]]);
  });

  it("is called once for a suspended call, and its result is decoded then", async () => {
    let count = 0;
    const store = memoryCallStore();
    const dispatcher = () =>
      new ToolDispatcher(
        new ToolRegistry({
          tools: [{ ...COUNT, name: "count", description: "Counts.", requiresApproval: true }],
        }),
        {
          repair: () => ({ arguments: `{"n":${++count},"unit":null}` }),
          approve: "ask",
          tickets: storedTickets(store),
          idempotency: {},
        },
      );
    const first = await dispatcher().dispatch({
      name: "count",
      arguments: "{n:",
      decode: (args) => ({ n: (args as { n: number }).n }),
    }, { idempotencyKey: "k" });
    assert(isSuspended(first));
    // A new dispatcher, as in another process. It lacks `decode`, so it needs the stored values.
    const yes = { "plue:approval": { action: "accept" } } as const;
    const result = await dispatcher().resume(first.ticket, yes);
    assertEquals([outcome(result), result.repaired, count], [{ n: 1 }, first.repaired, 1]);
  });

  it("does not run a tool without arguments because a repair has found none", async () => {
    for (const nothing of [undefined, null, "", " \n", "null", " null\n"]) {
      const { call, reports } = single({ ...COUNT, parameters: { type: "object" } }, {
        repair: () => ({ arguments: nothing }),
      });
      assertEquals(outcome(await call('{"only":"tmp"')), "invalid_arguments");
      assertEquals(reports.map(({ phase }) => phase), ["repair"]);
      assertStringIncludes(
        String(reports[0]?.error),
        "return {} to call the tool without arguments",
      );
    }
    const { call } = single({ ...COUNT, parameters: { type: "object" } }, {
      repair: () => ({ arguments: "{}" }),
    });
    assertEquals(outcome(await call("{")), {});
  });

  it("works with a library's schema", async () => {
    const parameters = z.object({ n: z.number(), unit: z.string().default("m") });
    const { call } = single({ ...COUNT, parameters }, { repair: coerceArguments() });
    assertEquals(outcome(await call({ n: "4" })), { n: 4, unit: "m" });
  });
});

describe("a repair with jsonrepair", () => {
  const repair: RepairHook = ({ arguments: args }, [issue]) =>
    issue?.keyword === "json" ? { arguments: jsonrepair(String(args)) } : undefined;

  for (const [text, taken] of data.jsonrepair as [string, unknown][]) {
    it(`makes ${JSON.stringify(taken)} of ${JSON.stringify(text)}`, async () => {
      const result = await single(COUNT, { repair, onError() {} }).call(text);
      assertEquals(outcome(result), taken);
    });
  }

  it("runs before coerceArguments", async () => {
    const { call } = single(COUNT, { repair: [repair, coerceArguments()] });
    const result = await call("{n: '3'}");
    assertEquals(outcome(result), { n: 3 });
    assertEquals(result.repaired?.map(({ path }) => path), ["", "/n"]);
  });
});

describe("coerceArguments()", () => {
  const SCHEMA = data.coercible;
  const { call } = single({ parameters: SCHEMA, execute: (args) => args }, {
    repair: coerceArguments(),
  });

  for (const [args, taken] of data.coerced as [unknown, unknown][]) {
    it(`${taken ? "accepts" : "rejects"} ${JSON.stringify(args)}`, async () => {
      const result = await call(args);
      assertEquals(outcome(result), taken ?? "invalid_arguments");
      if (taken !== null) assert((result.repaired?.length ?? 0) > 0);
    });
  }
});
