import { describe, it } from "bun:test";
import { assert, assertEquals, assertNotEquals, assertStringIncludes } from "@std/assert";
import { createToolHandler, serveFormats } from "@plue/tools/hono";
import * as formats from "@plue/tools/formats";
import { buildToolset, createToolIndex, ToolRegistry, ToolsetBuilder } from "@plue/tools";
import { BASE, execute, handler, idsOf, type Listing, sampleRegistry } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

describe("GET /tools", () => {
  it("pages through everything once, even when a tool is removed meanwhile", async () => {
    const registry = sampleRegistry();
    const app = createToolHandler(registry);
    const first = await (await app.request(`${BASE}/tools?limit=2`)).json() as Listing;
    assertEquals(first.tools.map(({ id }) => id), ["echo", "file-write"]);
    registry.unregisterTool("file-write");
    const second = await (await app.request(
      `${BASE}/tools?limit=2&cursor=${first.nextCursor}`,
    )).json() as Listing;
    assertEquals(second.tools.map(({ id }) => id), ["plan", "rm"]);
    assertEquals(second.nextCursor, undefined);
  });

  it("returns nothing for words that no tool matches, or the nearest tools", async () => {
    const q = encodeURIComponent(
      "Which restaurants near the harbour of Lisbon serve grilled octopus on Sundays after nine, " +
        "take reservations by telephone, allow dogs, have a terrace with heaters, offer " +
        "vegetarian starters, play quiet music, print menus in Braille, and keep a guest file?",
    );
    const app = handler();
    assertEquals(await idsOf(await app.request(`${BASE}/tools?q=${q}`)), []);
    const nearest = await idsOf(await app.request(`${BASE}/tools?q=${q}&minScore=0`));
    assertEquals(nearest.includes("file-write"), true);
  });

  it("waits for an index that is asynchronous, and keeps its page", async () => {
    let searches = 0;
    const words = createToolIndex();
    const registry = new ToolRegistry({
      tools: [toolOf("note-read", undefined, { risk: "safe" })],
      index: () => ({
        ...words,
        search: (...asked) => {
          searches++;
          return Promise.resolve(words.search(...asked));
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

  it("pages through search results", async () => {
    const registry = new ToolRegistry({
      tools: Array.from(
        { length: 5 },
        (_, n) => toolOf(`note-${n}`, undefined, { risk: "safe" }),
      ),
    });
    const app = createToolHandler(registry);
    const seen: string[] = [];
    let cursor: string | undefined = "";
    for (let pages = 0; cursor !== undefined && pages < 9; pages++) {
      const more = cursor === "" ? "" : `&cursor=${cursor}`;
      const listing = await (await app.request(`${BASE}/tools?q=note&limit=2${more}`))
        .json() as Listing;
      seen.push(...listing.tools.map(({ id }) => id));
      cursor = listing.nextCursor;
    }
    assertEquals(seen.toSorted(), ["note-0", "note-1", "note-2", "note-3", "note-4"]);
  });

  it("returns 304 for the ETag of an unchanged listing, and 200 after a change", async () => {
    const registry = sampleRegistry();
    const app = createToolHandler(registry);
    const etag = (await app.request(`${BASE}/tools`)).headers.get("etag") ?? "";
    const headers = { "if-none-match": `"other", W/${etag}` };
    const same = await app.request(`${BASE}/tools`, { headers });
    assertEquals(same.status, 304);
    assertEquals(same.headers.get("etag"), etag);
    assertEquals(await same.text(), "");
    registry.unregisterTool("rm");
    const changed = await app.request(`${BASE}/tools`, { headers });
    assertEquals(changed.status, 200);
    assertNotEquals(changed.headers.get("etag"), etag);
  });

  it("gives two processes with other tools other ETags, though their revisions are equal", async () => {
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

  it("shows, explains and does not run a tool of the caller that is not available now", async () => {
    const tool = (name: string, isAvailable: boolean | (() => boolean)) =>
      toolOf(name, () => "ran", { isAvailable });
    const registry = new ToolRegistry({ tools: [tool("now", () => false), tool("never", false)] });
    const app = createToolHandler(registry, { openExecution: true });
    const statuses = async (id: string): Promise<readonly number[]> => [
      (await app.request(`${BASE}/tools/${id}`)).status,
      (await app.request(`${BASE}/tools/${id}/explain`)).status,
      (await execute(app, id, {})).status,
    ];
    assertEquals(await statuses("now"), [200, 200, 409]);
    const explained = await (await app.request(`${BASE}/tools/now/explain`)).json();
    assertEquals([explained.selected, explained.available], [true, false]);
    // A tool that is never available is in no toolset. Its calls fail in the same way.
    assertEquals(await statuses("never"), [404, 404, 409]);
  });

  it("serves a toolset unchanged", async () => {
    const toolset = new ToolsetBuilder("few").fromRegistry(sampleRegistry())
      .withTools("echo", "task:approve").build();
    const app = createToolHandler(toolset);
    assertEquals(await idsOf(await app.request(`${BASE}/tools`)), ["echo", "task:approve"]);
  });
});

describe("GET /tools/:id", () => {
  it("describes one tool, with an ETag", async () => {
    const response = await handler().request(`${BASE}/tools/file-write`);
    assertEquals((await response.json() as { title: string }).title, "Write a file");
    const again = await handler().request(`${BASE}/tools/file-write`, {
      headers: { "if-none-match": response.headers.get("etag") ?? "" },
    });
    assertEquals(again.status, 304);
  });

  it("returns the same response for a hidden tool as for an unknown one, except for the name", async () => {
    const hidden = await handler().request(`${BASE}/tools/task:approve`);
    const absent = await handler().request(`${BASE}/tools/task:approvf`);
    assertEquals(hidden.status, 404);
    assertEquals(
      (await hidden.text()).replace("approve", "X"),
      (await absent.text()).replace("approvf", "X"),
    );
  });
});

describe("createToolHandler()", () => {
  it("answers HEAD without a body", async () => {
    const response = await handler().request(`${BASE}/tools`, { method: "HEAD" });
    assertEquals(response.status, 200);
    assert(response.headers.has("etag"));
    assertEquals(await response.text(), "");
  });

  for (
    const path of ["/tools", "/tools/echo", "/tools/echo/explain", "/metrics", "/healthz"].concat(
      ["/tools?q=%C3%A4", "/tools?wrong=1", "/tools/nope", "/nope", "/tools/echo/execute"],
    )
  ) {
    it(`says by HEAD how long ${path} is`, async () => {
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

  it("describes tools for the reader that the caller or the query names", async () => {
    const registry = new ToolRegistry({
      tools: [{
        name: "echo",
        description: ({ locale, provider }) => `In ${locale ?? "none"} for ${provider ?? "all"}.`,
      }],
    });
    const app = createToolHandler(registry, {
      formats: serveFormats(formats),
      authorize: () => ({ context: { provider: "openai" } }),
    });
    const textOf = async (path: string): Promise<string> =>
      await (await app.request(BASE + path)).text();
    assertStringIncludes(await textOf("/tools"), "In none for openai.");
    assertStringIncludes(await textOf("/tools/echo"), "In none for openai.");
    assertStringIncludes(await textOf("/tools?locale=de"), "In de for openai.");
    assertStringIncludes(await textOf("/tools?locale=de&q=none"), "In de for openai.");
    assertStringIncludes(await textOf("/tools?locale=fr&format=openai.chat"), "In fr for openai.");
    assertStringIncludes(await textOf("/tools?locale=d%20e"), "must be 1 to 128 letters");
  });

  it("sends no length for HEAD if the client's copy is current", async () => {
    const app = handler();
    const etag = (await app.request(`${BASE}/tools`)).headers.get("etag") ?? "";
    const head = await app.request(`${BASE}/tools`, {
      method: "HEAD",
      headers: { "if-none-match": etag },
    });
    assertEquals([head.status, head.headers.get("content-length")], [304, null]);
  });
});

interface Explained {
  readonly id: string;
  readonly available: boolean;
}

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

  it("names the tools that are unavailable now", async () => {
    const registry = new ToolRegistry({
      tools: [toolOf("absent", undefined, { isAvailable: () => false })],
    });
    const response = await createToolHandler(registry).request(`${BASE}/explain`);
    const [absent] = (await response.json()).tools;
    assertEquals([absent.selected, absent.available], [true, false]);
  });
});

describe("GET /tools/:id/explain", () => {
  it("takes the query of a listing", async () => {
    const open = handler({ openExplain: true });
    const seen = await open.request(`${BASE}/tools/task:approve/explain?role=control`);
    const { available, steps } = await seen.json() as {
      readonly available: boolean;
      readonly steps: readonly { readonly step: string; readonly passed: boolean }[];
    };
    assertEquals(available, true);
    assertEquals(steps.find(({ step }) => step === "role")?.passed, true);
  });
});
