import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  buildToolset,
  defineTool,
  isSuspended,
  type Tool,
  ToolDispatcher,
  type ToolDispatcherOptions,
  ToolRegistry,
  type ToolResult,
  type Toolset,
} from "../../../mod.ts";
import { memoryCallStore, storedTickets } from "../../../src/execute/durable/mod.ts";
import { createToolBridge, type ToolBridgeOptions } from "../../../src/finding/mod.ts";

/** The tools that ran, in order. */
const ran: unknown[] = [];

const read = defineTool({
  namespace: "file",
  name: "read",
  description: "Reads a file. Gives its text.",
  risk: "low",
  aliases: ["file:cat"],
  parameters: {
    type: "object",
    properties: { path: { type: "string", maxLength: 40 }, lines: { type: "integer" } },
    required: ["path"],
    additionalProperties: false,
  },
  returns: { type: "string" },
  examples: [{ input: { path: "a.txt" } }],
  execute: ({ path }) => {
    ran.push(path);
    return `text of ${path}`;
  },
});
const erase = defineTool({
  namespace: "file",
  name: "erase",
  description: "Erases a file.",
  risk: "critical",
  requiresApproval: true,
  execute: () => "erased",
});
const mail = defineTool({
  name: "send_mail",
  description: "Sends a mail.",
  risk: "medium",
  roles: ["clerk"],
  execute: () => "sent",
});
const TOOLS = [read, erase, mail] as readonly Tool[];

function bridgeOf(
  toolset: Toolset = new ToolRegistry({ tools: TOOLS }).select(),
  options: ToolBridgeOptions = {},
  dispatch: ToolDispatcherOptions = {},
) {
  const bridge = createToolBridge(toolset, options);
  const dispatcher = new ToolDispatcher(bridge, dispatch);
  const call = (name: string, args: unknown): Promise<ToolResult> =>
    dispatcher.dispatch({ name, arguments: args });
  return { bridge, dispatcher, call };
}

function contentOf(result: ToolResult): unknown {
  return result.ok ? result.content : result.error.message;
}

/** The code and the message of a failure. */
function failureOf(result: ToolResult): readonly unknown[] {
  return result.ok ? ["ok"] : [result.error.code, result.error.message];
}

/** Returns a call of a tool through the bridge. */
function through(name: string, args?: unknown) {
  return { name: "call_tool", arguments: { name, arguments: args } };
}

describe("createToolBridge()", () => {
  it("lists three tools for every toolset", () => {
    const listed = ["call_tool", "describe_tools", "search_tools"];
    const { bridge } = bridgeOf();
    assertEquals(bridge.ids, listed);
    assert(bridge.available() === bridgeOf(buildToolset([])).bridge.available());
  });

  it("lists its own and the visible pinned tools, and skips the others", () => {
    const registry = new ToolRegistry({ tools: TOOLS });
    const pinned = ["file:read", "send_mail", "no_such_tool", "call_tool"];
    const { bridge } = bridgeOf(registry.select({ role: null }), { pinned });
    assertEquals(bridge.ids, ["call_tool", "describe_tools", "file:read", "search_tools"]);
    assert(bridge.available() === bridge.tools);
  });

  it("omits a pinned tool while it is unavailable", () => {
    let isThere = false;
    const tool = defineTool({ name: "pin", description: "Pins.", isAvailable: () => isThere });
    const { bridge } = bridgeOf(buildToolset([tool]), { pinned: ["pin"] });
    assertEquals(bridge.available().map(({ id }) => id).includes("pin"), false);
    isThere = true;
    assertEquals(bridge.available().map(({ id }) => id).includes("pin"), true);
  });

  it("rejects unknown or invalid options", () => {
    const toolset = buildToolset([]);
    for (
      const [options, message] of [
        [{ limit: 0 }, '"/limit" must be a whole number from 1 to 50, not 0'],
        [{ limit: 51 }, '"/limit" must be'],
        [{ detail: "much" }, '"/detail" must be one of full, no-examples, signature'],
        [{ pinned: "read" }, '"/pinned" must be a list'],
        [{ pinned: ["read", "bad id!"] }, '"/pinned/1" must be the id of a tool, not "bad id!"'],
        [null, "the options must be an object"],
        [5, "the options must be an object"],
        [{ native: 1 }, '"/native" must be true or false'],
        [{ pined: [] }, '"/pined" is not one of its fields: did you mean "pinned"?'],
      ] as const
    ) {
      assertThrows(
        () => createToolBridge(toolset, options as ToolBridgeOptions),
        Error,
        `Cannot make a tool bridge: ${message}`,
      );
    }
    assertThrows(
      () => createToolBridge(new ToolRegistry() as unknown as Toolset),
      TypeError,
      "the first argument must be a toolset; create one with registry.select()",
    );
  });

  it("makes another bridge to the same tools from a bridge", async () => {
    const again = createToolBridge(createToolBridge(buildToolset(TOOLS)), { detail: "full" });
    const { call } = bridgeOf(again);
    assertEquals(failureOf(await call("call_tool", { name: "search_tools" }))[0], "unknown_tool");
    const args = { name: "file:read", arguments: { path: "b" } };
    assertEquals(contentOf(await call("call_tool", args)), "text of b");
  });
});

