import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import type { Services } from "../../../mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { type FakeTool, fakeTool, outcome, single } from "./support.ts";

type Document = { readonly title: string };

/** Returns the title of the document in the services of the call. */
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

  it("override the registry's unless they are undefined, and leave them unchanged", async () => {
    const services = { app: { title: "the registry's" }, words: 2 };
    const registry = new ToolRegistry({
      services,
      tools: [fakeTool({ name: "all", execute: (_, context) => ({ ...context.services }) })],
    });
    const dispatcher = new ToolDispatcher(registry);
    const own = { app: { title: "the call's" }, words: undefined, more: true };
    assertEquals(outcome(await dispatcher.dispatch({ name: "all" }, { services: own })), {
      app: { title: "the call's" },
      words: 2,
      more: true,
    });
    assertEquals(outcome(await dispatcher.dispatch({ name: "all" })), services);
  });

  it("retain members that the registry's services inherit from their class", async () => {
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

  it("do not become the prototype of a tool's services", async () => {
    const { call } = single((
      _,
      { services },
    ) => [services["trusted"] ?? null, Object.keys(services)]);
    const services = JSON.parse('{ "__proto__": { "trusted": true } }') as Services;
    assertEquals(outcome(await call({}, { services })), [null, ["__proto__"]]);
  });

  it("are one object for as long as the call lasts", async () => {
    const same: boolean[] = [];
    const { call } = single({
      validate: (_, { services }) => void same.push(services["n"] === 1),
      execute(_, context) {
        const { services } = context;
        same.push(services === context.services);
      },
    });
    await call({}, { services: { n: 1 } });
    assertEquals(same, [true, true]);
  });

  // "ExecuteWithTransactionAsync(tool, input, app)"
  it("are passed to the transaction manager, with the principal", async () => {
    const reports: unknown[] = [];
    const { call } = single({ requiresTransaction: true, execute: () => 1 }, {
      transactions: {
        begin: ({ services, principal }) => {
          reports.push(services["app"], principal);
          return { id: "tx" };
        },
        commit: () => {},
        rollback: () => {},
      },
    });
    await call({}, { services: { app: "house" }, principal: "ann" });
    assertEquals(reports, ["house", "ann"]);
  });
});

describe("the principal of a call", () => {
  it("reaches the tool", async () => {
    const { call } = single((_, { principal }) => principal ?? "nobody");
    assertEquals(outcome(await call({}, { principal: "ann" })), "ann");
    assertEquals(outcome(await call()), "nobody");
  });
});

describe("a field that a call or its context does not have", () => {
  it("is ignored: fields are checked where text is read, and by the compiler", async () => {
    const { dispatcher } = single((_, { callId }) => callId);
    const call = { name: "t", callId: "c", id: "x" };
    assertEquals(outcome(await dispatcher.dispatch(call, { app: 1 } as object)), "c");
  });
});
