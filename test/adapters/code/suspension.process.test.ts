import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  type DispatchContext,
  isSuspended,
  type SuspendedCall,
  type ToolDefinition,
  ToolDispatcher,
  type ToolDispatcherOptions,
  ToolRegistry,
  type ToolResult,
} from "../../../mod.ts";
import { type CallStore, memoryCallStore, storedTickets } from "../../../src/adapters/calls/mod.ts";
import { codeTool, type CodeToolOptions, type Executor } from "../../../src/adapters/code/mod.ts";
import { sharedExecutor } from "./support.ts";

const ANN: DispatchContext = { principal: "ann", context: { tenant: "acme" } };

/** A service. The processes that `process()` creates share only the stores. */
class Service {
  readonly tickets: CallStore = memoryCallStore();
  readonly paid: string[] = [];
  tools: ToolDefinition[];
  code: Partial<CodeToolOptions>;

  constructor(code: Partial<CodeToolOptions> = {}) {
    this.code = code;
    this.tools = [
      {
        name: "pay",
        description: "Pays.",
        requiresApproval: true,
        parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
        execute: (params) => {
          const { id } = params as { readonly id: string };
          this.paid.push(id);
          return `paid ${id}`;
        },
      },
      {
        name: "list",
        description: "Lists.",
        parameters: { type: "object" },
        execute: () => ["a", "b", "c"],
      },
    ];
  }

  async process(options: ToolDispatcherOptions = {}): Promise<ToolDispatcher> {
    const executor = await sharedExecutor();
    const toolset = codeTool(new ToolRegistry({ tools: this.tools }).select(), {
      executor,
      ...this.code,
    });
    return new ToolDispatcher(toolset, {
      approve: "ask",
      tickets: storedTickets(this.tickets),
      ...options,
    });
  }

  async run(code: string, context: DispatchContext = ANN): Promise<ToolResult> {
    return await (await this.process()).dispatch(
      { name: "run_code", arguments: { code } },
      context,
    );
  }

  async accept({ ticket, questions }: SuspendedCall, context = ANN): Promise<ToolResult> {
    const action = "accept" as const;
    const answers = Object.fromEntries(questions.map(({ key }) => [key, { action }]));
    return await (await this.process()).resume(ticket, answers, context);
  }
}

function waiting(result: ToolResult): SuspendedCall {
  assert(isSuspended(result), JSON.stringify(result));
  return result;
}

function messageOf(result: ToolResult): string {
  assert(!result.ok && !isSuspended(result), JSON.stringify(result));
  return result.error.message;
}

const PAY_ALL = `const ids = await tools.list();
console.log("listed", Date.now());
const done = [];
for (const id of ids) done.push(await tools.pay({ id }));
return done;`;

