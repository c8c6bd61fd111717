/** Tests of the watched app over real connections, for any server. */

import { it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { connect } from "node:net";
import { allEvents, sseEvents } from "../adapters/hono/sse.ts";
import type { Watch } from "./http_app.ts";

const STREAM = { "content-type": "application/json", accept: "text/event-stream" };

/** Declares the tests. `urlOf` is called when a test runs. */
export function describeStreaming(urlOf: () => string): void {
  const watch = async (): Promise<Watch> => await (await fetch(`${urlOf()}/watch`)).json();

  /** Polls until the condition holds. The test's own time limit ends an unsuccessful wait. */
  async function until(holds: (watch: Watch) => boolean): Promise<Watch> {
    for (;;) {
      const now = await watch();
      if (holds(now)) return now;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  const start = (id: string, body: unknown = {}, signal?: AbortSignal): Promise<Response> =>
    fetch(`${urlOf()}/tools/${id}/execute`, {
      method: "POST",
      headers: STREAM,
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });

  it("streams a call", async () => {
    const events = await allEvents(await start("echo", { arguments: { text: "hi" } }));
    assertEquals(events.map(({ event }) => event), ["result"]);
  });

  it("aborts a silent tool when the client disconnects", async () => {
    const before = await watch();
    const client = new AbortController();
    const response = await start("wait", {}, client.signal);
    await until(({ started }) => started > before.started);
    client.abort();
    await response.body?.cancel().catch(() => {});
    const after = await until(({ inFlight }) => inFlight === 0);
    assertEquals([after.aborted, after.cleaned], [before.aborted + 1, before.cleaned + 1]);
  });

  it("aborts a call from another connection, and sends its reader the result", async () => {
    const events = sseEvents(await start("wait", { callId: "here" }));
    const before = await until(({ inFlight }) => inFlight === 1);
    const response = await fetch(`${urlOf()}/executions/here/abort`, { method: "POST" });
    assertEquals(response.status, 202);
    await response.body?.cancel();
    const { value } = await events.next();
    assertEquals(
      (value?.data as { result: { error: { code: string } } }).result.error.code,
      "aborted",
    );
    await events.return(undefined);
    const after = await until(({ inFlight }) => inFlight === 0);
    assertEquals(after.cleaned, before.cleaned + 1);
  });

  it("pauses a tool while its reader does not read", async () => {
    const { port } = new URL(urlOf());
    const socket = connect(Number(port), "127.0.0.1");
    await new Promise<void>((connected) => socket.once("connect", () => connected()));
    const body = "{}";
    // Nothing listens for data: the socket's window fills up.
    socket.pause();
    const before = await watch();
    socket.write(
      `POST /tools/pour/execute HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: text/event-stream\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await until(({ started }) => started > before.started);
    // The tool is paused if two counts, some heartbeats apart, are equal.
    let seen = -1;
    for (let now = await watch(); now.yielded !== seen; now = await watch()) {
      seen = now.yielded;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    // The kernel's buffers hold some megabytes. Without backpressure, there would be gigabytes.
    assert(seen - before.yielded < 1_000, String(seen));
    socket.destroy();
    const after = await until(({ inFlight }) => inFlight === 0);
    assertEquals(after.cleaned, before.cleaned + 1);
  });

  it("notifies followers of events", async () => {
    const response = await fetch(`${urlOf()}/events`);
    const events = sseEvents(response);
    await allEvents(await start("grow"));
    assertEquals((await events.next()).value?.data, { type: "added", id: "grown" });
    await events.return(undefined);
  });

  it("serves 200 concurrent streams, and has none after their clients disconnect", async () => {
    const before = await watch();
    const clients = new AbortController();
    const responses = await Promise.all(
      Array.from({ length: 200 }, () => start("wait", {}, clients.signal)),
    );
    await until(({ inFlight }) => inFlight === 200);
    clients.abort();
    await Promise.all(responses.map(({ body }) => body?.cancel().catch(() => {})));
    const after = await until(({ inFlight }) => inFlight === 0);
    assertEquals(after.cleaned, before.cleaned + 200);
  });
}
