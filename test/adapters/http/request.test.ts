import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { ToolRegistry } from "@plue/tools";
import type { AccessEntry } from "@plue/tools/hono";
import * as http from "../../../src/adapters/http/mod.ts";
import { toolOf } from "../../support/tool_of.ts";
import { isResponse } from "../../../src/adapters/http/responses.ts";

const registry = new ToolRegistry({
  tools: [
    toolOf("open", () => 1, { risk: "safe" }),
    toolOf("staff", () => 2, { roles: ["staff"] }),
  ],
});
interface Given {
  readonly options?: http.HttpOptions;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly executionCtx?: unknown;
}

/** Answers one request without Hono. */
async function ask(answer: http.RequestAnswer, input: Given = {}): Promise<Response> {
  const { options = {}, headers = {}, body, executionCtx } = input;
  const raw = new Request("http://localhost/any", {
    headers,
    ...(body === undefined ? {} : { method: "POST", body }),
  });
  const server = new http.ToolServer(registry, options);
  for (const part of http.sharedParts(options)) server.install(part);
  const respond = () => server.answer({ req: { raw }, env: {}, executionCtx }, "/any", answer);
  return await (server.around?.(raw, respond) ?? respond());
}

describe("ToolServer", () => {
  it("returns a problem if the answer throws, and logs the error", async () => {
    const errors: unknown[] = [];
    const broken = new Error("broken");
    const options = { onError: (error: unknown) => void errors.push(error) };
    for (
      const answer of [() => Promise.reject(broken), () => {
        throw broken;
      }]
    ) assertEquals((await ask(answer, { options })).status, 500);
    assertEquals(errors, [broken, broken]);
  });
});

describe("ToolRequest", () => {
  it("records its calls for the access log", async () => {
    const entries: AccessEntry[] = [];
    const options = { observe: { access: (entry: AccessEntry) => void entries.push(entry) } };
    await ask(async (request) => {
      const call = request.beginCall("open", "c1");
      call.end(await request.dispatcher.dispatch({ name: "open", arguments: {} }));
      request.beginCall("none", "c2");
      return http.json("done");
    }, { options });
    const [entry] = entries;
    assertEquals([entry?.route, entry?.calls], ["/any", [
      { toolId: "open", callId: "c1", outcome: "ok" },
      { toolId: "none", callId: "c2", outcome: undefined },
    ]]);
  });

  it("returns a problem of the client if a body is late or ends early", async () => {
    const answer: http.RequestAnswer = async (request) => http.json(await request.readJson());
    const errors: unknown[] = [];
    const options = { bodyTimeoutMs: 1, onError: (error: unknown) => void errors.push(error) };
    const send = async (body: ReadableStream<Uint8Array>, used = false): Promise<Response> => {
      const raw = new Request("http://localhost/any", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        duplex: "half",
      } as RequestInit);
      if (used) await raw.text();
      const server = new http.ToolServer(registry, options);
      return await server.answer({ req: { raw }, env: {}, executionCtx: undefined }, "/", answer);
    };
    const late = await send(new ReadableStream({ pull: () => new Promise(() => {}) }));
    assertEquals([late.status, late.headers.get("connection")], [408, "close"]);
    const early = await send(
      new ReadableStream({
        pull(controller) {
          controller.error(new TypeError("BadResource"));
        },
      }),
    );
    assertEquals([early.status, errors.length], [400, 0]);
    // If the host's own code has read the body, the error is the host's.
    const body = new Response("{}").body as ReadableStream<Uint8Array>;
    assertEquals([(await send(body, true)).status, errors.length], [500, 1]);
  });

  it("passes work to the platform with waitUntil", async () => {
    const handed: unknown[] = [];
    const work = Promise.resolve();
    const answer: http.RequestAnswer = (request) => {
      request.keepAlive(work);
      return http.json("done");
    };
    await ask(answer, { executionCtx: { waitUntil: (promise: unknown) => handed.push(promise) } });
    await ask(answer, { executionCtx: "a server of Bun's" });
    await ask(answer);
    assert(handed.length === 1 && handed[0] === work);
  });
});

describe("isResponse()", () => {
  for (
    const [value, expected] of [
      [new Response(), true],
      [{ headers: {}, status: 200 }, true],
      [{ headers: {} }, false],
      [{ status: 200 }, false],
      [null, false],
      ["text", false],
    ] as const
  ) {
    it(`returns ${expected} for ${JSON.stringify(value)}`, () => {
      assertEquals(isResponse(value), expected);
    });
  }
});
