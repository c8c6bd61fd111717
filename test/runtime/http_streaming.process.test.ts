import { afterAll, beforeAll, describe, it } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { connect, type Socket } from "node:net";
import { createWatchedApp, type Watch } from "./http_app.ts";
import { describeStreaming } from "./http_watched.ts";
import { serve, type Served } from "./serve.ts";
import { poll } from "../support/waiting.ts";

describe("the handler behind a real server", () => {
  let served: Served;
  beforeAll(async () => {
    const app = createWatchedApp();
    served = await serve((request) => app.fetch(request));
  });
  afterAll(() => served.stop());
  describeStreaming(() => served.url);

  const watch = async (): Promise<Watch> => await (await fetch(`${served.url}/watch`)).json();

  const post = (path: string, body: BodyInit, init: RequestInit = {}): Promise<Response> =>
    fetch(served.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      ...init,
    });

  async function connected(): Promise<Socket> {
    const socket = connect(Number(new URL(served.url).port), "127.0.0.1");
    await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
    return socket;
  }

  it("aborts the tool of a client that waits for the result and disconnects", async () => {
    const before = await watch();
    const client = new AbortController();
    const answer = post("/tools/wait/execute", "{}", { signal: client.signal });
    await poll(async () => (await watch()).started !== before.started);
    client.abort();
    await assertRejects(() => answer);
    await poll(async () => (await watch()).inFlight === 0);
    assertEquals((await watch()).aborted, before.aborted + 1);
  });

  it("rejects a body over the limit without a content-length", async () => {
    let size = 600;
    let isOver = false;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        // Yields between the writes, because a rejected client could otherwise continue for ever.
        await new Promise((later) => setTimeout(later));
        if (isOver) return controller.close();
        controller.enqueue(new Uint8Array(size));
        size = 65_536;
      },
    });
    const status = await post("/tools/echo/execute", body, { duplex: "half" } as RequestInit)
      .then((response) => response.status, () => "closed")
      .finally(() => isOver = true);
    // A server may close the connection on a client that continues to send.
    assertEquals(status === 413 || status === "closed", true, String(status));
  });

  it("does not run a tool whose body is incomplete", async () => {
    const before = await watch();
    const socket = await connected();
    socket.write(
      "POST /tools/wait/execute HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n" + '{"arguments": {',
    );
    const closed = new Promise<void>((done) => socket.once("close", () => done()));
    socket.destroy();
    await closed;
    // The server responds to other requests, and has not run the incomplete call.
    assertEquals((await fetch(`${served.url}/healthz`)).status, 200);
    assertEquals((await watch()).started, before.started);
  });

  it("rejects another Host header", async () => {
    const socket = await connected();
    const answer = new Promise<string>((done) => {
      let text = "";
      socket.on("data", (chunk: Uint8Array) => text += new TextDecoder().decode(chunk));
      socket.once("close", () => done(text));
    });
    socket.write("GET /tools HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assertEquals((await answer).startsWith("HTTP/1.1 421"), true);
  });
});
