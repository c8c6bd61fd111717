/** MCP servers whose responses a test defines, including responses that no server should send. */

export interface RawMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: { readonly [key: string]: unknown };
  readonly result?: unknown;
  readonly error?: unknown;
}

/** The first responses of a server of the older era; `undefined` for other requests. */
export function greeting({ id, method }: RawMessage): object | undefined {
  if (method === "server/discover") {
    return { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
  }
  if (method !== "initialize") return undefined;
  return resultOf(id, {
    protocolVersion: "2025-11-25",
    capabilities: {
      tools: { listChanged: true },
      extensions: { "io.modelcontextprotocol/skills": {} },
    },
    serverInfo: { name: "raw", version: "1.0.0" },
  });
}

export function resultOf(id: RawMessage["id"], result: object): object {
  return { jsonrpc: "2.0", id, result };
}

/** A tool of a list. */
export const tool = (name: string, more: object = {}): object => ({
  name,
  description: `Is ${name}.`,
  inputSchema: { type: "object" },
  ...more,
});

/** An answer in JSON. */
export function json(body: object): Response {
  return new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
}

type Answer = Response | Promise<Response> | object;

/** A `fetch` on a server. `answer` responds to the messages that {@linkcode greeting} does not handle. */
export function fetchRaw(
  answer: (message: RawMessage, init: RequestInit) => Answer,
  onGet: () => Response = () => new Response(null, { status: 405 }),
) {
  return async (_url: string | URL, init: RequestInit = {}): Promise<Response> => {
    if (init.method === "GET") return onGet();
    const message: RawMessage = JSON.parse(String(init.body));
    // A response to the server's own request has no method, and a notification has no id.
    if (message.method === undefined) await answer(message, init);
    if (message.method === undefined || message.id === undefined) {
      return new Response(null, { status: 202 });
    }
    const reply = greeting(message) ?? await answer(message, init);
    return reply instanceof Response ? reply : json(reply);
  };
}

/** A promise that settles only when the request is aborted, as with a silent server. */
export function silence(init: RequestInit): Promise<never> {
  return new Promise((_, reject) => {
    init.signal?.addEventListener("abort", () => reject(init.signal?.reason));
  });
}

/** A body that repeats `chunk` for ever, and the number of bytes that were read. */
export function endless(type: string, start: string, chunk: string) {
  const encoder = new TextEncoder();
  const [first, next] = [encoder.encode(start), encoder.encode(chunk)];
  const ended = Promise.withResolvers<void>();
  const sent = { bytes: 0, ended: ended.promise };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(first),
    pull(controller) {
      sent.bytes += next.byteLength;
      controller.enqueue(next);
    },
    cancel: () => ended.resolve(),
  });
  return { sent, response: new Response(body, { headers: { "content-type": type } }) };
}
