import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "@plue/tools";
import { callTasks, memoryCallStore, type TaskState } from "@plue/tools/calls";
import { createToolBridge } from "@plue/tools/finding";
import { exportTools } from "@plue/tools/formats";
import { createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { opaPolicy } from "@plue/tools/policies";
import { HostTools } from "../../src/adapters/native/host_tools.ts";
import { operate, OPERATION } from "../../src/adapters/native/host_tools.ts";

/** The data on which the functions of a selection depend. A running service changes the data. */
type State = { isOpen: boolean; revision: number };

const SELECTIONS: { readonly [kind: string]: (state: State) => plue.Selection } = {
  "a policy": (state) => ({ policies: [{ name: "hours", allow: () => state.isOpen }] }),
  "a policy that then throws": (state) => ({
    policies: [{
      allow() {
        if (state.isOpen) return true;
        throw new Error("The database is down");
      },
    }],
  }),
  "a policy with a revision": (state) => ({
    policies: [{ allow: () => state.isOpen, revision: () => state.revision }],
  }),
  "an OPA program with new data": (state) => ({
    policies: [opaPolicy({ evaluate: () => [{ result: state.isOpen }] })],
  }),
  "a filter": (state) => ({ filters: [() => state.isOpen] }),
  "a named filter": (state) => ({ filters: [plue.namedFilter("hours", () => state.isOpen)] }),
  "approval of a policy": (state) => ({
    policies: [{ allow: () => true, requiresApproval: () => !state.isOpen }],
  }),
};

function post(path: string, body: unknown): Request {
  return new Request(`http://localhost${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify(body),
  });
}

/** Returns the ways to call the tool. Each resolves to true if the tool ran. */
function waysIn(selection: plue.Selection): { readonly [name: string]: () => Promise<boolean> } {
  const registry = new plue.ToolRegistry({
    tools: [plue.defineTool({ name: "t", description: "Runs.", execute: () => "it ran" })],
  });
  const dispatcher = (): plue.ToolDispatcher =>
    new plue.ToolDispatcher(registry, { approve: () => false });
  const overHttp = (
    options: ToolHandlerOptions,
    source: plue.ToolRegistry | plue.Toolset = registry,
  ) => {
    const app = createToolHandler(source, { ...options, dispatcher: dispatcher() });
    return async (): Promise<boolean> => {
      const response = await app.fetch(post("/tools/t/execute", {}));
      return (await response.text()).includes("it ran");
    };
  };
  const overMcp = (options: ToolHandlerOptions) => {
    const mcp = createMcpEndpoint(registry, { ...options, dispatcher: dispatcher() });
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "t" } };
    return async (): Promise<boolean> =>
      (await (await mcp.fetch(post("/mcp", call))).text()).includes("it ran");
  };
  const held = registry.select(selection);
  const dispatched = (toolset: plue.Toolset) => {
    const own = dispatcher().withToolset(toolset);
    return async (): Promise<boolean> => (await own.dispatch({ name: "t" })).ok;
  };
  const tasks = callTasks({ store: memoryCallStore() });
  const host = new HostTools(
    { registry, dispatcher: dispatcher(), selection, tasks },
    { selection: {}, config: undefined },
    () => {},
    () => () => {},
    () => 0,
  );
  const authorize = () => ({ principal: "ann" });
  return {
    "HTTP": overHttp({ openExecution: true, selection }),
    "HTTP with authorize": overHttp({ authorize, selection }),
    "HTTP over a toolset that is held": overHttp({ openExecution: true }, held),
    "MCP": overMcp({ openExecution: true, selection }),
    "MCP with authorize": overMcp({ authorize, selection }),
    "a task of a native host": async () => {
      const started = await operate(host, OPERATION.startTask, "t", "{}", {});
      const state = "ok" in started && started.ok ? started.content as TaskState : undefined;
      let last: TaskState | undefined;
      if (state !== undefined) { for await (last of tasks.follow(state.id)) continue; }
      return last?.status === "completed" && last.result?.ok === true;
    },
    "the dispatcher of a native host": async () =>
      (await host.dispatcher.dispatch({ name: "t" })).ok,
    "a dispatcher": dispatched(held),
    "a dispatcher of a narrower toolset": dispatched(held.narrow({ maxRisk: "high" })),
    "a dispatcher of a bridge": dispatched(createToolBridge(held)),
    "a dispatcher of a list": dispatched(plue.buildToolset(registry.tools, selection)),
  };
}

describe("a selection whose functions change their results", () => {
  for (const [kind, make] of Object.entries(SELECTIONS)) {
    const probe = waysIn(make({ isOpen: true, revision: 0 }));
    for (const way of Object.keys(probe)) {
      it(`stops and allows calls by ${kind}, through ${way}`, async () => {
        const state = { isOpen: true, revision: 0 };
        const call = waysIn(make(state))[way] as () => Promise<boolean>;
        const ran = [await call()];
        for (const isOpen of [false, true, false]) {
          state.isOpen = isOpen;
          state.revision++;
          ran.push(await call());
        }
        assertEquals(ran, [true, false, true, false]);
      });
    }
  }

  it("changes what is listed, described, exported and explained", async () => {
    const state = { isOpen: true };
    const policies = [{ name: "hours", allow: () => state.isOpen, reason: () => "it is late" }];
    const registry = new plue.ToolRegistry({
      tools: [plue.defineTool({ name: "t", description: "Runs.", execute: () => "it ran" })],
    });
    const app = createToolHandler(registry, { selection: { policies }, openExplain: true });
    const held = registry.select({ policies });
    const host = new HostTools(
      { registry, dispatcher: new plue.ToolDispatcher(registry), selection: { policies } },
      { selection: {}, config: undefined },
      () => {},
      () => () => {},
      () => 0,
    );
    const get = async (path: string) => {
      const response = await app.request(`http://localhost${path}`);
      return [response.status, await response.json()] as const;
    };
    const seen = async () => ({
      listed: (await get("/tools"))[1].tools.length,
      described: (await get("/tools/t"))[0],
      explained: (await get("/tools/t/explain"))[1].available,
      native: host.newList(),
      held: [held.available().length, held.has("t"), held.explain("t").available],
      exported: exportTools(held, "openai.chat").tools.length,
      bridged: createToolBridge(held).get("t")?.id,
    });
    const open = await seen();
    state.isOpen = false;
    assertEquals(await seen(), {
      listed: 0,
      described: 404,
      explained: false,
      native: "{}",
      held: [0, false, false],
      exported: 0,
      bridged: undefined,
    });
    assertEquals(
      held.explain("t").reason,
      '"t" is removed by policy: policy hours denies it: it is late',
    );
    // The toolset itself is an immutable list.
    assertEquals(held.ids, ["t"]);
    state.isOpen = true;
    assertEquals(await seen(), open);
    assertEquals(open.held, [1, true, true]);
  });
});
