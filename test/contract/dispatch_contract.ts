/** The contract of a call as its caller sees it, for a tool in this process or on a worker. */

import { afterAll, describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  defineTool,
  type DispatchContext,
  type FailureCode,
  isSuspended,
  type Question,
  type Tool,
  type ToolCall,
  type ToolDefinition,
  ToolDispatcher,
  type ToolDispatcherOptions,
  type ToolEvent,
  ToolRegistry,
  ToolResult,
} from "../../mod.ts";
import { memoryCallStore, storedTickets } from "../../src/execute/durable/mod.ts";
import { abortable } from "../../src/tool/mod.ts";
import { broken, never } from "../unit/execute/support.ts";

/** The process in which tools run, as seen from their caller. */
export interface Place {
  /** The caller's registry, with the tools. */
  readonly registry: ToolRegistry;
  close(): Promise<void>;
}

const NUMBERS = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a", "b"],
  additionalProperties: false,
} as const;

const started: string[] = [];
const steps: string[] = [];
let notify: () => void = () => {};

/** The tools that the contract calls. */
const TOOLS: readonly (Tool | ToolDefinition)[] = [
  defineTool({
    ...{ namespace: "m.ath", name: "add", description: "Adds.", aliases: ["m.ath:plus"] },
    parameters: NUMBERS,
    returns: { type: "number" },
    execute: ({ a, b }) => a + b,
  }),
  {
    name: "who",
    description: "Says who calls.",
    execute: (_: unknown, { callId, principal, sessionId, messageId, state, services }) =>
      ({ callId, principal, sessionId, messageId, state, service: services["who"] }) as never,
    init: () => "made",
  },
  {
    name: "echo",
    description: "Answers what it is given.",
    parameters: { type: "object" },
    execute: (params) => params,
  },
  {
    name: "even",
    description: "Takes even numbers.",
    parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    validate: ({ n }: { readonly n: number }) =>
      n % 2 === 0
        ? undefined
        : [{ path: "/n", keyword: "custom", expected: "an even number", message: "n is odd" }],
    execute: ({ n }: { readonly n: number }) => n / 2,
  },
  {
    name: "count",
    description: "Counts.",
    parameters: { type: "object", properties: { to: { type: "integer" } }, required: ["to"] },
    async *execute({ to }: { readonly to: number }, context) {
      for (let number = 1; number <= to; number++) {
        context.progress(number, to, `number ${number}`);
        context.metadata({ number });
        yield { number };
      }
      return "done";
    },
  },
  {
    name: "endless",
    description: "Counts without an end.",
    async *execute() {
      try {
        for (let number = 0;; number++) yield number;
      } finally {
        notify();
      }
    },
  },
  {
    name: "wait",
    description: "Waits until it is aborted.",
    async execute(_: unknown, { signal, metadata }) {
      metadata("waiting");
      try {
        return await abortable(never(), signal);
      } finally {
        notify();
      }
    },
  },
  {
    name: "stubborn",
    description: "Does not listen.",
    execute: (_: unknown, { metadata }) => {
      metadata("waiting");
      return never();
    },
  },
  { name: "slow", description: "Takes too long.", timeoutMs: 30, execute: never },
  { name: "throws", description: "Throws.", execute: broken },
  {
    name: "refuses",
    description: "Answers a failure of its own.",
    execute: () => ToolResult.error("denied", "Not on a Sunday", { retryable: true }),
  },
  {
    ...{ name: "wrong", description: "Answers what it must not." },
    returns: { type: "number" },
    execute: () => "a text",
  },
  { name: "cyclic", description: "Answers what is not JSON.", execute: () => ({ n: 1n }) },
  {
    ...{ name: "large", description: "Answers a long text.", idempotent: true },
    parameters: { type: "object", properties: { length: { type: "integer" } } },
    execute: ({ length }: { readonly length: number }) => "ü".repeat(length),
  },
  {
    ...{ name: "cut", description: "Answers what is cut.", outputOverflow: "truncate" },
    execute: () => "x".repeat(2_000_000),
  },
  { name: "plan", description: "A definition only." },
  {
    ...{ name: "launch", description: "Launches.", requiresApproval: true },
    execute: () => "launched",
  },
  {
    name: "remove",
    description: "Asks, and remembers what it did.",
    async execute(_: unknown, context) {
      const size = await context.step("measure", () => steps.push("measured"));
      const { action } = await context.ask("sure", { kind: "approval", message: "Really?" });
      if (action !== "accept") return ToolResult.error("denied", "The user said no");
      const { content } = await context.ask<string>("why", {
        message: "Why?",
        schema: { type: "string" },
      }) as { readonly content?: string };
      return { size, why: content };
    },
  },
  {
    name: "tries",
    description: "Does without an answer.",
    async execute(_: unknown, context) {
      try {
        await context.ask("name", { message: "Who?" });
        return "asked";
      } catch {
        return "not asked";
      }
    },
  },
  {
    ...{ name: "picture", description: "Answers an image." },
    execute: () => ToolResult.blocks([{ type: "image", data: "AAAA", mimeType: "image/png" }]),
  },
  { ...{ name: "once", description: "Counts its runs." }, execute: () => started.push("once") },
];