describe("a bridge to a toolset of another copy of plue", () => {
  it("finds, describes and calls", async () => {
    const toolset = new ToolRegistry({ tools: TOOLS }).select({ role: null });
    // A toolset with the same members, which this copy of plue has not created.
    const foreign = new Proxy({}, {
      get: (_, field) => {
        const value: unknown = Reflect.get(toolset, field, toolset);
        return typeof value === "function" ? value.bind(toolset) : value;
      },
    }) as Toolset;
    const { call } = bridgeOf(foreign);
    const args = { name: "file:read", arguments: { path: "far" } };
    assertEquals(contentOf(await call("call_tool", args)), "text of far");
    const found = await call("search_tools", { query: "read a file" });
    assertStringIncludes(JSON.stringify(contentOf(found)), "file:read(");
    const described = contentOf(await call("describe_tools", { names: ["file:read"] }));
    assertStringIncludes(JSON.stringify(described), '"maxLength":40');
  });
});

describe("search_tools", () => {
  it("returns signatures, best first", async () => {
    const { call } = bridgeOf();
    assertEquals(contentOf(await call("search_tools", { query: "read a file" })), {
      tools: [
        "file:read({ path: string; lines?: number }) [lossy]: Reads a file.",
        "file:erase(): Erases a file.",
      ],
    });
  });

  it("reports an empty query, and a query without results", async () => {
    const { call } = bridgeOf();
    for (const query of ["", "  \n"]) {
      assertEquals(contentOf(await call("search_tools", { query })), {
        tools: [],
        message: "The query is empty: say what you want to do",
      });
    }
    assertEquals(contentOf(await call("search_tools", { query: "book a table in Lisbon" })), {
      tools: [],
      message: "No tool fits the query: try other words",
    });
  });

  it("returns at most the limit of the bridge or the model", async () => {
    const tools = Array.from({ length: 60 }, (_, n) => ({ name: `r${n}`, description: "Reads." }));
    const count = async (options: ToolBridgeOptions, limit?: number): Promise<unknown> => {
      const { call } = bridgeOf(new ToolRegistry({ tools }).select(), options);
      const result = await call("search_tools", { query: "read", ...(limit && { limit }) });
      return result.ok ? (result.content as { tools: unknown[] }).tools.length : result.error.code;
    };
    assertEquals(await count({}), 5);
    assertEquals(await count({ limit: 2 }), 2);
    assertEquals(await count({ limit: 2 }, 50), 50);
    assertEquals(await count({}, 51), "invalid_arguments");
  });

  for (const detail of ["no-examples", "full"] as const) {
    it(`returns schemas if the detail is ${detail}`, async () => {
      const { call } = bridgeOf(buildToolset([read as Tool]), { detail });
      assertEquals(contentOf(await call("search_tools", { query: "read" })), {
        tools: [{
          name: "file:read",
          description: "Reads a file. Gives its text.",
          parameters: read.parameters,
          returns: { type: "string" },
          ...(detail === "full" && { examples: [{ input: { path: "a.txt" } }] }),
        }],
      });
    });
  }

  it("queries the index of the registry, even an asynchronous one", async () => {
    const registry = new ToolRegistry({
      tools: TOOLS,
      index: () => ({
        add() {},
        remove() {},
        search: (query: string) => Promise.resolve([{ id: query, score: 1 }]),
      }),
    });
    const { call } = bridgeOf(registry.select({ role: null }));
    assertEquals(contentOf(await call("search_tools", { query: "file:erase" })), {
      tools: ["file:erase(): Erases a file."],
    });
    // The index contains all tools, so it may return tools that this caller must not see.
    assertEquals(contentOf(await call("search_tools", { query: "send_mail" })), {
      tools: [],
      message: "No tool fits the query: try other words",
    });
  });
});

