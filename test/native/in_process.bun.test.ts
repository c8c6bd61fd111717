// The runtime of the tests as a guest: calls of native threads, and tools of native code as models
// use them: over HTTP, over MCP and in exports.

import { assertEquals, assertStringIncludes } from "@std/assert";
import { afterAll, afterEach, beforeAll, describe } from "bun:test";
import { type Selection, type Tool, ToolDispatcher } from "../../mod.ts";
import { createToolHandler } from "../../src/adapters/hono/mod.ts";
import { dispatchResponse, exportTools } from "../../src/formats/mod.ts";
import { createMcpEndpoint } from "../../src/adapters/mcp/mod.ts";
import { attachNative, type NativeAttachment } from "../../src/adapters/native/mod.ts";
import { modernRequest } from "../adapters/mcp/support.ts";
import { loadSuite } from "./suite_library.ts";
import { buildPrograms, SUITE_LIBRARY, unless } from "./support.ts";
import { dispatch, registry } from "./tools.ts";

const unbuilt = buildPrograms();
const test = unless(unbuilt);
const suite = unbuilt === undefined ? await loadSuite(SUITE_LIBRARY) : undefined;
const dispatcher = new ToolDispatcher(registry);
let attachment: NativeAttachment | undefined;

/** The exit status of the parts of the host suite. */
async function ended(): Promise<number | undefined> {
  while (suite?.status() === -1) await new Promise((resolve) => setTimeout(resolve, 1));
  return suite?.status();
}

/** Resolves when a tool exists, or no longer exists. */
function changed(type: "added" | "removed", id: string): Promise<void> {
  return new Promise((resolve) => {
    const stop = registry.subscribe((change) => {
      if (change.type !== type || change.tool.id !== id) return;
      stop();
      resolve();
    });
  });
}

describe("a tool in C", () => {
  beforeAll(async () => {
    if (suite === undefined) return;
    attachment = await attachNative(registry, { library: SUITE_LIBRARY, dispatch });
    const ready = changed("added", "host:stop");
    suite.start("offer");
    await ready;
  });
  afterAll(async () => {
    if (suite === undefined) return;
    const gone = changed("removed", "host:stop");
    await dispatcher.dispatch({ name: "host:stop" });
    await gone;
    assertEquals(await ended(), 0);
    await attachment?.detach();
  });

  test("is listed and called over HTTP, and its arguments are checked", async () => {
    const handler = createToolHandler(registry, { openExecution: true });
    const origin = "http://localhost";
    const list = await (await handler.fetch(new Request(`${origin}/tools`))).json() as {
      readonly tools: readonly Tool[];
    };
    assertEquals(list.tools.some(({ id }) => id === "host:add"), true);

    const call = async (params: object): Promise<[number, unknown]> => {
      const response = await handler.fetch(
        new Request(`${origin}/tools/host:add/execute`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ arguments: params }),
        }),
      );
      return [response.status, await response.json()];
    };
    const [status, body] = await call({ a: 2, b: 3 });
    assertEquals([status, (body as { content: unknown }).content], [200, { sum: 5 }]);
    assertEquals((await call({ a: 2 }))[0], 422);
  });

  test("is called over MCP", async () => {
    const endpoint = createMcpEndpoint(registry, { openExecution: true });
    const request = modernRequest("tools/call", { name: "host.add", arguments: { a: 20, b: 22 } });
    const response = await endpoint.fetch(request);
    assertStringIncludes(await response.text(), '"sum":42');
  });

  test("returns an image to MCP clients and to models, and metadata to no model", async () => {
    const endpoint = createMcpEndpoint(registry, { openExecution: true });
    const request = modernRequest("tools/call", { name: "host.photo", arguments: {} });
    const text = await (await endpoint.fetch(request)).text();
    const image = { type: "image", data: "R0lG", mimeType: "image/gif" } as const;
    assertStringIncludes(text, JSON.stringify(image));

    const toolset = registry.select({ namespace: "host" });
    const { names } = exportTools(toolset, "anthropic");
    const use = { type: "tool_use", id: "toolu_1", name: "host__photo", input: {} };
    const photographer = new ToolDispatcher(toolset);
    const { messages } = await dispatchResponse("anthropic", [use], {
      dispatcher: photographer,
      names,
    });
    const { type, data, mimeType: media_type } = image;
    assertEquals(messages[0]?.content[0]?.content, [
      { type: "text", text: "A dot." },
      { type, source: { type: "base64", media_type, data } },
    ]);
  });

  test("is selected and exported like all others", () => {
    const selection: Selection = { namespace: "host", maxRisk: "low" };
    const { tools } = exportTools(registry.select(selection), "openai.chat");
    assertEquals(tools.map((tool) => tool.function.name), ["host__add"]);
  });

  test("is aborted by the timeout of its call", async () => {
    const result = await dispatcher.dispatch({ name: "host:held" }, { timeoutMs: 20 });
    assertEquals([result.ok, result.ok ? "" : result.error.code], [false, "timeout"]);
  });
});

/** Runs parts of the host suite on a new thread, with this process as the tools side. */
async function passes(parts: string): Promise<boolean> {
  suite?.start(parts);
  return await ended() === 0;
}

describe("attachNative(), in this process", () => {
  afterEach(() => attachment?.detach());

  for (const wake of ["callback", "fd"] as const) {
    test(`answers native threads that wake it by ${wake}`, async () => {
      attachment = await attachNative(registry, { library: SUITE_LIBRARY, dispatch, wake });
      assertEquals(attachment.wake, wake);
      assertEquals(await passes("basic tools questions stress:4:200:echo stress:2:50:later"), true);
    });
  }

  test("has tools that can be called as soon as it is attached", async () => {
    attachment = await attachNative(registry, { library: SUITE_LIBRARY, dispatch });
    assertStringIncludes(suite?.callHere() ?? "", "would_deadlock");
    assertEquals(await passes("stress:1:1:echo"), true);
  });
});
