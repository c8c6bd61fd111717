import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  defineTool,
  isSuspended,
  type SuspendedCall,
  type ToolDefinition,
  ToolDispatcher,
  type ToolDispatcherOptions,
  ToolRegistry,
  type ToolResult,
} from "../../../mod.ts";
import { exportTools } from "../../../src/formats/mod.ts";
import { codeTool, type CodeToolOptions, type Executor } from "../../../src/adapters/code/mod.ts";
import { deny, rules } from "../../../src/adapters/rules/mod.ts";
import { memoryCallStore, storedTickets } from "../../../src/execute/durable/mod.ts";
import type { Layer } from "../../../src/execute/mod.ts";
import { deferred, FakeClock } from "../../support/waiting.ts";
import { sharedExecutor } from "./support.ts";

const TOOLS = [
  defineTool({
    namespace: "crm",
    name: "invoices",
    description: "Lists the open invoices.",
    execute: () => Array.from({ length: 400 }, (_, at) => ({ id: `i${at}`, euros: at })),
  }),
  defineTool({
    namespace: "bank",
    name: "pay",
    description: "Pays an invoice.",
    parameters: {
      type: "object",
      properties: { id: { type: "string" } },
      required: ["id"],
      additionalProperties: false,
    },
    execute: ({ id }) => `paid ${id}`,
  }),
  defineTool({ name: "secret", description: "Is hidden.", roles: ["boss"], execute: () => 1 }),
  defineTool({
    name: "who",
    description: "Returns its caller.",
    execute: (_, { principal, sessionId, messageId, callId, services }) => ({
      ...{ principal, sessionId, messageId, callId, service: services["a"] },
    }),
  }),
] as readonly unknown[] as readonly ToolDefinition[];

async function dispatcherOf(
  tools: readonly unknown[] = TOOLS,
  options: ToolDispatcherOptions = {},
  code: Partial<CodeToolOptions> = {},
): Promise<ToolDispatcher> {
  const registry = new ToolRegistry({ tools: tools as ToolDefinition[] });
  const toolset = registry.select({ role: "clerk" });
  const executor = await sharedExecutor();
  return new ToolDispatcher(codeTool(toolset, { executor, ...code }), options);
}

const callOf = (code: string) => ({ name: "run_code", arguments: { code } });

function contentOf(result: ToolResult): unknown {
  assert(result.ok, JSON.stringify(result));
  return result.content;
}

function messageOf(result: ToolResult): string {
  assert(!result.ok);
  return result.error.message;
}

