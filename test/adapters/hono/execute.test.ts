import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import * as formats from "@plue/tools/formats";
import * as hono from "@plue/tools/hono";
import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { BASE, execute, execution, problemOf, sampleRegistry } from "./support.ts";
import { allEvents, sseEvents, sseItems } from "./sse.ts";
import { toolOf, waitingTool } from "../../support/tool_of.ts";

const STREAM = { accept: "text/event-stream" };

/** A registry with a tool that waits for a signal, and a tool that streams. */
function bench(options: hono.ToolHandlerOptions = {}) {
  const started = Promise.withResolvers<AbortSignal>();
  const release = Promise.withResolvers<unknown>();
  const yielded: number[] = [];
  const registry = new ToolRegistry({
    tools: [
      defineTool({
        name: "talk",
        description: "Says all there is to say.",
        async *execute(_, context) {
          context.metadata({ phase: "begin" });
          context.progress(1, 2, "half");
          yield "a\nb";
          yield { n: 2 };
          return "done";
        },
      }),
      toolOf("wait", (_, { signal }) => {
        started.resolve(signal);
        return Promise.race([
          release.promise,
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
          }),
        ]);
      }),
      defineTool({
        name: "count",
        description: "Counts without end.",
        async *execute() {
          for (let n = 0;; n++) {
            yielded.push(n);
            yield n;
          }
        },
      }),
      toolOf("deaf", () => {
        started.resolve(new AbortController().signal);
        return new Promise(() => {});
      }),
      ...sampleRegistry().tools,
    ],
  });
  const { dispatch, ...rest } = options;
  const dispatcher = new ToolDispatcher(registry, { graceMs: 0, ...dispatch });
  const app = hono.createToolHandler(registry, { openExecution: true, dispatcher, ...rest });
  const run = (id: string, body: unknown = {}, init: RequestInit = {}): Promise<Response> =>
    Promise.resolve(
      app.request(`${BASE}/tools/${id}/execute`, { ...execution(body, STREAM), ...init }),
    );
  const inFlight = (): number => dispatcher.metrics().inFlight;
  return { app, run, started, release, yielded, inFlight };
}

/** The execution context that Workers pass with each request. */
function fakePlatform() {
  const kept: Promise<unknown>[] = [];
  return {
    waitUntil: (promise: Promise<unknown>) => void kept.push(promise),
    passThroughOnException() {},
    props: {},
    /** Awaits the promises passed to the platform, and returns their number. */
    ended: async () => (await Promise.all(kept)).length,
  };
}

describe("POST /tools/:id/execute as an event stream", () => {
  it("sends comments while the tool is silent", async () => {
    const { run, started, release } = bench({ heartbeatMs: 1 });
    const items = sseItems(await run("wait"));
    await started.promise;
    // The opening comment and two heartbeats arrive before the tool ends.
    for (let beat = 0; beat < 3; beat++) assertEquals((await items.next()).value, "comment");
    release.resolve("now");
    const events: unknown[] = [];
    for await (const item of items) if (item !== "comment") events.push(item.event);
    assertEquals(events, ["result"]);
  });

  it("aborts the tool when the request's signal does", async () => {
    const { app, started, inFlight } = bench();
    const client = new AbortController();
    const platform = fakePlatform();
    const response = await app.request(
      `${BASE}/tools/wait/execute`,
      { ...execution({}, STREAM), signal: client.signal },
      {},
      platform,
    );
    const signal = await started.promise;
    client.abort();
    // The stream ends without a result, because it has no reader.
    assertEquals(await allEvents(response), []);
    await platform.ended();
    assertEquals([signal.aborted, inFlight()], [true, 0]);
  });

  it("does not abort a call that has ended when Deno aborts the request after it", async () => {
    const { run, inFlight } = bench();
    const client = new AbortController();
    const response = await run("talk", {}, { ...execution({}, STREAM), signal: client.signal });
    const events = await allEvents(response);
    client.abort();
    assertEquals([events.at(-1)?.event, inFlight()], ["result", 0]);
  });

  it("runs a generator no further than its reader, except for the buffer", async () => {
    const { run, yielded, inFlight } = bench({ dispatch: { maxBufferedEvents: 4 } });
    const events = sseEvents(await run("count"));
    for (let n = 0; n < 10; n++) {
      assertEquals(((await events.next()).value?.data as { value: number }).value, n);
    }
    // Ten values were read, four wait in the queue, and a few more are in the stream.
    assert(yielded.length <= 20, String(yielded.length));
    await events.return(undefined);
    assertEquals(inFlight(), 0);
  });

  it("ends a tool that never ends at its timeout", async () => {
    const { run } = bench({ dispatch: { timeoutMs: 1 } });
    const [event] = await allEvents(await run("deaf"));
    assertEquals(
      (event?.data as { result: { error: { code: string } } }).result.error.code,
      "timeout",
    );
  });

  it("passes cleanups to the platform's waitUntil", async () => {
    const { app, started, inFlight } = bench();
    const platform = fakePlatform();
    const response = await app.request(
      `${BASE}/tools/wait/execute`,
      execution({}, STREAM),
      {},
      platform,
    );
    await started.promise;
    await response.body?.cancel();
    assertEquals([await platform.ended(), inFlight()], [1, 0]);
  });

  it("passes a long call to the platform, even if its result is not streamed", async () => {
    const { app, started, inFlight } = bench();
    const platform = fakePlatform();
    const client = new AbortController();
    const request = { ...execution({}), signal: client.signal };
    const answer = app.request(`${BASE}/tools/wait/execute`, request, {}, platform);
    await started.promise;
    for (let turn = 0; turn < 100; turn++) await null;
    client.abort();
    assertEquals([await platform.ended(), inFlight()], [1, 0]);
    await answer;
  });
});

