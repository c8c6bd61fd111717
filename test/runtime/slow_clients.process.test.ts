import { afterAll, beforeAll, describe, it } from "bun:test";
import { assertEquals, assertMatch } from "@std/assert";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createToolHandler } from "@plue/tools/hono";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { ToolRegistry } from "@plue/tools";
import { maybe } from "../support/skip.ts";
import { serve, type Served } from "./serve.ts";

const isDeno = "Deno" in globalThis;
const errors: unknown[] = [];
let notified = Promise.withResolvers<void>();
const registry = new ToolRegistry({
  tools: [{ name: "ping", description: "Answers.", risk: "safe", execute: () => "pong" }],
});
const options = {
  maxBodyBytes: 1_000,
  openExecution: true,
  onError: (error: unknown) => void errors.push(error),
} as const;
/** Creates a service that waits for a body for this time. */
function appWith(bodyTimeoutMs: number) {
  const app = createToolHandler(registry, {
    ...options,
    bodyTimeoutMs,
    observe: { access: () => notified.resolve() },
  });
  app.all("/mcp", createMcpEndpoint(registry, { ...options, bodyTimeoutMs }).handle);
  return app;
}

describe("a slow client", () => {
  let served: Served;
  let patient: Served;
  beforeAll(async () => {
    const start = (bodyTimeoutMs: number): Promise<Served> =>
      serve(appWith(bodyTimeoutMs).fetch as (request: Request) => Promise<Response>);
    [served, patient] = [await start(200), await start(30_000)];
  });
  afterAll(async () => {
    await served.stop();
    await patient.stop();
  });

  async function open(text: string, { url } = served): Promise<Socket> {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    await once(socket, "connect");
    socket.write(text);
    return socket;
  }

  /**
   * Everything that arrives until the server closes the connection. Deno keeps it open while a body
   * is incomplete, whatever the answer says (docs/http.md), so there the first data is the answer.
   */
  async function answerOf(socket: Socket): Promise<string> {
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      if (isDeno) socket.destroy();
    });
    socket.on("error", () => {}).resume();
    await once(socket, "close");
    return text;
  }

  const head = (path: string, ...headers: string[]): string =>
    [
      `POST ${path} HTTP/1.1`,
      "Host: localhost",
      "Content-Type: application/json",
      "Accept: application/json, text/event-stream",
      ...headers,
      "\r\n",
    ].join("\r\n");

  maybe("Bun" in globalThis, "only Bun is told how long a connection may be silent")(
    "that sends its body for as long as it may is not cut off before that",
    async () => {
      const limits: number[] = [];
      const isSlow = Promise.withResolvers<void>();
      const server = {
        requestIP: () => null,
        timeout(_: Request, seconds: number) {
          limits.push(seconds);
          isSlow.resolve();
        },
      };
      const request = new Request("http://localhost/tools/ping/execute", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: new ReadableStream({
          async pull(controller) {
            await isSlow.promise;
            controller.enqueue(new TextEncoder().encode("{}"));
            controller.close();
          },
        }),
      });
      await createToolHandler(registry, { ...options, bodyTimeoutMs: 30_000 }).fetch(
        request,
        server,
      );
      assertEquals(limits, [0, 10]);
    },
  );

  for (const path of ["/tools/ping/execute", "/mcp"]) {
    for (
      const [what, text] of [
        ["does not send its body", head(path, "Content-Length: 100")],
        ["does not end its body", head(path, "Transfer-Encoding: chunked") + "1\r\n{\r\n"],
      ] as const
    ) {
      it(`that ${what} receives an error and is disconnected: ${path}`, async () => {
        assertMatch(await answerOf(await open(text)), /^HTTP\/1.1 408 /);
      });
    }

    it(`that sends its body byte by byte is disconnected: ${path}`, async () => {
      const socket = await open(head(path, "Content-Length: 100"));
      const timer = setInterval(() => socket.write(" "), 20);
      try {
        assertMatch(await answerOf(socket), /^HTTP\/1.1 408 /);
      } finally {
        clearInterval(timer);
      }
    });

    it(`that reads only after it has sent too much receives the response: ${path}`, async () => {
      const body = "x".repeat(4_000_000);
      const socket = await open("", patient);
      socket.pause();
      const sent = new Promise<void>((resolve) =>
        socket.write(head(path, `Content-Length: ${body.length}`) + body, () => resolve())
      );
      await sent;
      assertMatch(await answerOf(socket), /^HTTP\/1.1 413 /);
    });
  }

  it("that disconnects while its body is read does not cause a server error", async () => {
    notified = Promise.withResolvers<void>();
    const socket = await open(head("/tools/ping/execute", "Content-Length: 100"));
    // When the server has answered a later request, it has received this one too.
    await (await fetch(`${served.url}/healthz`)).text();
    await notified.promise;
    notified = Promise.withResolvers<void>();
    socket.destroy();
    await notified.promise;
    assertEquals(errors, []);
  });

  it("with an unsupported method receives 405", async () => {
    for (const path of ["/mcp", "/tools"]) {
      const socket = await open(
        `TRACE ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );
      assertMatch(await answerOf(socket), /^HTTP\/1.1 40[05] /);
    }
    assertEquals(errors, []);
  });
});
