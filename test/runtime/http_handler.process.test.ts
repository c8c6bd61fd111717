import { afterAll, beforeAll, describe, it } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { connect } from "node:net";
import { createToolHandler } from "@plue/tools/hono";
import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { serve, type Served } from "./serve.ts";

/** Resolved by the waiting tool. */
const started = Promise.withResolvers<void>();
const aborted = Promise.withResolvers<void>();

const registry = new ToolRegistry({
  tools: [
    defineTool({
      name: "wait",
      description: "Waits until it is aborted.",
      execute: (_, { signal }) => {
        started.resolve();
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.resolve();
            reject(signal.reason);
          });
        });
      },
    }),
    defineTool({
      name: "echo",
      description: "Answers what it is given.",
      parameters: { type: "object", properties: { text: { type: "string" } } },
      execute: ({ text }) => text ?? null,
    }),
  ],
});
const dispatcher = new ToolDispatcher(registry);
const app = createToolHandler(registry, { dispatcher, openExecution: true, maxBodyBytes: 1000 });

describe("createToolHandler() behind a real server", () => {
  let served: Served;
  beforeAll(async () => {
    served = await serve(app.fetch as (request: Request) => Promise<Response>);
  });
  afterAll(() => served.stop());

  const post = (path: string, body: BodyInit, init: RequestInit = {}): Promise<Response> =>
    fetch(served.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      ...init,
    });

  it("lists and runs tools", async () => {
    assertEquals((await fetch(`${served.url}/tools`)).status, 200);
    const response = await post("/tools/echo/execute", '{"arguments": {"text": "hi"}}');
    assertEquals((await response.json() as { content: string }).content, "hi");
  });

  it("aborts the tool of a client that disconnects, and ends its call", async () => {
    const client = new AbortController();
    const answer = post("/tools/wait/execute", "{}", { signal: client.signal });
    await started.promise;
    client.abort();
    await assertRejects(() => answer);
    await aborted.promise;
    while (dispatcher.metrics().inFlight > 0) await new Promise((turn) => setTimeout(turn));
    const [wait] = dispatcher.metrics().tools.filter(({ id }) => id === "wait");
    assertEquals([wait?.errors.aborted, wait?.abandoned], [1, 0]);
  });

  it("rejects a body over the limit without a content-length", async () => {
    let size = 600;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        // Without a turn between them, a rejected client could continue for ever.
        await new Promise((later) => setTimeout(later));
        controller.enqueue(new Uint8Array(size));
        size = 65_536;
      },
    });
    const status = await post("/tools/echo/execute", body, { duplex: "half" } as RequestInit)
      .then((response) => response.status, () => "closed");
    // A server may close the connection on a client that continues to send.
    assertEquals(status === 413 || status === "closed", true, String(status));
  });

  it("does not run a tool whose body never came whole", async () => {
    const before = dispatcher.metrics().calls;
    const { port } = new URL(served.url);
    const socket = connect(Number(port), "127.0.0.1");
    await new Promise<void>((connected) => socket.once("connect", () => connected()));
    socket.write(
      "POST /tools/echo/execute HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n" + '{"arguments": {',
    );
    const closed = new Promise<void>((done) => socket.once("close", () => done()));
    socket.destroy();
    await closed;
    // The server answers others, and has not run the half call.
    assertEquals((await fetch(`${served.url}/healthz`)).status, 200);
    assertEquals(dispatcher.metrics().calls, before);
  });

  it("turns away another Host on the wire", async () => {
    const { port } = new URL(served.url);
    const socket = connect(Number(port), "127.0.0.1");
    const answer = new Promise<string>((done) => {
      let text = "";
      socket.on("data", (chunk: Uint8Array) => text += new TextDecoder().decode(chunk));
      socket.once("close", () => done(text));
    });
    socket.write("GET /tools HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assertEquals((await answer).startsWith("HTTP/1.1 421"), true);
  });
});