describe("POST /dispatch/:target", () => {
  it("bounds the results of a turn together", async () => {
    const execute = () => "x".repeat(600_000);
    const registry = new ToolRegistry({ tools: [{ name: "big", description: "Big.", execute }] });
    const app = hono.createToolHandler(registry, {
      formats: hono.serveFormats(formats),
      openExecution: true,
    });
    for (const [count, codes] of [[8, [undefined]], [16, ["output_too_large"]]] as const) {
      const use = { type: "tool_use", id: "1", name: "big", input: {} };
      const response = await app.request(
        `${BASE}/dispatch/anthropic`,
        execution(Array(count).fill(use)),
      );
      const { calls }: { calls: { result: { error?: { code: string } } }[] } = await response
        .json();
      assertEquals([...new Set(calls.map(({ result }) => result.error?.code))], [...codes]);
    }
  });
});

describe("POST /executions/:callId/abort", () => {
  const abort = { method: "POST" };

  it("aborts the calls of a turn", async () => {
    const { tool, begun } = waitingTool();
    const app = hono.createToolHandler(new ToolRegistry({ tools: [tool] }), {
      formats: hono.serveFormats(formats),
      openExecution: true,
    });
    const turn = execution([{ type: "tool_use", id: "1", name: "wait", input: {} }], {
      "x-call-id": "turn-1",
    });
    const answer = app.request(`${BASE}/dispatch/anthropic`, turn);
    await begun;
    const abort = await app.request(`${BASE}/executions/turn-1/abort`, { method: "POST" });
    assertEquals(abort.status, 202);
    const response = await answer;
    assertEquals(response.headers.get("x-call-id"), "turn-1");
    assertEquals((await response.json()).calls[0].result.error.code, "aborted");
  });

  it("aborts a streaming call, and sends its reader the result", async () => {
    const { app, run, started } = bench();
    const events = allEvents(await run("wait", { callId: "a b/c" }));
    await started.promise;
    const response = await app.request(`${BASE}/executions/a%20b%2Fc/abort`, abort);
    assertEquals([response.status, await response.json()], [202, {
      callId: "a b/c",
      status: "aborting",
    }]);
    const [result] = await events;
    assertEquals(
      (result?.data as { result: { error: { code: string } } }).result.error.code,
      "aborted",
    );
  });

  it("aborts a call that is answered at its end", async () => {
    const { app, started } = bench();
    const answer = execute(app, "wait", { callId: "c" });
    await started.promise;
    assertEquals((await app.request(`${BASE}/executions/c/abort`, abort)).status, 202);
    const response = await answer;
    assertEquals([response.status, (await problemOf(response)).code], [499, "aborted"]);
  });

  it("aborts only the caller's own calls", async () => {
    const { app, started, release } = bench({
      authorize: (request): hono.Caller => {
        const principal = request.headers.get("x-who");
        return principal === null ? {} : { principal };
      },
    });
    const call = execute(app, "wait", { callId: "c" }, { "x-who": "ann" });
    await started.promise;
    const as = async (who: Record<string, string>): Promise<number> =>
      (await app.request(`${BASE}/executions/c/abort`, { ...abort, headers: who })).status;
    assertEquals([await as({}), await as({ "x-who": "bob" })], [404, 404]);
    release.resolve("kept on");
    assertEquals((await call).status, 200);
    assertEquals(await as({ "x-who": "ann" }), 404);
  });
});
