import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Services, ToolCall } from "../../../mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { type FakeTool, fakeTool, fixture, messageOf, outcome } from "./support.ts";

interface Document {
  readonly title: string;
}

/** Answers the title of the document that it is handed. */
const TITLE: FakeTool = {
  name: "title",
  execute: (_, { services }) => (services["app"] as Document | undefined)?.title ?? "none",
};

// "Task<ToolResult> ExecuteAsync(JsonElement input, UIApplication app, CancellationToken ct)": the
// host's own object comes with each call.
describe("the services of one call", () => {
  it("reach the tool, so that one dispatcher serves several documents", async () => {
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [fakeTool(TITLE)] }));
    const titles = await Promise.all(
      ["house", "bridge"].map((title) =>
        dispatcher.dispatch({ name: "title" }, { services: { app: { title } } })
      ),
    );
    assertEquals(titles.map(outcome), ["house", "bridge"]);
    assertEquals(outcome(await dispatcher.dispatch({ name: "title" })), "none");
  });

  it("are laid over the registry's, which stay as they are", async () => {
    const services = { app: { title: "the registry's" }, words: 2 };
    const registry = new ToolRegistry({
      services,
      tools: [fakeTool({ name: "all", execute: (_, context) => ({ ...context.services }) })],
    });
    const dispatcher = new ToolDispatcher(registry);
    const own = { app: { title: "the call's" }, more: true };
    assertEquals(outcome(await dispatcher.dispatch({ name: "all" }, { services: own })), {
      app: { title: "the call's" },
      words: 2,
      more: true,
    });
    assertEquals(outcome(await dispatcher.dispatch({ name: "all" })), services);
  });

  it("leave a service of the registry where they are undefined", async () => {
    const registry = new ToolRegistry({
      services: { db: "the registry's" },
      tools: [fakeTool({ name: "all", execute: (_, context) => ({ ...context.services }) })],
    });
    const dispatcher = new ToolDispatcher(registry);
    const services = { db: undefined, more: 1 };
    assertEquals(outcome(await dispatcher.dispatch({ name: "all" }, { services })), {
      db: "the registry's",
      more: 1,
    });
  });

  it("leave what the registry's services inherit from their class", async () => {
    class HostServices {
      [name: string]: unknown;
      readonly url = "db:1";
      get db(): string {
        return `open ${this.url}`;
      }
      find(id: string): string {
        return `${id} in ${this.url}`;
      }
    }
    const registry = new ToolRegistry({
      services: new HostServices(),
      tools: [fakeTool({
        name: "find",
        execute: (_, { services }) => {
          const { db, app } = services;
          return [db, (services as HostServices).find("a"), app];
        },
      })],
    });
    const dispatcher = new ToolDispatcher(registry);
    assertEquals(outcome(await dispatcher.dispatch({ name: "find" }, { services: { app: 1 } })), [
      "open db:1",
      "a in db:1",
      1,
    ]);
  });

  it("do not become the prototype of what a tool is given", async () => {
    const { call } = fixture([{
      name: "odd",
      execute: (_, { services }) => [services["trusted"] ?? null, Object.keys(services)],
    }]);
    const services = JSON.parse('{ "__proto__": { "trusted": true } }') as Services;
    assertEquals(outcome(await call("odd", {}, { services })), [null, ["__proto__"]]);
  });

  it("are one object for as long as the call lasts", async () => {
    const same: boolean[] = [];
    const { call } = fixture([{
      name: "twice",
      validate: (_, { services }) => void same.push(services["n"] === 1),
      execute(_, context) {
        const { services } = context;
        same.push(services === context.services);
      },
    }]);
    await call("twice", {}, { services: { n: 1 } });
    assertEquals(same, [true, true]);
  });

  // "ExecuteWithTransactionAsync(tool, input, app)"
  it("are told to the transaction manager, with the principal", async () => {
    const told: unknown[] = [];
    const { call } = fixture([{ name: "write", requiresTransaction: true, execute: () => 1 }], {
      transactions: {
        begin: ({ services, principal }) => {
          told.push(services["app"], principal);
          return { id: "tx" };
        },
        commit: () => {},
        rollback: () => {},
      },
    });
    await call("write", {}, { services: { app: "house" }, principal: "ann" });
    assertEquals(told, ["house", "ann"]);
  });

  it("are refused when they are no object", async () => {
    const { call } = fixture([TITLE]);
    for (const services of [[], "app", null]) {
      const result = await call("title", {}, { services: services as unknown as Services });
      assertEquals(outcome(result), "invalid_arguments");
      assertStringIncludes(messageOf(result), `the context's "services" must be an object`);
    }
  });
});

