import { describe, it } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  type Answer,
  type Answers,
  askAboveRisk,
  type CallTickets,
  type DispatchContext,
  isSuspended,
  type Question,
  type SuspendedCall,
  type ToolDispatcherOptions,
  ToolResult,
} from "../../../mod.ts";
import { memoryCallStore, storedTickets } from "../../../src/execute/durable/mod.ts";
import {
  deferred,
  FakeClock,
  type FakeTool,
  type Fixture,
  fixture as plainFixture,
  messageOf,
  never,
  outcome,
  single as plainSingle,
  until,
} from "./support.ts";

const newTickets = (): CallTickets =>
  storedTickets(memoryCallStore({ clock: { timestamp: () => 0 } }));

/** A dispatcher whose calls may wait; each ticket works once. */
function fixture(tools: readonly FakeTool[], options: ToolDispatcherOptions = {}): Fixture {
  return plainFixture(tools, { tickets: newTickets(), ...options });
}

/** Like `fixture`, with one tool. */
function single(
  tool: Parameters<typeof plainSingle>[0],
  options: ToolDispatcherOptions = {},
): ReturnType<typeof plainSingle> {
  return plainSingle(tool, { tickets: newTickets(), ...options });
}

const accept = (content?: unknown): Answer =>
  content === undefined ? { action: "accept" } : { action: "accept", content };
const NO: Answer = { action: "decline" };

async function suspended(result: Promise<ToolResult>): Promise<SuspendedCall> {
  const waiting = await result;
  assert(isSuspended(waiting), JSON.stringify(waiting));
  return waiting;
}
const keysOf = ({ questions }: SuspendedCall): readonly string[] => questions.map(({ key }) => key);

describe("ToolDispatcher.stream() of a resumed call", () => {
  it("does not run the tool if its consumer stops while the ticket is looked up", async () => {
    const lookup = deferred();
    const tickets = newTickets();
    let runs = 0;
    const { call, dispatcher } = single({ requiresApproval: true, execute: () => ++runs }, {
      approve: "ask",
      tickets: {
        suspend: (call) => tickets.suspend(call),
        async resume(returned) {
          await lookup.promise;
          return await tickets.resume(returned);
        },
      },
    });
    const { ticket, questions: [question] } = await suspended(call());
    const answers: Answers = { [question?.key ?? ""]: accept() };
    const stream = dispatcher.stream({ ticket, answers });
    void stream.next();
    const left = stream.return?.();
    lookup.resolve();
    await left;
    assertEquals(runs, 0);
    // The ticket stays valid, because its tool has not run.
    assertEquals(outcome(await dispatcher.resume(ticket, answers)), 1);
  });
});

/** A caller with prepared answers, and the questions that it received. */
function answering(
  ...answers: readonly (Answer | undefined)[]
): { readonly received: Question[]; readonly context: DispatchContext } {
  const received: Question[] = [];
  return {
    received,
    context: {
      onQuestion(question) {
        received.push(question);
        return answers[received.length - 1];
      },
    },
  };
}

const NAME: NonNullable<FakeTool["execute"]> = async (_, { ask }) => {
  const answer = await ask("name", {
    message: "Who are you?",
    schema: { type: "string", minLength: 2 },
  });
  return answer.action === "accept" ? `Hello ${answer.content}` : answer.action;
};

