import { streamIfSlow } from "../../../src/adapters/mcp/streams.ts";
import { describe, it } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";

/** A response that arrives when the test resolves `work`. */
function late(signal = new AbortController().signal, heartbeatMs = 60_000) {
  const work = Promise.withResolvers<Response>();
  const left = Promise.withResolvers<void>();
  const errors: unknown[] = [];
  const answer = streamIfSlow(work.promise, {
    patienceMs: 1,
    heartbeatMs,
    client: { signal },
    onLeave() {
      left.resolve();
      work.resolve(new Response(null, { status: 499 }));
    },
    onError: (error) => void errors.push(error),
  });
  return { work, left: left.promise, errors, answer };
}

/** An interval that no other timer has, so that the tests can recognise the heartbeat. */
const HEARTBEAT_MS = 61_357;

const events = (text: string): readonly string[] =>
  text.split("\n\n").filter((part) => part !== "" && part !== ":");

describe("streamIfSlow()", () => {
  it("returns a fast response unchanged", async () => {
    const soon = new Response("{}");
    const options = {
      patienceMs: 60_000,
      heartbeatMs: 60_000,
      client: new AbortController(),
      onLeave() {},
      onError() {},
    };
    assertEquals(await streamIfSlow(Promise.resolve(soon), options) === soon, true);
    await assertRejects(
      () => streamIfSlow(Promise.reject(new Error("Broken")), options),
      Error,
      "Broken",
    );
  });

  it("converts late JSON to an event", async () => {
    const { work, answer } = late();
    const response = await answer;
    assertEquals(response.headers.get("content-type"), "text/event-stream");
    work.resolve(new Response('{"a":1}', { headers: { "content-type": "application/json" } }));
    assertEquals(events(await response.text()), ['event: message\ndata: {"a":1}']);
  });

  it("continues with a late stream", async () => {
    const { work, answer } = late();
    const response = await answer;
    const headers = { "content-type": "text/event-stream" };
    work.resolve(new Response("data: 1\n\ndata: 2\n\n", { headers }));
    assertEquals(events(await response.text()), ["data: 1", "data: 2"]);
  });

  it("reports that the client has closed its stream, or has disconnected", async () => {
    const first = late();
    await (await first.answer).body?.cancel();
    await first.left;
    const client = new AbortController();
    const second = late(client.signal);
    await second.answer;
    client.abort();
    await second.left;
  });

  it("sets no timer that outlives a disconnected client", async () => {
    const { setTimeout, clearTimeout } = globalThis;
    const timers = new Set<unknown>();
    Object.assign(globalThis, {
      setTimeout(work: () => void, ms?: number) {
        const timer = setTimeout(() => {
          timers.delete(timer);
          work();
        }, ms);
        // Other tests of this process may have timers of their own.
        if (ms === HEARTBEAT_MS || ms === 2 * HEARTBEAT_MS) timers.add(timer);
        return timer;
      },
      clearTimeout(timer: ReturnType<typeof setTimeout> | undefined) {
        timers.delete(timer);
        clearTimeout(timer);
      },
    });
    try {
      const client = new AbortController();
      const { answer, left } = late(client.signal, HEARTBEAT_MS);
      await answer;
      assertEquals(timers.size > 0, true);
      client.abort();
      await left;
      // Promise callbacks run before the next task.
      await new Promise((resolve) => setTimeout(resolve));
      assertEquals(timers.size, 0);
    } finally {
      Object.assign(globalThis, { setTimeout, clearTimeout });
    }
  });

  it("treats a client as disconnected if its response stays unread", async () => {
    const { answer, left } = late(undefined, 1);
    await answer;
    await left;
  });

  it("ends when the response fails, and logs the error", async () => {
    const { work, answer, errors } = late();
    const response = await answer;
    work.reject(new Error("Broken"));
    assertEquals(events(await response.text()), []);
    assertEquals(errors.map(String), ["Error: Broken"]);
  });
});
