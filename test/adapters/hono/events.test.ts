import { describe, it } from "bun:test";
import { assertEquals, assertStrictEquals } from "@std/assert";
import { type Caller, createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { defineTool, ToolRegistry } from "@plue/tools";
import { BASE, problemOf, sampleRegistry } from "./support.ts";
import { allEvents, type SseEvent, sseEvents } from "./sse.ts";
import { ListingWatch } from "../../../src/adapters/http/mod.ts";

const tool = (name: string, extra: Record<string, unknown> = {}) =>
  defineTool({ name, description: "A tool.", risk: "safe", ...extra });

async function follow(registry: ToolRegistry, options: ToolHandlerOptions = {}) {
  const app = createToolHandler(registry, options);
  const response = await app.request(`${BASE}/events`);
  return { app, response, events: sseEvents(response) };
}

const take = async (events: AsyncGenerator<SseEvent, undefined>): Promise<unknown> =>
  (await events.next()).value?.data;

describe("GET /events", () => {
  it("sends the added, removed and updated tools of the caller", async () => {
    const registry = sampleRegistry();
    const { response, events } = await follow(registry);
    assertEquals(response.headers.get("content-type"), "text/event-stream");
    registry.registerTool(tool("new"));
    assertEquals((await events.next()).value, {
      id: "0",
      event: "added",
      data: { type: "added", id: "new" },
    });
    registry.updateTool(tool("new", { title: "Newer" }));
    assertEquals(await take(events), { type: "updated", id: "new" });
    registry.unregisterTool("new");
    assertEquals(await take(events), { type: "removed", id: "new" });
    await events.return(undefined);
  });

  it("streams changes of the caller's tools, and names no hidden tool", async () => {
    const registry = sampleRegistry();
    const { events } = await follow(registry, { authorize: (): Caller => ({ role: "impl" }) });
    const [ours, theirs] = [{ roles: ["impl"] }, { roles: ["control"] }];
    registry.registerTool(tool("secret-plan", theirs));
    registry.updateTool(tool("secret-plan", { ...theirs, title: "Other" }));
    registry.unregisterTool("secret-plan");
    registry.registerTool(tool("plain"));
    assertEquals(await take(events), { type: "added", id: "plain" });
    registry.updateTool(tool("echo", theirs));
    assertEquals(await take(events), { type: "removed", id: "echo" });
    registry.updateTool(tool("echo", ours));
    assertEquals(await take(events), { type: "added", id: "echo" });
    await events.return(undefined);
  });

  it("merges changes that were not read yet", async () => {
    const registry = new ToolRegistry({ tools: [tool("a")] });
    const { events } = await follow(registry);
    // More changes than an iterator of the registry stores.
    for (let n = 0; n < 3_000; n++) registry.updateTool(tool("a", { title: `Version ${n}` }));
    registry.registerTool(tool("b"));
    assertEquals(await take(events), { type: "updated", id: "a" });
    assertEquals(await take(events), { type: "added", id: "b" });
    registry.registerTool(tool("c"));
    assertEquals(await take(events), { type: "added", id: "c" });
    await events.return(undefined);
  });

  it("sends tools that become available or unavailable, even if a listing detected it first", async () => {
    let isThere = true;
    const registry = new ToolRegistry({
      tools: [tool("a"), tool("maybe", { isAvailable: () => isThere })],
    });
    const { app, events } = await follow(registry);
    isThere = false;
    await app.request(`${BASE}/tools`);
    registry.refresh();
    assertEquals(await take(events), { type: "removed", id: "maybe" });
    isThere = true;
    registry.refresh("maybe");
    assertEquals(await take(events), { type: "added", id: "maybe" });
    await events.return(undefined);
  });

  it("ends when the registry does", async () => {
    const registry = new ToolRegistry({ tools: [tool("a")] });
    const { response } = await follow(registry);
    await registry.dispose();
    assertEquals((await allEvents(response)).map(({ data }) => data), [
      { type: "removed", id: "a" },
    ]);
  });

  it("ends with the token of its reader", async () => {
    const { response } = await follow(sampleRegistry(), {
      heartbeatMs: 1,
      authorize: () => ({ expiresAt: Date.now() - 1 }),
    });
    assertEquals(await allEvents(response), []);
  });

  it("limits the streams of one caller, so that others can connect", async () => {
    const registry = sampleRegistry();
    const app = createToolHandler(registry, {
      maxStreams: 3,
      maxStreamsPerPrincipal: 2,
      authorize: (request): Caller => {
        const principal = request.headers.get("x-who");
        return principal === null ? {} : { principal };
      },
    });
    const ask = async (who?: string): Promise<Response> =>
      await app.request(`${BASE}/events`, who === undefined ? {} : { headers: { "x-who": who } });
    const [first, second] = [await ask("ann"), await ask("ann")];
    assertEquals((await problemOf(await ask("ann"))).code, "overloaded");
    const other = await ask("bob");
    assertEquals(other.status, 200);
    // All streams are in use.
    const rejected = await ask("cem");
    assertEquals([rejected.status, rejected.headers.get("retry-after")], [503, "60"]);
    assertEquals((await ask()).status, 503);
    await first.body?.cancel();
    await other.body?.cancel();
    const nobody = await ask();
    const third = await ask("ann");
    assertEquals([nobody.status, third.status], [200, 200]);
    for (const { body } of [second, nobody, third]) await body?.cancel();
  });

  it("limits one caller to a sixteenth of the streams", async () => {
    const app = createToolHandler(sampleRegistry(), {
      maxStreams: 17,
      authorize: () => ({ principal: "ann" }),
    });
    const responses = [];
    for (let n = 0; n < 3; n++) responses.push(await app.request(`${BASE}/events`));
    assertEquals(responses.map(({ status }) => status), [200, 200, 503]);
    for (const { body } of responses) await body?.cancel();
  });

  it("opens no stream for HEAD", async () => {
    const app = createToolHandler(sampleRegistry(), { maxStreams: 1 });
    for (let n = 0; n < 3; n++) {
      assertEquals((await app.request(`${BASE}/events`, { method: "HEAD" })).status, 200);
    }
  });

  it("stops an EventSource from reconnecting if a toolset is served", async () => {
    const response = await createToolHandler(sampleRegistry().select()).request(`${BASE}/events`);
    assertEquals(response.status, 204);
  });

  it("stops following when the request is aborted", async () => {
    const registry = sampleRegistry();
    const app = createToolHandler(registry, { maxStreams: 1 });
    const client = new AbortController();
    const response = await app.request(`${BASE}/events`, { signal: client.signal });
    client.abort();
    assertEquals(await allEvents(response), []);
    const again = await app.request(`${BASE}/events`);
    assertEquals(again.status, 200);
    await again.body?.cancel();
  });
});

describe("ListingWatch", () => {
  it("compares two listings once for all streams of callers with the same tools", async () => {
    const registry = new ToolRegistry({ tools: [{ name: "one", description: "Is listed." }] });
    const watch = () =>
      new ListingWatch({
        registry,
        list: () => registry.select().available(),
        expiresAt: undefined,
        onStop() {},
      });
    const [first, second] = [watch(), watch()];
    const both = Promise.all([first.changes(), second.changes()]);
    registry.registerTool({ name: "two", description: "Is added." });
    const [left, right] = await both;
    assertEquals(left, [{ type: "added", id: "two" }]);
    assertStrictEquals(left, right);
    first.stop();
    second.stop();
  });
});
