/** The contract of all {@linkcode CallTickets}. */

import { describe, it } from "bun:test";
import { assert, assertEquals, assertNotEquals, assertStringIncludes } from "@std/assert";
import * as core from "../../src/core.ts";
import { type DispatchContext, ToolResult } from "../../src/core.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import * as durable from "../../src/execute/durable/mod.ts";
import { type ToolDefinition, ToolRegistry } from "../../mod.ts";

/** A time that a test sets. */
export type TicketTime = { now: number };

const START = 1_800_000_000_000;
const YES: core.Answers = { sure: { action: "accept" } };

/** A tool with a question before its action. It counts its actions. */
function deleting(): { readonly tool: ToolDefinition; readonly done: string[] } {
  const done: string[] = [];
  const tool: ToolDefinition = {
    name: "rm",
    description: "Deletes a file.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    async execute(params, context) {
      const { path } = params as { readonly path: string };
      const { action } = await context.ask("sure", {
        kind: "approval",
        message: `Delete ${path}?`,
      });
      if (action !== "accept") return "kept";
      done.push(path);
      return `deleted ${path}`;
    },
  };
  return { tool, done };
}

/**
 * Declares the contract's tests.
 *
 * @param create Makes the tickets of one service. Each call represents another process of the
 * service.
 */
