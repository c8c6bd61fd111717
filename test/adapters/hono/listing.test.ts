import { describe, it } from "bun:test";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { countTokens, fitBudget } from "@plue/tools/finding";
import * as formats from "@plue/tools/formats";
import { createToolHandler, serveFormats } from "@plue/tools/hono";
import { buildToolset, createToolIndex, ToolRegistry, ToolsetBuilder } from "@plue/tools";
import { BASE, handler, idsOf, sampleRegistry } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

describe("GET /tools", () => {
  it("waits for an asynchronous index, and caches the page", async () => {
    let searches = 0;
    const words = createToolIndex();
    const registry = new ToolRegistry({
      tools: [toolOf("note-read", undefined, { risk: "safe" })],
      index: () => ({
        ...words,
        search: (...args) => {
          searches++;
          return Promise.resolve(words.search(...args));
        },
      }),
    });
    const app = createToolHandler(registry);
    const first = await app.request(`${BASE}/tools?q=note`);
    const again = await app.request(`${BASE}/tools?q=note`);
    assertEquals([await idsOf(first), await idsOf(again), searches], [
      ["note-read"],
      ["note-read"],
      1,
    ]);
  });

  it("sends different ETags for different tools of two processes with equal revisions", async () => {
    const etagOf = async (name: string): Promise<string | null> =>
      (await createToolHandler(
        new ToolRegistry({ tools: [toolOf(name)] }),
      ).request(`${BASE}/tools`)).headers.get("etag");
    assertNotEquals(await etagOf("one"), await etagOf("two"));
    assertEquals(await etagOf("one"), await etagOf("one"));
  });

  it("calls availability functions for each listing", async () => {
    let available = false;
    const tool = toolOf("t", undefined, { isAvailable: () => available });
    const app = createToolHandler(new ToolRegistry({ tools: [tool] }));
    assertEquals(await idsOf(await app.request(`${BASE}/tools`)), []);
    available = true;
    assertEquals(await idsOf(await app.request(`${BASE}/tools`)), ["t"]);
  });

  it("serves a toolset unchanged", async () => {
    const toolset = new ToolsetBuilder("few").fromRegistry(sampleRegistry())
      .withTools("echo", "task:approve").build();
    const app = createToolHandler(toolset);
    assertEquals(await idsOf(await app.request(`${BASE}/tools`)), ["echo", "task:approve"]);
  });
});

describe("createToolHandler()", () => {
  for (
    const path of ["/tools", "/tools/echo", "/tools/echo/explain", "/metrics", "/healthz"].concat(
      ["/tools?q=%C3%A4", "/tools?wrong=1", "/tools/nope", "/nope", "/tools/echo/execute"],
    )
  ) {
    it(`responds to HEAD with the length of ${path}`, async () => {
      const app = handler();
      const whole = await app.request(BASE + path);
      const { byteLength } = await whole.arrayBuffer();
      const head = await app.request(BASE + path, { method: "HEAD" });
      assertEquals([head.status, head.headers.get("content-length")], [
        whole.status,
        String(byteLength),
      ]);
      assertEquals(head.headers.get("content-type"), whole.headers.get("content-type"));
    });
  }
});

type Explained = { readonly id: string; readonly available: boolean };

describe("GET /explain", () => {
  it("explains the served tools only", async () => {
    const served = createToolHandler(
      buildToolset(sampleRegistry(), { maxRisk: "low", role: null }),
      { openExplain: true },
    );
    const response = await served.request(`${BASE}/explain?role=control`);
    const { tools } = await response.json();
    assertEquals(tools.map(({ id, available }: Explained) => [id, available]), [
      ["echo", true],
      ["plan", true],
      ["secrets", true],
    ]);
  });
});

describe("GET /tools?format=…&tokens=", () => {
  it("exports tools within the budget, and names the omitted ones", async () => {
    const app = createToolHandler(sampleRegistry(), {
      formats: serveFormats(formats, { fitBudget }),
    });
    const body = await (await app.request(`${BASE}/tools?format=anthropic&tokens=70`)).json();
    assert(body.tokens <= 70 && body.tokens > 0);
    assertEquals(body.tokens, countTokens(JSON.stringify(body.tools)));
    assertEquals(body.shown.length, body.tools.length);
    assertEquals(
      body.shown.map(({ id }: { id: string }) => id),
      body.names.map(({ id }: { id: string }) => id),
    );
    assert(body.leftOut.every(({ reason }: { reason: string }) => reason === "budget"));
  });
});