describe("describe_tools", () => {
  it("returns the schema of each tool once, and the unknown names", async () => {
    const names = ["file:read", "file:cat", "file:reed", "nothing"];
    const { call } = bridgeOf();
    const content = contentOf(await call("describe_tools", { names })) as {
      readonly tools: readonly { readonly name: string; readonly parameters: unknown }[];
      readonly missing: readonly string[];
    };
    assertEquals(content.tools.map(({ name }) => name), ["file:read"]);
    assertEquals(content.tools[0]?.parameters, read.parameters);
    assertEquals(content.missing, [
      'There is no tool "file:reed". Did you mean "file:read"?',
      'There is no tool "nothing"',
    ]);
  });

  it("reports an unavailable tool", async () => {
    const tool = defineTool({ name: "later", description: "Later.", isAvailable: () => false });
    const { call } = bridgeOf(buildToolset([tool]));
    assertEquals(contentOf(await call("describe_tools", { names: ["later"] })), {
      tools: [],
      missing: ['Tool "later" is not available now'],
    });
    assertEquals(failureOf(await call("call_tool", { name: "later" })), [
      "unavailable",
      'Cannot call "later": the tool is not available now',
    ]);
  });
});

describe("call_tool", () => {
  it("calls a tool by its id or an alias, with arguments as an object or as text", async () => {
    const { call } = bridgeOf();
    for (
      const args of [
        { name: "file:read", arguments: { path: "a" } },
        { name: "file:cat", arguments: { path: "a" } },
        '{"name":"file:read","arguments":{"path":"a"}}',
        { name: "file:read", arguments: '{"path":"a"}' },
      ]
    ) assertEquals(contentOf(await call("call_tool", args)), "text of a");
  });

  it("returns the tool's failure, under the tool's name", async () => {
    const { call } = bridgeOf();
    for (const wrong of [{ path: 1 }, {}, null, undefined]) {
      const args = { name: "file:read", arguments: wrong };
      const [code, message] = failureOf(await call("call_tool", args));
      assertEquals(code, "invalid_arguments");
      assertStringIncludes(String(message), 'Cannot call "file:read": its arguments do not fit');
    }
  });

  it("suggests names for an unknown name", async () => {
    const { call } = bridgeOf();
    assertEquals(failureOf(await call("call_tool", { name: "file:reed" })), [
      "unknown_tool",
      'Cannot call "file:reed": there is no such tool. Did you mean "file:read"?',
    ]);
  });

  it("rejects invalid arguments of its own, and runs nothing", async () => {
    const { call, dispatcher } = bridgeOf(undefined, {}, { maxArgumentBytes: 200 });
    ran.length = 0;
    const hostile = Object.defineProperty({}, "name", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
    for (
      const args of [
        {},
        "{",
        "[]",
        [],
        { name: 1 },
        // Arguments outside of "arguments" must not be lost.
        { name: "file:read", path: "a" },
        { name: "file:read", arguments: { path: "a" }, path: "a" },
        { name: "file:read", arguments: ["a"] },
        { name: "file:read", arguments: { path: "a".repeat(300) } },
        JSON.stringify({ name: "file:read", arguments: { path: "a", x: "x".repeat(300) } }),
        hostile,
      ]
    ) {
      const [code] = failureOf(await call("call_tool", args));
      assertEquals(code, "invalid_arguments", String(JSON.stringify(Object.keys(args))));
    }
    assertEquals(ran, []);
    assertEquals(dispatcher.metrics().unknownTool, 0);
  });

  it("does not call the bridge's own tools", async () => {
    const { call } = bridgeOf();
    for (const name of ["call_tool", "search_tools", "describe_tools"]) {
      const args = { name, arguments: { name: "file:read", query: "x", names: ["file:read"] } };
      assertEquals(failureOf(await call("call_tool", args)), [
        "unknown_tool",
        `Cannot call "${name}": there is no such tool`,
      ]);
    }
  });

  it("calls a bridged tool with the id of one of the bridge's tools", async () => {
    const twin = { name: "search_tools", description: "Searches a toolbox.", execute: () => "box" };
    const { bridge, call } = bridgeOf(new ToolRegistry({ tools: [twin] }).select(), {
      pinned: ["search_tools"],
    });
    assertEquals(bridge.size, 3);
    assertEquals(contentOf(await call("search_tools", { query: "toolbox" })), {
      tools: ["search_tools(): Searches a toolbox."],
    });
    assertEquals(contentOf(await call("call_tool", { name: "search_tools" })), "box");
  });
});

describe("a tool that is hidden from a caller", () => {
  it("is neither found, described nor called, and has the result of an unknown tool", async () => {
    const registry = new ToolRegistry({ tools: TOOLS });
    const without = bridgeOf(new ToolRegistry({ tools: [read as Tool] }).select());
    for (
      const { call } of [
        bridgeOf(registry.select({ role: null, maxRisk: "medium" })),
        bridgeOf(createToolBridge(registry.select()).narrow({ role: null, maxRisk: "medium" })),
        bridgeOf(buildToolset(createToolBridge(registry.select()), { role: null, maxRisk: "low" })),
      ]
    ) {
      for (const id of ["file:erase", "send_mail"]) {
        const calls = [
          ["search_tools", { query: id }],
          ["search_tools", { query: "erase a file, then send a mail" }],
          ["describe_tools", { names: [id, `${id}s`] }],
          ["call_tool", { name: id }],
          ["call_tool", { name: `${id}s` }],
          [id, {}],
        ] as const;
        for (const [name, args] of calls) {
          const seen = contentOf(await call(name, args));
          assertEquals(seen, contentOf(await without.call(name, args)), name);
        }
        assertEquals(failureOf(await call("call_tool", { name: id }))[0], "unknown_tool");
      }
    }
  });

  it("is explained to the operator", () => {
    const { bridge } = bridgeOf(new ToolRegistry({ tools: TOOLS }).select({ maxRisk: "low" }));
    assertEquals(bridge.explain("file:erase").removedBy, "risk");
    assertEquals(bridge.explain("call_tool").available, true);
  });
});

describe("a call through the bridge", () => {
  it("calls the approver of the tool", async () => {
    assertEquals(failureOf(await bridgeOf().call("call_tool", { name: "file:erase" })), [
      "approval_required",
      'Cannot call "file:erase": it needs approval, and the option approve is not set',
    ]);
    const queries: unknown[] = [];
    const { call } = bridgeOf(undefined, {}, {
      approve: ({ tool, arguments: args }) => {
        queries.push([tool.id, args]);
        return queries.length > 1;
      },
    });
    const args = { name: "file:erase", arguments: {} };
    assertEquals(failureOf(await call("call_tool", args))[0], "denied");
    assertEquals(contentOf(await call("call_tool", args)), "erased");
    assertEquals(queries, [["file:erase", {}], ["file:erase", {}]]);
  });

  it("waits for an answer, and resumes with its ticket", async () => {
    const { call, dispatcher } = bridgeOf(undefined, {}, {
      approve: "ask",
      tickets: storedTickets(memoryCallStore()),
    });
    const args = { name: "file:erase", arguments: {} };
    const answers = { "plue:approval": { action: "accept" } } as const;
    const ticketOf = async (): Promise<string> => {
      const waiting = await call("call_tool", args);
      assert(isSuspended(waiting));
      assertEquals(waiting.questions[0]?.message, 'Run the tool "file:erase"?');
      return waiting.ticket;
    };
    assertEquals(contentOf(await dispatcher.resume(await ticketOf(), answers)), "erased");
    const again = { ticket: await ticketOf(), answers, name: "call_tool" };
    const other = { name: "file:read", arguments: { path: "a" } };
    const refused = await dispatcher.dispatch({ ...again, arguments: other });
    assertEquals(failureOf(refused)[0], "ticket_refused");
    assertEquals(contentOf(await dispatcher.dispatch({ ...again, arguments: args })), "erased");
  });

  it("is counted once, for the tool", async () => {
    const { call, dispatcher } = bridgeOf();
    await call("call_tool", { name: "file:read", arguments: { path: "a" } });
    await call("call_tool", { name: "file:cat", arguments: { path: "a" } });
    await call("call_tool", { name: "file:read", arguments: {} });
    await call("call_tool", { name: "none" });
    const { tools, calls, unknownTool } = dispatcher.metrics();
    assertEquals(tools.map(({ id, calls, failed, aliased }) => [id, calls, failed, aliased]), [
      ["file:read", 3, 1, 1],
    ]);
    assertEquals([calls, unknownTool], [4, 1]);
  });

  it("shares idempotency keys with direct calls of the tool", async () => {
    const { dispatcher } = bridgeOf();
    ran.length = 0;
    const context = { idempotencyKey: "k", principal: "p" };
    const args = { path: "once" };
    const direct = { name: "file:read", arguments: args };
    const replayed: unknown[] = [];
    for (const call of [through("file:read", args), direct, through("file:read", args)]) {
      replayed.push((await dispatcher.dispatch(call, context)).replayed ?? false);
    }
    assertEquals(replayed, [false, true, true]);
    assertEquals(ran, ["once"]);
    const conflict = await dispatcher.dispatch(through("file:read", { path: "other" }), context);
    const [, message] = failureOf(conflict);
    assertStringIncludes(String(message), 'Cannot call "file:read": its idempotency');
  });

  it("uses a slot of the target tool, but no slot of the bridge's tools", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => release = resolve);
    const hold = defineTool({ name: "hold", description: "Holds.", execute: () => held });
    const { dispatcher } = bridgeOf(buildToolset([hold as Tool]), {}, {
      limits: { maxConcurrentPerTool: 1, maxQueued: 0 },
    });
    const first = dispatcher.dispatch(through("hold"));
    assertEquals(failureOf(await dispatcher.dispatch({ name: "hold" }))[0], "overloaded");
    assertEquals(failureOf(await dispatcher.dispatch(through("hold"))), [
      "overloaded",
      'Cannot call "hold": too many calls are running and waiting; try again later',
    ]);
    // The limit of `hold` does not apply to the bridge's own tools.
    const describe = { name: "describe_tools", arguments: { names: ["hold"] } };
    assertEquals((await dispatcher.dispatch(describe)).ok, true);
    release();
    assertEquals((await first).ok, true);
  });

  it("has the tool's hooks, rules, transaction, services and state", async () => {
    const seen: unknown[] = [];
    const registry = new ToolRegistry({
      services: { log: (value: unknown) => seen.push(value) },
      tools: [defineTool({
        name: "store",
        description: "Stores.",
        requiresTransaction: true,
        init: () => "state",
        validate: (params) => JSON.stringify(params) === "{}" ? undefined : "only {}",
        execute: (_, { services, state, transaction, callId }) => {
          (services["log"] as (value: unknown) => void)([state, transaction, callId]);
          return "stored";
        },
      }) as Tool],
    });
    const dispatcher = new ToolDispatcher(registry, {
      hooks: {
        before: ({ tool }) => void seen.push(`before ${tool.id}`),
        after: ({ tool }) => void seen.push(`after ${tool.id}`),
      },
      transactions: {
        begin: ({ tool }) => ({ id: tool.id }),
        commit: () => void seen.push("commit"),
        rollback: () => void seen.push("rollback"),
      },
    }).withToolset(createToolBridge(registry.select()));
    const result = await dispatcher.dispatch({ ...through("store"), callId: "c1" });
    assertEquals(contentOf(result), "stored");
    const state = ["state", { id: "store" }, "c1"];
    assertEquals(seen, ["before store", state, "commit", "after store"]);
    const refused = await dispatcher.dispatch(through("store", { x: 1 }));
    assertStringIncludes(String(failureOf(refused)[1]), 'Cannot call "store"');
  });

  it("streams the tool's output, and reports failures under the tool's name", async () => {
    const count = defineTool({
      name: "count",
      description: "Counts.",
      async *execute() {
        yield 1;
        yield 2;
        return "done";
      },
    });
    const { dispatcher } = bridgeOf(buildToolset([count as Tool]));
    const events: unknown[] = [];
    for await (const event of dispatcher.stream(through("count"))) {
      events.push(event.type === "output" ? event.value : event.type);
    }
    assertEquals(events, [1, 2, "result"]);
    const seen: unknown[] = [];
    await dispatcher.dispatch(through("cuont"), {
      metadata: (value) => seen.push((value as { tool: string }).tool),
    });
    assertEquals(seen, ["cuont"]);
  });

  it("is one of several concurrent calls, in order", async () => {
    const { dispatcher } = bridgeOf();
    const results = await dispatcher.dispatchAll([
      through("file:read", { path: "a" }),
      { name: "search_tools", arguments: { query: "mail" } },
      { name: "file:read", arguments: { path: "b" } },
    ]);
    assertEquals(results.map(contentOf), [
      "text of a",
      { tools: ["send_mail(): Sends a mail."] },
      "text of b",
    ]);
  });

  it("fails when the tool was removed after the bridge was made", async () => {
    const registry = new ToolRegistry({ tools: TOOLS });
    const { call } = bridgeOf(registry.select());
    registry.unregisterTool("file:read");
    const args = { name: "file:read", arguments: { path: "a" } };
    assertEquals(failureOf(await call("call_tool", args))[0], "unavailable");
    const found = contentOf(await call("search_tools", { query: "read a file" }));
    assertEquals(JSON.stringify(found).includes("file:read"), false);
  });
});