/** Calls that fail, with their failures. */
const FAILURES: readonly {
  readonly title: string;
  readonly call: ToolCall;
  readonly code: FailureCode;
  /** A part of the message. */
  readonly message?: string;
  /** The paths of the issues. */
  readonly issues?: readonly string[];
}[] = [
  {
    title: "rejects arguments that do not fit the schema",
    call: { name: "m.ath:add", arguments: { a: "1" } },
    ...{ code: "invalid_arguments", issues: ["", "/a"] },
  },
  {
    title: "rejects arguments by the tool's own rules",
    call: { name: "even", arguments: { n: 3 } },
    ...{ code: "invalid_arguments", message: "n is odd", issues: ["/n"] },
  },
  {
    title: "rejects arguments that are too large",
    call: { name: "echo", arguments: { text: "ü".repeat(1_000_000) } },
    code: "invalid_arguments",
  },
  { title: "ends a call at the tool's timeout", call: { name: "slow" }, code: "timeout" },
  { title: "reports a thrown error", call: { name: "throws" }, code: "threw", message: "broken" },
  { title: "rejects an invalid result", call: { name: "wrong" }, code: "invalid_result" },
  { title: "rejects a result that is not JSON", call: { name: "cyclic" }, code: "invalid_result" },
  {
    title: "rejects a result that is too large",
    call: { name: "large", arguments: { length: 600_000 } },
    code: "output_too_large",
  },
  { title: "does not run a definition", call: { name: "plan" }, code: "not_executable" },
  {
    title: "suggests the name of a tool for an unknown one",
    ...{ call: { name: "echoo" }, code: "unknown_tool", message: 'Did you mean "echo"?' },
  },
];

/**
 * Declares the contract's tests.
 *
 * @param open Makes the caller's registry of tools that run somewhere. Their registry there has the
 * service `who`.
 */