describe("context.ask()", () => {
  it("returns the answer of a caller who can answer immediately", async () => {
    const { call } = single(NAME);
    const { received, context } = answering(accept("Ann"));
    assertEquals(outcome(await call({}, context)), "Hello Ann");
    assertEquals(received, [{
      key: "name",
      kind: "input",
      message: "Who are you?",
      schema: { type: "string", minLength: 2 },
    }]);
  });

  for (const action of ["decline", "cancel"] as const) {
    it(`passes a ${action} to the tool`, async () => {
      const { call } = single(NAME);
      assertEquals(outcome(await call({}, answering({ action }).context)), action);
    });
  }

  it("passes the call to the caller", async () => {
    const { call } = single(NAME);
    const seen: unknown[] = [];
    await call({ a: 1 }, {
      principal: "ann",
      onQuestion(_, { tool, principal, arguments: args, signal }) {
        seen.push(tool.id, principal, args, signal.aborted);
        return accept("Ann");
      },
    });
    assertEquals(seen, ["t", "ann", { a: 1 }, false]);
  });

  it("repeats the question with the issues after an invalid answer", async () => {
    const { call } = single(NAME);
    const { received, context } = answering(accept(7), accept("A"), accept(), accept("Ann"));
    assertEquals(outcome(await call({}, context)), "Hello Ann");
    assertEquals(received.map(({ issues }) => issues?.map(({ keyword }) => keyword)), [
      undefined,
      ["type"],
      ["minLength"],
      ["type"],
    ]);
  });

  it("fails after ten invalid answers", async () => {
    const { call } = single(NAME);
    let count = 0;
    const result = await call({}, { onQuestion: () => (count++, accept(7)) });
    assertEquals([outcome(result), count], ["input_unavailable", 10]);
    assertStringIncludes(messageOf(result), '10 answers to "name" did not match its schema');
  });

  for (const context of [{}, answering(undefined).context]) {
    const who = "onQuestion" in context ? "cannot ask this now" : "has no onQuestion";
    it(`suspends a call whose caller ${who}`, async () => {
      const { call, dispatcher } = single(NAME);
      const waiting = await suspended(call({}, context));
      assertEquals(messageOf(waiting), 'Cannot call "t": it waits for an answer: Who are you?');
      const result = await dispatcher.resume(waiting.ticket, { name: accept("Ann") });
      assertEquals(outcome(result), "Hello Ann");
    });
  }

  it("reports only to the tool that its caller does not answer questions", async () => {
    const { call, reports } = fixture([{ name: "greet", execute: NAME }, {
      name: "copes",
      execute: (_, { ask }) =>
        ask("name", { message: "Who are you?" }).catch((error: unknown) => String(error)),
    }]);
    const context: DispatchContext = { onQuestion: () => null };
    assertEquals(outcome(await call("greet", {}, context)), "input_unavailable");
    assertStringIncludes(
      String(outcome(await call("copes", {}, context))),
      "its caller cannot be asked this question",
    );
    assertEquals(reports, []);
  });

  it("rejects a malformed answer of the caller, and reports it", async () => {
    const { call, reports } = single(NAME);
    const large = { action: "accept", content: "x".repeat(65_536) };
    for (const answer of [{ nope: 1 }, { action: "maybe" }, "yes", large]) {
      const onQuestion = (): Answer => answer as Answer;
      const result = await call({}, { onQuestion });
      assertEquals(outcome(result), "input_unavailable");
      assertStringIncludes(
        messageOf(result),
        'the answer to "name" must be an object of at most 64 kB with the "action" accept, decline or cancel',
      );
    }
    assertEquals(reports.length, 4);
  });

  it("repeats the question with the issues when a call is resumed with an invalid answer", async () => {
    const { call, dispatcher } = single(NAME);
    const first = await suspended(call());
    const second = await suspended(dispatcher.resume(first.ticket, { name: accept("A") }));
    assertEquals(second.questions.map(({ issues }) => issues?.[0]?.keyword), ["minLength"]);
    const result = await dispatcher.resume(second.ticket, { name: accept("Ann") });
    assertEquals(outcome(result), "Hello Ann");
  });

  it("fails if the caller cannot be asked", async () => {
    const { call, reports } = plainSingle(NAME);
    const result = await call();
    assertEquals(outcome(result), "input_unavailable");
    assertEquals(
      messageOf(result),
      'Cannot call "t": it asks a question, and its caller cannot be asked',
    );
    assertEquals(reports, []);
  });

  it("sends several questions together", async () => {
    const { call, dispatcher } = single(async (_, { ask }) =>
      (await Promise.all(["a", "b"].map((key) => ask(key, { message: key }))))
        .map((answer) => answer.action === "accept" ? answer.content : answer.action)
    );
    const waiting = await suspended(call());
    assertEquals(keysOf(waiting), ["a", "b"]);
    assertStringIncludes(messageOf(waiting), "it waits for 2 answers: a; b");
    const half = await suspended(dispatcher.resume(waiting.ticket, { b: accept(2) }));
    assertEquals(keysOf(half), ["a"]);
    assertEquals(outcome(await dispatcher.resume(half.ticket, { a: NO })), ["decline", 2]);
  });

  it("allows 64 questions", async () => {
    const asking = (count: number): FakeTool => ({
      name: `ask-${count}`,
      execute: async (_, { ask }) =>
        (await Promise.all(
          Array.from({ length: count }, (_, index) => ask(`${index}`, { message: "?" })),
        )).length,
    });
    const { call, dispatcher } = fixture([asking(64), asking(65)]);
    const waiting = await suspended(call("ask-64"));
    assertEquals(waiting.questions.length, 64);
    const answers: Answers = Object.fromEntries(keysOf(waiting).map((key) => [key, accept()]));
    assertEquals(outcome(await dispatcher.resume(waiting.ticket, answers)), 64);
    // The call fails before its questions are answered.
    const result = await call("ask-65");
    assertEquals(outcome(result), "threw");
    assertStringIncludes(messageOf(result), "a call has at most 64 questions and steps");
  });

  it("fails instead of asking if another question of the tool is invalid", async () => {
    const { call } = fixture([{
      name: "twice",
      execute: (_, { ask }) =>
        Promise.all([ask("k", { message: "?" }), ask("k", { message: "?" })]),
    }, {
      name: "both",
      async execute(_, { ask, step }) {
        await step("k", () => 1);
        await ask("k", { message: "?" });
      },
    }, {
      name: "swallows",
      async execute(_, { ask, step }) {
        const answer = ask("k", { message: "?" });
        await step("not a key", () => 1).catch(() => {});
        return await answer;
      },
    }, {
      name: "no-message",
      execute: (_, { ask }) => Promise.all([ask("k", { message: "?" }), ask("l", {} as never)]),
    }]);
    for (
      const [name, words] of [
        ["twice", "was used before"],
        ["both", 'Cannot ask "k": its key was used before in this call'],
        ["swallows", "must be 1 to 64 letters"],
        ["no-message", 'Cannot ask "l": it has no "/message"'],
      ]
    ) {
      const result = await call(name as string, {});
      assertEquals(outcome(result), "threw");
      assertStringIncludes(messageOf(result), words as string);
    }
  });

  it("suspends a call whose tool swallows the error", async () => {
    let more = 0;
    const tools: Readonly<Record<string, NonNullable<FakeTool["execute"]>>> = {
      returns: (_, { ask }) => ask("k", { message: "?" }).catch(() => "done"),
      throws: (_, { ask }) =>
        ask("k", { message: "?" }).catch(() => Promise.reject(new Error("?"))),
      forgets: (_, { ask }) => void ask("k", { message: "?" }),
      async "goes-on"(_, { ask, step }) {
        await ask("k", { message: "?" }).catch(() => {});
        await step("more", () => more++);
        await ask("l", { message: "?" });
      },
    };
    const own = Object.entries(tools).map(([name, execute]) => ({ name, execute }));
    const { call, reports } = fixture(own);
    for (const name in tools) assertEquals(keysOf(await suspended(call(name))), ["k"], name);
    assertEquals(more, 0);
    // A thrown error has no receiver, because the call is suspended, so it is reported.
    assertEquals(reports.map(({ toolId }) => toolId), ["throws"]);
  });

  it("does not wait for a tool that hangs after it has asked", async () => {
    const { call, clock } = single((_, { ask }) => ask("k", { message: "?" }).catch(never), {
      graceMs: 500,
    });
    const waiting = suspended(call());
    await clock.pass(500);
    assertEquals(keysOf(await waiting), ["k"]);
  });

  it("aborts the signal of a suspended call, runs its cleanups, and reports no failure", async () => {
    const reports: unknown[] = [];
    const { call } = single(async (_, { ask, defer, signal }) => {
      defer(() => void reports.push("closed"));
      signal.addEventListener("abort", () => reports.push("aborted"));
      await ask("k", { message: "?" });
    });
    await suspended(call({}, { metadata: (value) => void reports.push(value) }));
    assertEquals(reports, ["aborted", "closed"]);
  });

  it("rolls the transaction back", async () => {
    const log: string[] = [];
    const { call, dispatcher } = single({
      requiresTransaction: true,
      async execute(_, { ask }) {
        log.push("run");
        await ask("k", { message: "?" });
      },
    }, {
      transactions: {
        begin: () => (log.push("begin"), { id: "1" }),
        commit: () => void log.push("commit"),
        rollback: (_, { code }) => void log.push(`rollback: ${code}`),
      },
    });
    const { ticket } = await suspended(call());
    assertEquals(log.splice(0), ["begin", "run", "rollback: input_required"]);
    assertEquals((await dispatcher.resume(ticket, { k: accept() })).ok, true);
    assertEquals(log, ["begin", "run", "commit"]);
  });

  it("can be used in a tool's own rule", async () => {
    let ran = 0;
    const { call, dispatcher } = single({
      validate: async (_, { ask }) =>
        (await ask("k", { message: "?" })).action === "accept" ? undefined : "It was not wanted",
      execute: () => ++ran,
    });
    const { ticket } = await suspended(call());
    assertEquals(outcome(await dispatcher.resume(ticket, { k: NO })), "invalid_arguments");
    assertEquals(ran, 0);
  });

  it("ends with the call that is aborted while it waits for its caller", async () => {
    const controller = new AbortController();
    const { call } = single(NAME);
    const signals: AbortSignal[] = [];
    const result = call({}, {
      signal: controller.signal,
      onQuestion: (_, { signal }) => {
        signals.push(signal);
        return never();
      },
    });
    await until(() => signals.length === 1);
    controller.abort();
    assertEquals(outcome(await result), "aborted");
    assertEquals(signals[0]?.aborted, true);
  });

  it("does not suspend a call that was aborted", async () => {
    const controller = new AbortController();
    const { call } = single(async (_, { ask }) => {
      controller.abort();
      await ask("k", { message: "?" });
    });
    assertEquals(outcome(await call({}, { signal: controller.signal })), "aborted");
  });

  it("does not count the time of a question towards the timeout", async () => {
    const answer = deferred<Answer>();
    const { call, clock } = single(async (_, { ask }) => {
      await ask("k", { message: "?" });
      return await never();
    }, { timeoutMs: 100, approvalTimeoutMs: 10_000, graceMs: 0 });
    const result = call({}, { onQuestion: () => answer.promise });
    await until(() => [...clock.timers].some(({ at }) => at === clock.now() + 10_000));
    clock.advance(9_000);
    answer.resolve(accept());
    await until(() => [...clock.timers].every(({ at }) => at === clock.now() + 100));
    clock.advance(100);
    assertEquals(outcome(await result), "timeout");
  });

  it("has a limit for the wait", async () => {
    const { call, clock } = single(NAME, { timeoutMs: 100, approvalTimeoutMs: 10_000 });
    const result = call({}, { onQuestion: never });
    await until(() => [...clock.timers].some(({ at }) => at === clock.now() + 10_000));
    clock.advance(10_000);
    assertEquals(outcome(await result), "timeout");
  });

  it("rejects an invalid question", async () => {
    const wrong: readonly (readonly [unknown, unknown, string])[] = [
      ["", { message: "?" }, "its key must be 1 to 64 letters"],
      ["a b", { message: "?" }, 'Cannot ask "a b": its key must be'],
      ["plue:approval", { message: "?" }, "its key must be"],
      ["x".repeat(65), { message: "?" }, "its key must be"],
      [7, { message: "?" }, "its key must be"],
      ["k", undefined, "must be an object"],
      ["k", {}, 'it has no "/message"'],
      [
        "k",
        { message: "?", kind: "guess" },
        '"/kind" must be one of input, approval, authorization, client, not "guess"',
      ],
      ["k", { message: "?", schema: { type: "strin" } }, '"/type"'],
      [
        "k",
        { message: "?", kind: "approval", schema: {} },
        'only a question for input has a "/schema"',
      ],
      [
        "k",
        { message: "?", kind: "approval", arguments: "x".repeat(65_536) },
        '"/arguments" must have at most 64 kB of JSON',
      ],
      ["k", { message: "?", url: "https://a.example" }, 'and no other, has a "/url"'],
      ["k", { message: "?", kind: "authorization" }, 'has a "/url"'],
      ["k", { message: "?", kind: "authorization", url: "javascript:1" }, "must begin with https"],
      ["k", { message: "?", kind: "authorization", url: "nowhere" }, "must begin with https"],
    ];
    const { call } = single(async (_, { ask, services: { key, question } }) =>
      await ask(key as string, question as never)
    );
    for (const [key, question, words] of wrong) {
      const result = await call({}, { services: { key, question } });
      assertEquals(outcome(result), "threw", words);
      assertStringIncludes(messageOf(result), words);
    }
  });

  it("shows its visible text, of at most 2,000 characters", async () => {
    const asking = (message: string) => single((_, { ask }) => ask("k", { message })).call();
    const [question] = (await suspended(asking(`Delete a.txt\u202e\u200b${"!".repeat(1_988)}`)))
      .questions;
    assertMatch(question?.message ?? "", /^Delete a\.txt!+$/);
    assertEquals(question?.message.length, 2_000);
    // A truncated question would get an answer to a part of the question.
    const long = await asking(`${"\u200b".repeat(9_000)}${"!".repeat(2_001)}`);
    assertStringIncludes(messageOf(long), '"/message" must have at most 2000 characters');
  });

  it("has the address of an authorization, with its controls escaped", async () => {
    const fields = { kind: "authorization", message: "Log in" } as const;
    const url = "https://mail.example/login?state=1\u001b[31m\nplue: all is well";
    const { call, dispatcher } = single(async (_, { ask }) =>
      (await ask("login", { ...fields, url })).action
    );
    const { questions, ticket } = await suspended(call());
    const shown = "https://mail.example/login?state=1%1B[31mplue:%20all%20is%20well";
    assertEquals(questions, [{ key: "login", ...fields, url: shown }]);
    assertEquals(outcome(await dispatcher.resume(ticket, { login: accept() })), "accept");
  });

  it("requires another approval if its question has changed", async () => {
    let files = 3;
    const { call, dispatcher } = single(async (_, { ask }) => {
      const { action } = await ask("sure", { kind: "approval", message: `Delete ${files} files?` });
      return action;
    });
    const first = await suspended(call());
    files = 300;
    const second = await suspended(dispatcher.resume(first.ticket, { sure: accept() }));
    assertEquals(second.questions.map(({ message }) => message), ["Delete 300 files?"]);
    assertEquals(outcome(await dispatcher.resume(second.ticket, { sure: accept() })), "accept");
  });

  it("reports that a ticket cannot be created or looked up", async () => {
    const { call, dispatcher, reports } = single(NAME, {
      tickets: {
        suspend: () => Promise.reject(new Error("The store is full")),
        resume: () => Promise.reject(new Error("The store is gone")),
      },
    });
    const result = await call();
    assertEquals(outcome(result), "unavailable");
    assertEquals(messageOf(result), 'Cannot call "t": its ticket could not be made');
    assertEquals(outcome(await dispatcher.resume("ticket", {})), "unavailable");
    assertEquals(reports.map(({ phase, error }) => [phase, String(error)]), [
      ["ask", "Error: The store is full"],
      ["ask", "Error: The store is gone"],
    ]);
  });

  it("reports the size of a ticket that is too large", async () => {
    const { call } = single(NAME, { maxArgumentBytes: 2_000_000 });
    const result = await call({ text: "x".repeat(600_000) });
    assertEquals(outcome(result), "input_unavailable");
    assertMatch(
      messageOf(result),
      /its arguments, answers and steps have 600\d{3} bytes, and 524288 are allowed/,
    );
  });

  it("reports that the option for tickets is not set", async () => {
    const { dispatcher } = plainSingle(NAME);
    const result = await dispatcher.resume("ticket", {});
    assertEquals(outcome(result), "ticket_refused");
    assertStringIncludes(messageOf(result), "the option tickets is not set");
    assertEquals(!result.ok && result.error.retryable, false);
  });

  it("keeps a ticket valid if the store marks it too late", async () => {
    const clock = new FakeClock();
    const store = memoryCallStore({ clock });
    const used = deferred();
    const slow = deferred();
    let isSlow = true;
    const { call, dispatcher } = plainSingle(NAME, {
      clock,
      tickets: storedTickets({
        ...store,
        async update(key, value, revision, options) {
          const waits = isSlow;
          isSlow = false;
          if (waits) {
            used.resolve();
            await slow.promise;
          }
          return await store.update(key, value, revision, options);
        },
      }),
    });
    const { ticket } = await suspended(call());
    const answers = { name: accept("Ann") };
    const late = dispatcher.resume(ticket, answers);
    await used.promise;
    await clock.pass(60_000);
    assertEquals(outcome(await late), "unavailable");
    slow.resolve();
    let result = await dispatcher.resume(ticket, answers);
    for (let turn = 0; turn < 100 && outcome(result) === "ticket_refused"; turn++) {
      result = await dispatcher.resume(ticket, answers);
    }
    assertEquals(outcome(result), "Hello Ann");
  });

  it("keeps a ticket valid after an invalid attempt to resume it", async () => {
    const { call, dispatcher } = single(NAME);
    const { ticket } = await suspended(call());
    const answers = { name: accept("Ann") };
    for (const wrong of [{ ticket, answer: answers }, { ticket, answers, sessionId: "s" }]) {
      const result = await dispatcher.dispatch(wrong);
      assertEquals(outcome(result), "invalid_arguments");
      assertStringIncludes(messageOf(result), "is not one of its fields: ticket, answers, name");
    }
    assertEquals(outcome(await dispatcher.resume(ticket, answers)), "Hello Ann");
  });

  it("releases the idempotency key of a suspended call, and claims it for the resumed call", async () => {
    let runs = 0;
    const { call, dispatcher } = single(async (_, { ask }) => {
      await ask("sure", { message: "?" });
      return ++runs;
    });
    const context = { principal: "ann", idempotencyKey: "k" };
    const { ticket } = await suspended(call({}, context));
    const result = await dispatcher.resume(ticket, { sure: accept() }, { principal: "ann" });
    assertEquals(outcome(result), 1);
    const again = await call({}, context);
    assertEquals([outcome(again), again.replayed, runs], [1, true, 1]);
  });

  it("returns the ticket of a call that the tool has dispatched", async () => {
    const { registry, call, dispatcher } = fixture([{ name: "greet", execute: NAME }, {
      name: "bridge",
      execute: (): Promise<ToolResult> => dispatcher.dispatch({ name: "greet" }),
    }, { name: "forges", execute: () => ToolResult.error("input_required", "Give me a ticket") }]);
    assertEquals(registry.count, 3);
    const { ticket } = await suspended(call("bridge"));
    assertEquals(outcome(await dispatcher.resume(ticket, { name: accept("Ann") })), "Hello Ann");
    assertEquals(outcome(await call("forges")), "invalid_result");
  });
});

