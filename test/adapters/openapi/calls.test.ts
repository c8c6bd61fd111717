import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  type Credentials,
  importOpenApi,
  type OpenApiImportOptions,
} from "../../../src/adapters/openapi/mod.ts";
import { ToolDispatcher, ToolRegistry, type ToolResult } from "../../../mod.ts";
import { credentials, fromContext } from "../../../src/adapters/credentials/mod.ts";
import { call } from "../../support/call_tool.ts";
import data from "./calls.json" with { type: "json" };
import { api, fakeApi, petStore, respond, respondWith, type SentRequest } from "./fake_api.ts";

/** Calls an operation of the pet store, and returns the result and the only request. */
async function ask(
  name: string,
  args: unknown,
  answer = respond(200, "[]"),
): Promise<{ readonly result: ToolResult; readonly requests: SentRequest | undefined }> {
  const { fetch, requests } = fakeApi(() => answer);
  const { tools } = importOpenApi(petStore(), { fetch });
  const result = await call(tools, name, args);
  assert(requests.length <= 1);
  return { result, requests: requests[0] };
}

type Headers = Readonly<Record<string, string>>;

/** Calls an operation with one parameter, and returns the URL, the header and the result. */
async function send(path: string, parameter: object, value: unknown): Promise<
  { readonly url?: string | undefined; readonly headers: Headers; readonly result: ToolResult }
> {
  const { fetch, requests } = fakeApi();
  const operation = { operationId: "op", parameters: [{ name: "p", ...parameter }] };
  const document = api(path, "get", operation);
  const { tools } = importOpenApi(document, { fetch, baseUrl: "https://api.example/v1/" });
  const result = await call(tools, "op", value === undefined ? {} : { p: value });
  return { url: requests[0]?.url, headers: requests[0]?.request.headers ?? {}, result };
}

type Row = readonly [parameter: object, value: unknown, written: string];

/** A call of the pet store, its request, and its content or its failure. */
interface Call {
  readonly title: string;
  readonly name: string;
  readonly args?: object;
  readonly options?: OpenApiImportOptions;
  /** @default {[200, "[]"]} */
  readonly answer?: readonly [status: number, text: string, type?: string];
  /** The URL, and fields and headers of the request; absent if no request is sent. */
  readonly request?: Readonly<Record<string, string | null>>;
  readonly content?: unknown;
  readonly code?: string;
  readonly message?: string;
}