export function describeDispatch(
  name: string,
  open: (registry: ToolRegistry) => Promise<Place>,
  maybeIt: (name: string, run: () => Promise<void>) => void = it,
): void {
  describe(`${name} as a dispatcher of calls`, () => {
    let place: Promise<Place> | undefined;
    const there = (): Promise<Place> =>
      place ??= open(new ToolRegistry({ tools: TOOLS, services: { who: "the registry" } }));
    afterAll(async () => await (await place)?.close());

    async function made(options: ToolDispatcherOptions = {}): Promise<ToolDispatcher> {
      return new ToolDispatcher((await there()).registry, options);
    }
    async function call(
      request: ToolCall,
      context?: DispatchContext,
      options?: ToolDispatcherOptions,
    ): Promise<ToolResult> {
      return await (await made(options)).dispatch(request, context);
    }
    async function failure(request: ToolCall, context?: DispatchContext) {
      const result = await call(request, context);
      assert(!result.ok, `"${request.name}" did not fail`);
      return result.error;
    }

    maybeIt("lists the tools as they were defined", async () => {
      const { registry } = await there();
      assertEquals(registry.ids, new ToolRegistry({ tools: TOOLS }).ids);
      const [near, far] = [registry, new ToolRegistry({ tools: TOOLS })].map((one) =>
        // The availability of a tool on a worker is checked each time.
        JSON.stringify({ ...one.getTool("m.ath:add"), isAvailable: undefined })
      );
      assertEquals(near, far);
    });

    maybeIt("answers what the tool answers, by id and by alias", async () => {
      for (const name of ["m.ath:add", "m.ath:plus"]) {
        const sum = await call({ name, arguments: '{"a":1,"b":2}' });
        assertEquals(sum.ok && sum.content, 3);
      }
    });

    maybeIt("tells the tool who calls, and gives it what its own registry has", async () => {
      const result = await call({ name: "who", callId: "c 1" }, {
        principal: "ann\nümlaut",
        sessionId: "s",
        messageId: "m",
      });
      assertEquals(result.ok && result.content, {
        ...{ callId: "c 1", principal: "ann\nümlaut", sessionId: "s", messageId: "m" },
        ...{ state: "made", service: "the registry" },
      });
    });

    maybeIt("passes any JSON there and back", async () => {
      const value = { "": [null, true, 1.5, -0, '\u0000\u2028"\\', { constructor: 1 }], "😀": {} };
      const result = await call({ name: "echo", arguments: value });
      assertEquals(result.ok && JSON.stringify(result.content), JSON.stringify(value));
    });

    for (const { title, call, code, message = "", issues } of FAILURES) {
      maybeIt(title, async () => {
        const error = await failure(call);
        assertEquals(error.code, code);
        assertStringIncludes(error.message, message);
        if (issues !== undefined) assertEquals(error.issues?.map(({ path }) => path), issues);
      });
    }

    maybeIt("streams what the tool sends, in order, and then the result", async () => {
      const events: ToolEvent[] = [];
      const dispatcher = await made();
      for await (const event of dispatcher.stream({ name: "count", arguments: { to: 3 } })) {
        events.push(event);
      }
      const outputs = events.flatMap((event) => event.type === "output" ? [event.value] : []);
      assertEquals(outputs, [{ number: 1 }, { number: 2 }, { number: 3 }]);
      assertEquals(events.filter(({ type }) => type === "metadata").length, 3);
      const progress = events.filter(({ type }) => type === "progress").at(-1);
      const wanted = { done: 3, total: 3, message: "number 3" };
      assertEquals(progress?.type === "progress" && progress.progress, wanted);
      const last = events.at(-1);
      assert(last?.type === "result");
      assertEquals([last.result.ok && last.result.content, last.dropped], ["done", 0]);
      assertEquals(events.map(({ sequence }) => sequence), events.map((_, index) => index));
    });

    maybeIt("streams more than anything holds at once", async () => {
      let sum = 0;
      const dispatcher = await made();
      for await (const event of dispatcher.stream({ name: "count", arguments: { to: 500 } })) {
        if (event.type === "output") sum += (event.value as { readonly number: number }).number;
      }
      assertEquals(sum, 125_250);
    });

    maybeIt("stops a tool whose stream is left", async () => {
      const stopped = new Promise<void>((resolve) => notify = resolve);
      const dispatcher = await made();
      let outputs = 0;
      for await (const event of dispatcher.stream({ name: "endless" })) {
        if (event.type === "output" && ++outputs === 100) break;
      }
      await stopped;
      assertEquals(outputs, 100);
    });

    maybeIt("aborts a tool, and says that it has stopped", async () => {
      const stopped = new Promise<void>((resolve) => notify = resolve);
      const abort = new AbortController();
      const { code, acknowledged, retryable } = await failure({ name: "wait" }, {
        signal: abort.signal,
        metadata: () => abort.abort(new Error("enough")),
      });
      await stopped;
      assertEquals([code, acknowledged, retryable], ["aborted", true, true]);
    });

    maybeIt("says of a tool that does not listen that it has not stopped", async () => {
      const abort = new AbortController();
      const result = await call({ name: "stubborn" }, {
        signal: abort.signal,
        metadata: () => abort.abort(),
      }, { graceMs: 20 });
      assert(!result.ok);
      assertEquals([result.error.code, result.error.acknowledged], ["aborted", false]);
    });

    maybeIt("ends a call at the caller's own limit", async () => {
      const { code, acknowledged } = await failure({ name: "wait" }, { timeoutMs: 500 });
      assertEquals([code, acknowledged], ["timeout", true]);
    });

    maybeIt("gives a failure that the tool has made", async () => {
      const error = await failure({ name: "refuses" });
      const { code, message, retryable, ran } = error;
      assertEquals([code, message, retryable, ran], ["denied", "Not on a Sunday", true, "yes"]);
    });

    maybeIt("passes a result of nearly the largest size", async () => {
      const result = await call({ name: "large", arguments: { length: 500_000 } });
      assertEquals(result.ok && (result.content as string).length, 500_000);
    });

    maybeIt("cuts a result where the tool says so", async () => {
      const result = await call({ name: "cut" });
      assert(result.ok);
      assertEquals(result.truncated, true);
      assert((result.content as string).length <= 1_048_576);
    });

    maybeIt("passes arguments of nearly the largest size", async () => {
      const text = "ü".repeat(500_000);
      const result = await call({ name: "echo", arguments: { text } });
      assertEquals(result.ok && result.content, { text });
    });

    maybeIt("asks for approval at the caller's side, once", async () => {
      assertEquals((await failure({ name: "launch" })).code, "approval_required");
      let count = 0;
      const approve = () => ++count > 0;
      const result = await call({ name: "launch" }, {}, { approve });
      assertEquals([result.ok && result.content, count], ["launched", 1]);
    });

    maybeIt("asks the caller who can answer at once", async () => {
      steps.length = 0;
      const shown: Question[] = [];
      const result = await call({ name: "remove" }, {
        onQuestion(question) {
          shown.push(question);
          const content = question.key === "sure" ? {} : { content: "because" };
          return { action: "accept", ...content };
        },
      });
      assertEquals(result.ok && result.content, { size: 1, why: "because" });
      assertEquals(shown.map(({ key, kind }) => `${key} ${kind}`), ["sure approval", "why input"]);
      assertEquals(steps.length, 1);
    });

    maybeIt("suspends a call that asks, and continues it without repeating its steps", async () => {
      steps.length = 0;
      const dispatcher = await made({ tickets: storedTickets(memoryCallStore()) });
      const first = await dispatcher.dispatch({ name: "remove" }, { principal: "ann" });
      assert(isSuspended(first));
      assertEquals(first.questions.map(({ key, message }) => `${key} ${message}`), [
        "sure Really?",
      ]);
      const ann = { principal: "ann" };
      const second = await dispatcher.resume(first.ticket, { sure: { action: "accept" } }, ann);
      assert(isSuspended(second));
      const answers = { why: { action: "accept", content: "because" } } as const;
      const third = await dispatcher.resume(second.ticket, answers, ann);
      assertEquals(third.ok && third.content, { size: 1, why: "because" });
      assertEquals(steps.length, 1);
    });

    maybeIt("gives a no to the tool", async () => {
      const error = await failure({ name: "remove" }, {
        onQuestion: () => ({ action: "decline" }),
      });
      assertEquals([error.code, error.message], ["denied", "The user said no"]);
    });

    maybeIt("lets a tool do without an answer, where nobody can be asked", async () => {
      const result = await call({ name: "tries" });
      assertEquals(result.ok && result.content, "not asked");
      assertEquals((await failure({ name: "remove" })).code, "input_unavailable");
    });

    maybeIt("keeps blocks as blocks", async () => {
      const result = await call({ name: "picture" });
      assert(result.ok);
      const content = [{ type: "image", data: "AAAA", mimeType: "image/png" }];
      assertEquals([result.blocks, result.content], [true, { content }]);
    });

    maybeIt("runs a call with an idempotency key once", async () => {
      started.length = 0;
      const dispatcher = await made();
      const context = { idempotencyKey: "k", principal: "ann" };
      const run = () => dispatcher.dispatch({ name: "once" }, context);
      const results = await Promise.all(Array.from({ length: 5 }, run));
      assertEquals(results.map((result) => result.ok && result.content), [1, 1, 1, 1, 1]);
    });

    maybeIt("runs many calls at once", async () => {
      const dispatcher = await made({ maxCallsPerBatch: 500 });
      const numbers = Array.from({ length: 500 }, (_, a) => a);
      const results = await dispatcher.dispatchAll(
        numbers.map((a) => ({ name: "m.ath:add", arguments: { a, b: 1 } })),
      );
      assertEquals(results.map((result) => result.ok && result.content), numbers.map((a) => a + 1));
    });
  });
}
