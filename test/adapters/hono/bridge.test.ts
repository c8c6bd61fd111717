import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import * as hono from "@plue/tools/hono";
import { createToolBridge } from "@plue/tools/finding";
import * as formats from "@plue/tools/formats";
import { BASE, execute, execution, handler, idsOf, problemOf, sampleRegistry } from "./support.ts";

function bridged(options: hono.ToolHandlerOptions = {}) {
  return handler({
    openExecution: true,
    bridge: createToolBridge,
    formats: hono.serveFormats(formats),
    ...options,
  });
}

type App = ReturnType<typeof bridged>;

function call(
  app: App,
  name: string,
  args: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response | Promise<Response> {
  const path = `${BASE}/tools/${name}/execute?bridge=1`;
  return app.request(path, execution({ arguments: args }, headers));
}

describe("a host's function that makes the bridge", () => {
  it("is called once for callers with the same toolset", async () => {
    let made = 0;
    const app = bridged({
      authorize: () => ({ role: "control" }),
      bridge: (toolset) => {
        made++;
        return createToolBridge(toolset);
      },
    });
    for (let n = 0; n < 3; n++) await app.request(`${BASE}/tools?bridge=1&limit=${n + 1}`);
    assertEquals(made, 1);
  });

  it("must return the bridge to exactly the caller's tools", async () => {
    const errors: string[] = [];
    const everything = createToolBridge(sampleRegistry().select());
    for (const made of [everything, sampleRegistry().select()]) {
      const app = bridged({
        bridge: () => made,
        onError: (error) => errors.push((error as Error).message),
      });
      assertEquals((await call(app, "search_tools", { query: "secrets" })).status, 500);
    }
    const message = "the function must return a bridge to the given toolset";
    assertEquals(errors, Array(2).fill(`Cannot make a bridge: ${message}`));
  });
});

describe("the option tools", () => {
  it("lists and explains the bridge's tools, and calls the others only for their callers", async () => {
    const app = handler({
      authorize: ({ headers }) => ({ role: headers.get("x-role") ?? "impl", explain: true }),
      tools: (toolset) => createToolBridge(toolset),
    });
    const ids = ["call_tool", "describe_tools", "search_tools"];
    assertEquals(await idsOf(await app.request(`${BASE}/tools`)), ids);
    const explained = await (await app.request(`${BASE}/tools/call_tool/explain`)).json();
    assertEquals(explained.available, true);
    const statusFor = async (role: string) =>
      (await execute(app, "task:approve", {}, { "x-role": role })).status;
    assertEquals([await statusFor("control"), await statusFor("impl")], [200, 404]);
  });
});

describe("POST /tools/:id/execute?bridge=1", () => {
  it("approves, deduplicates, counts and logs calls under the tool's name", async () => {
    const registry = sampleRegistry();
    let runs = 0;
    registry.registerTool({
      name: "deploy",
      description: "Deploys.",
      requiresApproval: true,
      execute: () => ++runs,
    });
    const received: string[] = [];
    const entries: hono.AccessEntry[] = [];
    const app = hono.createToolHandler(registry, {
      openExecution: true,
      bridge: createToolBridge,
      dispatch: {
        approve: ({ tool }) => {
          received.push(tool.id);
          return true;
        },
      },
      observe: { access: (entry) => void entries.push(entry) },
    });
    const key = { "idempotency-key": "k1" };
    const through = await (await call(app, "call_tool", { name: "deploy" }, key)).json();
    const direct = await (await execute(app, "deploy", { arguments: {} }, key)).json();
    assertEquals([through.content, direct.content, direct.replayed], [1, 1, true]);
    assertEquals(received, ["deploy"]);
    const { tools } = await (await app.request(`${BASE}/metrics`)).json();
    assertEquals(tools.map(({ id, calls }: { id: string; calls: number }) => [id, calls]), [
      ["deploy", 2],
    ]);
    const calls = entries.flatMap(({ calls = [] }) => calls.map(({ toolId }) => toolId));
    assertEquals(calls, ["deploy", "deploy"]);
  });

  it("applies the host's policies and limits", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => release = resolve);
    const registry = sampleRegistry();
    registry.registerTool({ name: "hold", description: "Holds.", execute: () => held });
    const app = hono.createToolHandler(registry, {
      openExecution: true,
      bridge: createToolBridge,
      selection: { policies: [{ name: "no rm", allow: (tool) => tool?.id !== "rm" }] },
      dispatch: { limits: { maxConcurrentPerTool: 1, maxQueued: 0 } },
    });
    assertEquals((await call(app, "call_tool", { name: "rm" })).status, 404);
    const [first, second] = [1, 2].map(() => call(app, "call_tool", { name: "hold" }));
    const { status, detail } = await problemOf(await second as Response);
    assertEquals(status, 503);
    assertStringIncludes(detail, 'Cannot call "hold"');
    release();
    assertEquals((await first)?.status, 200);
  });
});