describe("an imported operation", () => {
  it("warns of a write whose response is invalid, if only reads are checked", async () => {
    const responses = {
      "200": { content: { "application/json": { schema: { type: "object" } } } },
    };
    const paths = {
      "/orders": {
        get: { operationId: "list", responses },
        post: { operationId: "order", responses },
      },
    };
    const { fetch, requests } = fakeApi(() => respond(200, "[1]"));
    const { tools } = importOpenApi({ openapi: "3.1.0", paths }, {
      fetch,
      baseUrl: "https://api.example",
      returns: "reads",
    });
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }));
    const events: unknown[] = [];
    const metadata = (value: unknown) => void events.push(value);
    const read = await dispatcher.dispatch({ name: "list" }, { metadata });
    assertEquals(!read.ok && read.error.code, "invalid_result");
    events.length = 0;
    const written = await dispatcher.dispatch({ name: "order" }, { metadata });
    assertEquals(written.ok && written.content, [1]);
    assertEquals(events, [{
      type: "warning",
      message: "The response to order does not match its schema; the call was made",
    }]);
    assertEquals(requests.length, 2);
  });

  for (
    const { title, name, args = {}, options, answer, request, ...wanted } of data
      .calls as never as readonly Call[]
  ) {
    it(title, async () => {
      const { fetch, requests } = fakeApi(() => respond(...answer ?? [200, "[]"] as const));
      const { tools } = importOpenApi(petStore(), { fetch, ...options });
      const result = await call(tools, name, args);
      assertEquals(requests.length, request === undefined ? 0 : 1);
      const { url, request: { headers, ...sent } } = requests[0] ?? { request: { headers: {} } };
      const all: Readonly<Record<string, unknown>> = { url, ...headers, ...sent };
      for (const [field, value] of Object.entries(request ?? {})) {
        assertEquals([field, all[field] ?? null], [field, value]);
      }
      if (result.ok) return assertEquals({ content: result.content }, wanted as object);
      assertEquals(result.error.code, wanted.code);
      assertStringIncludes(result.error.message, wanted.message ?? "");
    });
  }

  it("sends forms of several parts, and no value can end its part", async () => {
    const { fetch, requests } = fakeApi();
    const requestBody = { content: { "multipart/form-data": { schema: { type: "object" } } } };
    const document = api("/a", "post", { operationId: "op", requestBody });
    const { tools } = importOpenApi(document, { fetch, baseUrl: "https://api.example" });
    await call(tools, "op", { 'a"\r\nb': "1", list: ["x", { y: 2 }] });
    const type = requests[0]?.request.headers["content-type"] ?? "";
    const boundary = type.slice(type.indexOf("plue-"));
    assertEquals(type, `multipart/form-data; boundary=${boundary}`);
    assertEquals(requests[0]?.request.body?.split(`--${boundary}`), [
      "",
      '\r\ncontent-disposition: form-data; name="a%22%0D%0Ab"\r\n\r\n1\r\n',
      '\r\ncontent-disposition: form-data; name="list"\r\n\r\nx\r\n',
      '\r\ncontent-disposition: form-data; name="list"\r\ncontent-type: application/json\r\n\r\n{"y":2}\r\n',
      "--\r\n",
    ]);
  });

  const written = { query: "/a", path: "/a/{p}/b" } as const;
  for (const [place, rows] of [["query", data.queries], ["path", data.paths]] as const) {
    for (const [parameter, value, text] of rows as never as readonly Row[]) {
      const [shown, as] = [value, parameter].map((part) => JSON.stringify(part));
      it(`writes ${shown} into a ${place} as ${as}`, async () => {
        const { url } = await send(written[place], { in: place, ...parameter }, value);
        assertEquals(url, `https://api.example/v1/a${place === "path" ? `/${text}/b` : text}`);
      });
    }
  }

  for (const [place, parameter, value, name, text] of data.headers) {
    it(`writes ${JSON.stringify(value)} into a ${place} as ${JSON.stringify(parameter)}`, async () => {
      const { headers } = await send("/a", { in: place, ...parameter as object }, value);
      assertEquals(headers[name as string] ?? null, text);
    });
  }

  for (const [place, values] of Object.entries(data.unsendable)) {
    // A lone surrogate cannot be written in a JSON file.
    for (const value of place === "path" ? [...values, "\ud800"] : values) {
      it(`does not send the ${place} parameter ${JSON.stringify(value)}`, async () => {
        const { url, result } = await send(
          place === "path" ? "/a/{p}/b" : "/a",
          { in: place },
          value,
        );
        assertEquals(url, undefined);
        assert(!result.ok);
        assertEquals(result.error.code, "invalid_arguments");
        assertEquals(result.error.issues?.[0]?.path, "/p");
      });
    }
  }

  it("rejects two parameters that together form a path to a parent", async () => {
    const { fetch, requests } = fakeApi();
    const parameters = ["p", "q"].map((name) => ({ name, in: "path", required: true }));
    const document = api("/a/{p}{q}", "get", { operationId: "op", parameters });
    const { tools } = importOpenApi(document, { fetch, baseUrl: "https://api.example" });
    const result = await call(tools, "op", { p: ".", q: "." });
    assertEquals(requests, []);
    assertEquals(!result.ok && result.error.code, "invalid_arguments");
  });

  it("sends the given credentials, which take precedence over arguments", async () => {
    const { fetch, requests } = fakeApi();
    const seen: unknown[] = [];
    const parameters = [{ name: "token", in: "query" }, { name: "X-Token", in: "header" }];
    const { tools } = importOpenApi(api("/a", "get", { operationId: "op", parameters }), {
      fetch,
      baseUrl: "https://api.example",
      authorize: (operation, context): Credentials => {
        seen.push(operation.operationId, typeof context.callId);
        return {
          headers: { "X-Token": "secret", authorization: "Bearer b" },
          query: { token: "s&t" },
        };
      },
    });
    await call(tools, "op", { token: "mine", "X-Token": "mine" });
    assertEquals(requests[0]?.url, "https://api.example/a?token=s%26t");
    assertEquals(requests[0]?.request.headers["x-token"], "secret");
    assertEquals(requests[0]?.request.headers["authorization"], "Bearer b");
    assertEquals(seen, ["op", "string"]);
  });

  it("removes the address from errors as runtimes write it", async () => {
    const parameters = [{ name: "q", in: "query" }];
    const { tools } = importOpenApi(api("/a", "get", { operationId: "op", parameters }), {
      fetch: (url) => Promise.reject(new Error(`ZlibError fetching "${new URL(url).href}"`)),
      baseUrl: "https://api.example",
      authorize: () => ({ query: { key: "secret" } }),
    });
    const result = await call(tools, "op", { q: "O'Brien" });
    const why = 'Cannot get a response to GET /a: ZlibError fetching "GET /a"';
    assertEquals(!result.ok && result.error.message, why);
  });

  it("sends no header with two lines, and does not repeat it", async () => {
    const { tools } = importOpenApi(api("/a", "get", { operationId: "op" }), {
      fetch,
      baseUrl: "http://127.0.0.1:9",
      authorize: () => ({ headers: { authorization: "Bearer one\ntwo" } }),
    });
    const result = await call(tools, "op", {});
    assert(!result.ok);
    const { message } = result.error;
    assertStringIncludes(message, 'Cannot send the request: "authorization" must be one line');
    assert(!message.includes("two"));
  });

  it("reports the credential that the API has rejected, and no other one of the tool", async () => {
    const rejected: string[] = [];
    const source = fromContext((name) => ({
      token: `the-token-of-${name}`,
      reject() {
        rejected.push(name);
        throw new Error("the store cannot be reached");
      },
    }));
    const { tools } = importOpenApi(api("/a", "get", { operationId: "op" }), {
      fetch: fakeApi(() => respond(401, "")).fetch,
      baseUrl: "https://api.example",
      credentials: { hub: {}, other: {} },
      authorize: (_, { credential }) => ({ query: { key: credential("hub").token } }),
    });
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }), {
      credentials: credentials(source),
    });
    const result = await dispatcher.dispatch({ name: "op" });
    assertEquals(!result.ok && result.error.code, "denied");
    assertEquals(rejected, ["hub"]);
  });

  it("sends credentials to the servers of the document only, and names them", async () => {
    const operation = (id: string, servers?: readonly unknown[]) => ({
      get: { operationId: id, responses: {}, ...(servers === undefined ? {} : { servers }) },
    });
    const document = {
      openapi: "3.1.0",
      servers: [{ url: "https://api.example/v1" }],
      paths: {
        "/a": operation("a"),
        "/b": operation("b", [{ url: "https://evil.example/" }]),
        "/c": operation("c", [{ url: "https://api.example/v2" }]),
        "/d": { ...operation("d"), servers: [{ url: "http://api.example" }] },
      },
    };
    const { fetch, requests } = fakeApi();
    const authorize = (): Credentials => ({ headers: { authorization: "Bearer b" } });
    const { tools, warnings } = importOpenApi(document, { fetch, authorize });
    for (const { id } of tools) await call(tools, id, {});
    assertEquals(requests.map(({ url }) => url), [
      "https://api.example/v1/a",
      "https://api.example/v1/b",
      "https://api.example/v2/c",
      "https://api.example/v1/d",
    ]);
    assertEquals(warnings.map(({ tool, rule }) => [tool, rule]), [
      [undefined, "authorize"],
      ["b", "servers"],
      ["d", "servers"],
    ]);
    assertStringIncludes(warnings[0]?.message ?? "", '"https://api.example"');
    assertStringIncludes(warnings[1]?.message ?? "", '"https://evil.example"');

    const own = { ...document, servers: [] };
    const without = importOpenApi(own, { fetch, authorize }).tools;
    assertEquals(without.filter(({ execute }) => execute !== undefined), []);
    const open = fakeApi();
    const plain = importOpenApi(document, { fetch: open.fetch });
    await call(plain.tools, "b", {});
    assertEquals([open.requests[0]?.url, plain.warnings], ["https://evil.example/b", []]);
    const fixed = importOpenApi(document, { fetch, authorize, baseUrl: "https://mine.example" });
    assertEquals(fixed.warnings, []);
  });

  for (
    const [status, code, retryable, ran] of data.statuses as [number, string, boolean, string][]
  ) {
    it(`reports status ${status} as ${code}`, async () => {
      const { result } = await ask("listPets", {}, respond(status, '{"title":"No"}'));
      assert(!result.ok);
      const { error } = result;
      assertEquals([error.code, error.retryable, error.ran], [code, retryable, ran]);
      assertStringIncludes(error.message, `GET /pets with status ${status}`);
      assertEquals(error.message.includes('{"title":"No"}'), status !== 302);
    });
  }

  it("reads an API's error up to its limit, and truncates the text", async () => {
    let cancelled = false;
    const chunks = Array(4).fill(new TextEncoder().encode("x".repeat(10_000)));
    const answer = respondWith(500, chunks, "text/plain", () => cancelled = true);
    const { result } = await ask("listPets", {}, answer);
    assert(!result.ok);
    assertEquals(result.error.message.length < 600, true);
    assertEquals(cancelled, true);
  });

  it("does not quote a response that is not JSON, because it may repeat a credential", async () => {
    const { result } = await ask("listPets", {}, respond(200, '{"with": token-of-ann}'));
    assertEquals(!result.ok && result.error.message, "The response to GET /pets is not JSON");
  });

  it("stops reading a response that is too large", async () => {
    let cancelled = false;
    const chunks = Array(3).fill(new TextEncoder().encode("[".repeat(600)));
    const answer = respondWith(200, chunks, "application/json", () => cancelled = true);
    const { fetch } = fakeApi(() => answer);
    const { tools } = importOpenApi(petStore(), { fetch, maxResponseBytes: 1_000 });
    const result = await call(tools, "listPets", {});
    assertEquals(!result.ok && result.error.code, "output_too_large");
    assertEquals(cancelled, true);
  });

  it("joins the chunks of a response, even in the middle of a character", async () => {
    const bytes = new TextEncoder().encode('[{"name":"Mü","id":1}]');
    const { result } = await ask(
      "listPets",
      {},
      respondWith(200, [bytes.slice(0, 11), bytes.slice(11)], "application/json; charset=utf-8"),
    );
    assertEquals(result.ok && result.content, [{ name: "Mü", id: 1 }]);
  });

  it("reports a lost request without its URL, and whether its operation may have run", async () => {
    const refused = Object.assign(new Error(), { code: "ECONNREFUSED" });
    for (
      const [cause, name, args, ran, retryable] of [
        [undefined, "listPets", { $top: 3 }, "unknown", true],
        [undefined, "login", { user: "u" }, "unknown", false],
        [refused, "login", { user: "u" }, "no", true],
      ] as const
    ) {
      const { fetch } = fakeApi(({ url }) => Promise.reject(new Error(`lost ${url}`, { cause })));
      const result = await call(importOpenApi(petStore(), { fetch }).tools, name, args);
      assert(!result.ok);
      const { code, message } = result.error;
      const request = name === "login" ? "POST /login" : "GET /pets";
      assertEquals(code, "threw");
      assertEquals(message, `Cannot get a response to ${request}: lost ${request}`);
      assertEquals([result.error.ran, result.error.retryable], [ran, retryable]);
    }
  });

  it("passes the signal of the call to fetch, and reports an abort", async () => {
    const controller = new AbortController();
    const { fetch, requests } = fakeApi(({ request }) =>
      new Promise((_, reject) => {
        request.signal.addEventListener("abort", () => reject(request.signal.reason));
        controller.abort();
      })
    );
    const { tools } = importOpenApi(petStore(), { fetch });
    const result = await call(tools, "listPets", {}, controller.signal);
    assertEquals(requests.length, 1);
    assertEquals(!result.ok && result.error.code, "aborted");
  });

  it("sends an argument named __proto__ like any other", async () => {
    const { url } = await send("/a", { in: "query", name: "__proto__" }, undefined);
    assertEquals(url, "https://api.example/v1/a");
    const { fetch, requests } = fakeApi();
    const parameters = [{ name: "__proto__", in: "query" }];
    const document = api("/a", "get", { operationId: "op", parameters });
    const { tools } = importOpenApi(document, { fetch, baseUrl: "https://api.example" });
    await call(tools, "op", '{"__proto__":"x"}');
    assertEquals(requests[0]?.url, "https://api.example/a?__proto__=x");
  });
});
