/** Requests that have effects are sent once, even if their connection is lost. */

import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { importMcpServer } from "@plue/tools/mcp";
import { importOpenApi } from "@plue/tools/openapi";
import { assertEquals } from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ProviderClient } from "../../../src/adapters/credentials/provider.ts";
import { readService } from "../../../src/cli/sources/service.ts";
import { greeting, resultOf, tool } from "../mcp/raw_server.ts";

let url = "";
let lost = 0;
/** Answers all requests in JSON, but loses the connection of requests with the word "lost". */
const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  if (/\blost\b/.test(request.method === "POST" ? `${request.url} ${body}` : "")) {
    lost++;
    return void request.socket.destroy();
  }
  const message = body.includes("jsonrpc") ? JSON.parse(body) : undefined;
  const other = { access_token: "token", tools: [{ name: "lost", description: "X.", id: "lost" }] };
  const list = message && resultOf(message.id, { tools: [tool("lost")] });
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(message ? greeting(message) ?? list : other));
});

async function called(registry: ToolRegistry, id: string): Promise<unknown> {
  const result = await new ToolDispatcher(registry).dispatch({ name: id });
  return result.ok || result.error.ran;
}

describe("a request that has effects", () => {
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  const senders: Readonly<Record<string, () => Promise<unknown>>> = {
    async "a call of an MCP server"() {
      const registry = new ToolRegistry();
      await using _server = await importMcpServer(url, { namespace: "x", registry });
      return await called(registry, "x:lost");
    },
    async "a call of an MCP server with the token of its caller"() {
      const registry = new ToolRegistry();
      const options = { namespace: "x", registry, authorize: () => "token" };
      await using _server = await importMcpServer(url, options);
      return await called(registry, "x:lost");
    },
    async "an operation of a document"() {
      const post = (operationId: string) => ({ post: { operationId, responses: {} } });
      const paths = { "/found": post("found"), "/lost": post("lost") };
      const document = { openapi: "3.1.0", info: { title: "X", version: "1" }, paths };
      const { tools } = importOpenApi(document, { namespace: "x", fetch, baseUrl: url });
      const registry = new ToolRegistry({ tools });
      assertEquals(await called(registry, "x:found"), true);
      return await called(registry, "x:lost");
    },
    async "a call of a plue service"() {
      const tools = await readService({ url, headers: {} }, new AbortController().signal);
      return await called(new ToolRegistry({ tools: tools ?? [] }), "lost");
    },
    async "a refresh of a token"() {
      const client = new ProviderClient("test", "x", { tokenEndpoint: url, clientId: "plue" });
      await client.refresh("found");
      return await client.refresh("lost").catch(() => "unknown");
    },
  };
  for (const [what, send] of Object.entries(senders)) {
    it(`is sent once although its connection is lost: ${what}`, async () => {
      lost = 0;
      assertEquals([await send(), lost], ["unknown", 1]);
    });
  }
});
