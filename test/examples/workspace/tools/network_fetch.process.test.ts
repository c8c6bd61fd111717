import { Buffer } from "node:buffer";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import type { ResolvedAddress } from "../../../../examples/workspace/checked_request.ts";
import { testWorkspace } from "../testing.ts";

interface Fetched {
  readonly url: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly encoding: string;
  readonly truncated: boolean;
  readonly redirects: readonly string[];
}

interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly seen: {
    readonly url: string;
    readonly method: string;
    readonly headers: IncomingMessage["headers"];
  }[];
}

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestServer> {
  const seen: TestServer["seen"] = [];
  const server = createServer((request, response) => {
    seen.push({ url: request.url ?? "", method: request.method ?? "", headers: request.headers });
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const open = () => testWorkspace({}, { allowPrivateNetwork: true });

/** A workspace with these host names and their addresses. */
const named = (names: Readonly<Record<string, readonly string[]>>, options = {}) =>
  testWorkspace({}, {
    resolve: (hostname) =>
      Promise.resolve((names[hostname] ?? []).map((address): ResolvedAddress => ({
        address,
        family: address.includes(":") ? 6 : 4,
      }))),
    ...options,
  });

describe("network-fetch", () => {
  it("returns status, headers and text", async () => {
    await using server = await serve((_request, response) => {
      response.writeHead(201, { "content-type": "text/plain", "x-one": "1" });
      response.end("häh");
    });
    await using test = await open();
    const got = await test.ok<Fetched>("network-fetch", { url: `${server.url}/a?b=c#d` });
    assertEquals([got.status, got.body, got.encoding, got.truncated], [201, "häh", "utf8", false]);
    assertEquals([got.headers["x-one"], got.url], ["1", `${server.url}/a?b=c`]);
    assertEquals(server.seen.map(({ url, method }) => `${method} ${url}`), ["GET /a?b=c"]);
  });

  it("returns a body that is not text as base64", async () => {
    await using server = await serve((_request, response) =>
      response.end(Buffer.from([0, 255, 1]))
    );
    await using test = await open();
    const got = await test.ok<Fetched>("network-fetch", { url: server.url });
    assertEquals([got.body, got.encoding], ["AP8B", "base64"]);
  });

  it("cuts an endless body at a whole character and closes the connection", async () => {
    const { promise: hungUp, resolve } = Promise.withResolvers<void>();
    await using server = await serve((_request, response) => {
      response.on("close", resolve);
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write("ä".repeat(10_000)));
      };
      response.on("drain", more);
      response.on("error", () => undefined);
      more();
    });
    await using test = await open();
    const got = await test.ok<Fetched>("network-fetch", { url: server.url, maxBytes: 1_001 });
    assertEquals([got.truncated, got.body], [true, "ä".repeat(500)]);
    await hungUp;
  });

  it("rejects a name with a private address, including one among public ones, and sends no request", async () => {
    await using server = await serve((_request, response) => response.end("secret"));
    await using test = await named({
      "inside.example": ["127.0.0.1"],
      "mixed.example": ["93.184.216.34", "127.0.0.1"],
      "none.example": [],
    });
    for (const name of ["inside", "mixed", "none"]) {
      const url = `http://${name}.example:${server.port}/`;
      assertEquals((await test.fails("network-fetch", { url })).code, "denied");
    }
    assertEquals(server.seen, []);
  });

  it("rejects a private address behind a redirect, in the URL and behind a name", async () => {
    await using server = await serve((request, response) => {
      const location = request.url === "/address" ? "http://127.0.0.2/" : "http://inside.example/";
      response.writeHead(302, { location }).end();
    });
    // Allows the server's own address, as if it were public, but not the addresses of the redirects.
    await using test = await named({ "inside.example": ["10.0.0.7"] }, {
      allowPrivateNetwork: ["127.0.0.1"],
    });
    for (const [path, host] of [["address", "127.0.0.2"], ["name", "inside.example"]]) {
      const error = await test.fails("network-fetch", { url: `${server.url}/${path}` });
      assertEquals(error.code, "denied");
      assertStringIncludes(error.message, `"${host}": it is not an address of the public internet`);
    }
    assertEquals(server.seen.length, 2);
  });

  it("resolves each name once, connects to the checked address, and lists the redirects", async () => {
    await using server = await serve((request, response) => {
      const next = `http://second.invalid:${server.port}/2`;
      if (request.url === "/1") response.writeHead(301, { location: next }).end();
      else if (request.url === "/2") response.writeHead(307, { location: "3?x=1" }).end();
      else response.end("there");
    });
    const resolved: string[] = [];
    await using test = await testWorkspace({}, {
      allowPrivateNetwork: true,
      // The names do not exist, so the server is found only by these answers.
      resolve: (hostname) => {
        resolved.push(hostname);
        return Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
      },
    });
    const url = `http://first.invalid:${server.port}/1`;
    const got = await test.ok<Fetched>("network-fetch", { url });
    const second = `http://second.invalid:${server.port}`;
    assertEquals([got.body, got.url], ["there", `${second}/3?x=1`]);
    assertEquals(got.redirects, [url, `${second}/2`]);
    assertEquals(resolved, ["first.invalid", "second.invalid", "second.invalid"]);
    assertEquals(server.seen[0]?.headers.host, `first.invalid:${server.port}`);
  });

  it("fails after five redirects", async () => {
    await using server = await serve((_request, response) => {
      response.writeHead(302, { location: "/again" }).end();
    });
    await using test = await open();
    const error = await test.fails("network-fetch", { url: server.url });
    assertStringIncludes(error.message, "more than 5 redirects");
    assertEquals(server.seen.length, 6);
  });

  it("closes the connection when the call is aborted, before and in the middle of the body", async () => {
    for (const begins of [false, true]) {
      const { promise: hungUp, resolve } = Promise.withResolvers<void>();
      const controller = new AbortController();
      await using server = await serve((request, response) => {
        request.socket.on("close", resolve);
        if (begins) response.writeHead(200).write("begin");
        controller.abort();
      });
      await using test = await open();
      const result = await test.call("network-fetch", { url: server.url }, {
        signal: controller.signal,
      });
      assert(!result.ok);
      assertEquals([result.error.code, result.error.acknowledged], ["aborted", true]);
      await hungUp;
    }
  });

  it("stops when the call is aborted while the name server has not answered", async () => {
    const { promise: requested, resolve: ask } = Promise.withResolvers<void>();
    await using test = await testWorkspace({}, {
      resolve: () => {
        ask();
        return new Promise(() => {});
      },
    });
    const controller = new AbortController();
    const call = test.call("network-fetch", { url: "http://silent.example/" }, {
      signal: controller.signal,
    });
    await requested;
    controller.abort();
    const result = await call;
    assertEquals(result.ok ? "ok" : [result.error.code, result.error.acknowledged], [
      "aborted",
      true,
    ]);
  });

  it("names the error of a connection and of a name", async () => {
    await using server = await serve((_request, response) => response.end());
    const { port } = server;
    await server[Symbol.asyncDispose]();
    await using test = await testWorkspace({}, {
      allowPrivateNetwork: true,
      resolve: (hostname) =>
        hostname === "gone.example"
          ? Promise.reject(Object.assign(new Error("no"), { code: "ENOTFOUND" }))
          : Promise.resolve([{ address: "127.0.0.1", family: 4 }]),
    });
    const refused = await test.fails("network-fetch", { url: `http://here.example:${port}/` });
    assertStringIncludes(refused.message, "the network reported ECONNREFUSED");
    const unknown = await test.fails("network-fetch", { url: "http://gone.example/" });
    assertStringIncludes(unknown.message, "the network reported ENOTFOUND");
  });
});