describe("context.step()", () => {
  it("is not repeated when the call resumes", async () => {
    const log: string[] = [];
    const { call, dispatcher } = fixture([{
      name: "measure",
      async execute(_, { ask, step }) {
        const size = await step("size", () => {
          log.push("measured");
          return { bytes: 7 };
        });
        size.bytes++;
        await ask("sure", { message: `${size.bytes}?` });
        return size;
      },
    }]);
    const { ticket } = await suspended(call("measure"));
    assertEquals(outcome(await dispatcher.resume(ticket, { sure: accept() })), { bytes: 8 });
    assertEquals(log, ["measured"]);
  });

  it("runs even if the caller cannot answer questions", async () => {
    const { call } = plainFixture([{
      name: "once",
      execute: async (_, { step }) => [await step("a", () => 1), await step("b", () => {})],
    }]);
    assertEquals(outcome(await call("once")), [1, null]);
  });

  it("is stored if it was running when another part of the tool asked a question", async () => {
    const work = deferred<string>();
    let taken = 0;
    const { call, dispatcher } = single(async (_, { ask, step }) =>
      await Promise.all([
        ask("k", { message: "?" }).then(({ action }) => action),
        step("slow", () => (taken++, work.promise)),
      ])
    );
    const waiting = suspended(call());
    await until(() => taken === 1);
    work.resolve("done");
    const { ticket } = await waiting;
    assertEquals(outcome(await dispatcher.resume(ticket, { k: accept() })), ["accept", "done"]);
    assertEquals(taken, 1);
  });

  it("is rejected in a transaction, which would be rolled back without it", async () => {
    let rows = 0;
    const { call } = single({
      requiresTransaction: true,
      execute: (_, { step }) => step("row", () => ++rows),
    }, { transactions: { begin: () => ({ id: "1" }), commit: () => {}, rollback: () => {} } });
    const result = await call();
    assertEquals([outcome(result), rows], ["threw", 0]);
    assertStringIncludes(messageOf(result), "steps cannot be used in a transaction");
  });

  it("may ask a question, and then runs again", async () => {
    const { call, clock, dispatcher } = single(
      (_, { ask, step }) =>
        step("outer", async () => (await ask("inner", { message: "?" })).action),
      { graceMs: 500 },
    );
    const waiting = suspended(call());
    await clock.pass(500);
    const { ticket } = await waiting;
    assertEquals(outcome(await dispatcher.resume(ticket, { inner: accept() })), "accept");
  });

  it("rejects with the error of its work, and does not store it", async () => {
    let tries = 0;
    const { call, dispatcher } = single(async (_, { ask, step }) => {
      const got = await step("try", () => {
        if (++tries === 1) throw new Error("Not yet");
        return tries;
      }).catch(({ message }: Error) => message);
      await ask("k", { message: "?" });
      return got;
    });
    const { ticket } = await suspended(call());
    assertEquals(outcome(await dispatcher.resume(ticket, { k: accept() })), 2);
  });

  it("rejects results that are not JSON or too large, in one step or in all", async () => {
    const { call } = single(async (_, { step, services: { results } }) => {
      for (const [index, result] of (results as unknown[]).entries()) {
        await step(`${index}`, () => result);
      }
    });
    const refused = async (...results: unknown[]): Promise<string> =>
      messageOf(await call({}, { services: { results } }));
    assertStringIncludes(await refused(NaN), 'Cannot take the step "0": it is NaN');
    assertStringIncludes(await refused(new Map()), "an instance of Map");
    assertStringIncludes(await refused("x".repeat(70_000)), "more than 65536 bytes of JSON");
    const half = "x".repeat(40_000);
    assertStringIncludes(await refused(half, half), "more than 65536 bytes of JSON together");
    assertEquals(await refused(half), "");
  });
});