export function describeCallTickets(
  name: string,
  service: () => (options: durable.TicketOptions) => core.CallTickets,
): void {
  interface Setup {
    readonly tool?: ToolDefinition;
    readonly store?: durable.CallStore;
    readonly options?: core.ToolDispatcherOptions;
    readonly time?: TicketTime;
  }

  /** Makes dispatchers, one for each process of a service. */
  function processes(): (setup?: Setup) => ToolDispatcher {
    const tickets = service();
    return ({ tool = deleting().tool, store, options, time = { now: START } } = {}) =>
      new ToolDispatcher(new ToolRegistry({ tools: [tool] }), {
        tickets: tickets({ ttlMs: 60_000, ...(store && { store }) }),
        clock: { ...core.systemClock, timestamp: () => time.now },
        ...options,
      });
  }

  const call = { name: "rm", arguments: { path: "a.txt" }, callId: "call-7" };
  const ANN: DispatchContext = { principal: "ann" };

  async function suspend(
    dispatcher: ToolDispatcher,
    context: DispatchContext = ANN,
  ): Promise<core.SuspendedCall> {
    const waiting = await dispatcher.dispatch(call, context);
    assert(core.isSuspended(waiting), JSON.stringify(waiting));
    return waiting;
  }
  const outcomeOf = (result: ToolResult): unknown => result.ok ? result.content : result.error.code;
  const assertRefused = (result: ToolResult, message = ""): void => {
    assertEquals(outcomeOf(result), "ticket_refused");
    assertStringIncludes(result.ok ? "" : result.error.message, message);
  };
  const storeOfNow = (): durable.CallStore =>
    durable.memoryCallStore({ clock: { timestamp: () => START } });

  /** A suspended call of one dispatcher, and its continuation. */
  async function suspended(setup: Setup = {}, context?: DispatchContext) {
    const { tool, done } = deleting();
    const dispatcher = processes()({ tool, ...setup });
    const { ticket, questions } = await suspend(dispatcher, context);
    const resume = (answers: core.Answers = YES, own: DispatchContext = ANN): Promise<ToolResult> =>
      dispatcher.resume(ticket, answers, own);
    return { done, dispatcher, ticket, questions, resume };
  }

  describe(`${name} as CallTickets`, () => {
    it("continue a call in another process", async () => {
      const start = processes();
      const first = deleting();
      const { ticket, questions, error } = await suspend(start({ tool: first.tool }));
      assertEquals(error.retryable, false);
      assertEquals(questions, [{
        key: "sure",
        kind: "approval",
        message: "Delete a.txt?",
        arguments: { path: "a.txt" },
      }]);
      const second = deleting();
      const result = await start({ tool: second.tool }).resume(ticket, YES, ANN);
      assertEquals(outcomeOf(result), "deleted a.txt");
      assertEquals([first.done, second.done], [[], ["a.txt"]]);
    });

    it("retain the call's own fields", async () => {
      const start = processes();
      const tool: ToolDefinition = {
        name: "rm",
        description: "Says whose call it is.",
        parameters: { type: "object" },
        async execute(_, { ask, callId, sessionId, messageId, principal }) {
          await ask("sure", { message: "Well?" });
          return { callId, sessionId, messageId, principal };
        },
      };
      const caller = { principal: "ann", sessionId: "s", messageId: "m" };
      const { ticket } = await suspend(start({ tool }), caller);
      const result = await start({ tool }).resume(ticket, YES, ANN);
      assertEquals(outcomeOf(result), { callId: "call-7", ...caller });
    });

    it("do not run a declined call", async () => {
      for (const action of ["decline", "cancel"] as const) {
        const { tool, done } = deleting();
        const start = processes();
        const { ticket } = await suspend(start({ tool }));
        const result = await start({ tool }).resume(ticket, { sure: { action } }, ANN);
        assertEquals([outcomeOf(result), done], ["kept", []]);
      }
    });

    it("are rejected for another principal", async () => {
      const { done, resume } = await suspended({ store: durable.memoryCallStore() });
      for (const principal of ["bob", "", undefined, "Ann"]) {
        assertRefused(await resume(YES, { principal }), "was given to another caller");
      }
      assertEquals(done, []);
      // The rejected attempts have not used the ticket up.
      assertEquals(outcomeOf(await resume()), "deleted a.txt");
    });

    it("are rejected with another context of the host", async () => {
      const db = { query: () => {} };
      const [a, b] = [{ tenant: "a" }, { tenant: "b" }];
      const rows: readonly (readonly [own: unknown, others: readonly unknown[], same: unknown])[] =
        [
          [{ ...a, n: 1 }, [{ ...b, n: 1 }, {}, null, undefined], { n: 1, ...a }],
          [undefined, [a, {}, null], undefined],
          // `db` is not JSON, so only the other members are compared.
          [{ ...a, db }, [{ ...b, db }, a, undefined], { ...a, db }],
        ];
      for (const [own, others, same] of rows) {
        const ownContext = { ...ANN, context: own };
        const { done, resume } = await suspended({ store: durable.memoryCallStore() }, ownContext);
        for (const context of others) {
          assertRefused(await resume(YES, { ...ANN, context }), "another context");
        }
        assertEquals(done, []);
        // The rejected attempts have not used the ticket up.
        const result = await resume(YES, { ...ANN, context: same });
        assertEquals(outcomeOf(result), "deleted a.txt");
      }
    });

    it("do not run a tool in another tenant than the approved one", async () => {
      const tenants: unknown[] = [];
      const dispatcher = processes()({
        tool: {
          ...deleting().tool,
          requiresApproval: true,
          context: { type: "object", required: ["tenant"] },
          execute: (_, { context }) => void tenants.push(context),
        },
        options: { approve: "ask" },
      });
      const inTenant = (tenant: string): DispatchContext => ({ ...ANN, context: { tenant } });
      const { ticket, questions } = await suspend(dispatcher, inTenant("staging"));
      const yes: core.Answers = { [questions[0]?.key ?? ""]: { action: "accept" } };
      assertRefused(await dispatcher.resume(ticket, yes, inTenant("production")));
      assertEquals(tenants, []);
      assertEquals(outcomeOf(await dispatcher.resume(ticket, yes, inTenant("staging"))), null);
      assertEquals(tenants, [{ tenant: "staging" }]);
    });

    it("are rejected for other arguments and another tool", async () => {
      const { done, dispatcher, ticket } = await suspended();
      const again = (more: object): Promise<ToolResult> =>
        dispatcher.dispatch({ ticket, answers: YES, ...more }, ANN);
      const more = { path: "a.txt", x: 1 };
      for (const args of [{ path: "b.txt" }, '{"path":"b.txt"}', {}, null, "{", [], more]) {
        assertRefused(
          await again({ name: "rm", arguments: args }),
          "its ticket was issued for other arguments",
        );
      }
      assertRefused(await again({ name: "ls" }), "for another tool");
      assertRefused(await again({ callId: "c" }), "for another call");
      assertEquals(done, []);
      const same = { name: "rm", arguments: ' {"path": "a.txt"}' };
      assertEquals(outcomeOf(await again(same)), "deleted a.txt");
    });

    it("are rejected after the definition of the tool has changed", async () => {
      const start = processes();
      const { ticket } = await suspend(start());
      const { tool, done } = deleting();
      const changes: Partial<ToolDefinition>[] = [
        { description: "Deletes a file for good." },
        { risk: "high" },
        { version: "2.0.0" },
        { parameters: { type: "object", properties: { path: { type: "string" } } } },
      ];
      for (const change of changes) {
        assertRefused(
          await start({ tool: { ...tool, ...change } }).resume(ticket, YES, ANN),
          "its tool has changed since it asked",
        );
      }
      assertEquals(done, []);
      assertEquals(outcomeOf(await start({ tool }).resume(ticket, YES, ANN)), "deleted a.txt");
    });

    it("are rejected after the tool was removed or hidden", async () => {
      const start = processes();
      const { tool, done } = deleting();
      const store = durable.memoryCallStore();
      const dispatcher = start({ tool, store });
      const { ticket } = await suspend(dispatcher);
      const hidden = dispatcher.withToolset(dispatcher.toolset.narrow({ denyIds: ["rm"] }));
      assertEquals(outcomeOf(await hidden.resume(ticket, YES, ANN)), "unknown_tool");
      assertEquals(done, []);
      assertEquals(outcomeOf(await dispatcher.resume(ticket, YES, ANN)), "deleted a.txt");
    });

    it("expire", async () => {
      const time = { now: START };
      const { done, resume } = await suspended({ time });
      time.now += 60_000;
      assertRefused(await resume(), "has expired");
      assertEquals(done, []);
      time.now -= 1;
      assertEquals(outcomeOf(await resume()), "deleted a.txt");
    });

    it("continue a call once with a store, even with two concurrent answers", async () => {
      const { tool, done } = deleting();
      const start = processes();
      const store = storeOfNow();
      const { ticket } = await suspend(start({ tool, store }));
      const results = await Promise.all(
        Array.from({ length: 8 }, () => start({ tool, store }).resume(ticket, YES, ANN)),
      );
      assertEquals(done, ["a.txt"]);
      assertEquals(results.filter(({ ok }) => ok).length, 1);
      for (const result of results) {
        if (!result.ok) assertRefused(result, "was used before");
      }
      assertRefused(await start({ tool, store }).resume(ticket, YES, ANN), "was used before");
      assertEquals(done, ["a.txt"]);
    });

    it("may be used again by later attempts of the same run only, with a store", async () => {
      const { done, resume } = await suspended({ store: storeOfNow() });
      const inRun = (run: string) => resume(YES, { ...ANN, services: { "plue:run": run } });
      assertEquals(
        [outcomeOf(await inRun("a")), outcomeOf(await inRun("a"))],
        Array(2).fill("deleted a.txt"),
      );
      for (const result of [await inRun("b"), await resume()]) {
        assertRefused(result, "was used before");
      }
      assertEquals(done.length, 2);
    });

    it("stay used if an attempt without a run ends after a later attempt with one", async () => {
      let go = (): void => {};
      const late = new Promise<void>((resolve) => go = resolve);
      let runs = 0;
      const busy = ToolResult.error("overloaded", "Another process is busy.", { ran: "no" });
      const tool: ToolDefinition = {
        ...deleting().tool,
        async execute(_, { ask }) {
          await ask("sure", { message: "Sure?" });
          return ++runs === 1 ? await late.then(() => busy) : "deleted";
        },
      };
      const { resume } = await suspended({ tool, store: storeOfNow() });
      const inRun = (run: string) => resume(YES, { ...ANN, services: { "plue:run": run } });
      const first = inRun("a");
      while (runs === 0) await new Promise((resolve) => setTimeout(resolve));
      assertEquals(outcomeOf(await inRun("a")), "deleted");
      go();
      assertEquals(outcomeOf(await first), "overloaded");
      assertRefused(await inRun("b"), "was used before");
    });

    it("cannot approve a call after a denial, with a store", async () => {
      const { done, resume } = await suspended({ store: storeOfNow() });
      assertEquals(outcomeOf(await resume({ sure: { action: "decline" } })), "kept");
      assertRefused(await resume(), "was used before");
      assertEquals(done, []);
    });

    it("stay valid if their call ends before its tool runs, and can be used again", async () => {
      let isOpen = false;
      const { tool, done } = deleting();
      const store = storeOfNow();
      const dispatcher = processes()({ tool: { ...tool, isAvailable: () => isOpen }, store });
      isOpen = true;
      const { ticket } = await suspend(dispatcher);
      isOpen = false;
      assertEquals(outcomeOf(await dispatcher.resume(ticket, YES, ANN)), "unavailable");
      isOpen = true;
      assertEquals(outcomeOf(await dispatcher.resume(ticket, YES, ANN)), "deleted a.txt");
      assertEquals(done, ["a.txt"]);
    });

    it("stay valid if their tool returns that it has not run", async () => {
      let isBusy = true;
      const busy = ToolResult.error("overloaded", "Another process is busy.", { ran: "no" });
      const store = storeOfNow();
      const tool: ToolDefinition = {
        ...deleting().tool,
        execute: async (_, { ask }) =>
          (await ask("sure", { message: "Sure?" })).action && (isBusy ? busy : "deleted"),
      };
      const dispatcher = processes()({ tool, store });
      const { ticket } = await suspend(dispatcher);
      assertEquals(outcomeOf(await dispatcher.resume(ticket, YES, ANN)), "overloaded");
      isBusy = false;
      assertEquals(outcomeOf(await dispatcher.resume(ticket, YES, ANN)), "deleted");
      assertRefused(await dispatcher.resume(ticket, YES, ANN), "was used before");
    });

    it("are rejected if they were changed or forged", async () => {
      const { done, dispatcher, ticket } = await suspended();
      const wrong = [
        "",
        "ticket",
        "a.b.c.d.e",
        ticket.slice(0, -1),
        `${ticket}A`,
        ticket.toUpperCase(),
        ...[0.2, 0.5, 0.9].map((place) => {
          const at = Math.floor(ticket.length * place);
          const other = ticket[at] === "A" ? "B" : "A";
          return ticket.slice(0, at) + other + ticket.slice(at + 1);
        }),
        "A".repeat(1_000_000),
        7,
        null,
        {},
      ];
      for (const text of wrong) {
        const result = await dispatcher.resume(text as string, YES, ANN);
        assertRefused(result, "Cannot continue the call: its ticket ");
        assert(!result.ok && result.error.message.length < 120);
      }
      assertEquals(done, []);
    });

    it("accept answers to their own questions only", async () => {
      const { done, resume } = await suspended();
      const wrong: [unknown, string][] = [
        [{ other: { action: "accept" } }, 'there is no question "other"'],
        [{ ...YES, "plue:approval": { action: "accept" } }, 'there is no question "plue:approval"'],
        [{ sure: true }, 'the answer to "sure" must be an object of at most 64 kB'],
        [{ sure: { action: "yes" } }, 'the answer to "sure" must be'],
        [{ sure: { action: "accept", content: { at: NaN } } }, 'the answer to "sure" must be'],
        [[YES], '"answers" must be an object'],
        ["yes", '"answers" must be an object'],
      ];
      for (const [answers, words] of wrong) {
        const result = await resume(answers as core.Answers);
        assertEquals(outcomeOf(result), "invalid_arguments");
        assertStringIncludes(result.ok ? "" : result.error.message, words);
      }
      assertEquals(done, []);
    });

    it("repeat unanswered questions", async () => {
      const { done, dispatcher, questions, resume } = await suspended();
      const again = await resume({});
      assert(core.isSuspended(again));
      assertEquals([again.questions, done], [questions, []]);
      assertEquals(outcomeOf(await dispatcher.resume(again.ticket, YES, ANN)), "deleted a.txt");
    });

    it("differ each time, and do not reveal their content", async () => {
      const dispatcher = processes()();
      const { ticket } = await suspend(dispatcher);
      assertNotEquals(ticket, (await suspend(dispatcher)).ticket);
      for (const part of ticket.split(".")) {
        const shown = atobOrNothing(part);
        assertEquals(["ann", "a.txt", "call-7"].filter((word) => shown.includes(word)), []);
      }
    });

    it("stream the call that they continue", async () => {
      const start = processes();
      const tool: ToolDefinition = {
        name: "rm",
        description: "Tells what it does.",
        parameters: { type: "object" },
        async *execute(_, { ask }) {
          await ask("sure", { message: "Well?" });
          yield "deleting";
          return "done";
        },
      };
      const dispatcher = start({ tool });
      const { ticket } = await suspend(dispatcher);
      const events: unknown[] = [];
      for await (const event of dispatcher.stream({ ticket, answers: YES }, ANN)) {
        events.push(event.type === "result" ? outcomeOf(event.result) : event.type);
        assertEquals(event.callId, "call-7");
      }
      assertEquals(events, ["output", "done"]);
    });
  });
}

function atobOrNothing(text: string): string {
  try {
    return atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return "";
  }
}