describe("the principal of a call", () => {
  it("reaches the tool", async () => {
    const { call } = fixture([{
      name: "who",
      execute: (_, { principal }) => principal ?? "nobody",
    }]);
    assertEquals(outcome(await call("who", {}, { principal: "ann" })), "ann");
    assertEquals(outcome(await call("who")), "nobody");
  });
});

describe("a field that a call or its context does not have", () => {
  const refusals: readonly (readonly [string, object, object, string])[] = [
    [
      "a key for the context, in the call",
      { idempotencyKey: "k" },
      {},
      '"idempotencyKey" is not one of the call\'s fields: it belongs in the context, the second ' +
      "argument of dispatch()",
    ],
    [
      "a misspelt field of the call",
      { callID: "c" },
      {},
      '"callID" is not one of the call\'s fields: did you mean "callId"?',
    ],
    [
      "a provider's field",
      { type: "function_call" },
      {},
      '"type" is not one of the call\'s fields, name, arguments, callId, decode; decodeCalls() reads what ' +
      "a provider sent",
    ],
    [
      "a namespace without a decoded call around it",
      { namespace: "chain" },
      {},
      '"namespace" is not one of the call\'s fields',
    ],
    [
      "a field of the call, in the context",
      {},
      { callId: "c" },
      '"callId" is not one of the context\'s fields: it belongs in the call, the first argument ' +
      "of dispatch()",
    ],
    [
      "a misspelt field of the context",
      {},
      { idempotencykey: "k" },
      '"idempotencykey" is not one of the context\'s fields: did you mean "idempotencyKey"?',
    ],
    [
      "an object of the host's",
      {},
      { app: {} },
      'output; what is for the tool goes into "services"',
    ],
    ["text for a context", {}, "session-1" as unknown as object, '"0" is not one of the context'],
  ];

  for (const [what, ofCall, context, why] of refusals) {
    it(`is refused, and the tool does not run: ${what}`, async () => {
      let runs = 0;
      const { dispatcher } = fixture([{ name: "count", execute: () => ++runs }]);
      const call: ToolCall = { name: "count", ...ofCall };
      for (
        const result of [
          await dispatcher.dispatch(call, context),
          await dispatcher.dispatch(call, context),
        ]
      ) {
        assertEquals(outcome(result), "invalid_arguments");
        assertStringIncludes(messageOf(result), 'Cannot call "count": ');
        assertStringIncludes(messageOf(result), why);
      }
      assertEquals(runs, 0);
    });
  }

  it("is refused in a stream and in a list of calls, too", async () => {
    const { dispatcher } = fixture([{ name: "a", execute: () => 1 }]);
    const types: unknown[] = [];
    for await (const event of dispatcher.stream({ name: "a" }, { app: 1 } as object)) {
      types.push(event.type === "result" ? outcome(event.result) : event.type);
    }
    assertEquals(types, ["invalid_arguments"]);
    const calls = [{ name: "a", id: "x" }, { name: "a" }];
    assertEquals((await dispatcher.dispatchAll(calls)).map(outcome), ["invalid_arguments", 1]);
  });

  it("is none of those that decodeCalls adds", async () => {
    const { dispatcher } = fixture([{ name: "a", execute: () => 1 }]);
    const decoded = {
      name: "a",
      wireName: "a",
      namespace: "n",
      arguments: {},
      callId: "c",
      raw: {},
      problem: undefined,
    };
    assertEquals(outcome(await dispatcher.dispatch(decoded)), 1);
  });

  it("is none that a prototype has, and all of them are known by their names", async () => {
    const { dispatcher } = fixture([{ name: "a", execute: () => 1 }]);
    const call = Object.assign(Object.create({ inherited: 1 }), { name: "a" });
    const everything = {
      sessionId: undefined,
      messageId: undefined,
      principal: undefined,
      services: undefined,
      signal: undefined,
      timeoutMs: undefined,
      idempotencyKey: undefined,
      maxOutputBytes: undefined,
      outputOverflow: undefined,
      metadata: () => {},
      progress: () => {},
      output: () => {},
    };
    const context = Object.assign(Object.create({ inherited: 1 }), everything);
    assertEquals(outcome(await dispatcher.dispatch(call, context)), 1);
  });
});
