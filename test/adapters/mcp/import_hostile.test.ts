import { type ToolContext, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { importMcpServer, skillCatalog } from "@plue/tools/mcp";
import type { HeldTool, ImportPins } from "@plue/tools/pins";
import { Client, InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { McpConnection } from "../../../src/adapters/mcp/connection.ts";
import * as bounds from "../../../src/adapters/mcp/server_bounds.ts";
import { maybe } from "../../support/skip.ts";
import { FakeClock } from "../../support/waiting.ts";
import * as raw from "./raw_server.ts";

const { boundedFetch, boundMessages, Pace, readLines, UnsolicitedMessages } = bounds;
const { endless, fetchRaw, greeting, json, resultOf, silence, tool } = raw;
type RawMessage = raw.RawMessage;
const URL_OF_SERVER = "http://far.example/mcp";
const KB = 1_024;
const EVENTS = { "content-type": "text/event-stream" };
const encode = (text: string) => new TextEncoder().encode(text);

/** Imports a server whose requests `fetch` answers. */
const importFrom = (fetch: ReturnType<typeof fetchRaw>, options: object = {}) =>
  importMcpServer(URL_OF_SERVER, {
    namespace: "far",
    reconnect: { firstDelayMs: 1, maxDelayMs: 5 },
    http: { fetch },
    ...options,
  });

/** Imports a server with one tool. `answer` returns the responses to its calls. */
async function calling(
  answer: (message: RawMessage, init: RequestInit) => Response | object,
  options: object = {},
  onGet?: () => Response,
) {
  const registry = new ToolRegistry();
  const server = await importFrom(
    fetchRaw(
      (message, init) =>
        message.method === "tools/list"
          ? resultOf(message.id, { tools: [tool("call")] })
          : answer(message, init),
      onGet,
    ),
    { registry, ...options },
  );
  const call = (signal?: AbortSignal) =>
    new ToolDispatcher(registry).dispatch({ name: "far:call", arguments: {} }, { signal });
  return { server, call };
}

describe("an imported server that sends too much", () => {
  for (
    const [what, type, start, chunk] of [
      ["JSON without an end", "application/json", '{"jsonrpc":"2.0","id":2,"a":"', "a".repeat(KB)],
      ["an event without an end", "text/event-stream", "data: ", "a".repeat(KB)],
      ["an event of lines without an end", "text/event-stream", "", `data: ${"a".repeat(90)}\r\n`],
      ["an event of short lines", "text/event-stream", "", "data: a\n".repeat(100)],
      ["an event of lines that end in CR", "text/event-stream", "", "data: a\r".repeat(100)],
    ] as const
  ) {
    it(`is distinguished from a slow one: ${what}`, async () => {
      const body = endless(type, start, chunk);
      const { server, call } = await calling(() => body.response, { maxMessageBytes: 64 * KB });
      const result = await call();
      assertEquals(result.ok ? "ran" : result.error.code, "threw");
      assertStringIncludes(
        result.ok ? "" : result.error.message,
        "the server sent more than 65536 bytes in one message, which is the limit",
      );
      await body.sent.ended;
      assert(body.sent.bytes < 512 * KB, `${body.sent.bytes} bytes were read`);
      await server.close();
    });
  }

  it("may send many events that are small", async () => {
    const event = (message: object): string =>
      `event: message\r\ndata: ${JSON.stringify(message)}\r\n\r\n`;
    const note = {
      jsonrpc: "2.0",
      method: "notifications/message",
      params: { level: "info", data: "a".repeat(KB) },
    };
    const { server, call } = await calling(
      ({ id }) => {
        const text = [{ type: "text", text: "done" }];
        const events = event(note).repeat(200) + event(resultOf(id, { content: text }));
        return new Response(events, { headers: { "content-type": "text/event-stream" } });
      },
      { maxMessageBytes: 64 * KB },
    );
    const result = await call();
    assertEquals(result.ok && result.content, "done");
    await server.close();
  });

  it("cannot send notifications without end in response to one request", async () => {
    let sent = 0;
    const note = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info" } };
    const chunk = new TextEncoder().encode(
      `data: ${JSON.stringify({ ...note, data: "a".repeat(KB) })}\n\n`.repeat(4),
    );
    const { server, call } = await calling(
      () => {
        const body = new ReadableStream<Uint8Array>({
          pull: (controller) => (sent += chunk.byteLength, controller.enqueue(chunk)),
        });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      },
      { maxMessageBytes: 64 * KB },
    );
    const result = await call();
    assertStringIncludes(
      result.ok ? "" : result.error.message,
      "the server sent more than 262144 bytes in response to one request, which is the limit",
    );
    assert(sent < 512 * KB, `${sent} bytes were read`);
    await server.close();
  });

  for (const [list, others] of [["tools"], ["skills"], ["skills", "tools"]] as const) {
    const next = others === undefined ? "" : ` next to a list of ${others}`;
    it(`cannot be imported with a list of ${list} that is too large${next}, page by page`, async () => {
      let pages = 0;
      const more = others === undefined ? {} : { [others]: [] };
      const page = (name: string, description: string): object =>
        list === "tools"
          ? tool(name, { description })
          : { uri: `skill://${name}/SKILL.md`, frontmatter: { name, description }, resources: [] };
      const fetch = fetchRaw(({ id, method }) =>
        resultOf(
          id,
          method === `${list}/list`
            ? {
              ...more,
              [list]: [page(`p${++pages}`, "a".repeat(10 * KB))],
              nextCursor: String(pages),
            }
            : { tools: [] },
        )
      );
      const skills = await skillCatalog({});
      await assertRejects(
        () => importFrom(fetch, { skills, maxMessageBytes: 256 * KB }),
        Error,
        `its list of ${list} has more than 65536 characters`,
      );
      assertEquals(pages, 7);
    });
  }

  it("cannot be imported with pages without an end", async () => {
    let pages = 0;
    await assertRejects(
      () =>
        importFrom(fetchRaw(({ id }) => resultOf(id, { tools: [], nextCursor: String(++pages) }))),
      Error,
      "exceeded listMaxPages (64)",
    );
    assertEquals(pages, 64);
  });

  it("receives few responses at a time to its own requests", async () => {
    const requested = Array.from({ length: 500 }, (_, index) => ({
      jsonrpc: "2.0",
      id: `ask-${index}`,
      method: index % 2 === 0 ? "sampling/createMessage" : "ping",
    }));
    const release = Promise.withResolvers<void>();
    let open = 0;
    let most = 0;
    const registry = new ToolRegistry();
    await using _server = await importFrom(
      fetchRaw(async (message) => {
        if (message.method === undefined) {
          most = Math.max(most, ++open);
          await release.promise;
          open--;
        }
        if (message.method === "tools/list") return resultOf(message.id, { tools: [tool("call")] });
        const events = [...requested, resultOf(message.id, { content: [] })];
        const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      }),
      { registry },
    );
    await new ToolDispatcher(registry).dispatch({ name: "far:call", arguments: {} });
    release.resolve();
    assert(most > 0 && most <= 16, `${most} answers at once`);
  });

  /** A client of a server that sends `list_changed` after each list. */
  async function changing(listed: (count: number) => object, most = Infinity) {
    const [near, far] = InMemoryTransport.createLinkedPair();
    let lists = 0;
    far.onmessage = (message) => {
      const request = message as RawMessage;
      const say = (what: object): void => void far.send(what as JSONRPCMessage);
      const hello = greeting(request);
      if (hello !== undefined) say(hello);
      else if (request.method === "tools/call") say(resultOf(request.id, { content: [] }));
      else if (request.method === "tools/list") {
        say(resultOf(request.id, { tools: [tool("call", listed(++lists))] }));
        if (lists < most) say({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
      }
    };
    await far.start();
    const client = new Client({ name: "test", version: "1.0.0" });
    await client.connect(near);
    return { client, lists: () => lists };
  }

  it("is read again after growing delays if it reports a change after each list", async () => {
    // Each list has the members of the definition in a different order.
    const { client, lists } = await changing((count) => ({
      _meta: count % 2 === 0 ? { a: 1, b: 2 } : { b: 2, a: 1 },
    }));
    const registry = new ToolRegistry();
    const server = await importMcpServer(client, { namespace: "far", registry });
    const { revision } = registry;
    const dispatcher = new ToolDispatcher(registry);
    const CALLS = 300;
    for (let call = 0; call < CALLS; call++) {
      await dispatcher.dispatch({ name: "far:call", arguments: {} });
      // Lets timers run.
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    assert(lists() > 1 && lists() < 20, `${lists()} lists during ${CALLS} calls`);
    assertEquals(registry.revision, revision);
    await server.close();
    await client.close();
  });

  it("has a list imported again only if it differs, or has held tools at a refresh", async () => {
    const { client, lists } = await changing(
      (count) => ({ description: count < 3 ? "Is the same." : "Differs." }),
      3,
    );
    const imported: string[] = [];
    const changed = Promise.withResolvers<void>();
    const pins: ImportPins = {
      check: (result) => {
        imported.push(result.tools[0]?.description ?? "");
        const approve = () => Promise.reject(new Error());
        if (imported.length !== 2) return Promise.resolve({ ...result, held: [], approve });
        changed.resolve();
        const held = result.tools.map((tool) => ({ id: tool.id, tool }) as HeldTool);
        return Promise.resolve({ ...result, tools: [], held, approve });
      },
    };
    await using server = await importMcpServer(client, { namespace: "far", pins });
    await changed.promise;
    assertEquals([lists(), imported], [3, ["Is the same.", "Differs."]]);
    await server.refresh();
    await server.refresh();
    assertEquals(imported, ["Is the same.", "Differs.", "Differs."]);
  });

  it("has its stream reopened at a bounded pace", async () => {
    let streams = 0;
    const twice = Promise.withResolvers<void>();
    const { server, call } = await calling(({ id }) => resultOf(id, { content: [] }), {}, () => {
      if (++streams === 2) twice.resolve();
      return new Response("retry: 0\n\n", { headers: { "content-type": "text/event-stream" } });
    });
    await twice.promise;
    for (let count = 0; count < 100; count++) await call();
    assert(streams < 10, `${streams} streams`);
    await server.close();
  });
});

it("a closed import does not wait until its streams would be reopened", async () => {
  const original = globalThis.setTimeout;
  const waiting = new Set<unknown>();
  const LATER_MS = 23_456;
  const retry = () => new Response(`retry: ${LATER_MS}\n\n`, { headers: EVENTS });
  const polled = Promise.withResolvers<void>();
  const { clearTimeout: clear } = globalThis;
  globalThis.setTimeout = ((callback: () => void, ms?: number) => {
    const timer = original(callback, ms);
    if (ms === LATER_MS) waiting.add(timer);
    if (waiting.size === 2) polled.resolve();
    return timer;
  }) as typeof setTimeout;
  globalThis.clearTimeout = (timer) => {
    waiting.delete(timer);
    clear(timer);
  };
  try {
    const { server, call } = await calling(
      () => new Response(`retry: ${LATER_MS}\nid: 1\ndata: \n\n`, { headers: EVENTS }),
      {},
      retry,
    );
    const result = call();
    await polled.promise;
    await server.close();
    assertEquals(waiting.size, 0);
    assertEquals((await result).ok, false);
  } finally {
    Object.assign(globalThis, { setTimeout: original, clearTimeout: clear });
  }
});

it("an HTTP request ends when the revision of a server is known, although the server leaves it open", async () => {
  const ended = Promise.withResolvers<void>();
  const respond = fetchRaw(({ id }) => resultOf(id, { tools: [] }));
  await using _server = await importFrom(async (url, init) => {
    const response = await respond(url, init);
    if (!String(init?.body).includes("server/discover")) return response;
    init?.signal?.addEventListener("abort", () => ended.resolve());
    const event = `data: ${await response.text()}\n\n`;
    const start = (stream: ReadableStreamDefaultController) => stream.enqueue(encode(event));
    return new Response(new ReadableStream({ start }), { headers: EVENTS });
  });
  await ended.promise;
});

for (const [what, isAnswered] of [["was answered", true], ["is aborted", false]] as const) {
  it(`an HTTP request ends when its call ${what}, although the server leaves it open`, async () => {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { server, call } = await calling(({ id }, init) => {
      init.signal?.addEventListener("abort", () => ended.resolve());
      begun.resolve();
      const event = `data: ${JSON.stringify(resultOf(id, { content: [] }))}\n\n`;
      const start = (stream: ReadableStreamDefaultController) => stream.enqueue(encode(event));
      const response = new Response(new ReadableStream({ start }), { headers: EVENTS });
      return isAnswered ? response : silence(init);
    });
    const caller = new AbortController();
    const result = call(caller.signal);
    await begun.promise;
    if (!isAnswered) caller.abort();
    assertEquals((await result).ok, isAnswered);
    await ended.promise;
    await server.close();
  });
}

it("imports open a stream each, and 64 at a time for the connections of callers", async () => {
  let [streams, tokens] = [0, 0];
  const options = { authorize: () => `token-${++tokens}`, maxConnections: 400 };
  const open = async (status = 200) => {
    streams = 0;
    const { server, call } = await calling(({ id }) => resultOf(id, {}), options, () => {
      streams++;
      const body = status === 200 ? new ReadableStream() : null;
      return new Response(body, { headers: EVENTS, status });
    });
    for (let count = 0; count < 40; count++) await call();
    return { server, streams };
  };
  const without = await open(405);
  const [first, second] = [await open(), await open()];
  await first.server.close();
  const third = await open();
  assertEquals([first.streams, second.streams, third.streams], [41, 25, 41]);
  for (const { server } of [without, second, third]) await server.close();
});

describe("an imported server that answers a caller with status 401", () => {
  it("counts the caller's connection until its calls have ended, and closes it", async () => {
    let isRefused = false;
    const begun = Promise.withResolvers<void>();
    const answer = fetchRaw(({ id, method }, init) => {
      if (method !== "tools/call") return resultOf(id, { tools: [tool("call")] });
      if (isRefused) return new Response("", { status: 401 });
      begun.resolve();
      return raw.silence(init);
    });
    const registry = new ToolRegistry();
    const options = { registry, authorize: () => "token", sharesList: true, maxConnections: 8 };
    const server = await importFrom(answer, options);
    const call = async () => {
      const result = await new ToolDispatcher(registry).dispatch({ name: "far:call" });
      return result.ok ? "ok" : result.error.code;
    };
    const waiting = call();
    await begun.promise;
    isRefused = true;
    assertEquals([await call(), await call()], ["denied", "overloaded"]);
    await server.close();
    assertEquals(await waiting, "unavailable");
  });

  const challenge = 'Bearer error="insufficient_scope", scope="admin"';
  const REJECTIONS = [
    [403, "denied", { "www-authenticate": challenge }, 'Insufficient scope: required "admin"'],
    [403, "denied", {}, "Error POSTing to endpoint"],
    [429, "overloaded", {}, "Error POSTing to endpoint"],
  ] as const;
  for (const [status, code, headers, words] of REJECTIONS) {
    it(`is not lost, and has not run the call, with status ${status}: ${words}`, async () => {
      let calls = 0;
      const answer = () => (calls++, new Response("", { status, headers }));
      const { server, call } = await calling(answer);
      const result = await call();
      assert(!result.ok);
      assertStringIncludes(result.error.message, `sent HTTP status ${status}. ${words}`);
      assertEquals([result.error.code, result.error.ran, calls], [code, "no", 1]);
      await server.close();
    });
  }

  it("is not lost if the token of the host's own provider was revoked", async () => {
    let isRevoked = false;
    const answer = fetchRaw(({ id, method }) =>
      isRevoked
        ? new Response("", { status: 401 })
        : resultOf(id, method === "tools/list" ? { tools: [tool("call")] } : { content: [] })
    );
    const authProvider = {
      redirectUrl: "http://host.example/callback",
      clientMetadata: { redirect_uris: ["http://host.example/callback"] },
      clientInformation: () => ({ client_id: "host" }),
      tokens: () => ({ access_token: "token", token_type: "Bearer" }),
      saveTokens: () => {},
      saveCodeVerifier: () => {},
      codeVerifier: () => "verifier",
      redirectToAuthorization: () => {},
    };
    const fetch: typeof answer = (url, init) =>
      String(url) === URL_OF_SERVER
        ? answer(url, init)
        : Promise.resolve(new Response("", { status: 404 }));
    const registry = new ToolRegistry();
    const states: unknown[] = [];
    const onState = (error: unknown): void => void states.push(error);
    await using _server = await importFrom(fetch, {
      ...{ registry, onState },
      http: { fetch, authProvider },
    });
    isRevoked = true;
    const result = await new ToolDispatcher(registry).dispatch({ name: "far:call" });
    assert(!result.ok);
    assertEquals([result.error.code, result.error.ran], ["denied", "no"]);
    assertEquals(states, [undefined]);
  });

  for (const [status, retryable] of [[401, false], [503, true]] as const) {
    it(`is reported once per attempt to connect for all waiting calls, with status ${status}`, async () => {
      const own = fetchRaw(({ id }) => resultOf(id, { tools: [tool("call")] }));
      const begun = Promise.withResolvers<void>();
      let attempts = 0;
      const fetch: typeof own = async (url, init) => {
        if (!new Headers(init?.headers).has("authorization")) return await own(url, init);
        if (String(init?.body).includes("server/discover")) attempts++;
        await begun.promise;
        // The calls compute digests, which end before this one.
        for (let at = 0; at < 20; at++) await crypto.subtle.digest("SHA-256", new Uint8Array(KB));
        return new Response(null, { status });
      };
      const registry = new ToolRegistry();
      const errors: unknown[] = [];
      const onError = (error: unknown): void => void errors.push(error);
      let calls = 0;
      const authorize = (): string => {
        if (++calls === 20) begun.resolve();
        return "token";
      };
      await using _server = await importFrom(fetch, { registry, authorize, onError });
      const dispatcher = new ToolDispatcher(registry);
      const results = await Promise.all(
        Array.from({ length: 20 }, () => dispatcher.dispatch({ name: "far:call" })),
      );
      for (const result of results) {
        assert(!result.ok);
        const { code, message, retryable: isRetryable } = result.error;
        assertEquals([code, isRetryable], ["unavailable", retryable]);
        assertStringIncludes(message, 'Cannot call "far:call": the MCP server cannot be reached');
      }
      assertEquals(errors.length, attempts);
      assert(attempts < 20);
    });
  }
});

describe("an imported server with a failed response", () => {
  for (
    const [what, response, code, refusesPing] of [
      ["an error of a proxy", () => new Response("late", { status: 504 }), "unavailable", false],
      ["a limit of the rate", () => new Response("no", { status: 503 }), "unavailable", true],
      ["a refusal", () => new Response("no", { status: 404 }), "threw", false],
      ["a refusal without sessions", () => new Response("no", { status: 400 }), "threw", true],
      [
        "a page",
        () => new Response("<p>", { headers: { "content-type": "text/html" } }),
        "unavailable",
        false,
      ],
      [
        "a stream that ends",
        () => new Response(": \n\n", { headers: EVENTS }),
        "unavailable",
        false,
      ],
      [
        "a stream that cannot be resumed",
        () => new Response("retry: 1\nid: 1\ndata: \n\n", { headers: EVENTS }),
        "unavailable",
        false,
      ],
    ] as const
  ) {
    it(`does not lose the running calls of others after ${what}`, async () => {
      let sent = 0;
      const answered = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      await using server = await importFrom(fetchRaw(async ({ id, method, params }) => {
        if (method === "tools/list") return resultOf(id, { tools: [tool("long"), tool("bad")] });
        if (params?.["name"] === "bad") sent++;
        if (params?.["name"] === "bad" || method === "ping" && refusesPing) return response();
        if (method !== "tools/call") return resultOf(id, {});
        begun.resolve();
        await answered.promise;
        return resultOf(id, { content: [{ type: "text", text: "done" }] });
      }));
      const registry = new ToolRegistry({ tools: server.tools });
      const dispatcher = new ToolDispatcher(registry);
      const long = dispatcher.dispatch({ name: "far:long" });
      await begun.promise;
      const bad = await dispatcher.dispatch({ name: "far:bad" });
      answered.resolve();
      const { ok } = await long;
      assertEquals([bad.ok ? "ok" : bad.error.code, ok], [code, true]);
      assertEquals(sent, 1);
    });
  }
});

describe("an imported server that has lost its sessions", () => {
  let rejections = 0;
  const reject = () => Promise.resolve(void rejections++);
  const own = { authorize: () => ({ token: "token", reject }) };
  const all: [number, string, object?][] = [[404, "ok"], [410, "ok"], [401, "unavailable"]];
  for (const [status, first, options] of [...all, [401, "denied", own]] as typeof all) {
    it(`gets a new session after status ${status}, which means: ${first}, and ends it`, async () => {
      let session = "first";
      const ended: string[] = [];
      const answer = fetchRaw(({ id }) => resultOf(id, { tools: [tool("call")], content: [] }));
      const registry = new ToolRegistry();
      const server = await importFrom(async (url, init = {}) => {
        const sent = new Headers(init.headers).get("mcp-session-id") ?? session;
        if (init.method === "DELETE") ended.push(sent);
        if (sent !== session) return new Response("no", { status });
        const response = await answer(url, init);
        response.headers.set("mcp-session-id", session);
        return response;
      }, { registry, ...options });
      const call = () => new ToolDispatcher(registry).dispatch({ name: "far:call" });
      await call();
      session = "second";
      const codes = [await call(), await call()].map((one) => one.ok ? "ok" : one.error.code);
      assertEquals(codes, [first, "ok"]);
      await server.close();
      assert(ended.includes(session));
      assertEquals(rejections, options === own ? 1 : 0);
    });
  }
});

it("a failure of a call contains no key of the server's address", async () => {
  const key = "k-0123456789-0123456789";
  const answer = fetchRaw(({ id, method }) =>
    method === "tools/call"
      ? { jsonrpc: "2.0", id, error: { code: -32_000, message: `No ${key}` } }
      : resultOf(id, { tools: [tool("call")] })
  );
  const registry = new ToolRegistry();
  const http = { fetch: answer };
  const url = `http://far.example/mcp/${key}`;
  await using _server = await importMcpServer(url, { namespace: "far", registry, http });
  const result = await new ToolDispatcher(registry).dispatch({ name: "far:call" });
  assertStringIncludes(result.ok ? "" : result.error.message, "No [credential]");
});

describe("an imported server that is replaced", () => {
  it("completes its running calls, and the next connection sends a call that did not reach it", async () => {
    const [begun, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const sent: unknown[] = [];
    let isReplaced = false;
    const registry = new ToolRegistry();
    await using _server = await importFrom(
      fetchRaw(async ({ id, method, params }) => {
        if (method === "tools/list") return resultOf(id, { tools: [tool("long"), tool("other")] });
        if (method !== "tools/call") return resultOf(id, {});
        if (isReplaced) {
          isReplaced = false;
          throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
        }
        sent.push(params?.["name"]);
        if (params?.["name"] === "long") {
          begun.resolve();
          await answered.promise;
        }
        return resultOf(id, { content: [{ type: "text", text: "done" }] });
      }),
      { registry },
    );
    const dispatcher = new ToolDispatcher(registry);
    const long = dispatcher.dispatch({ name: "far:long" });
    await begun.promise;
    isReplaced = true;
    const other = await dispatcher.dispatch({ name: "far:other" });
    answered.resolve();
    const { ok } = await long;
    assert(ok && other.ok);
    assertEquals(sent, ["long", "other"]);
  });

  for (const end of ["its last call has ended", "the import is closed"]) {
    it(`closes the replaced connection when ${end}`, async () => {
      const [begun, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const streams: (AbortSignal | null | undefined)[] = [];
      let isReplaced = false;
      const registry = new ToolRegistry();
      const answer = fetchRaw(async ({ id, method, params }, init) => {
        if (method !== "tools/call") return resultOf(id, { tools: [tool("long"), tool("other")] });
        if (isReplaced) {
          isReplaced = false;
          throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
        }
        if (params?.["name"] === "long") {
          begun.resolve();
          await Promise.race([answered.promise, silence(init)]);
        }
        return resultOf(id, { content: [] });
      });
      await using server = await importFrom(async (url, init) => {
        if (init?.method === "GET") streams.push(init.signal);
        return await answer(url, init);
      }, { registry });
      const dispatcher = new ToolDispatcher(registry);
      const long = dispatcher.dispatch({ name: "far:long" });
      await begun.promise;
      isReplaced = true;
      await dispatcher.dispatch({ name: "far:other" });
      assertEquals(streams[0]?.aborted, false);
      if (end === "the import is closed") await server.close();
      else answered.resolve();
      assertEquals((await long).ok, end !== "the import is closed");
      assertEquals(streams[0]?.aborted, true);
    });
  }

  it("keeps its connection after a rejected call, although it rejects pings with the same status", async () => {
    const methods: unknown[] = [];
    const answer = fetchRaw(({ id }) => resultOf(id, { tools: [tool("call")] }));
    const registry = new ToolRegistry();
    await using _server = await importFrom(async (url, init = {}) => {
      const { id, method } = JSON.parse(String(init.body ?? "{}"));
      methods.push(method);
      if (method !== "tools/call" && method !== "ping") return await answer(url, init);
      const error = { code: -32_602, message: "wrong amount" };
      return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
    }, { registry });
    methods.length = 0;
    const result = await new ToolDispatcher(registry).dispatch({ name: "far:call" });
    assert(!result.ok && result.error.message.includes("wrong amount"));
    assertEquals(methods, ["tools/call", "ping", "tools/list"]);
  });

  it("gives all calls of a lost session the next one, although its requests end one by one", async () => {
    let [session, count, runs] = ["first", 0, 0];
    const renewed = Promise.withResolvers<void>();
    const answer = fetchRaw(({ id, method }) => {
      if (method === "tools/call") runs++;
      return resultOf(id, { tools: [tool("call")], content: [] });
    });
    const registry = new ToolRegistry();
    await using _server = await importFrom(async (url, init = {}) => {
      const sent = new Headers(init.headers).get("mcp-session-id") ?? session;
      if (sent !== session) {
        // The other calls of the session are still in flight when the first one is rejected.
        if (String(init.body).includes("tools/call") && count++ > 0) await renewed.promise;
        init.signal?.throwIfAborted();
        return new Response("no", { status: 404 });
      }
      if (session === "second") renewed.resolve();
      const response = await answer(url, init);
      response.headers.set("mcp-session-id", session);
      return response;
    }, { registry });
    session = "second";
    const dispatcher = new ToolDispatcher(registry);
    const all = Array.from({ length: 20 }, () => dispatcher.dispatch({ name: "far:call" }));
    const results = await Promise.all(all);
    assert(results.every(({ ok }) => ok));
    assertEquals(runs, 20);
  });
});

describe("a tool whose x-mcp-header is wrong", () => {
  for (const era of ["2025-11-25", "2026-07-28"]) {
    it(`is rejected, and its raw name is not printed, in ${era}`, async () => {
      const wrong = { type: "object", properties: { a: { type: "object", "x-mcp-header": "A" } } };
      const tools = [tool("good"), tool("\x1b[2Jbad\n", { inputSchema: wrong })];
      const fresh = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
      const discovered = { ...fresh, supportedVersions: [era], capabilities: { tools: {} } };
      const old = fetchRaw(({ id }) => resultOf(id, { ...fresh, tools }));
      const printed: unknown[] = [];
      const { warn } = console;
      console.warn = (...texts) => void printed.push(texts);
      const server = await importFrom((url, init = {}) => {
        const { id, method } = JSON.parse(String(init.body ?? "{}"));
        return era === "2026-07-28" && method === "server/discover"
          ? Promise.resolve(json(resultOf(id, discovered)))
          : old(url, init);
      }).finally(() => console.warn = warn);
      assertEquals(server.tools.map(({ id }) => id), ["far:good"]);
      const [rejected] = server.rejected;
      assertStringIncludes(rejected?.message ?? "", 'it has a wrong "x-mcp-header"');
      assertEquals(printed, []);
      await server.close();
    });
  }
});

describe("an imported server that ends the stream of a call without a response", () => {
  for (const [status, isRepeatable] of [[400, false], [404, true]] as const) {
    const what = isRepeatable ? "repeats it, if that is safe" : "reports that it may have run";
    it(`and has lost the session of the call, with status ${status}: plue ${what}`, async () => {
      let [calls, isDeployed] = [0, false];
      const annotations = { readOnlyHint: isRepeatable };
      const answer = fetchRaw(({ id, method }) => {
        if (method !== "tools/call") {
          return resultOf(id, { tools: [tool("call", { annotations })] });
        }
        if (++calls > 1) return resultOf(id, { content: [] });
        isDeployed = true;
        return new Response("retry: 1\nid: 1\ndata: \n\n", { headers: EVENTS });
      });
      const registry = new ToolRegistry();
      await using _server = await importFrom(async (url, init) => {
        const session = new Headers(init?.headers).get("mcp-session-id");
        if (isDeployed && session === "first") return new Response("", { status });
        const response = await answer(url, init);
        response.headers.set("mcp-session-id", isDeployed ? "second" : "first");
        return response;
      }, { registry });
      const result = await new ToolDispatcher(registry).dispatch({ name: "far:call" });
      const failure = result.ok ? [] : [result.error.code, result.error.ran];
      assertEquals(failure, isRepeatable ? [] : ["unavailable", "unknown"]);
      assertEquals(calls, isRepeatable ? 2 : 1);
    });
  }
});

describe("a server before 2026-07-28 that was deployed again with other tools", () => {
  const imported = async (options: object, onGet = () => new Response(null, { status: 405 })) => {
    let session = "first";
    let tools = [tool("call")];
    const registry = new ToolRegistry();
    const renewed = new Promise<void>((resolve) =>
      registry.subscribe(() => registry.hasTool("far:fresh") && resolve())
    );
    const [begun, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let running: Promise<void> | undefined;
    const answer = fetchRaw(async ({ id, method }) => {
      if (method === "tools/call") begun.resolve();
      if (method === "tools/call") await running;
      return resultOf(id, { tools, content: [] });
    }, onGet);
    const server = await importFrom(async (url, init = {}) => {
      const sent = new Headers(init.headers).get("mcp-session-id") ?? session;
      if (sent !== session && String(init.body).includes("tools/list")) refused.resolve();
      if (sent !== session) return new Response("no", { status: 404 });
      const response = await answer(url, init);
      response.headers.set("mcp-session-id", session);
      return response;
    }, { registry, ...options });
    const call = async (name: string, principal: string, end?: Promise<void>) => {
      running = end;
      const result = await new ToolDispatcher(registry).dispatch({ name }, { principal });
      return result.ok ? "ok" : result.error.code;
    };
    const deploy = (next = "second"): void => {
      session = next;
      const inputSchema = { type: "object", properties: { more: { type: "string" } } };
      tools = [tool("call", { inputSchema }), tool("fresh")];
    };
    return { server, call, deploy, renewed, begun: begun.promise, refused: refused.promise };
  };
  const authorize = ({ principal }: ToolContext) => `token of ${principal}`;
  const ended = () => new Response("retry: 0\n\n", { headers: EVENTS });

  it("is listed again after a caller's list has a changed tool", async () => {
    const { server, call, deploy, renewed } = await imported({ authorize });
    assertEquals(await call("far:call", "ann"), "ok");
    deploy();
    assertEquals(await call("far:call", "bob"), "unavailable");
    await renewed;
    assertEquals([await call("far:call", "bob"), await call("far:fresh", "bob")], ["ok", "ok"]);
    await server.close();
  });

  it("gives a caller another session before a new tool is called", async () => {
    const { server, call, deploy } = await imported({ authorize });
    assertEquals(await call("far:call", "ann"), "ok");
    deploy();
    await server.refresh();
    assertEquals(await call("far:fresh", "ann"), "ok");
    await server.close();
  });

  it("is connected again if it had no sessions before, and requires one now, by a read or a call", async () => {
    let [session, rejected] = ["", 0];
    const answer = fetchRaw(({ id }) =>
      resultOf(id, { tools: [tool("call"), tool(session || "first")], content: [] })
    );
    const fetch: typeof answer = async (url, init) => {
      const sent = new Headers(init?.headers).get("mcp-session-id") ?? "";
      const isOpening = String(init?.body).includes('"initialize"');
      if (!isOpening && sent !== session) {
        // The other calls of the connection are still in flight when the first one is rejected.
        await new Promise((resolve) => setTimeout(resolve, rejected++));
        return new Response("", { status: 404 });
      }
      const response = await answer(url, init);
      if (session !== "") response.headers.set("mcp-session-id", session);
      return response;
    };
    const states: unknown[] = [];
    const { promise: renewed, resolve } = Promise.withResolvers<void>();
    const onState = (error?: unknown): void => {
      states.push(error);
      if (states.length > 1 && error === undefined) resolve();
    };
    const registry = new ToolRegistry();
    await using server = await importFrom(fetch, { onState, registry });
    session = "second";
    await server.refresh();
    await renewed;
    assertEquals(server.tools.map(({ id }) => id), ["far:call", "far:second"]);
    for (const next of ["", "third"]) {
      session = next;
      const dispatcher = new ToolDispatcher(registry);
      const all = Array.from({ length: 10 }, () => dispatcher.dispatch({ name: "far:call" }));
      for (const { ok } of await Promise.all(all)) assert(ok);
    }
  });

  it("is listed again after its stream has ended", async () => {
    const { server, deploy, renewed } = await imported({}, ended);
    deploy();
    await renewed;
    await server.close();
  });

  it("is listed again after the third attempt to open its stream in the same session", async () => {
    let requests = 0;
    let change = (_session: string): void => {};
    const { server, deploy, renewed } = await imported({}, () => {
      if (++requests === 4) change("first");
      return requests > 1 && requests < 4 ? new Response(null, { status: 502 }) : ended();
    });
    change = deploy;
    await renewed;
    assert(requests >= 4);
    await server.close();
  });

  it("completes its running calls after its stream has ended", async () => {
    const { server, call, deploy, begun, refused } = await imported({}, ended);
    const running = Promise.withResolvers<void>();
    const result = call("far:call", "ann", running.promise);
    await begun;
    deploy();
    await refused;
    running.resolve();
    assertEquals(await result, "ok");
    await server.close();
  });
});

/** Connects until a connection is made. */
async function connected(
  open: (signal: AbortSignal) => Promise<Client>,
  onConnected: (client: Client) => Promise<void> = () => Promise.resolve(),
): Promise<McpConnection> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const connection = new McpConnection(
    { ...{ transport: "stdio", isOwn: true, describe: String }, open },
    { firstDelayMs: 0, maxDelayMs: 0 },
    { onConnected, onError() {}, onState: (error) => void (error === undefined && resolve()) },
  );
  connection.connectLater();
  await promise;
  return connection;
}

it("a server that is lost while its list is read is opened by one attempt at a time", async () => {
  let attempts = 0;
  let pending = 0;
  let most = 0;
  const connection = await connected(
    async () => {
      most = Math.max(most, ++pending);
      await new Promise((next) => setTimeout(next));
      pending--;
      return { close: () => Promise.resolve() } as Client;
    },
    (client) => {
      if (++attempts === 5) return Promise.resolve();
      client.onclose?.();
      return Promise.reject(new Error("The program has ended"));
    },
  );
  assertEquals([attempts, most], [5, 1]);
  await connection.close();
});

it("a server that stays away leaves no listeners behind", async () => {
  let attempts = 0;
  let listeners = 0;
  const connection = await connected((signal) => {
    if (attempts++ === 0) {
      const { addEventListener: add, removeEventListener: remove } = signal;
      signal.addEventListener = (...args: never[]) => {
        listeners++;
        add.apply(signal, args as never);
      };
      signal.removeEventListener = (...args: never[]) => {
        listeners--;
        remove.apply(signal, args as never);
      };
    }
    return attempts < 20
      ? Promise.reject(new Error("It is away"))
      : Promise.resolve({ close: () => Promise.resolve() } as Client);
  });
  await new Promise((next) => setTimeout(next));
  assertEquals([attempts, listeners], [20, 0]);
  await connection.close();
});

it("close() of an import ends a read of the list that the server does not answer", async () => {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const server = await importFrom(
    fetchRaw((_message, init) => {
      resolve();
      return silence(init);
    }),
    { background: true },
  );
  await reached;
  await server.close();
  // The client's own limit for the response is a minute.
}, 30_000);

describe("a list that is not read from the server", () => {
  it("is empty for a resumed session, whose features the client does not know", async () => {
    const fetch = fetchRaw(({ id }) => resultOf(id, {}));
    await using server = await importFrom(fetch, { http: { fetch, sessionId: "resumed" } });
    assertEquals(server.tools, []);
  });

  it("is a failure with the name of the server if the connection was lost", async () => {
    let isDown = false;
    const listing = Promise.withResolvers<void>();
    const registry = new ToolRegistry();
    const fetch = fetchRaw(({ id, method }, init) => {
      if (method !== "tools/list") throw Object.assign(new Error(), { code: "ECONNREFUSED" });
      if (!isDown) return resultOf(id, { tools: [tool("call")] });
      listing.resolve();
      return silence(init);
    });
    const server = await importFrom(fetch, { registry });
    isDown = true;
    const reads = Promise.allSettled([server.refresh(), server.refresh()]);
    await listing.promise;
    const call = new ToolDispatcher(registry).dispatch({ name: "far:call" });
    const [, read] = await reads;
    await server.close();
    await call;
    assertStringIncludes(
      String(read?.status === "rejected" && read.reason),
      `Cannot import the MCP server at ${URL_OF_SERVER}: The connection is closed`,
    );
  });
});

describe("importMcpServer() that is aborted", () => {
  const STAGES = ["server/discover", "initialize", "tools/list", "the second page"] as const;
  for (const stage of STAGES) {
    it(`rejects immediately at an abort while the server is silent at ${stage}`, async () => {
      const reached = Promise.withResolvers<RequestInit>();
      const wait = (init: RequestInit): Promise<never> => {
        reached.resolve(init);
        return silence(init);
      };
      const answered = fetchRaw(({ id, params }, init) =>
        stage === "tools/list" || params?.["cursor"] !== undefined
          ? wait(init)
          : resultOf(id, { tools: [], nextCursor: "2" })
      );
      const caller = new AbortController();
      const importing = importFrom(
        (url, init = {}) =>
          String(init.body).includes(`"${stage}"`) && stage !== "tools/list"
            ? wait(init)
            : answered(url, init),
        { signal: caller.signal },
      );
      importing.catch(() => {});
      const { signal } = await reached.promise;
      const aborted = new Promise((resolve) => signal?.addEventListener("abort", resolve));
      const reason = new Error("Enough");
      caller.abort(reason);
      assertEquals(await importing.then(() => undefined, (error) => error), reason);
      // The request of the import was aborted, too.
      await aborted;
    });
  }

  it("rejects at an abort while the store of its pins is silent, and registers nothing", async () => {
    const { toolPins } = await import("@plue/tools/pins");
    const requested = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<undefined>();
    const pins = toolPins({
      load() {
        requested.resolve();
        return answer.promise;
      },
      save: () => Promise.resolve(),
    });
    const registry = new ToolRegistry();
    const caller = new AbortController();
    const importing = importFrom(
      fetchRaw(({ id }) => resultOf(id, { tools: [tool("call")] })),
      { signal: caller.signal, pins, registry },
    );
    importing.catch(() => {});
    await requested.promise;
    caller.abort(new Error("Enough"));
    await assertRejects(() => importing, Error, "Enough");
    answer.resolve(undefined);
    // This check is queued after the first one, so it ends when the first one has ended.
    await pins.check({ source: "mcp", tools: [], warnings: [], rejected: [] }, "other");
    assertEquals(registry.count, 0);
  });
});

describe("the errors of importMcpServer()", () => {
  // Longer than a message, so a message that is truncated too early contains the first half.
  const long = `q-secret-9${"s".repeat(700)}`;
  const SECRETS = ["hunter2-token", "q-secret-9", "user-secret", "pass-secret", "k".repeat(32)];
  const url = `https://user-secret:pass-secret@far.example/mcp/${"k".repeat(32)}/x?key=${long}`;
  const http = (fetch: ReturnType<typeof fetchRaw>) => ({
    fetch,
    requestInit: { headers: { authorization: "Bearer hunter2-token" } },
  });
  const messageOf = async (fetch: ReturnType<typeof fetchRaw>): Promise<string> => {
    const error = await importMcpServer(url, { namespace: "far", http: http(fetch) })
      .then(() => undefined, (thrown: Error) => thrown);
    const text = `${error?.message} ${error?.cause}`;
    assertEquals(SECRETS.filter((secret) => text.includes(secret)), []);
    return error?.message ?? "";
  };

  for (const status of [401, 403, 404, 500, 503]) {
    it(`name the address and the status ${status}, and no secret`, async () => {
      const message = await messageOf(() =>
        Promise.resolve(new Response(`Bearer hunter2-token ${url}`, { status }))
      );
      assertEquals(
        message,
        `Cannot import the MCP server at https://far.example/mcp/…/x: the server sent HTTP status ${status}`,
      );
    });
  }

  it("name the status of the list", async () => {
    const message = await messageOf(fetchRaw(() => new Response("no", { status: 502 })));
    assertStringIncludes(message, "the server sent HTTP status 502");
  });

  it("contain the reason, without the address that a runtime repeats", async () => {
    const message = await messageOf(() =>
      Promise.reject(new TypeError(`error sending request for url (${url}): refused\u001b[31m`))
    );
    assertStringIncludes(message, "at https://far.example/mcp/…/x: ");
    assertStringIncludes(message, "refused");
    assertEquals(message.includes("\u001b"), false);
  });

  it("name the problem of the list, without the token that the server repeats", async () => {
    const message = await messageOf(
      fetchRaw(({ id }) => ({
        jsonrpc: "2.0",
        id,
        error: { code: -32603, message: `You are Bearer hunter2-token, at ${long}` },
      })),
    );
    assertStringIncludes(message, "You are [credential], at [credential]");
  });
});

describe("Pace", () => {
  it("runs work immediately after a quiet time, and at most once a second", () => {
    const pace = new Pace();
    assertEquals(pace.next(0), 0);
    assertEquals(pace.next(10), 990);
    assertEquals(pace.next(20_000), 0);
    assertEquals(pace.next(20_500), 500);
  });

  it("delays work by ten times its own time, up to a minute", () => {
    const pace = new Pace();
    assertEquals(pace.next(0), 0);
    pace.took(1_800, 2_000);
    assertEquals(pace.next(3_000), 17_000);
    pace.took(20_000, 40_000);
    assertEquals(pace.next(41_000), 59_000);
  });

  it("increases the delays of repeated work, up to a minute", () => {
    const pace = new Pace();
    let now = 0;
    const waits = Array.from({ length: 9 }, () => {
      const wait = pace.next(now);
      now += wait;
      return wait;
    });
    assertEquals(waits, [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });
});

/** A list in JSON, with a number of values. */
const listOf = (count: number): string => `[${"[],".repeat(count / 2)}0]`;

describe("readLines()", () => {
  const read = (lines: ReturnType<typeof readLines>): readonly JSONRPCMessage[] => {
    const message = lines.readMessage();
    return message === null ? [] : [message, ...read(lines)];
  };
  const encoder = new TextEncoder();

  it("returns an error as the response that is too large, with the id at either end", () => {
    const lines = readLines(200, new UnsolicitedMessages(), new Map(), JSON.parse);
    const result = { text: `"id":9}${"é".repeat(100)}`, id: 9 };
    const large = [{ jsonrpc: "2.0", id: 1, result }, { result, jsonrpc: "2.0", id: 2 }, {
      result,
    }];
    const texts = ["a text", ...large.map((one) => JSON.stringify(one)), '{"id":3}', '{"id'];
    lines.append(encoder.encode(texts.join("\r\n")));
    const message = "the server sent more than 200 bytes in one message, which is the limit";
    const error = { code: -32_000, message };
    assertEquals<unknown>(read(lines), [
      ...[1, 2, -1].map((id) => ({ jsonrpc: "2.0", id, error })),
      { id: 3 },
    ]);
    assertThrows(() => lines.append(new Uint8Array(800)), RangeError, "more than 800 bytes");
  });

  it("reads at most 1,000 lines without a message per second", async () => {
    for (const line of ["\n", "{}\n"]) {
      let count = 0;
      const clock = new FakeClock();
      const unsolicited = new UnsolicitedMessages(clock);
      const lines = readLines(KB, unsolicited, new Map(), (text) => {
        count++;
        if (text === "{}") throw new TypeError("no message");
        return JSON.parse(text);
      });
      lines.append(encoder.encode(`${line.repeat(1_500)}{"id":1}\n`));
      const readAll = (): unknown => {
        try {
          return lines.readMessage();
        } catch {
          return readAll();
        }
      };
      assertEquals(readAll(), null);
      assertEquals(count, 1_000);
      const over = unsolicited.waitForPause();
      await clock.pass(1_000);
      await over;
      assertEquals(readAll(), { id: 1 });
    }
  });

  it("reads lists and objects for 16 MiB a second, each for 32 bytes more", () => {
    const answer = (id: number, count = 300_000) => `{"result":${listOf(count)},"id":${id}}\n`;
    for (const other of [`${listOf(300_000)}\n`, answer(99)]) {
      const unsolicited = new UnsolicitedMessages(new FakeClock());
      const requests = new Map(Array.from({ length: 10 }, (_, id) => [id, id]));
      const lines = readLines(16 * KB * KB, unsolicited, requests, JSON.parse);
      const answers = Array.from({ length: 9 }, (_, id) => answer(id)).join("");
      lines.append(encoder.encode(answer(9, 600_000) + answers + other.repeat(5)));
      const messages: JSONRPCMessage[] = [];
      for (let next = lines.readMessage(); next !== null; next = lines.readMessage()) {
        messages.push(next);
      }
      assertStringIncludes(
        JSON.stringify(messages[0]).slice(0, 200),
        "more than 524288 JSON values in one message",
      );
      // The answers to 10 requests do not count.
      assertEquals(messages.length, 10 + 4);
    }
  });

  it("drops the unread and the later lines of a closed connection", () => {
    const lines = readLines(KB, new UnsolicitedMessages(), new Map(), JSON.parse);
    lines.append(encoder.encode('{"id":1}\n{"id":2}\n{"id'));
    lines.clear();
    lines.append(encoder.encode('"}\n{"id":3}\n'));
    assertEquals(read(lines), []);
  });

  it("joins the parts of a large message in linear time", () => {
    const lines = readLines(16 * KB * KB, new UnsolicitedMessages(), new Map(), JSON.parse);
    const part = encoder.encode("a".repeat(KB));
    lines.append(encoder.encode('{"text":"'));
    for (let count = 0; count < 8 * KB; count++) {
      lines.append(part);
      assert(lines.readMessage() === null);
    }
    lines.append(encoder.encode('"}\n'));
    const [message] = read(lines) as unknown as readonly { readonly text: string }[];
    assertEquals(message?.text.length, 8 * KB * KB);
  });
});

describe("UnsolicitedMessages", () => {
  it("pauses after too many messages, or 16 MiB of streams, in a second", async () => {
    for (const [least, count] of [[999, "add"], [16 * KB * KB, "read"]] as const) {
      const clock = new FakeClock();
      const unsolicited = new UnsolicitedMessages(clock);
      if (count === "read") unsolicited.read(least);
      else for (let added = 0; added < least; added++) unsolicited.add();
      assertEquals(unsolicited.isPaused, false);
      unsolicited[count](1);
      assert(unsolicited.isPaused);
      const over = unsolicited.waitForPause();
      await clock.pass(1_000);
      await over;
      assertEquals(unsolicited.isPaused, false);
    }
  });

  it("ends a pause for each wait, even if the timer of an earlier wait never fires", async () => {
    const clock = new FakeClock();
    const unsolicited = new UnsolicitedMessages(clock);
    unsolicited.read(16 * KB * KB + 1);
    void unsolicited.waitForPause();
    // On Workers, a timer ends with its request.
    clock.timers.clear();
    const over = unsolicited.waitForPause();
    await clock.pass(1_000);
    await over;
    assertEquals(unsolicited.isPaused, false);
  });
});

it("boundMessages() counts the messages that answer no request", async () => {
  const unsolicited = new UnsolicitedMessages(new FakeClock());
  const [transport] = InMemoryTransport.createLinkedPair();
  boundMessages(transport, unsolicited, new Map());
  transport.onmessage = () => {};
  for (let id = 0; id <= 2_000; id++) {
    assert(!unsolicited.isPaused);
    if (id <= 1_000) await transport.send({ jsonrpc: "2.0", id, method: "ping" });
    transport.onmessage({ jsonrpc: "2.0", id, result: {} });
  }
  assert(unsolicited.isPaused);
});

describe("boundedFetch()", () => {
  const bounded = (response: Response, maxBytes = 10, unsolicited = new UnsolicitedMessages()) =>
    boundedFetch(() => Promise.resolve(response), maxBytes, unsolicited)("http://a.example");

  it("passes a body within the limit on, with status and headers", async () => {
    const init = { status: 404, headers: { "x-more": "1" } };
    const response = await bounded(new Response("0123456789", init));
    const parts = [response.status, response.headers.get("x-more"), await response.text()];
    assertEquals(parts, [404, "1", "0123456789"]);
    assertEquals((await bounded(new Response(null, { status: 204 }))).status, 204);
    assertEquals(await (await bounded(json([]))).json(), []);
  });

  it("bounds the bodies of errors, too", async () => {
    const response = await bounded(new Response("0123456789a", { status: 500 }));
    await assertRejects(() => response.text());
  });

  const onDeno = maybe("Deno" in globalThis, "only the fetch of Deno does not");
  onDeno("ends a body at an abort, even if fetch does not", async () => {
    const end = Promise.withResolvers<unknown>();
    const body = new ReadableStream({ cancel: end.resolve });
    const caller = new AbortController();
    const { signal } = caller;
    const fetch = boundedFetch(
      () => Promise.resolve(new Response(body)),
      10,
      new UnsolicitedMessages(),
    );
    const text = (await fetch("http://a.example", { signal })).text();
    const reason = new Error("Enough");
    caller.abort(reason);
    assertEquals(await text.catch((error) => error), reason);
    assertEquals(await end.promise, reason);
  });

  it("counts a line as 2 KiB, because an empty event takes time, too", async () => {
    const unsolicited = new UnsolicitedMessages();
    const headers = { "content-type": "text/event-stream" };
    // workerd would split a text into smaller chunks.
    const lines = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("a\n".repeat(16 * KB))),
    });
    const response = new Response(lines, { headers });
    const { body } = await bounded(response, KB * KB, unsolicited);
    const reader = body?.getReader();
    const first = await reader?.read();
    assertEquals(first?.value?.byteLength, 16 * KB);
    assert(unsolicited.isPaused);
    await reader?.cancel();
  });

  const call = { body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call" }) };
  const events = `data: ${"a".repeat(430)}\n\n`.repeat(300);
  for (
    const [what, text, headers] of [
      ["a large body", "a".repeat(2 * KB * KB), { "content-type": "application/json" }],
      ["a stream of events", events, EVENTS],
    ] as const
  ) {
    it(`passes a part of ${what} in each second of a pause`, async () => {
      const clock = new FakeClock();
      const unsolicited = new UnsolicitedMessages(clock);
      const response = new Response(text, { headers });
      const fetch = boundedFetch(() => Promise.resolve(response), 4 * KB * KB, unsolicited);
      let isWhole = false;
      const body = fetch("http://a.example", call).then((read) => read.text())
        .finally(() => isWhole = true);
      let seconds = 0;
      for (; !isWhole && seconds < 10; seconds++) {
        // The streams of another caller take each second.
        unsolicited.read(16 * KB * KB + 1);
        await Promise.race([clock.armed(), body]);
        if (!isWhole) clock.advance(1_000);
      }
      assert(isWhole, `${seconds} seconds`);
      assertEquals(await body, text);
    });
  }

  it("pauses streams of many events, or without a request, and large bodies, but no short response", async () => {
    const event = "data: {}\n\n";
    const clock = new FakeClock();
    const unsolicited = new UnsolicitedMessages(clock);
    unsolicited.read(16 * KB * KB + 1);
    const ended: string[] = [];
    const read = async (name: string, text: string, init?: { body: string }, headers = EVENTS) => {
      const response = new Response(text, { headers });
      const fetch = boundedFetch(() => Promise.resolve(response), 4 * KB * KB, unsolicited);
      assertEquals(await (await fetch("http://a.example", init)).text(), text);
      ended.push(name);
    };
    const json = { "content-type": "application/json" };
    const others = [
      read("long", event.repeat(100), call),
      read("notification", event),
      read("large", "\n".repeat(2 * KB * KB), call, json),
    ];
    await read("short", event, call);
    await read("body", "\n".repeat(KB * KB), call, json);
    assertEquals(ended, ["short", "body"]);
    await clock.pass(1_000);
    await Promise.all(others);
  });

  it("bounds the JSON values of a message, but not the signs in its texts", async () => {
    const read = async (body: string, type: string): Promise<string> =>
      await (await bounded(new Response(body, { headers: { "content-type": type } }), KB * KB))
        .text();
    const [json, events, large] = ["application/json", "text/event-stream", listOf(600_000)];
    for (const [body, type] of [[large, json], [`id: "\ndata: ${large}\n\n`, events]] as const) {
      await assertRejects(() => read(body, type), RangeError, "more than 500000 JSON values");
    }
    const text = JSON.stringify(`\\"${large}"\\`);
    const short = `data: ${listOf(300_000)}\n\n`.repeat(2);
    assertEquals([await read(text, json), await read(short, events)], [text, short]);
  });

  it("counts the bytes of each event separately", async () => {
    const stream = new Response("data: 12\n\ndata: 34\r\n\r\ndata: 56\r\rdata: 78", {
      headers: { "content-type": "text/event-stream; charset=utf-8" },
    });
    assertStringIncludes(await (await bounded(stream)).text(), "78");
  });
});
