/** The kernel's treatment of layers that misbehave. */

import { describe, it } from "bun:test";
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { buildToolset, ToolRegistry, ToolResult } from "../../../../mod.ts";
import { Dispatcher, type DispatchErrorReport } from "../../../../src/execute/mod.ts";
import { around, core, deferred, fakeTool, messageOf, outcome, until } from "../support.ts";

describe("a dispatcher with layers only", () => {
  it("rejects a toolset that was created from a list", () => {
    const toolset = buildToolset([fakeTool({ name: "t" })], {}, "mine");
    assertThrows(
      () => new Dispatcher(toolset),
      TypeError,
      'for the toolset "mine": register its tools first',
    );
  });

  it("suggests no other id for an unknown tool", async () => {
    const result = await core([]).dispatcher.dispatch({ name: "tt" });
    assertEquals(messageOf(result), 'Cannot call "tt": there is no such tool');
  });
});

describe("a call", () => {
  it("may have the result of another dispatcher", async () => {
    const other = core([]).dispatcher;
    const { call } = core([around((call) => other.dispatch(call.request))]);
    assertEquals(outcome(await call()), "done");
  });

  it("may have a result that another call has had", async () => {
    for (const stored of [ToolResult.ok("stored"), ToolResult.error("denied", "No")]) {
      const { call } = core([around(() => stored)]);
      const [first, second] = [await call(), await call()];
      assertEquals(first, second);
      assert(first !== second);
    }
  });

  it("does not run its tool after its end", async () => {
    const gate = deferred();
    let runs = 0;
    const { call, reports } = core([
      around((call, next) => {
        void next(call);
        return ToolResult.ok("early");
      }, "call"),
      // Does not use call.wait(), because the end of the call would shorten it.
      around(async (call, next) => {
        await gate.promise;
        const result = await next(call);
        assertEquals(outcome(result), "aborted");
        runs += 10;
        return result;
      }),
    ], { execute: () => ++runs });
    assertEquals(outcome(await call()), "early");
    gate.resolve();
    await until(() => runs > 0);
    assertEquals([runs, reports], [10, []]);
  });

  it("fails if its result cannot be checked", async () => {
    const { engine } = new ToolRegistry();
    const broken = new Error("broken");
    for (const execute of [() => 1, async () => await Promise.resolve(1)]) {
      const reports: DispatchErrorReport[] = [];
      const registry = new ToolRegistry({
        engine: {
          ...engine,
          compile: (schema, ...more) =>
            schema === true || typeof schema === "object" && schema["title"] === "broken"
              ? {
                check: () => {
                  throw broken;
                },
                issues: () => [],
              }
              : engine.compile(schema, ...more),
        },
        tools: [fakeTool({ name: "t", returns: { title: "broken" }, execute })],
      });
      const dispatcher = new Dispatcher(registry, {
        onError: (report) => void reports.push(report),
      });
      const result = await dispatcher.dispatch({ name: "t" });
      assertEquals(
        messageOf(result),
        'Cannot call "t": an internal error; the arguments are not the cause',
      );
      assertStrictEquals(reports[0]?.error, broken);
    }
  });
});

describe("a dispatcher without layers", () => {
  it("neither sends emissions nor truncates large results", async () => {
    const sent: unknown[] = [];
    const send = (value: unknown): void => void sent.push(value);
    const registry = new ToolRegistry({
      tools: [
        fakeTool({
          name: "emits",
          async *execute(_, { metadata, progress }) {
            metadata("m");
            progress(1);
            yield "o";
            return await Promise.resolve("done");
          },
        }),
        fakeTool({ name: "long", outputOverflow: "truncate", execute: () => "x".repeat(500) }),
      ],
    });
    const dispatcher = new Dispatcher(registry, { maxOutputBytes: 200 });
    const context = { metadata: send, progress: send, output: send };
    assertEquals(outcome(await dispatcher.dispatch({ name: "emits" }, context)), "done");
    assertEquals(outcome(await dispatcher.dispatch({ name: "long" })), "output_too_large");
    assertEquals(sent, []);
  });

  it("does not run a call that continues with a ticket", async () => {
    let runs = 0;
    const { dispatcher } = core([], { execute: () => ++runs });
    const result = await dispatcher.dispatch({ name: "t", ticket: "a.b" });
    assertEquals([outcome(result), runs], ["ticket_refused", 0]);
  });
});