describe("codeTool()", () => {
  it("lists two tools, which export to every target like other tools", async () => {
    const { toolset } = await dispatcherOf();
    assertEquals(toolset.ids, ["run_code", "search_tools"]);
    for (const target of ["openai.strict", "anthropic", "mcp@2025-11-25"] as const) {
      const { tools, rejected } = exportTools(toolset, target);
      assertEquals([tools.length, rejected.length], [2, 0]);
    }
  });

  it("finds tools as functions of a program, and never hidden ones", async () => {
    const dispatcher = await dispatcherOf();
    const find = async (query: string) =>
      JSON.stringify(
        contentOf(await dispatcher.dispatch({ name: "search_tools", arguments: { query } })),
      );
    assertStringIncludes(await find("pay an invoice"), "tools.bank.pay({ id: string })");
    assert(!(await find("hidden secret")).includes("secret("));
  });

  it("returns the value of a program, and no other results of its calls", async () => {
    const code = "return (await tools.crm.invoices()).filter(({ euros }) => euros > 398);";
    const result = await (await dispatcherOf()).dispatch(callOf(code));
    assertEquals(contentOf(result), { value: [{ id: "i399", euros: 399 }] });
  });

  it("returns the log and the failed calls, whose arguments were validated", async () => {
    const code = 'console.log("one"); console.log(2);' +
      "try { await tools.bank.pay({ id: 5 }); } catch { return 1; }";
    const result = await (await dispatcherOf()).dispatch(callOf(code));
    const { value, log, failures } = contentOf(result) as {
      value: number;
      log: string;
      failures: readonly { tool: string; code: string; message: string }[];
    };
    assertEquals([value, log], [1, "one\n2"]);
    assertEquals(failures.map(({ tool, code }) => [tool, code]), [[
      "bank:pay",
      "invalid_arguments",
    ]]);
    assertStringIncludes(failures[0]?.message ?? "", "must be a string");
  });

  it("fails with the line, the failed calls and the log of a program that throws", async () => {
    const code = 'console.log("seen");\nawait tools.secret();';
    const message = messageOf(await (await dispatcherOf()).dispatch(callOf(code)));
    for (const part of ["threw", "there is no such tool", "secret (unknown_tool)", "Log:\nseen"]) {
      assertStringIncludes(message, part);
    }
  });

  it("calls tools as the caller of run_code, with its ids and services", async () => {
    const context = { principal: "ann", sessionId: "s", messageId: "m", services: { a: 5 } };
    const call = { ...callOf("return await tools.who();"), callId: "c" };
    const result = await (await dispatcherOf()).dispatch(call, context);
    const { services: _, ...ids } = context;
    assertEquals(contentOf(result), { value: { ...ids, callId: "c.0", service: 5 } });
  });

  it("applies the rules and hooks of its dispatcher to each call of a program", async () => {
    const seen: string[] = [];
    const dispatcher = await dispatcherOf(TOOLS, {
      rules: rules([{
        name: "pause",
        decide: ({ tool }) => tool.id === "bank:pay" ? deny("Not today.") : "allow",
      }]),
      hooks: { before: ({ tool }) => void seen.push(tool.id) },
    });
    const code = 'try { await tools.bank.pay({ id: "a" }); } catch (error) { return error.code; }';
    const result = await dispatcher.dispatch(callOf(code));
    assertEquals((contentOf(result) as { value: unknown }).value, "denied");
    assertEquals(seen, ["run_code", "bank:pay"]);
  });

  it("runs with a limit of one concurrent call, because run_code itself uses no slot", async () => {
    const dispatcher = await dispatcherOf(TOOLS, { limits: { maxConcurrent: 1 } });
    const code = "return (await Promise.all([tools.who(), tools.who()])).length;";
    assertEquals(contentOf(await dispatcher.dispatch(callOf(code))), { value: 2 });
  });

  it("limits the number of concurrent calls of a program", async () => {
    let running = 0;
    let most = 0;
    const slow = defineTool({
      name: "slow",
      description: "Waits.",
      async execute() {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 0));
        running--;
      },
    });
    const dispatcher = await dispatcherOf([slow], {}, { limits: { maxConcurrentCalls: 2 } });
    const code = "await Promise.all([1, 2, 3, 4, 5].map(() => tools.slow()));";
    contentOf(await dispatcher.dispatch(callOf(code)));
    assertEquals(most, 2);
  });

  it("waits for calls that the program has not awaited", async () => {
    const ended: number[] = [];
    const late = defineTool({
      name: "late",
      description: "Ends later.",
      async execute() {
        await new Promise((resolve) => setTimeout(resolve, 0));
        ended.push(1);
      },
    });
    contentOf(await (await dispatcherOf([late])).dispatch(callOf("tools.late(); return 1;")));
    assertEquals(ended, [1]);
  });

  it("waits for the calls of a program that exceeded a limit, and reports their failures", async () => {
    const stopped = Promise.withResolvers<void>();
    const late = defineTool({
      name: "late",
      description: "Fails later.",
      execute: () => stopped.promise.then(() => Promise.reject(new Error("Failed later."))),
    });
    const inner = await sharedExecutor();
    const executor: Executor = {
      run: (program) => inner.run(program).finally(() => setTimeout(stopped.resolve, 0)),
    };
    const dispatcher = await dispatcherOf([late, ...TOOLS], {}, {
      executor,
      limits: { cpuMs: 50 },
    });
    const result = await dispatcher.dispatch(
      callOf("tools.late(); await tools.who(); for (;;) {}"),
    );
    assertStringIncludes(messageOf(result), "processor time");
    assertStringIncludes(messageOf(result), "Failed later.");
  });

  it("ends the calls of a program whose executor fails, and begins no others", async () => {
    const opened = Promise.withResolvers<void>();
    const events: string[] = [];
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      async execute() {
        events.push("began");
        await opened.promise;
        events.push("ended");
      },
    });
    const executor: Executor = {
      async run({ call }) {
        for (const index of [0, 1]) void call({ index, id: "wait", json: "{}" });
        await new Promise((resolve) => setTimeout(resolve, 0));
        setTimeout(opened.resolve, 0);
        throw new Error("Broken.");
      },
    };
    const limits = { maxConcurrentCalls: 1 };
    const dispatcher = await dispatcherOf([wait], {}, { executor, limits });
    assertStringIncludes(messageOf(await dispatcher.dispatch(callOf(""))), "Broken.");
    events.push("run_code ended");
    await new Promise((resolve) => setTimeout(resolve, 0));
    assertEquals(events, ["began", "ended", "run_code ended"]);
  });

  it("assigns a separate id to each call of a program, even if the program's id is long", async () => {
    const dispatcher = await dispatcherOf();
    const code = "return [await tools.who(), await tools.who()].map(({ callId }) => callId);";
    const result = await dispatcher.dispatch({ ...callOf(code), callId: "c".repeat(256) });
    const value = ["0", "1"].map((index) => `${"c".repeat(250)}.${index}`);
    assertEquals(contentOf(result), { value });
  });

  it("fails programs beyond the quota of their principal, but not programs of others", async () => {
    const gates: (() => void)[] = [];
    const hold = defineTool({
      name: "hold",
      description: "Waits.",
      execute: () => new Promise<void>((resolve) => gates.push(resolve)),
    });
    const began = Promise.withResolvers<void>();
    const hooks = {
      before: ({ tool }: { tool: { id: string } }) =>
        tool.id === "hold" ? began.resolve() : undefined,
    };
    const dispatcher = await dispatcherOf([hold], { hooks } as ToolDispatcherOptions, {
      limits: { maxProgramsPerPrincipal: 1 },
    });
    const first = dispatcher.dispatch(callOf("await tools.hold();"), { principal: "ann" });
    await began.promise;
    const second = await dispatcher.dispatch(callOf("return 1;"), { principal: "ann" });
    assertStringIncludes(messageOf(second), "too many programs of this caller");
    const other = await dispatcher.dispatch(callOf("return 1;"), { principal: "bob" });
    assertEquals(contentOf(other), { value: 1 });
    while (gates.length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    gates.forEach((open) => open());
    contentOf(await first);
    contentOf(await dispatcher.dispatch(callOf("return 1;"), { principal: "ann" }));
  });

  it("rejects a source that is too long", async () => {
    const dispatcher = await dispatcherOf(TOOLS, {}, { limits: { maxSourceLength: 9 } });
    const result = await dispatcher.dispatch(callOf("return 1; "));
    assertEquals(!result.ok && result.error.code, "invalid_arguments");
  });

  it("ends a program and its calls after its time", async () => {
    const signals: AbortSignal[] = [];
    const never = defineTool({
      name: "never",
      description: "Never ends.",
      execute: (_, { signal }) => {
        signals.push(signal);
        return new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason))
        );
      },
    });
    const dispatcher = await dispatcherOf([never], {}, { limits: { timeoutMs: 200 } });
    const result = await dispatcher.dispatch(callOf("await tools.never();"));
    assertEquals(!result.ok && result.error.code, "timeout");
    assertEquals(signals.map(({ aborted }) => aborted), [true]);
  });

  it("asks a caller that can answer, and continues without suspending", async () => {
    const pay = { ...TOOLS[1], requiresApproval: true } as ToolDefinition;
    const dispatcher = await dispatcherOf([pay], { approve: "ask" });
    const messages: string[] = [];
    const result = await dispatcher.dispatch(callOf('return await tools.bank.pay({ id: "a" });'), {
      onQuestion: ({ message, arguments: args }) => {
        messages.push(`${message} ${JSON.stringify(args)}`);
        return { action: "accept" };
      },
    });
    assertEquals(contentOf(result), { value: "paid a" });
    assertEquals(messages, ['Run the tool "bank:pay"? {"id":"a"}']);
    const refused = await dispatcher.dispatch(callOf('return await tools.bank.pay({ id: "a" });'));
    assert(!isSuspended(refused));
    assertStringIncludes(messageOf(refused), "approval_required");
  });

  it("does not count the time in which a person gives a permission", async () => {
    const url = "https://hub.example/authorize";
    for (const waits of [false, true]) {
      const [began, permitted] = [deferred(), deferred()];
      const permission: Layer = {
        name: "permission",
        stage: "run",
        for: (tool) =>
          tool.callsTools ? undefined : async (call, next) => {
            const question = {
              kind: "authorization",
              message: "Allow?",
              url,
              resumes: true,
            } as const;
            await call.context.ask("permission", question);
            began.resolve();
            await call.wait("waiting for a person", permitted.promise, 1_000_000);
            return await next(call);
          },
      };
      const clock = new FakeClock();
      const tickets = storedTickets(memoryCallStore());
      const dispatcher = await dispatcherOf(TOOLS, { clock, layers: [permission], tickets });
      const call = callOf('return await tools.bank.pay({ id: "a" });');
      const accept = { action: "accept" } as const;
      let result = dispatcher.dispatch(call, waits ? {} : { onQuestion: () => accept });
      if (waits) {
        const { ticket, questions: [question] } = await result as SuspendedCall;
        result = dispatcher.resume(ticket, { [question?.key ?? ""]: accept });
      }
      await began.promise;
      clock.advance(100_000);
      permitted.resolve();
      assertEquals(contentOf(await result), { value: "paid a" });
    }
  });

  it("extends an idempotency key by the number of the call", async () => {
    let runs = 0;
    const count = defineTool({ name: "count", description: "Counts.", execute: () => ++runs });
    const dispatcher = await dispatcherOf([count]);
    const call = callOf("return [await tools.count(), await tools.count()];");
    for (const idempotencyKey of ["k", "k".repeat(256)]) {
      runs = 0;
      const run = () => dispatcher.dispatch(call, { principal: "ann", idempotencyKey });
      assertEquals([await run(), await run()].map(contentOf), Array(2).fill({ value: [1, 2] }));
      assertEquals(runs, 2);
    }
  });

  it("rejects unknown and invalid options", async () => {
    const executor = await sharedExecutor();
    const registry = new ToolRegistry();
    const make = (options: unknown) => () => codeTool(registry, options as CodeToolOptions);
    assertThrows(make({}), TypeError, "executor");
    assertThrows(make({ executor: {} as Executor }), TypeError, "executor");
    assertThrows(make({ executor, limit: {} }), TypeError, "/limit");
    assertThrows(make({ executor, limits: { cpu: 1 } }), TypeError, "cpu");
    assertThrows(make({ executor, limits: { maxCalls: -1 } }), RangeError, "maxCalls");
    assertThrows(() => codeTool({} as never, { executor }), TypeError, "registry");
  });
});