describe("approval by the caller", () => {
  function risky(): { readonly tool: FakeTool; readonly ran: unknown[] } {
    const ran: unknown[] = [];
    return {
      ran,
      tool: { name: "rm", requiresApproval: true, execute: (args) => void ran.push(args) },
    };
  }
  const KEY = "plue:approval";

  it("waits for the answer, shows the arguments, and runs after a yes", async () => {
    const { tool, ran } = risky();
    const { call, dispatcher } = fixture([tool], { approve: "ask" });
    const { questions, ticket } = await suspended(call("rm", { path: "a" }));
    assertEquals(questions, [{
      key: KEY,
      kind: "approval",
      message: 'Run the tool "rm"?',
      arguments: { path: "a" },
    }]);
    assertEquals(ran, []);
    assertEquals((await dispatcher.resume(ticket, { [KEY]: accept() })).ok, true);
    assertEquals(ran, [{ path: "a" }]);
  });

  it("never runs after a no", async () => {
    for (const answer of [NO, { action: "cancel" } as const]) {
      const { tool, ran } = risky();
      const { call, dispatcher } = fixture([tool], { approve: "ask" });
      const { ticket } = await suspended(call("rm"));
      const result = await dispatcher.resume(ticket, { [KEY]: answer });
      assertEquals(
        [outcome(result), messageOf(result)],
        ["denied", 'Cannot call "rm": it was not approved'],
      );
      assertEquals(outcome(await dispatcher.resume(ticket, { [KEY]: accept() })), "ticket_refused");
      assertEquals(ran, []);
      assertEquals(outcome(await call("rm", {}, answering(answer).context)), "denied");
      assertEquals(ran, []);
    }
  });

  it("may be answered during the call", async () => {
    const { tool, ran } = risky();
    const { call } = plainFixture([tool], { approve: "ask" });
    assertEquals((await call("rm", {}, answering(accept()).context)).ok, true);
    assertEquals(ran.length, 1);
  });

  it("can be written by the approver", async () => {
    const { tool } = risky();
    const { call } = fixture([tool], {
      approve: ({ principal }) =>
        principal === "ann" ? true : principal === "bob" ? "ask" : { ask: "Really?" },
    });
    assertEquals((await call("rm", {}, { principal: "ann" })).ok, true);
    const words = async (principal: string): Promise<unknown> =>
      (await suspended(call("rm", {}, { principal }))).questions[0]?.message;
    assertEquals(await words("bob"), 'Run the tool "rm"?');
    assertEquals(await words("eve"), "Really?");
  });

  it("shows the arguments that a tool passes, and is valid only for these", async () => {
    let path = "b";
    const { call, dispatcher } = single((_, { ask }) =>
      ask("k", { kind: "approval", message: "?", arguments: { path } })
    );
    const first = await suspended(call({ path: "a" }));
    assertEquals(first.questions[0]?.arguments, { path: "b" });
    path = "/";
    const second = await suspended(dispatcher.resume(first.ticket, { k: accept() }));
    assertEquals(second.questions[0]?.arguments, { path: "/" });
    assert((await dispatcher.resume(second.ticket, { k: accept() })).ok);
  });

  it("is requested again if a hook has changed the arguments since", async () => {
    const { tool, ran } = risky();
    let path = "a";
    const { call, dispatcher } = fixture([tool], {
      approve: "ask",
      hooks: { before: () => ({ arguments: { path } }) },
    });
    const first = await suspended(call("rm"));
    path = "/";
    const second = await suspended(dispatcher.resume(first.ticket, { [KEY]: accept() }));
    assertEquals(second.questions[0]?.arguments, { path: "/" });
    assertEquals(ran, []);
    await dispatcher.resume(second.ticket, { [KEY]: accept() });
    assertEquals(ran, [{ path: "/" }]);
  });

  it("is required by a policy, even for views of the tool and in narrower toolsets", async () => {
    let ran = 0;
    const { registry, dispatcher } = fixture([
      { name: "rm", risk: "high", execute: () => ++ran },
      { name: "ls", risk: "low", execute: () => ++ran },
    ], { approve: "ask" });
    const toolset = registry.select({ policies: [askAboveRisk("medium")] });
    assertEquals(toolset.ids, ["ls", "rm"]);
    for (const shown of [toolset, toolset.narrow({ allowIds: ["rm", "ls"] })]) {
      const careful = dispatcher.withToolset(shown);
      assertEquals(outcome(await careful.dispatch({ name: "ls" })), ran);
      const { ticket } = await suspended(careful.dispatch({ name: "rm" }));
      assertEquals(outcome(await careful.resume(ticket, { [KEY]: accept() })), ran);
    }
    assertEquals(ran, 4);
    assertEquals((await dispatcher.dispatch({ name: "rm" })).ok, true);
  });

  it("is required by a policy that fails", async () => {
    const { registry, dispatcher } = single(() => "gone", { approve: "ask" });
    const odd: readonly (() => unknown)[] = [
      () => {
        throw new Error("No idea");
      },
      () => Promise.resolve(false),
      () => "perhaps",
    ];
    for (const requiresApproval of odd as readonly (() => never)[]) {
      const toolset = registry.select({ policies: [{ allow: () => true, requiresApproval }] });
      await suspended(dispatcher.withToolset(toolset).dispatch({ name: "t" }));
    }
    const sure = registry.select({
      policies: [{ allow: () => true, requiresApproval: () => false }],
    });
    assertEquals((await dispatcher.withToolset(sure).dispatch({ name: "t" })).ok, true);
  });
});