for (const create of [() => new Service()]) {
  describe("a program that waits for approvals", () => {
    it("continues in another process after each approval, and each call runs once", async () => {
      const service = create();
      let result = await service.run(PAY_ALL);
      for (const id of ["a", "b", "c"]) {
        const suspended = waiting(result);
        assertEquals(suspended.questions[0]?.arguments, { id });
        result = await service.accept(suspended);
        assertStringIncludes(messageOf(await service.accept(suspended)), "was used before");
      }
      assert(result.ok, JSON.stringify(result));
      const { value, log } = result.content as { value: unknown; log: string };
      assertEquals(value, ["paid a", "paid b", "paid c"]);
      assertEquals(log.split("\n").length, 1);
      assertEquals(service.paid, ["a", "b", "c"]);
    });

    it("repeats its calls although their results arrived in another order", async () => {
      const service = create();
      const later = Promise.withResolvers<void>();
      service.tools.push({
        name: "price",
        description: "Returns the price of an item.",
        parameters: { type: "object", properties: { id: { type: "string" } } },
        execute: async (params) => {
          const { id } = params as { readonly id: string };
          if (id === "a") await later.promise;
          return id === "b" ? (later.resolve(), 2) : 1;
        },
      });
      // The calls of "b" come first, because its price arrives first.
      let result = await service.run(`return await Promise.all(["a", "b"].map(async (id) => {
        const price = await tools.price({ id });
        const paid = await tools.pay({ id });
        return [price, paid, await tools.price({ id: paid })];
      }));`);
      result = await service.accept(waiting(result));
      assert(result.ok, JSON.stringify(result));
      assertEquals(result.content, { value: [[1, "paid a", 1], [2, "paid b", 1]] });
    });

    it("shows long arguments of a call to the person who approves it", async () => {
      const service = create();
      const code = "return await tools.pay({ id: 'a'.repeat(20_000) });";
      const suspended = waiting(await service.run(code));
      assertEquals(suspended.questions[0]?.arguments, { id: "a".repeat(20_000) });
      const result = await service.accept(suspended);
      assert(result.ok, JSON.stringify(result));
    });

    it("asks the questions of concurrent calls together", async () => {
      const service = create();
      const code = "return await Promise.all(['x', 'y'].map((id) => tools.pay({ id })));";
      const suspended = waiting(await service.run(code));
      assertEquals(suspended.questions.length, 2);
      const result = await service.accept(suspended);
      assertEquals(result.ok && result.content, { value: ["paid x", "paid y"] });
      assertEquals(service.paid.toSorted(), ["x", "y"]);
    });

    it("asks many questions in several rounds", async () => {
      const service = create();
      const ids = Array.from({ length: 70 }, (_, at) => `id${at}`);
      let result = await service.run(
        `return await Promise.all(${JSON.stringify(ids)}.map((id) => tools.pay({ id })));`,
      );
      const rounds: number[] = [];
      while (isSuspended(result)) {
        rounds.push(result.questions.length);
        result = await service.accept(result);
      }
      assertEquals(result.ok && result.content, { value: ids.map((id) => `paid ${id}`) });
      assertEquals(service.paid.toSorted(), ids.toSorted());
      assertEquals(rounds, [31, 31, 8]);
    });

    it("throws a declined call, and repeats a question without an answer", async () => {
      const service = create();
      const code = 'try { await tools.pay({ id: "x" }); } catch (error) { return error.code; }';
      const first = waiting(await service.run(code));
      const again = waiting(await (await service.process()).resume(first.ticket, {}, ANN));
      const [question] = again.questions;
      const answers = { [question?.key ?? ""]: { action: "decline" } } as const;
      const result = await (await service.process()).resume(again.ticket, answers, ANN);
      assert(result.ok, JSON.stringify(result));
      assertEquals((result.content as { value: unknown }).value, "denied");
      assertEquals(service.paid, []);
    });

    it("applies changes since the suspension: a tool was removed, changed or restricted", async () => {
      const removed = create();
      const first = waiting(await removed.run('await tools.pay({ id: "x" });'));
      removed.tools = removed.tools.slice(1);
      assertStringIncludes(messageOf(await removed.accept(first)), "no such tool");

      const changed = create();
      const second = waiting(await changed.run('await tools.pay({ id: "x" });'));
      changed.tools = changed.tools.map((tool) => ({ ...tool, description: "Pays twice." }));
      assertStringIncludes(messageOf(await changed.accept(second)), "has changed");

      const ruled = create();
      const third = waiting(await ruled.run('await tools.pay({ id: "x" });'));
      const process = await ruled.process({
        validators: [({ tool }) => tool.id === "pay" ? "Never." : undefined],
      });
      const key = third.questions[0]?.key ?? "";
      const result = await process.resume(third.ticket, { [key]: { action: "accept" } }, ANN);
      assertStringIncludes(messageOf(result), "Never.");
      assertEquals([...removed.paid, ...changed.paid, ...ruled.paid], []);
    });

    it("rejects the ticket if the caller's toolset no longer has a called tool", async () => {
      const service = create();
      const code = 'const ids = await tools.list(); await tools.pay({ id: "x" }); return ids;';
      const suspended = waiting(await service.run(code));
      service.tools = service.tools.slice(0, 1);
      const result = await service.accept(suspended);
      assertEquals(!result.ok && result.error.code, "ticket_refused");
      assertEquals(service.paid, []);
    });

    it("can be resumed later while too many other programs run", async () => {
      const service = create();
      const began = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<void>();
      const execute = () => (began.resolve(), answer.promise);
      service.tools.push({ name: "wait", description: "Waits.", execute });
      const suspended = waiting(await service.run('return await tools.pay({ id: "x" });'));
      const executor = await sharedExecutor();
      const limits = { maxProgramsPerPrincipal: 1 };
      const registry = new ToolRegistry({ tools: service.tools });
      const process = new ToolDispatcher(codeTool(registry, { executor, limits }), {
        approve: "ask",
        tickets: storedTickets(service.tickets),
      });
      const running = process.dispatch(
        { name: "run_code", arguments: { code: "await tools.wait();" } },
        ANN,
      );
      await began.promise;
      const answers = { [suspended.questions[0]?.key ?? ""]: { action: "accept" } } as const;
      const refused = await process.resume(suspended.ticket, answers, ANN);
      assert(!refused.ok);
      assertEquals([refused.error.code, refused.error.ran], ["overloaded", "no"]);
      answer.resolve();
      assert((await running).ok);
      assert((await process.resume(suspended.ticket, answers, ANN)).ok);
      assertEquals(service.paid, ["x"]);
    });

    it("rejects another principal and another tenant", async () => {
      const service = create();
      const suspended = waiting(await service.run('await tools.pay({ id: "x" });'));
      const others = [{ ...ANN, principal: "bob" }, { ...ANN, context: { tenant: "other" } }];
      for (const other of others) {
        const result = await service.accept(suspended, other);
        assertEquals(!result.ok && result.error.code, "ticket_refused");
      }
      assertEquals(service.paid, []);
    });
  });
}

describe("a program that runs again", () => {
  it("fails if it does not repeat its calls", async () => {
    const inner = await sharedExecutor();
    let turn = 0;
    const executor: Executor = {
      run: (program) => {
        const source = `await tools.list({ turn: ${turn++} }); ${program.source}`;
        return inner.run({ ...program, source });
      },
    };
    const service = new Service({ executor });
    const suspended = waiting(await service.run('await tools.pay({ id: "x" });'));
    assertStringIncludes(messageOf(await service.accept(suspended)), "did not repeat its calls");
    assertEquals(service.paid, []);
  });

  it("fails if the results of its calls are larger than a ticket allows", async () => {
    const service = new Service();
    service.tools[1] = { name: "list", description: "Lists.", execute: () => "x".repeat(70_000) };
    const message = messageOf(
      await service.run('await tools.list(); await tools.pay({ id: "x" });'),
    );
    assertStringIncludes(message, "65536 bytes");
  });

  it("reports each call as metadata, and repeated calls without times", async () => {
    const service = new Service();
    const seen: unknown[] = [];
    const context: DispatchContext = {
      ...ANN,
      metadata: (value) => {
        const { type, startMs, durationMs, ...rest } = value as Record<string, unknown>;
        if (type === "call") seen.push([rest, typeof startMs, typeof durationMs]);
      },
    };
    const code =
      'await tools.list(); await tools.pay({ id: "x" }); await tools.none().catch(() => 0)';
    const suspended = waiting(await service.run(code, context));
    const [list, pay] = [{ index: 0, tool: "list" }, { index: 1, tool: "pay" }];
    assertEquals(seen.splice(0), [
      [list, "number", "undefined"],
      [{ ...list, outcome: "ok" }, "number", "number"],
      [pay, "number", "undefined"],
      [{ ...pay, outcome: "input_required" }, "number", "undefined"],
    ]);
    assert((await service.accept(suspended, context)).ok);
    const none = { index: 2, tool: "none" };
    const message = 'Cannot call "none": there is no such tool';
    assertEquals(seen, [
      [{ ...list, outcome: "ok" }, "undefined", "undefined"],
      [pay, "number", "undefined"],
      [{ ...pay, outcome: "ok" }, "number", "number"],
      [none, "number", "undefined"],
      [{ ...none, outcome: "unknown_tool", message }, "number", "number"],
    ]);
  });
});
